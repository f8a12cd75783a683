"""What the pictures of all systems share: colours and marks, the parameters of a run, and the theory drawn beside it.

A system's `draw` labels its panels (`axis.set_label`) and makes no title; its `references` declares, as data, what
theory says of a run: a level, a moment, or a curve in a labelled panel.  What draws them knows no system.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#882255", "#332288", "#000000")
"""Okabe and Ito's colours without yellow, which white paper hides, with two of Tol's: readers with any colour vision
can tell them apart."""
COLOURED = 8
"""Colours for teachers, experts, clusters or features; the ninth, black, is for what belongs to none of them."""
BLACK = PALETTE[-1]
GREY = "0.55"
MARKS = ("o", "s", "^", "D", "v", "P", "X")
"""Marks beside the colours; eight and seven have no common factor, so that 56 pairs differ."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """What theory says, in the panel of that label: a `level`, a moment `at` which something happens, or `x` and `y`.

    Every reference has exactly one of the three; those of one `label` share a line of the legend.  `of` are the
    variables that the panel shows, where it has another name than they have.

    >>> Reference("gamma2", "0.9: found", level=0.9).level
    0.9
    """

    panel: str
    label: str
    level: float | None = None
    at: float | None = None
    x: Sequence[float] | None = None
    y: Sequence[float] | None = None
    colour: str = GREY
    of: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        curve = self.x is not None and self.y is not None
        if (self.level is not None) + (self.at is not None) + curve != 1:
            raise ValueError(f"the reference {self.label!r} needs one of level, at, and x with y")


def colour(k: int) -> str:
    """The colour of the k-th teacher, expert, cluster or feature, counted from 0."""
    return PALETTE[k % COLOURED]


def mark(k: int) -> str:
    """Its mark."""
    return MARKS[k % len(MARKS)]


def marked(k: int, points: int, of: int = 1) -> dict[str, Any]:
    """Options of a line of so many points for the k-th of `of`: its colour, and its mark about eight times.

    Marks are shifted against those of its neighbours, so that lines under one another show themselves.
    """
    every = max(1, points // 8)
    start = (every * (k % max(of, 1))) // max(of, 1)
    return {"color": colour(k), "marker": mark(k), "markevery": (start, every), "markersize": 3.5}


def row_of_panels(figure: Any, grid: Any, row: int, columns: int) -> list[Any]:
    """The panels of one row of a grid: all of a figure share time, those of a row their values."""
    panels: list[Any] = []
    for k in range(columns):
        time = figure.axes[0] if figure.axes else None
        panels.append(figure.add_subplot(grid[row, k], sharex=time, sharey=panels[0] if panels else None))
    return panels


def parameters(run: Any) -> dict[str, Any]:
    """The parameters of a data set of a run; empty where it does not say (a data set that was put together)."""
    found = json.loads(run.attrs.get("parameters", "{}"))
    return {name: _tuples(value) for name, value in found.items()}


def _tuples(value: Any) -> Any:
    """Lists of JSON as the tuples that parameters hold."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def options(run: Any) -> dict[str, Any]:
    """The options of a data set of a run: step size, batch and whatever its method took; empty where it says none."""
    return json.loads(run.attrs.get("options", "{}"))


def spread(values: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the indices of an array's first axis, evenly spread."""
    count = len(values)
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))
