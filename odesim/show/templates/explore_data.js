"use strict";
// The data of the page: arrays decoded once, names as a reader wants them, and what a list of places means.
var page = JSON.parse(document.getElementById("data").textContent);
var all = function (what, where) { return Array.from((where || document).querySelectorAll(what)); };
var known = new WeakMap();

function numbers(packed) {
  if (!packed) return new Float64Array(0);
  if (!known.has(packed)) {
    var bytes = Uint8Array.from(atob(packed.data), function (c) { return c.charCodeAt(0); });
    known.set(packed, packed.kind === "f4" ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer));
  }
  return known.get(packed);
}

// Plotly reads marks of HTML in every text: what is data is escaped.
function text(words) {
  return String(words).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/%\{/g, "%&#123;");
}

function said(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  if (Array.isArray(value)) return !value.length ? "none" : value.slice(0, 6).map(said).join(", ") + (value.length > 6 ? ", …" : "");
  if (typeof value === "object")
    return Object.keys(value).map(function (name) { return name + ": " + said(value[name]); }).join(", ");
  return String(value);
}

// The entries of a dimension that "all", "1,3-5" or names of places stand for; null where a word means nothing.
function meant(words, labels) {
  var found = new Set(), parts = words.split(",").map(function (part) { return part.trim(); }).filter(Boolean);
  if (!parts.length || parts.indexOf("all") >= 0) return null;
  for (var part of parts) {
    var at = labels.indexOf(part), range = /^(\d+)\s*-\s*(\d+)$/.exec(part);
    if (at >= 0) found.add(at);
    else if (range && labels.indexOf(range[1]) >= 0 && labels.indexOf(range[2]) >= labels.indexOf(range[1]))
      for (var k = labels.indexOf(range[1]); k <= labels.indexOf(range[2]); k++) found.add(k);
    else throw new Error(part);
  }
  return found;
}

function element(name, given, parent) {
  var made = document.createElement(name);
  Object.keys(given || {}).forEach(function (key) {
    if (key === "text") made.textContent = given[key];
    else if (key in made) made[key] = given[key];
    else made.setAttribute(key, given[key]);
  });
  if (parent) parent.append(made);
  return made;
}

function chooser(parent, label, id, options, value) {
  var box = element("label", { text: label }, parent), select = element("select", { id: id }, box);
  options.forEach(function (option) { element("option", { value: option, text: option }, select); });
  if (value !== undefined) select.value = value;
  return select;
}

function tick(parent, label, checked, given) {
  var box = element("label", { className: "tick" }, parent);
  var input = element("input", Object.assign({ type: "checkbox", checked: checked }, given), box);
  box.append(label);
  return input;
}

function shade(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// What every plot shares: the colours of the page, plain bars of tools, powers of ten on logarithmic axes alone.
function axis(more) {
  return Object.assign(more.type === "log" ? {} : { tickformat: "~g" }, {
    gridcolor: shade("--line"), zerolinecolor: shade("--line"), linecolor: shade("--dim"),
    exponentformat: "power", automargin: true, showline: true }, more);
}

function layout(height, more) {
  return Object.assign({ height: height, hovermode: "closest", dragmode: "zoom", paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)", font: { family: "system-ui, sans-serif", size: 13, color: shade("--text") },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: shade("--dim"), activecolor: shade("--text") },
    margin: { l: 60, r: 15, t: 34, b: 45 }, hoverlabel: { align: "left" } }, more);
}

function tools() {
  return { responsive: true, displaylogo: false, displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
    modeBarButtonsToRemove: ["select2d", "lasso2d"] };
}
