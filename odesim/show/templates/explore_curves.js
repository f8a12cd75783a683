"use strict";
// The curves: a panel for every chosen variable, a line for every chosen entry of every chosen run.
var MOST_LINES = 400, DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];

function held(variable, line) { return page.runs[line.run].variables[variable]; }

function label(variable, line) {
  var words = held(variable, line).dims.map(function (dim, k) { return dim + " " + page.dims[dim][line.place[k]]; }).join(", ");
  return words ? variable + "[" + words + "]" : variable;
}

// The lines of one panel before they are drawn: of every run the entries that are chosen; of too many those that move most.
function chosenLines(variable, state) {
  var found = [];
  state.runs.forEach(function (r) {
    var data = page.runs[r].variables[variable];
    if (!data) return;
    data.places.forEach(function (place, row) {
      var wanted = data.dims.every(function (dim, k) { return !state.places[dim] || state.places[dim].has(place[k]); });
      if (wanted) found.push({ run: r, place: place, row: row });
    });
  });
  var share = Math.max(8, Math.floor(MOST_LINES / state.variables.length));
  if (found.length <= share) return { lines: found, hidden: 0 };
  found.forEach(function (line, k) {
    var values = series(held(variable, line), line.row, numbers(page.runs[line.run].time).length), low = Infinity, high = -Infinity;
    values.forEach(function (v) { if (v < low) low = v; if (v > high) high = v; });
    line.moves = high - low; line.order = k;
  });
  found.sort(function (a, b) { return b.moves - a.moves; });
  var kept = found.slice(0, share).sort(function (a, b) { return a.order - b.order; });
  return { lines: kept, hidden: found.length - share };
}

// What the horizontal axis shows of a run: its time, its steps, or a variable whose indices the panel has too.
function across(variable, line, state) {
  var run = page.runs[line.run];
  if (state.across === "time" || state.across === "step") return numbers(run[state.across]);
  var other = run.variables[state.across], own = held(variable, line).dims;
  if (!other) return null;
  var wanted = other.dims.map(function (dim) { return line.place[own.indexOf(dim)]; });
  if (wanted.indexOf(undefined) >= 0) return null;
  var row = other.places.findIndex(function (place) { return String(place) === String(wanted); });
  return row < 0 ? null : series(other, row, numbers(run.time).length);
}

function series(data, row, length) { return numbers(data.values).subarray(row * length, (row + 1) * length); }

function colourOf(variable, line, state) {
  if (state.colour === "run") return { k: line.run, name: page.runs[line.run].name };
  var own = held(variable, line).dims.filter(function (dim) { return dim !== "replica" && page.dims[dim].length <= 16; });
  var dim = state.colour === "auto" ? own[own.length - 1] : state.colour, at = held(variable, line).dims.indexOf(dim);
  if (at < 0) return { k: -1, name: "" };
  return { k: line.place[at], name: dim + " " + page.dims[dim][line.place[at]] };
}

// Runs are told apart by their lines: replicas thin, others by dashes; of a single run dashes tell colours used twice.
function runStyle(variable, line, state) {
  var many = state.colour !== "run" && state.runs.length > 1, thin = many && held(variable, line).dims.indexOf("replica") >= 0;
  var dash = many && !thin ? DASHES[state.runs.indexOf(line.run) % DASHES.length] : many ? "solid" : "";
  return { type: "scatter", mode: "lines", opacity: thin ? 0.6 : 1,
    line: { color: shade("--text"), width: thin ? 0.8 : 1.6, dash: dash } };
}

function trace(variable, line, panel, state, seen) {
  var run = page.runs[line.run], length = numbers(run.time).length;
  var values = series(run.variables[variable], line.row, length), x = across(variable, line, state);
  if (!x) return null;
  var group = colourOf(variable, line, state), first = !seen.has(group.name);
  seen.add(group.name);
  var cycle = group.k < 0 ? 0 : Math.floor(group.k / page.palette.length), style = runStyle(variable, line, state);
  var colour = group.k < 0 ? shade("--text") : page.palette[group.k % page.palette.length];
  var where = text(state.across) + " %{x:.6g}";
  return {
    type: "scatter", mode: length > 1 ? "lines" : "markers", x: x, customdata: values,
    y: state.logY ? values.map(Math.abs) : values, xaxis: "x", yaxis: panel ? "y" + (panel + 1) : "y",
    name: text(group.name), legendgroup: group.name, showlegend: first && group.name !== "",
    line: Object.assign({}, style.line, { color: colour, dash: style.line.dash || DASHES[cycle % DASHES.length] }),
    opacity: style.opacity,
    hovertemplate: "<b>" + text(label(variable, line)) + "</b> = %{customdata:.6g}<br>at " + where +
      (page.runs.length > 1 ? "<br>" + text(run.name) : "") + "<extra></extra>"
  };
}

// Levels, moments and curves of theory in the panels of their variables, under their names.
function theory(variable, panel, state, end) {
  var found = [], done = new Set();
  state.runs.forEach(function (r) {
    page.runs[r].theory.forEach(function (one) {
      var key = one.label + one.level + one.at;
      if (one.variables.indexOf(variable) < 0 || done.has(key) || state.across !== "time") return;
      done.add(key);
      var style = { type: "scatter", mode: "lines", name: text(one.label), legendgroup: "theory " + one.label,
        xaxis: "x", yaxis: panel ? "y" + (panel + 1) : "y", showlegend: !state.named.has(one.label), legendrank: 1200,
        line: { color: shade("--dim"), width: 1.2, dash: "dot" } };
      if (one.at !== undefined) {
        if (one.at > end.right || !(one.at >= end.left)) return;
        style.x = [one.at, one.at]; style.y = [end.low, end.high];
      } else if (one.level !== undefined) { style.x = [end.left, end.right]; style.y = [one.level, one.level]; }
      else { style.x = one.x; style.y = one.y; }
      state.named.add(one.label);
      style.hovertemplate = "<b>theory</b>: " + text(one.label) + "<br>%{x:.6g}, %{y:.6g}<extra></extra>";
      found.push(style);
    });
  });
  return found;
}

function reach(traces, log) {
  var end = { left: Infinity, right: -Infinity, low: Infinity, high: -Infinity };
  traces.forEach(function (one) {
    for (var k = 0; k < one.x.length; k++) {
      if (!(log && one.x[k] <= 0)) { end.left = Math.min(end.left, one.x[k]); end.right = Math.max(end.right, one.x[k]); }
      if (one.y[k] === one.y[k]) { end.low = Math.min(end.low, one.y[k]); end.high = Math.max(end.high, one.y[k]); }
    }
  });
  return end;
}

function drawCurves(state) {
  var traces = [], hidden = 0, drawn = 0, seen = new Set(), count = state.variables.length, size = Math.max(count, 1);
  var narrow = document.getElementById("curves").clientWidth < 560, height = narrow ? 210 : 240, gap = 42 / (size * height);
  var made = layout(90 + size * height, { annotations: [], showlegend: true,
    legend: narrow ? { orientation: "h", yanchor: "top", y: -60 / (size * height) } : { x: 1.01, xanchor: "left", y: 1 } });
  var lineStyles = new Map();
  state.named = new Set();
  state.variables.forEach(function (variable, panel) {
    var chosen = chosenLines(variable, state), suffix = panel ? String(panel + 1) : "";
    var lines = chosen.lines.map(function (line) { return trace(variable, line, panel, state, seen); }).filter(Boolean);
    hidden += chosen.hidden; drawn += lines.length;
    chosen.lines.forEach(function (line) { if (!lineStyles.has(line.run)) lineStyles.set(line.run, runStyle(variable, line, state)); });
    traces = traces.concat(state.theory ? theory(variable, panel, state, reach(lines, state.logX)) : [], lines);
    var top = 1 - panel / count - (panel ? gap / 2 : 0), bottom = panel === count - 1 ? 0 : 1 - (panel + 1) / count + gap / 2;
    made["yaxis" + suffix] = axis({ domain: [bottom, top],
      type: state.logY ? "log" : "linear", title: { text: text(state.logY ? "|" + variable + "|" : variable) } });
    made.annotations.push({ xref: "paper", yref: "paper", x: 0, y: top, xanchor: "left", yanchor: "bottom", showarrow: false,
      text: text(page.variables[variable].meaning).slice(0, narrow ? 60 : 140), font: { size: 12, color: shade("--dim") } });
  });
  if (state.runs.length > 1 && state.colour !== "run") state.runs.forEach(function (r) {
    if (lineStyles.has(r)) traces.push(Object.assign({ x: [null], y: [null], name: text(page.runs[r].name), showlegend: true,
      legendrank: 1100 }, lineStyles.get(r)));
  });
  var clock = state.across === "time" && state.runs.length ? page.runs[state.runs[0]].clock : "";
  made.xaxis = axis({ type: state.logX ? "log" : "linear", anchor: count > 1 ? "y" + count : "y",
    title: { text: text(state.across === "time" ? "time t" : state.across) } });
  document.getElementById("status").textContent = !count ? "Choose a variable." : drawn + " lines" +
    (hidden ? ", those that move most; " + hidden + " more are not drawn: choose fewer entries or variables to see all of them" : "") +
    (state.logY ? "; on the logarithmic axis values show their size, hovering their sign" : "") + "." +
    (clock && clock !== "time" ? " Time t: " + clock + "." : "");
  return Plotly.react("curves", traces, made, tools());
}
