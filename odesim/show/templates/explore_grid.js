"use strict";
// The grid of a sweep: a point for every run; a click chooses the run whose curves and numbers stand below.
function gridControls(redraw) {
  var bar = document.getElementById("grid-controls"), headlines = Object.keys(page.runs[0].numbers);
  var moves = function (name) {
    return new Set(page.runs.map(function (run) { return run.numbers[name]; }).filter(function (v) { return v !== null; })).size > 1;
  };
  var numeric = page.over.filter(function (name) { return name !== "seed"; });
  var first = numeric[0] || page.over[0], other = page.over.filter(function (name) { return name !== first; });
  var wide = function (name) {
    var values = page.runs.map(function (run) { return run.place[name]; });
    return values.every(function (v) { return v > 0; }) && Math.max.apply(null, values) >= 10 * Math.min.apply(null, values);
  };
  var own = {
    across: chooser(bar, "across", "grid-across", page.over.concat(headlines), first),
    up: chooser(bar, "up", "grid-up", headlines.concat(page.over), headlines.find(moves) || headlines[0]),
    colour: chooser(bar, "colour", "grid-colour", ["none"].concat(page.over), other[0] || "none"),
    logX: tick(bar, "log across", wide(first), { id: "grid-log-x" }),
    logY: tick(bar, "log up", false, { id: "grid-log-y" })
  };
  Object.keys(own).forEach(function (key) { own[key].addEventListener("change", redraw); });
  return own;
}

function drawGrid(own, chosen) {
  var value = function (run, name) { return name in run.place ? run.place[name] : run.numbers[name]; };
  var groups = new Map(), colour = own.colour.value;
  page.runs.forEach(function (run, k) {
    var name = colour === "none" ? "" : colour + " = " + said(run.place[colour]);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(k);
  });
  var traces = Array.from(groups.entries()).map(function (entry, g) {
    return {
      type: "scatter", mode: "markers", name: text(entry[0]), showlegend: entry[0] !== "",
      x: entry[1].map(function (k) { return value(page.runs[k], own.across.value); }),
      y: entry[1].map(function (k) { return value(page.runs[k], own.up.value); }),
      customdata: entry[1],
      marker: { color: page.palette[g % page.palette.length], size: entry[1].map(function (k) { return chosen.has(k) ? 15 : 9; }),
        symbol: entry[1].map(function (k) { return page.runs[k].outcome === "failed" ? "x" : "circle"; }),
        line: { color: shade("--text"), width: entry[1].map(function (k) { return chosen.has(k) ? 2 : 0; }) } },
      text: entry[1].map(function (k) {
        var run = page.runs[k];
        return "<b>" + text(run.name) + "</b><br>" + text(own.up.value) + " = " + text(said(value(run, own.up.value))) +
          "<br>" + text(run.outcome);
      }),
      hovertemplate: "%{text}<extra></extra>"
    };
  });
  return Plotly.react("grid", traces, layout(340, {
    xaxis: axis({ type: own.logX.checked ? "log" : "-", title: { text: text(own.across.value) } }),
    yaxis: axis({ type: own.logY.checked ? "log" : "-", title: { text: text(own.up.value) } })
  }), tools());
}
