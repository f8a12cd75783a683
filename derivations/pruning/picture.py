"""The pictures of a pruning run: router norms, proficiency, test error; or the curves of pruning by each score."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, PALETTE, colour, marked, row_of_panels

COLOURS = PALETTE[:2]
"""Experts of head sign +1 and -1."""
LABELS = {"Delta": "growth of the\nrouter norm $\\Delta_s$", "x": "gap $x$", "p1": "own proficiency"}
EARLIEST = 3
"""A logarithmic axis begins at most so many decades before the end: nothing is seen before."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`, and `pruning` where experts were scored."""
    found = {}
    if "time" in run.sizes and run.sizes["time"] > 1:
        found["trajectories"] = trajectories(run)
    if "pruned_error" in run:
        found["pruning"] = pruning(run)
    return found


def trajectories(run: Any) -> Any:
    """Growth of router norms (or gaps), own proficiency and error against log time, one line per expert.

    There is a column for each head sign where a run has signs; lines that coincide share a colour and a word of
    the legend.
    """
    from matplotlib.figure import Figure

    names = [name for name in ("Delta", "x", "p1") if name in run]
    rows = len(names) + ("f_error" in run)
    signs = (1, -1) if "a" in run else (0,)
    figure = Figure(figsize=(8.2, 1.1 + 1.7 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, len(signs), height_ratios=[1.0] * len(names) + [0.5] * (rows - len(names)))
    for row, name in enumerate(names):
        panels = row_of_panels(figure, grid, row, len(signs))
        for column, (sign, axis) in enumerate(zip(signs, panels, strict=True)):
            axis.set_label(f"{name}{sign:+d}" if sign else name)
            _experts(axis, run, name, sign)
            axis.set_title(f"$a = {sign:+d}$" if row == 0 and sign else "", color=COLOURS[column])
            axis.set_ylabel(LABELS[name] if column == 0 else "")
    if "f_error" in run:
        axis = figure.add_subplot(grid[len(names), :], sharex=figure.axes[0] if figure.axes else None)
        axis.set_label("f_error")
        axis.plot(run["time"], run["f_error"], color=BLACK, drawstyle="steps-post")
        axis.set_ylabel("test error")
    _clock(figure.axes[0], run)
    for axis in figure.axes[-(len(signs) + ("f_error" in run) if names else 1) :]:
        axis.set_xlabel("SGD steps")
    return figure


def _clock(axis: Any, run: Any) -> None:
    """Logarithmic time where a run starts at 0: experts specialise over decades."""
    time = run["time"].values
    after = time[time > 0]
    if time[0] == 0 and len(after) and after[-1] > 20 * after[0]:
        axis.set_xscale("log")
        axis.set_xlim(max(after[0], after[-1] / 10**EARLIEST), after[-1])


def _experts(axis: Any, run: Any, name: str, sign: int) -> None:
    """The lines of the experts of one head sign; equal ones once, as thick as they are many."""
    values = run[name].values if name != "p1" else run["p1" if sign >= 0 else "p2"].values
    chosen = np.flatnonzero(run["a"].values * sign > 0) if sign else np.arange(values.shape[1])
    size = np.abs(values).max(initial=0.0)
    groups: dict[bytes, list[int]] = {}
    for s in chosen:
        groups.setdefault(np.round(values[:, s] / (size or 1.0), 3).tobytes(), []).append(int(s))
    for k, members in enumerate(sorted(groups.values(), key=lambda found: -values[-1, found[0]])):
        for s in members:
            axis.plot(run["time"], values[:, s], color=colour(k) if len(groups) <= 8 else COLOURS[sign < 0])
        if len(groups) <= 8:
            axis.lines[-1].set_label(
                "expert " + ", ".join(str(s + 1) for s in members[:4]) + ("..." * (len(members) > 4))
            )
    axis.legend(loc="best") if len(groups) <= 8 and name != "p1" else None


def pruning(run: Any) -> Any:
    """The error after pruning to 1, 2, .. experts of each sign, by every criterion, criteria that agree named as one.

    A criterion whose curve another one's hides is named with it.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.8), layout="constrained")
    axis = figure.subplots()
    axis.set_label("pruning")
    curves = run["pruned_error"].values
    most = curves.shape[1]
    share = 1 - np.arange(1, most + 1) / most
    together: dict[bytes, list[str]] = {}
    for k, name in enumerate(run["criterion"].values):
        together.setdefault(curves[k].tobytes(), []).append(str(name).replace("_", " "))
    for k, (curve, names) in enumerate(together.items()):
        style = {**marked(k, most), "markevery": 1}
        axis.plot(share, np.frombuffer(curve), label="\n".join(names), zorder=3 + k, **style)
    axis.set_xlabel("share of experts pruned, of each sign")
    axis.set_ylabel("test error after pruning")
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), labelspacing=1.0)
    return figure
