"""The figures of a pmoe run: responses and route values, expert by expert, then loss, error and v against time.

A colour is a class: o_i, and v of that class. Irrelevant patterns are grey.
"""

import itertools
from typing import Any

import numpy as np

from derivations.drawing import (
    BLACK,
    GREY,
    colour,
    in_blocks,
    is_still,
    spans_decade,
    until_rounding,
)

MOST = 4
"""Maximal number of experts with a separate column."""
CLASSES = 8
"""Maximal number of classes in a figure."""
OTHERS = {"color": GREY, "linewidth": 0.5, "alpha": 0.6, "zorder": 1}
SCALARS = {"loss": ("loss",), "error": ("error",), "v": ("v1", "v2", "v")}
"""The panels of the whole model, and the variables in each."""


def draw(run: Any) -> dict[str, Any]:
    """Figures by name for an `xarray.Dataset` of a run: `trajectories`. Constant variables have no panel."""
    from matplotlib.figure import Figure

    names = [name for name in ("response", "route") if name in run and "time" in run[name].dims]
    moving = [name for name in names if not is_still(run[name].values)]
    scalars = [name for name, own in SCALARS.items() if any(n in run and not is_still(run[n].values) for n in own)]
    names = moving or ([] if scalars else names[:1])
    experts = min(MOST, run.sizes["expert"]) if names else 1
    figure = Figure(layout="constrained")
    blocks, below = in_blocks(figure, [experts] * len(names), len(scalars), across=2)
    for rows, name in zip(blocks, names, strict=True):
        for s, axis in enumerate(itertools.chain(*rows)):
            axis.set_label(f"{name} {s + 1}")
            _expert(axis, run, name, s)
            axis.set_title(f"expert {s + 1}" + _of(run, experts, s))
        for row in rows:
            row[0].set_ylabel(_label(run, name))
    for axis, name in zip(below, scalars, strict=True):
        axis.set_label(name)
        _scalar(axis, run, name)
    for axis in [*(blocks[-1][-1] if blocks else []), *below]:
        axis.set_xlabel(r"time $\eta m t$" if run.attrs.get("stage") != "router" else r"time $\eta_r t$")
    for axis in figure.axes:
        axis.set_xlim(float(run["time"][0]), float(run["time"][-1]))
    return {"trajectories": figure}


def _of(run: Any, columns: int, s: int) -> str:
    """The number of experts, if not all are shown."""
    return f" (of {run.sizes['expert']})" if columns < run.sizes["expert"] and s == columns - 1 else ""


def several(run: Any) -> bool:
    """Return True if there is an output per class."""
    return ("response" in run and "class" in run["response"].dims) or "pair" in run.sizes or "finds" in run


def _label(run: Any, name: str) -> str:
    """The label of a row."""
    if name == "route":
        return r"route value $w_s\cdot z$"
    return r"response $\phi_{s,i}(o_i)$" if several(run) else r"response $\phi_s(z)$"


def _expert(axis: Any, run: Any, name: str, s: int) -> None:
    """One expert on the patterns of the first eight classes, and on the irrelevant ones."""
    values, time = run[name].values[:, s], run["time"].values
    count = 2
    if several(run):
        count = run.sizes["class"] if "class" in run.sizes else 2 * run.sizes["pair"]
    shown = min(count, CLASSES)
    outputs = name == "response" and several(run)
    rest = (values[:, :shown, count:] if outputs else values[:, count:]).reshape(len(values), -1)
    if rest.shape[1]:
        axis.plot(time, rest, **OTHERS)
    for i in range(shown):
        line = values[:, i, i] if outputs else values[:, i]
        axis.plot(time, line, color=colour(i), label=f"pattern $o_{{{i + 1}}}$")
        if outputs:
            axis.plot(time, np.delete(values[:, :, i], i, axis=1).mean(axis=1), "--", color=colour(i), linewidth=0.8)
    if outputs:
        axis.plot([], [], "--", color="0.3", label="mean of the other outputs")
    if rest.shape[1]:
        axis.plot([], [], **OTHERS, label="other patterns, irrelevant")


def _scalar(axis: Any, run: Any, name: str) -> None:
    """Loss, error, or v = 1 - (probability of the label) by class, in the colours of the classes."""
    time = run["time"].values
    curves = {n: run[n].values for n in SCALARS[name] if n in run}
    if "v" in curves:
        curves["v"] = curves["v"].mean(axis=1)
    logarithmic = all(map(spans_decade, curves.values()))
    for n, values in curves.items():
        style = {"v1": colour(0), "v2": colour(1)}.get(n, BLACK)
        label = {"v1": "$v$ of class +1", "v2": "$v$ of class -1", "v": "$v$, mean over classes"}.get(n)
        axis.plot(time, until_rounding(values) if logarithmic else values, color=style, label=label,
                  linestyle="--" if n == "v2" else "-")  # fmt: skip
    if logarithmic:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=min(0.0, *(float(values.min()) for values in curves.values())))
    axis.set_ylabel({"loss": "loss $L$", "error": "error", "v": "$v$ = P(wrong label)"}[name])
