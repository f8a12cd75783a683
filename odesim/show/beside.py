"""Theory drawn into the panels of a run, from the declarations of its system: levels, moments and curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from derivations.drawing import GREY, Reference

DASHES = (0, (1.5, 1.5))


def add(figures: Mapping[str, Any], references: Sequence[Reference]) -> None:
    """Draw every reference into the panels of its label, in all figures, with a label for their legend.

    A moment after the end of a run is not shown. A moment before the beginning of a logarithmic axis extends the axis.
    """
    for figure in figures.values():
        for axis in figure.axes:
            panel_references = [reference for reference in references if reference.panel == axis.get_label()]
            if panel_references:
                _draw(axis, panel_references)


def _draw(axis: Any, references: Sequence[Reference]) -> None:
    left, right = axis.get_xlim()
    moments = [reference.at for reference in references if reference.at is not None and reference.at > 0]
    if axis.get_xscale() == "log" and moments:
        left = min(left, min(moments) / 1.5)  # such an axis begins at the first saved time, which may be later
    named: set[str] = set()
    style: dict[str, Any] = {"linestyle": DASHES, "linewidth": 0.9, "zorder": 1.5, "gid": "theory"}
    visible = [reference for reference in references if reference.at is None or left <= reference.at <= right]
    for reference in visible:
        label = None if reference.label in named else reference.label
        named.add(reference.label)
        if label and len({entry.colour for entry in visible if entry.label == label}) > 1:
            axis.plot([], [], color=GREY, label=label, **style)  # the colours are those of the curves
            label = None
        if reference.level is not None:
            axis.axhline(reference.level, color=reference.colour, label=label, **style)
        elif reference.at is not None:
            axis.axvline(reference.at, color=reference.colour, label=label, **style)
        else:
            axis.plot(reference.x, reference.y, color=reference.colour, label=label, **{**style, "linewidth": 1.4})
    axis.set_xlim(left, right)
