"""Picture of bands: every quantity with its band, its mean and the flow, and the quantiles of hitting times."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.drawing import GREY, in_rows, is_still
from odesim.request.answer import Answer
from odesim.show.column import LETTERS, head
from odesim.show.entries import chosen_entries
from odesim.show.symbols import in_lines, label_of
from odesim.study.escape import LEVELS

INK = "#1f4e79"
"""Colour of a scalar quantity."""
FAINT = 0.18
"""Opacity of a band."""
PARTS = ("_centre", "_sd", "_low", "_high", "_bent")
"""Endings of the arrays that belong to a quantity."""


def draw(answer: Answer) -> Mapping[str, Any]:
    """Return the figure "bands": scalar quantities first, then the components of the state."""
    from matplotlib.figure import Figure

    names = shown(answer)
    figure = Figure(layout="constrained")
    for axis, name in zip(in_rows(figure, len(names)), names, strict=True):
        axis.set_label(name)
        if answer.variables[name].ndim == 1:
            _draw_scalar(axis, answer, name)
        else:
            _draw_component(axis, answer, name)
        meaning = answer.variables[name].meaning.removesuffix(" on the flow").rstrip(", ")
        axis.set(xlabel="time $t$", ylabel=in_lines(label_of(meaning, name)))
    numbers = answer.numbers
    words = f"{answer.asked.system_name}: SGD at d = {numbers['d']:g}, {numbers['level']:.0%} band"
    if not numbers["gaussian"]:
        words += "; no band, because a few rare samples dominate the spread"
    head(figure, "\n".join(_folded(words)))
    return {"bands": figure}


def _folded(words: str) -> list[str]:
    import textwrap

    return textwrap.wrap(words, LETTERS)


def shown(answer: Answer) -> list[str]:
    """Return the names of the drawn quantities: scalars (the error, or else the loss), then components."""
    reserved = {"time", "entry", "covariance", "shift"}
    names = [name for name in answer.variables if name not in reserved and not _belongs(name, answer)]
    scalars = [name for name in names if answer.variables[name].ndim == 1]
    if any(name.endswith("error") for name in scalars):
        scalars = [name for name in scalars if name != "loss"]
    moving = [name for name in names if answer.variables[name].ndim > 1 and not is_still(answer[name])]
    return [*scalars, *moving]


def _belongs(name: str, answer: Answer) -> bool:
    """True for the array of a band, such as "error_low"."""
    return any(name.endswith(end) and name.removesuffix(end) in answer.variables for end in PARTS)


def _draw_scalar(axis: Any, answer: Answer, name: str) -> None:
    time = answer["time"]
    if f"{name}_low" in answer.variables:
        axis.fill_between(
            time, answer[f"{name}_low"], answer[f"{name}_high"], color=INK, alpha=FAINT, linewidth=0,
            label="band of SGD",
        )  # fmt: skip
        axis.plot(time, answer[f"{name}_centre"], color=INK, label="mean of SGD")
    axis.plot(time, answer[name], color="0.2", linestyle=(0, (3, 2)), linewidth=0.8, label="flow")
    curves = [answer[key] for key in (name, f"{name}_centre", f"{name}_low") if key in answer.variables]
    smallest, largest = min(values.min() for values in curves), max(values.max() for values in curves)
    if smallest > 0 and largest > 10 * smallest:
        axis.set_yscale("log")
    for law in answer.numbers.get("hitting", []):
        if law["measure"].split()[2] == name:
            _mark_times(axis, law)


def _mark_times(axis: Any, hitting: Mapping[str, Any]) -> None:
    """Mark the quantiles of a hitting time at its level: a bar from 5 to 95 %, the median as a point."""
    level = float(hitting["measure"].split()[-1])
    quantiles = np.array([np.nan if q is None else q for q in hitting["quantiles"]], float)
    right = axis.get_xlim()[1]
    ends = np.where(np.isfinite(quantiles), quantiles, right)
    shown_as = f"first time: {LEVELS[0]:.0%} to {LEVELS[-1]:.0%}, median"
    axis.plot(ends[[0, -1]], [level, level], color="#b2182b", linewidth=1.6, solid_capstyle="butt", label=shown_as)
    axis.plot(ends[2:3], [level], color="#b2182b", marker="o", markersize=3.5, linestyle="none")


def _draw_component(axis: Any, answer: Answer, name: str) -> None:
    time, values = answer["time"], answer[name]
    dims = answer.variables[name].dims[1:]
    chosen = chosen_entries(values, dims)
    banded = f"{name}_low" in answer.variables
    places = {place for place, *_ in chosen}
    for place in np.ndindex(values.shape[1:]):
        if place not in places:
            axis.plot(time, values[(slice(None), *place)], color=GREY, linewidth=0.4, alpha=0.6, zorder=0)
    for place, shade, words in chosen:
        index = (slice(None), *place)
        if banded:
            axis.fill_between(
                time, answer[f"{name}_low"][index], answer[f"{name}_high"][index], color=shade, alpha=FAINT, linewidth=0
            )
        centre = answer[f"{name}_centre"][index] if banded else values[index]
        axis.plot(time, centre, color=shade, label=words)
