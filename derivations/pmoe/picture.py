"""The pictures of a pmoe run: responses and route values, expert by expert, and loss, error and v against time.

A colour is a class: o_i, and v of that class.  Irrelevant patterns are grey.
"""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, PALETTE, colour, marked, row_of_panels

GREY = "0.75"
SMALL = 0.05
"""Below this a linear axis shows nothing of what is left."""
MOST = 4
"""Experts with a column of their own."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`."""
    from matplotlib.figure import Figure

    names = [name for name in ("response", "route") if name in run and "time" in run[name].dims]
    scalars = "loss" in run or "error" in run
    columns = min(MOST, run.sizes["expert"]) if names else 1
    rows = len(names) + scalars
    figure = Figure(figsize=(max(7.2, 2.3 * columns + 1.6), 1.1 + 2.0 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    for row, name in enumerate(names):
        panels = row_of_panels(figure, grid, row, columns)
        for s, axis in enumerate(panels):
            axis.set_label(name)
            _expert(axis, run, name, s)
            axis.set_title(f"expert {s + 1}" + _of(run, columns, s) if row == 0 else "", fontsize=8)
            axis.set_ylabel(_label(run, name) if s == 0 else "")
            axis.tick_params(labelleft=s == 0)
        panels[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    if scalars:
        axis = figure.add_subplot(grid[len(names), :], sharex=figure.axes[0] if figure.axes else None)
        axis.set_label("population")
        _scalars(axis, run)
    for axis in figure.axes[-1:] if scalars else figure.axes[-columns:]:
        axis.set_xlabel(r"flow $\eta m t$" if run.attrs.get("stage") != "router" else r"$\eta_r t$")
    return {"trajectories": figure}


def _of(run: Any, columns: int, s: int) -> str:
    """How many experts there are, where not all are shown."""
    return f" (of {run.sizes['expert']})" if columns < run.sizes["expert"] and s == columns - 1 else ""


def several(run: Any) -> bool:
    """Whether there is an output per class."""
    return ("response" in run and "class" in run["response"].dims) or "pair" in run.sizes or "finds" in run


def _label(run: Any, name: str) -> str:
    if name == "route":
        return r"route value" "\n" r"$\langle w_s, z\rangle$"
    return r"response $\phi_{s,i}(o_i)$" if several(run) else r"response $\phi_s(z)$"


def _expert(axis: Any, run: Any, name: str, s: int) -> None:
    """One expert on the patterns of the first eight classes, with marks, and on the irrelevant ones."""
    values, time = run[name].values[:, s], run["time"].values
    count = 2
    if several(run):
        count = run.sizes["class"] if "class" in run.sizes else 2 * run.sizes["pair"]
    shown = min(count, 8)
    outputs = name == "response" and several(run)
    rest = (values[:, :shown, count:] if outputs else values[:, count:]).reshape(len(values), -1)
    if rest.shape[1]:
        axis.plot(time, rest, color=GREY, linewidth=0.5, zorder=1)
    for i in range(shown):
        line = values[:, i, i] if outputs else values[:, i]
        axis.plot(time, line, label=f"$o_{{{i + 1}}}$", **marked(i, len(time), shown))
        if outputs:
            axis.plot(time, np.delete(values[:, :, i], i, axis=1).mean(axis=1), "--", color=colour(i), linewidth=0.8)
    if outputs:
        axis.plot([], [], "--", color="0.3", label="mean of the\nother outputs")
    if rest.shape[1]:
        axis.plot([], [], "-", color=GREY, label="irrelevant")


def _scalars(axis: Any, run: Any) -> None:
    """Loss, error and v = 1 - (probability of the label), by class."""
    time = run["time"].values
    for name, shade in (("loss", BLACK), ("error", PALETTE[6])):
        if name in run:
            axis.plot(time, run[name], color=shade, label=name)
    for i, name in enumerate(("v1", "v2")):
        if name in run:
            axis.plot(time, run[name], label=f"$v$ of class {'+1' if i == 0 else '-1'}", **marked(i, len(time), 2))
    if "v" in run:
        axis.plot(time, run["v"].mean("class"), color=colour(0), label="v, mean over classes")
    if any(float(run[name][-1]) < SMALL for name in ("loss", "v1", "v2") if name in run):
        axis.set_yscale("symlog", linthresh=1e-3)
    axis.set_ylim(bottom=0)
    axis.set_ylabel("population")
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
