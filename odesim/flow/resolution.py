"""Absolute tolerances that resolve a start far below the typical size of its overlaps.

The default absolute tolerance is relative to the typical size s of the small entries at the start, 1/sqrt(d). A start
at o << s escapes after a time that depends on o, through log(1/o) or a power of 1/o. An error of the size of the
default tolerance would therefore change this time. Here the smallest scale of the start replaces s until the entries
have grown.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from derivations.contract import Layout
from odesim.errors import UsageError

VISIBLE = 1e-2
"""Relative size of a tiny component. An entry of this part of the typical size is still resolved to the relative
tolerance by the default absolute tolerance. A component is tiny if its largest entry is smaller.
"""
UNLIKELY = 1e-4
"""Relative size below which single entries are tiny. Few random starts have such entries."""
RESIDUE = 1e-15
"""Relative size below which entries are rounding of products of vectors and not part of a start."""
LIFTED = (1e-6, 1e-4)
"""Sizes at which a slope that may have underflowed is evaluated to find its power law."""
STEP, DIFFERENCES = 1e-3, 70**0.5
"""Relative step of the fourth differences that measure rounding, and the factor by which they enlarge it."""
GROWN = 2
"""Phase (`Tiny.phase`) in which no entry is tiny any more."""
SMALLEST = float(np.finfo(float).tiny)
"""Smallest number with full precision."""

Slope = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Tiny:
    """Tiny entries of a start: their places in the flat state, by component, and the `scale` to resolve.

    >>> found = Tiny((np.array([1, 2]),), 1e-9)
    >>> [found.phase(np.array([1.0, *M]), 1e-2) for M in ([1e-8, 1e-9], [1e-3, 1e-9], [1e-3, 1e-2])]
    [0, 1, 2]
    """

    places: tuple[np.ndarray, ...]
    scale: float

    def phase(self, y: np.ndarray, typical: float) -> int:
        """Return 0 while all entries are tiny, 1 if one has grown, 2 if all have grown and the ordinary tolerance is
        enough.
        """
        grown = np.abs(y[np.concatenate(self.places)]) >= VISIBLE * typical
        return int(grown.any()) + int(grown.all())

    def growing(self, y: np.ndarray, slope: np.ndarray) -> bool:
        """Return True if one of the entries moves away from 0."""
        places = np.concatenate(self.places)
        return bool((y[places] * np.sign(slope[places]) > 0.0).any())


def tiny_components(layout: Layout, y: np.ndarray, typical: float, exact: bool) -> list[tuple[np.ndarray, float]]:
    """Return places and size of the tiny entries of a start y, for every component with tiny entries relative to
    `typical`.

    A component is tiny if its largest entry is, unless this entry is the rounding of a start that is not `exact`. A
    single entry is tiny only if this is not due to chance: the smallest of n random entries is about 1/n of their size,
    and is multiplied by n here.

    >>> from derivations.contract import Dense
    >>> layout = Layout((Dense("M", (2,)), Dense("Q", (2,))))
    >>> tiny_components(layout, np.array([1e-9, 2e-9, 1.0, 1e-17]), 0.1, exact=True)
    [(array([0, 1]), 2e-09)]
    """
    found, rounding = [], 0.0 if exact else RESIDUE * np.abs(y).max(initial=0.0)
    for part in layout.parts:
        places = np.unique(layout.places(part.name, y.size))
        places = places[places >= 0]
        sizes = np.abs(y[places])
        largest = sizes.max(initial=0.0)
        started = sizes > max(RESIDUE * largest, rounding)
        if not started.any():
            continue
        if largest < VISIBLE * typical:
            found.append((places[started], float(largest)))
        elif (least := sizes[started].min()) * started.sum() < UNLIKELY * typical:
            found.append((places[started & (sizes < UNLIKELY * typical)], float(least)))
    return found


def tiny_start(layout: Layout, y: np.ndarray, slope: Slope, typical: float, exact: bool, rtol: float) -> Tiny | None:
    """Return the tiny entries of a start that determine the run; None if the ordinary tolerance resolves them.

    The drive of an entry is its slope with all tiny entries at zero. An entry with a drive leaves its start at once,
    whatever its size. Without a drive, the right-hand side is known up to the rounding of its terms. Sizes below size x
    max(drive, rounding) / (rtol x slope) are not resolved, because the steps would follow the rounding and the answer
    would not improve.

    Raises `UsageError` if the slope of a tiny entry underflows.
    """
    components = tiny_components(layout, y, typical, exact)
    if not components:
        return None
    every = np.concatenate([places for places, _ in components])
    moving, unknown = np.abs(slope(y)), np.maximum(_drive(y, every, slope), _rounding(y, every, slope))
    chosen, scale = [], VISIBLE * typical
    for places, size in components:
        motion = moving[places].max()
        if motion <= SMALLEST:
            _require_representable(y, places, slope)
        if motion > 0.0:
            resolved = size * max(1.0, unknown[places].max() / (rtol * motion))
            if resolved < VISIBLE * typical:
                chosen.append(places)
                scale = min(scale, resolved)
    return Tiny(tuple(chosen), scale) if chosen else None


def _drive(y: np.ndarray, places: np.ndarray, slope: Slope) -> np.ndarray:
    """Return |dy/dt| with the tiny entries at zero, or infinity if this is not a number.

    |dy/dt| with the tiny entries at zero; infinite where that is no number.
    """
    zeroed = y.copy()
    zeroed[places] = 0.0
    return np.nan_to_num(np.abs(slope(zeroed)), nan=np.inf)


def _rounding(y: np.ndarray, places: np.ndarray, slope: Slope) -> np.ndarray:
    """Return the rounding of dy/dt, from fourth differences along the tiny entries; smooth terms contribute
    `STEP`^4.
    """
    total = np.zeros(y.size)
    for k, weight in enumerate((1.0, -4.0, 6.0, -4.0, 1.0)):
        moved = y.copy()
        moved[places] *= 1.0 + k * STEP
        total += weight * slope(moved)
    return np.nan_to_num(np.abs(total), nan=np.inf) / DIFFERENCES


def _require_representable(y: np.ndarray, places: np.ndarray, slope: Slope) -> None:
    """Raise `UsageError` if the slope of tiny entries is zero only because it is below the smallest number.

    A power law through the slopes at larger entries predicts its value.
    """
    largest = np.abs(y[places]).max()
    slopes = []
    for size in LIFTED:
        lifted = y.copy()
        lifted[places] *= size / largest
        slopes.append(float(np.abs(slope(lifted)[places]).max()))
    if min(slopes) == 0.0 or largest >= LIFTED[0]:
        return
    power = np.log(slopes[1] / slopes[0]) / np.log(LIFTED[1] / LIFTED[0])
    if np.log(slopes[0]) + power * np.log(largest / LIFTED[0]) < np.log(SMALLEST):
        raise UsageError(
            f"the start has entries of {largest:.3g}, so small that their derivatives underflow in float64 "
            f"(below {SMALLEST:.3g}): start from larger overlaps, and extrapolate the hitting time by its "
            "scaling law"
        )
