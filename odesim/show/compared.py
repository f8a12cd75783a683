"""The picture of a comparison: a row for every component, its curves beside how far the two runs differ."""

from typing import Any

import numpy as np

from derivations.drawing import BLACK, PALETTE

FEW = 10
"""Below so many replicas the band is that from the least to the largest, from there on that from 10 to 90 %."""
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
        found = axis.get_legend_handles_labels()
        handles, labels = handles + found[0], labels + found[1]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, title=f"second run: {shown}", title_fontsize=8)
    return figure


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """The ends of a band of replicas (replica, time), and what it is in words."""
    if len(values) < FEW:
        return values.min(axis=0), values.max(axis=0), f"min to max of {len(values)}"
    low, high = np.quantile(values, (0.1, 0.9), axis=0)
    return low, high, f"10 to 90 % of {len(values)}"


def _curves(axis: Any, run: Any, name: str) -> None:
    """The entry that moves most: the first run as a line, the second as a band around its median."""
    time, second = run["time"].values, run[f"panel_second_{name}"].values
    low, high, words = band(second)
    if len(second) > 1:
        axis.fill_between(time, low, high, color=PALETTE[0], alpha=0.25, linewidth=0, label=words)
    axis.plot(time, np.median(second, axis=0), "--", color=PALETTE[0],
              label=f"second: {run.attrs.get('second', 'run')}" + (", median" if len(second) > 1 else ""))  # fmt: skip
    axis.plot(time, run[f"panel_first_{name}"], "-", color=BLACK, label=f"first: {run.attrs.get('first', 'run')}")
    said = str(run[f"panel_first_{name}"].attrs.get("meaning", name))
    axis.set_title(f"{name}: {said}" if not said.startswith(name) else said, fontsize=7, loc="left")


def _differences(axis: Any, run: Any, name: str) -> None:
    """The largest difference of any entry by replica, and the mean's distance beside what chance makes of it."""
    time, values = run["time"].values, run[f"distance_{name}"].values
    size = float(np.abs(run[f"panel_first_{name}"].values).max(initial=0.0)) if f"panel_first_{name}" in run else 1.0
    low, high, words = band(values)
    axis.fill_between(time, _shown(low), _shown(high), color=PALETTE[1], alpha=0.25, linewidth=0)
    axis.plot(time, _shown(np.median(values, axis=0)), color=PALETTE[1],
              label="max |difference|" + (f", median and {words}" if len(values) > 1 else ""))  # fmt: skip
    title = ""
    if f"off_{name}" in run:
        off, chance = run[f"off_{name}"].values, run[f"chance_{name}"].values
        axis.plot(time, _shown(off), "-", color=BLACK, linewidth=0.9, label="mean of replicas - first, rms")
        axis.plot(time, _shown(chance), ":", color=BLACK, label="expected by chance (standard error)")
        title = _agreement(off, chance, size)
    top = float(values.max(initial=0.0))
    if top > ROUNDING * size:
        axis.set_yscale("log")
        axis.set_ylim(max(_begins(values), top / 10**DECADES) / 1.5, top * 2)
    else:
        axis.text(0.5, 0.5, "equal up to rounding", transform=axis.transAxes, ha="center", color="0.4", fontsize=8)
    axis.set_title(title, fontsize=7, loc="left")


def _shown(values: np.ndarray) -> np.ndarray:
    """Differences, those that rounding makes far below the axis: a line comes up from there, also for a single time."""
    top = max(float(values.max(initial=0.0)), 1e-300)
    return np.maximum(values, 1e-14 * top)


def _begins(values: np.ndarray) -> float:
    """The least difference after the first at which there is one."""
    there = values[values > 1e-12 * values.max()]
    return float(there.min())


def _agreement(off: np.ndarray, chance: np.ndarray, size: float) -> str:
    """In words, how far the mean of the replicas is off at the end, against what chance would make of it.

    `size` is that of the values: below its rounding nothing differs.
    """
    if max(off[-1], chance[-1]) <= ROUNDING * size:
        return "they agree at the end up to rounding"
    if chance[-1] <= ROUNDING * size:
        return f"at the end the mean is off by {off[-1]:.2g}, and the replicas do not differ"
    ratio = off[-1] / chance[-1]
    verdict = "agree" if ratio < 2 else "differ"
    return f"they {verdict} at the end: off by {off[-1]:.2g}, {ratio:.1f} standard errors ({chance[-1]:.2g})"
