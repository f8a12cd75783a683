"""Pictures of an atlas: classes by index and loss, branches over a parameter, and curves over two."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.drawing import BLACK, COLUMN, GREY, PALETTE, colours
from odesim.request.answer import Answer
from odesim.show.symbols import symbol_of

SYMBOLS = {
    "fold": ("fold", "o", PALETTE[1]),
    "transcritical": ("transcritical", "X", PALETTE[2]),
    "pitchfork": ("pitchfork", "^", PALETTE[3]),
    "branch point": ("branch point", "D", PALETTE[5]),
    "branch point out of the span": ("branch point out of the span", "P", PALETTE[6]),
    "Hopf": ("Hopf", "s", PALETTE[4]),
    "boundary": ("edge of the Gram matrices", "|", GREY),
}
"""Words, mark and colour of the kinds of special points."""
ZERO = 1e-13
"""A loss below this is 0."""


def draw(answer: Answer) -> Mapping[str, Any]:
    """The figures `classes`, or `branches`, and `map` of two parameters."""
    figures = {}
    if "over" in answer.numbers:
        figures["branches"] = _branches(answer)
        if "curve" in answer.variables and len(answer["curve"]):
            figures["map"] = _map(answer)
    figures["classes"] = _classes(answer)
    return figures


def _classes(answer: Answer) -> Any:
    """Loss over index, a filled mark for stable points; the number beside a mark is its orbit."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(COLUMN, 2.4), layout="constrained")
    axis = figure.subplots()
    loss, index, orbit = answer["loss"], answer["index"], answer["orbit"]
    outside_index = answer["index_outside"] if "index_outside" in answer.variables else np.zeros_like(index)
    for stable, word in ((True, "stable"), (False, "saddle")):
        chosen = ((index == 0) & (outside_index == 0)) == stable
        if chosen.any():
            face = PALETTE[0] if stable else "white"
            axis.plot(
                index[chosen], loss[chosen], "o", color=PALETTE[0] if stable else PALETTE[1], markerfacecolor=face,
                markersize=4, label=word,
            )  # fmt: skip
    for k in range(len(loss)):
        # Neighbours of one index have their numbers on opposite sides.
        side = int((index[:k] == index[k]).sum()) % 2
        place = (-5, -2) if side else (5, -2)
        if orbit[k] > 0:
            axis.annotate(
                f"{orbit[k]}", (index[k], loss[k]), place, textcoords="offset points", fontsize=6, color=GREY,
                ha="right" if side else "left",
            )  # fmt: skip
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set(xlabel="index: growing directions", ylabel="loss $L$")
    axis.margins(0.12)
    axis.set_label("classes")
    return figure


def _branches(answer: Answer) -> Any:
    """Loss and size of the overlaps along all branches: solid where stable, dashed where not, marks where special."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(COLUMN, 3.6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    sizes, overlap_label = _overlaps(answer)
    p, index = answer["parameter"], answer["branch_index"]
    shades = colours(max(1, len(p)))
    for axis, values, label in ((axes[0], answer["branch_loss"], "loss $L$"), (axes[1], sizes, overlap_label)):
        for k in range(len(p)):
            _line(axis, p[k], values[k], index[k] == 0, shades[k])
        axis.set_ylabel(label)
        axis.set_ylim(*_limits(values))
    _specials(answer, axes, sizes)
    axes[1].set_xlabel(symbol_of(str(answer.numbers["over"]), STEP_SYMBOLS))
    axes[0].set_label("loss")
    axes[1].set_label("overlaps")
    axes[0].add_line(Line2D([], [], color=BLACK, label="stable"))
    axes[0].add_line(Line2D([], [], color=BLACK, ls="--", lw=0.7, label="unstable"))
    return figure


STEP_SYMBOLS = {"step": "eta", "noise": "sigma", "decay": "lambda", "gram": "beta", "batch": "B"}
"""Letters of the parameters that every declared model has."""


def _overlaps(answer: Answer) -> tuple[np.ndarray, str]:
    """The norm of the overlaps of students with teachers along the branches (branch, point), and its label."""
    names = [n for n in answer.variables if n.startswith("branch_") and "M_" in n]
    square = sum((answer[n].reshape(*answer[n].shape[:2], -1) ** 2).sum(-1) for n in names)
    return np.sqrt(square), r"$\|M\|$"


def _line(axis: Any, p: np.ndarray, values: np.ndarray, stable: np.ndarray, colour: str) -> None:
    """Draw a branch; neighbouring points are joined in the style of their stability."""
    finite = np.isfinite(p)
    p, values, stable = p[finite], values[finite], stable[finite]
    # A segment is stable if both of its ends are, so that styles change at the special points.
    segment = stable[:-1] & stable[1:]
    edges = [0, *(np.flatnonzero(segment[1:] != segment[:-1]) + 1), len(segment)]
    for begin, end in itertools.pairwise(edges):
        style, width = ("-", 1.2) if segment[begin : begin + 1].any() else ("--", 0.7)
        axis.plot(p[begin : end + 1], values[begin : end + 1], style, color=colour, lw=width)


def _limits(values: np.ndarray) -> tuple[float, float]:
    """Return the range of the drawn values without those that run to infinity."""
    finite = values[np.isfinite(values)]
    low, high = float(finite.min()), float(np.quantile(finite, 0.9))
    high = min(float(finite.max()), 3 * high if high > 0 else float(finite.max()))
    room = 0.05 * max(high - low, 1e-6)
    return low - room, high + room


def _specials(answer: Answer, axes: Any, sizes: np.ndarray) -> None:
    """Mark the special points; the overlaps there are those of the nearest point of the branch."""
    labelled: set[str] = set()
    for special in answer.numbers["special"]:
        words, mark, colour = SYMBOLS[special["kind"]]
        k, parameter = special["branch"] - 1, special["parameter"]
        nearest = int(
            np.nanargmin(
                np.abs(answer["parameter"][k] - parameter) + np.abs(answer["branch_loss"][k] - special["loss"])
            )
        )
        label = words if words not in labelled else None
        labelled.add(words)
        for axis, value in ((axes[0], special["loss"]), (axes[1], sizes[k][nearest])):
            axis.plot(parameter, value, mark, color=colour, ms=4, label=label if axis is axes[0] else None, zorder=3)


def _map(answer: Answer) -> Any:
    """Curves of bifurcations over two parameters."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(COLUMN, 2.4), layout="constrained")
    axis = figure.subplots()
    for curve, colour in zip(answer["curve"], colours(len(answer["curve"])), strict=True):
        axis.plot(curve[:, 1], curve[:, 0], color=colour)
    axis.set(
        xlabel=symbol_of(str(answer.numbers["map"]), STEP_SYMBOLS),
        ylabel=symbol_of(str(answer.numbers["over"]), STEP_SYMBOLS),
    )
    axis.set_label("map")
    return figure
