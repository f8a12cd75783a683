"""The picture of a comparison: a row for every component, its curves beside how far the two runs differ."""

import textwrap
from typing import Any

import numpy as np

from derivations.drawing import BLACK, PALETTE

FEW = 10
"""Below so many replicas every one is drawn; from there on the band from 10 to 90 % is."""
WIDTH = 76
"""Characters of a line above a panel."""
NOTE = 130
"""Characters of a line below the picture."""
ROUNDING = 1e-12
"""Differences below this share of the values are rounding."""
DECADES = 4
"""A logarithmic axis of differences shows at most so many."""


def draw(run: Any) -> Any:
    """For every component, the entry that moves most in both runs, and the difference over time on a log axis.

    `run` is the data set of `Comparison.trajectory()`.  One that an earlier version stored has no curves by component:
    then the differences stand alone.
    """
    from matplotlib.figure import Figure

    names = [str(name).removeprefix("distance_") for name in run if str(name).startswith("distance_")]
    curves = all(f"panel_first_{name}" in run for name in names)
    figure = Figure(figsize=(9.4, 1.5 + 1.45 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), 1 + curves, sharex=True, squeeze=False)
    for row, name in zip(grid, names, strict=True):
        if curves:
            _curves(row[0], run, name)
        _differences(row[-1], run, name)
    for axis in grid[-1]:
        axis.set_xlabel("time")
        axis.xaxis.get_major_locator().set_params(nbins=5)
    shown = f"{run.sizes['seed']} replicas" if run.sizes["seed"] > 1 else "one run"
    handles, labels = [], []
    for axis in (grid[0][0], grid[0][-1]) if curves else (grid[0][-1],):
        more = axis.get_legend_handles_labels()
        handles, labels = handles + more[0], labels + more[1]
    notes = [textwrap.fill(str(note), NOTE) for note in run["notes"].values] if "notes" in run else []
    heading = "\n".join([*notes, f"second run: {shown}"])  # where the layout leaves room for every line
    figure.legend(handles, labels, loc="outside lower center", ncols=3, title=heading, title_fontsize=7, fontsize=8)
    return figure


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """The ends of a band of replicas (replica, time), and what it is in words."""
    if len(values) < FEW:
        return values.min(axis=0), values.max(axis=0), f"min to max of {len(values)}"
    low, high = np.quantile(values, (0.1, 0.9), axis=0)
    return low, high, f"10 to 90 % of {len(values)}"


def _curves(axis: Any, run: Any, name: str) -> None:
    """The entry that moves most: the first run as a line, the second as a median with its band or every replica."""
    time, second = run["time"].values, run[f"panel_second_{name}"].values
    low, high, words = band(second)
    label = f"second: {run.attrs.get('second', 'run')}"
    if 1 < len(second) < FEW:
        _thin(axis, time, second, PALETTE[0], "every replica of the second")
    elif len(second) >= FEW:
        axis.fill_between(time, low, high, color=PALETTE[0], alpha=0.25, linewidth=0, label=words)
    axis.plot(time, np.median(second, axis=0), "--", color=PALETTE[0],
              label=label + (", median" if len(second) > 1 else ""))  # fmt: skip
    axis.plot(time, run[f"panel_first_{name}"], "-", color=BLACK, label=f"first: {run.attrs.get('first', 'run')}")
    said = str(run[f"panel_first_{name}"].attrs.get("meaning", name))
    axis.set_title(f"{name}: {said}" if not said.startswith(name) else said, fontsize=7, loc="left")


def _thin(axis: Any, time: np.ndarray, values: np.ndarray, color: str, label: str) -> None:
    """Every replica (replica, time) as a thin line, under one label."""
    for k, line in enumerate(values):
        axis.plot(time, line, "-", color=color, linewidth=0.5, alpha=0.6, label=label if k == 0 else None)


def _differences(axis: Any, run: Any, name: str) -> None:
    """The largest difference of any entry by replica, beside what its interval allows and the margin of agreement."""
    time, values = run["time"].values, run[f"distance_{name}"].values
    size = float(np.abs(run[f"panel_first_{name}"].values).max(initial=0.0)) if f"panel_first_{name}" in run else 1.0
    low, high, words = band(values)
    top = float(values.max(initial=0.0))
    if 1 < len(values) < FEW:
        _thin(axis, time, _shown(values), PALETTE[1], "max |difference| of every replica")
    elif len(values) >= FEW:
        axis.fill_between(time, _shown(low), _shown(high), color=PALETTE[1], alpha=0.25, linewidth=0)
    axis.plot(time, _shown(np.median(values, axis=0)), color=PALETTE[1],
              label="max |difference|" + (f", median and {words}" if len(values) > 1 else ""))  # fmt: skip
    if f"bound_{name}" in run and np.isfinite(run[f"bound_{name}"].values).all():
        bound = run[f"bound_{name}"].values
        top = max(top, float(bound.max(initial=0.0)))
        axis.plot(time, _shown(bound), "-", color=BLACK, linewidth=0.9, label="mean could be off by (95 %)")
    if f"off_{name}" in run:
        axis.plot(time, _shown(run[f"off_{name}"].values), ":", color=BLACK, label="mean of replicas - first, rms")
    if top > ROUNDING * size:
        axis.set_yscale("log")
        axis.set_ylim(max(_begins(values), top / 10**DECADES) / 1.5, top * 2)
    else:
        axis.text(0.5, 0.5, "equal up to rounding", transform=axis.transAxes, ha="center", color="0.4", fontsize=8)
    sentence, margin = judged(run, name)
    if top > ROUNDING * size and np.isfinite(margin):
        axis.axhline(margin, color="0.5", linewidth=0.9, linestyle="--", label="margin of agreement")
    axis.set_title("\n".join(textwrap.wrap(sentence, WIDTH)), fontsize=7, loc="left")


def judged(run: Any, name: str) -> tuple[str, float]:
    """The sentence on a component and its margin; "" and nan for a run that an earlier version stored."""
    if "judged" not in run:
        return "", float("nan")
    place = list(map(str, run["judged"].values)).index(name)
    return str(run["judgement"].values[place]), float(run["margin"].values[place])


def _shown(values: np.ndarray) -> np.ndarray:
    """Differences, those that rounding makes far below the axis: a line comes up from there, also for a single time."""
    top = max(float(values.max(initial=0.0)), 1e-300)
    return np.maximum(values, 1e-14 * top)


def _begins(values: np.ndarray) -> float:
    """The least difference after the first at which there is one."""
    there = values[values > 1e-12 * values.max()]
    return float(there.min())
