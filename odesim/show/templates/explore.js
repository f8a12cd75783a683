"use strict";
// The controls, and what happens when one of them changes.
(function () {
  var bar = document.getElementById("controls"), sweep = page.over.length > 0;
  var inRun = function (name) { return page.runs.some(function (run) { return name in run.variables; }); };
  var variables = Object.keys(page.variables).filter(inRun), chosen = new Set(sweep ? [0] : []);
  var boxes = {}, runs = [], fields = {}, grid = null;

  function group(title, id) {
    var set = element("fieldset", { id: id }, bar);
    element("legend", { text: title }, set);
    return element("div", {}, set);
  }
  // What is seen first: what theory speaks of, then the first of what moves.
  var theirs = page.runs.flatMap(function (run) { return run.theory.flatMap(function (one) { return one.variables; }); });
  var begun = new Set(variables.filter(function (name) { return theirs.indexOf(name) >= 0; }).concat(variables).slice(0, 3));
  var shown = group("variables", "variables");
  variables.forEach(function (name) {
    boxes[name] = tick(shown, name, begun.has(name), { value: name, title: page.variables[name].meaning });
  });
  if (!sweep && page.runs.length > 1) {
    var named = group("runs", "runs");
    runs = page.runs.map(function (run, k) { return tick(named, run.name, true, { value: String(k), title: run.said }); });
  }
  Object.keys(page.dims).forEach(function (dim) {
    var box = element("label", { text: dim + " (of " + page.dims[dim].length + ")" }, bar);
    fields[dim] = element("input", { type: "text", id: "places-" + dim, value: "all", placeholder: "all, or 1,3-5" }, box);
    if (!/^\d+$/.test(page.dims[dim][0])) fields[dim].title = "names: " + page.dims[dim].join(", ");
  });
  var dims = Object.keys(page.dims);
  var steps = page.runs.some(function (run) { return run.step; });
  var across = chooser(bar, "across", "across", ["time"].concat(steps ? ["step"] : [], variables), "time");
  var colour = chooser(bar, "colour by", "colour", ["auto"].concat(dims, page.runs.length > 1 ? ["run"] : [], ["none"]), "auto");
  var logX = tick(bar, "log across", false, { id: "log-x" }), logY = tick(bar, "log up", false, { id: "log-y" });
  var theory = page.runs.some(function (run) { return run.theory.length; }) ? tick(bar, "theory", true, { id: "theory" }) : null;

  function state() {
    var places = {};
    dims.forEach(function (dim) {
      try {
        places[dim] = meant(fields[dim].value, page.dims[dim]);
        fields[dim].setAttribute("aria-invalid", "false");
      } catch (wrong) { fields[dim].setAttribute("aria-invalid", "true"); places[dim] = null; }
    });
    var picked = sweep ? Array.from(chosen).sort(function (a, b) { return a - b; })
      : page.runs.map(function (run, k) { return k; }).filter(function (k) { return !runs.length || runs[k].checked; });
    return { variables: variables.filter(function (name) { return boxes[name].checked; }), runs: picked, places: places,
      across: across.value, colour: colour.value, logX: logX.checked, logY: logY.checked, theory: !!theory && theory.checked };
  }

  function tables(picked) {
    var section = document.getElementById("numbers");
    section.replaceChildren();
    var columns = picked.filter(function (k) { return Object.keys(page.runs[k].numbers).length; });
    if (!columns.length) return;
    element("h2", { text: "Headline numbers" }, section);
    var table = element("table", {}, element("div", { className: "scroll" }, section));
    var head = element("tr", {}, element("thead", {}, table)), body = element("tbody", {}, table);
    element("th", { text: "" }, head);
    columns.forEach(function (k) { element("th", { text: page.runs[k].name, scope: "col" }, head); });
    new Set(columns.flatMap(function (k) { return Object.keys(page.runs[k].numbers); })).forEach(function (name) {
      var row = element("tr", {}, body);
      var title = element("th", { text: name, scope: "row" }, row);
      element("div", { text: page.meanings[name] || "", className: "dim" }, title);
      columns.forEach(function (k) { element("td", { text: said(page.runs[k].numbers[name]), className: "number" }, row); });
    });
  }

  function draw() {
    var now = state();
    document.getElementById("explorer").hidden = variables.length === 0;
    if (variables.length) drawCurves(now);
    if (grid) drawGrid(grid, chosen);
    tables(now.runs);
  }

  if (sweep) {
    var list = document.getElementById("cells");
    page.runs.forEach(function (run, k) { element("option", { value: String(k), text: run.name, selected: k === 0 }, list); });
    grid = gridControls(draw);
    list.addEventListener("change", function () {
      chosen = new Set(Array.from(list.selectedOptions).map(function (option) { return Number(option.value); }));
      draw();
    });
  }
  bar.addEventListener("change", draw);
  draw();
  if (grid) document.getElementById("grid").on("plotly_click", function (event) {
    var k = event.points[0].customdata, list = document.getElementById("cells");
    if (!(event.event && event.event.shiftKey)) chosen = new Set();
    if (chosen.has(k)) chosen.delete(k); else chosen.add(k);
    Array.from(list.options).forEach(function (option) { option.selected = chosen.has(Number(option.value)); });
    draw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.body.dataset.ready = "true";
})();
