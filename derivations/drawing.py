"""Common parts of the figures of all systems: colours, markers, parameters of a run, and theoretical predictions.

A system's `draw` labels its panels (`axis.set_label`) and makes no title. Its `references` lists theoretical
predictions for a run as data: a level, a moment, or a curve in a labelled panel. The drawing code does not depend on
the system.
"""

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#882255", "#332288", "#000000")
"""The colours of Okabe and Ito without yellow, which is invisible on white paper, and two of Tol: they are
distinguishable with any colour vision.
"""
COLOURED = 8
"""Colours for teachers, experts, clusters or features; the ninth, black, is for everything else."""
BLACK = PALETTE[-1]
ROUNDING = 1e-12
"""Values below this are rounding."""
GREY = "0.55"
NAMED = 10
"""Up to this number of entries a legend names all of them; otherwise the first and the last."""
STILL = 5e-3
"""A curve is constant if it moves by less than this part of its size, or of the largest movement in the figure."""
LASTS = 20
"""Time is logarithmic if a run lasts this many times as long as the time until the first curve moves."""
NOISE = 1e-6
"""An overlap larger than 1 by more than this exceeds 1 truly, not by rounding or the tolerance of a run."""
NEAR = 0.05
"""An overlap with a smaller final distance from 1 is at a plateau, and the figure shows this distance."""
COLUMN = 3.4
"""Width of a figure in inches: one column of a two-column paper. Its text has at least six points."""
MARKS = ("o", "s", "^", "D", "v", "P", "X")
"""Markers of the colours; eight and seven have no common factor, so that 56 pairs differ."""


@dataclasses.dataclass(frozen=True)
class Reference:
    """Theoretical prediction in the panel of a label: a `level`, a time `at` of an event, or a curve `x`, `y`.

    Every reference has exactly one of the three; those of one `label` share a line of the legend. `of` are the
    variables of the panel, if its name is not theirs.

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


def colours(count: int) -> tuple[str, ...]:
    """A colour for each of `count` teachers, experts or clusters: of more than eight, a scale from violet to green.

    >>> colours(2) == (colour(0), colour(1)), len(set(colours(30)))
    (True, 30)
    """
    if count <= COLOURED:
        return PALETTE[:count]
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    scale = mpl.colormaps["viridis"]
    return tuple(to_hex(scale(x)) for x in np.linspace(0.0, 0.92, count))


def name_of(word: str, k: int, count: int) -> str | None:
    """The label of the k-th of `count`; None for one that a legend omits.

    >>> name_of("teacher", 1, 3), name_of("teacher", 1, 30), name_of("teacher", 29, 30)
    ('teacher 2', None, 'teacher 30')
    """
    return f"{word} {k + 1}" if count <= NAMED or k in (0, count - 1) else None


def moved(values: np.ndarray) -> float:
    """The largest movement of any entry of values (time, ...)."""
    known = np.nan_to_num(np.asarray(values, float))
    return float(np.ptp(known, axis=0).max(initial=0.0))


def is_still(values: np.ndarray, beside: float = 0.0) -> bool:
    """Return True if a panel of values (time, ...) would be constant: `beside` is the movement in other panels.

    >>> is_still(np.array([1.0, 1.0001])), is_still(np.array([0.0, 0.1]))
    (True, False)
    """
    size = float(np.abs(np.nan_to_num(np.asarray(values, float))).max(initial=0.0))
    return moved(values) <= STILL * max(size, beside)


def until_rounding(values: np.ndarray) -> np.ndarray:
    """Return a curve while it is positive, then `nan` as soon as rounding or the tolerance of the run dominates.

    >>> until_rounding(np.array([1.0, 1e-3, -1e-9, 1e-10])).tolist()
    [1.0, 0.001, nan, nan]
    """
    over = np.asarray(values, float) <= ROUNDING
    return np.where(np.logical_or.accumulate(over), np.nan, values)


def spans_decade(values: np.ndarray) -> bool:
    """Return True if a curve starts positive and covers a decade until rounding."""
    known = until_rounding(values)
    known = known[np.isfinite(known)]
    return bool(known.size and known.max() > 10 * known.min())


def gap(axis: Any, time: np.ndarray, curves: Sequence[np.ndarray], shades: Sequence[str], style: str = "-") -> None:
    """Draw the distance of |curve| from 1 on a logarithmic axis, until rounding."""
    for curve, shade in zip(curves, shades, strict=True):
        rest = 1 - np.abs(curve)
        beyond = float(-rest.min()) > NOISE  # of free norms, and of SGD
        axis.plot(time, np.abs(rest) if beyond else until_rounding(rest), style, color=shade)
    axis.set_yscale("log")


def at_plateau(curves: Sequence[np.ndarray]) -> bool:
    """Return True if a curve reaches a plateau at 1 (see `NEAR`) from farther away.

    >>> at_plateau([np.array([0.0, 0.9, 0.99, 0.999])]), at_plateau([np.array([0.0, 0.999, 1.01, 1.02])])
    (True, False)
    """
    return any(abs(1 - abs(float(c[-1]))) < NEAR and spans_decade(1 - np.abs(c)) and not _passes(c) for c in curves)


def _passes(curve: np.ndarray) -> bool:
    """Return True for a curve that passes 1 and moves away from it, as overlaps of free norms do."""
    beyond = np.abs(curve[-max(len(curve) // 4, 2) :]) - 1
    return bool((beyond > 0).all() and beyond[-1] >= beyond[0])


def in_rows(figure: Any, count: int, row: float = 1.45) -> list[Any]:
    """Return `count` panels in rows of two, in a figure with the width of one column.

    >>> from matplotlib.figure import Figure
    >>> [len(in_rows(Figure(), count)) for count in (1, 4, 5)]
    [1, 4, 5]
    """
    return in_blocks(figure, (), count, row)[1]


def in_blocks(
    figure: Any, blocks: Sequence[int], others: int, row: float = 1.25, across: int = 3
) -> tuple[list[list[list[Any]]], list[Any]]:
    """Return the panels of blocks of small multiples, row by row, and `others` below them in rows of two.

    The figure gets the width of one column. `blocks` holds the number of panels of each block, at most `across` in a
    row. All of them share the time axis, and those of one block share the vertical axis. The others share no axis.

    >>> from matplotlib.figure import Figure
    >>> (experts, routers), scalars = in_blocks(Figure(), (4, 1), 3)
    >>> [len(row) for row in experts], [len(row) for row in routers], len(scalars)
    ([2, 2], [1], 3)
    """
    lengths = [_even(count, across) for count in blocks]
    below = _even(others, 2)
    rows = max(1, sum(map(len, lengths)) + len(below))
    figure.set_size_inches(COLUMN, row * rows + 0.1)
    grid = iter(figure.add_gridspec(rows, 1))
    small: list[list[list[Any]]] = []
    for k, block in enumerate(lengths):
        small.append([])
        for length in block:
            first = small[-1][0][0] if small[-1] else None
            time = small[0][0][0] if small[0] else None
            panels: list[Any] = []
            for cell in next(grid).subgridspec(1, length):
                panels.append(figure.add_subplot(cell, sharex=time, sharey=first))
                time, first = time or panels[0], first or panels[0]
                panels[-1].tick_params(labelleft=len(panels) == 1)
            small[-1].append(panels)
        for panels in small[-1][: None if k < len(lengths) - 1 else -1]:
            for axis in panels:
                axis.tick_params(labelbottom=False)
    return small, [figure.add_subplot(cell) for length in below for cell in next(grid).subgridspec(1, length)]


def _even(count: int, most: int) -> list[int]:
    """Lengths of the smallest number of rows of at most `most` panels for `count` panels, the longest first.

    >>> _even(4, 3), _even(5, 3), _even(0, 3)
    ([2, 2], [3, 2], [])
    """
    rows = -(-count // most)
    return [count // rows + (k < count % rows) for k in range(rows)]


def first_change(time: np.ndarray, curves: Sequence[np.ndarray], part: float = 0.02) -> float:
    """Time at which the first of some curves (time, ...) has completed `part` of its change: the start of a logarithmic
    axis.

    >>> first_change(np.array([0.0, 1.0, 10.0]), [np.array([0.0, 0.0, 1.0])])
    10.0
    """
    found = []
    for values in curves:
        flat = np.nan_to_num(np.asarray(values, float)).reshape(len(time), -1)
        way = np.abs(flat - flat[0]).max(axis=1)
        if way.max() > 0:
            found.append(float(time[int((way > part * way.max()).argmax())]))
    return min(found, default=float(time[-1]))


def log_time(axis: Any, time: np.ndarray, curves: Sequence[np.ndarray]) -> None:
    """Set the limits of a time axis: logarithmic from before the first movement, if a run lasts much longer."""
    began, after = first_change(time, curves), time[time > 0]
    if time[0] == 0 and len(after) and after[-1] > LASTS * began:
        axis.set_xscale("log")
        axis.set_xlim(max(began / 3, after[0]), after[-1])
    else:
        axis.set_xlim(time[0], time[-1])


def mark(k: int) -> str:
    """The marker of number k."""
    return MARKS[k % len(MARKS)]


def marked(k: int, points: int, of: int = 1) -> dict[str, Any]:
    """Return options of the k-th of `of` lines: its colour, and markers at about eight of its points.

    Markers of neighbouring lines are shifted, so that lines that coincide remain visible.
    """
    every = max(1, points // 8)
    start = (every * (k % max(of, 1))) // max(of, 1)
    return {"color": colour(k), "marker": mark(k), "markevery": (start, every), "markersize": 3.5}


def parameters(run: Any) -> dict[str, Any]:
    """The parameters of a data set of a run; empty if it contains none (a data set made by the user)."""
    found = json.loads(run.attrs.get("parameters", "{}"))
    return {name: _tuples(value) for name, value in found.items()}


def _tuples(value: Any) -> Any:
    """Lists of JSON as tuples, the form in parameters."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def options(run: Any) -> dict[str, Any]:
    """The options of a data set of a run: step size, batch and other options of its method; empty if it has none."""
    return json.loads(run.attrs.get("options", "{}"))


def spread(values: np.ndarray, most: int) -> np.ndarray:
    """At most `most` of the indices of an array's first axis, evenly spread."""
    count = len(values)
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))
