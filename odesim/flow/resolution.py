"""Absolute tolerances that resolve a start far below the typical size of its overlaps.

The default absolute tolerance is relative to the typical size s of the small entries at the start, 1/sqrt(d).  A start
at o << s escapes after a time that depends on o, through log(1/o) or a power of 1/o, so that an error of the size of
that tolerance is an error of the answer.  Here the smallest scale of the start replaces s, as long as it lasts.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from derivations.contract import Layout
from odesim.errors import UsageError

VISIBLE = 1e-2
"""Entries of this part of the typical size are still resolved to the relative tolerance: the default absolute tolerance
is so much below it.  Components whose largest entry is below that part of it are tiny."""
UNLIKELY = 1e-4
"""Single entries are tiny below this part of the typical size, which few random starts have."""
RESIDUE = 1e-15
"""Entries below this part of the largest are the rounding of products of vectors, not a start."""
LIFTED = (1e-6, 1e-4)
"""Sizes at which the law of a slope is read that may have underflowed."""
STEP, DIFFERENCES = 1e-3, 70**0.5
"""Relative step of the fourth differences that measure rounding, and by how much they enlarge it."""
GROWN = 2
"""The phase (`Tiny.phase`) in which nothing is tiny any more."""
SMALLEST = float(np.finfo(float).tiny)
"""The smallest number with all its digits."""

Slope = Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Tiny:
    """The tiny entries of a start: their places in the flat state, by component, and the `scale` to resolve.

    >>> found = Tiny((np.array([1, 2]),), 1e-9)
    >>> [found.phase(np.array([1.0, *M]), 1e-2) for M in ([1e-8, 1e-9], [1e-3, 1e-9], [1e-3, 1e-2])]
    [0, 1, 2]
    """

    places: tuple[np.ndarray, ...]
    scale: float

    def phase(self, y: np.ndarray, typical: float) -> int:
        """0 while no entry has left the tiny sizes, 1 where one has, 2 where all have: the ordinary tolerance does."""
        grown = np.abs(y[np.concatenate(self.places)]) >= VISIBLE * typical
        return int(grown.any()) + int(grown.all())

    def growing(self, y: np.ndarray, slope: np.ndarray) -> bool:
        """Return True if one of the entries moves away from 0."""
        places = np.concatenate(self.places)
        return bool((y[places] * np.sign(slope[places]) > 0.0).any())


def tiny_components(layout: Layout, y: np.ndarray, typical: float, exact: bool) -> list[tuple[np.ndarray, float]]:
    """Places and size of the tiny entries of every component of a start y that has some, against the size `typical`.

    A component is tiny with its largest entry, unless that is the rounding of a start that is not `exact`.  A single
    entry is tiny only where chance does not make it so: of n random entries the smallest is about 1/n of their size,
    and counts n times.

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
    """The tiny entries of a start that decide how it goes on; None if the ordinary tolerance resolves it.

    An entry that other entries drive leaves its start at once, whatever its size: with the tiny entries at zero its
    slope, the drive, is that of the start.  Where they grow from themselves alone, the right-hand side is known up to
    the rounding of its terms.  Nothing below size x max(drive, rounding) / (rtol x slope) is resolved: below it the
    steps would be held to the rounding, without a better answer.

    Raises `UsageError` where the slope of a tiny entry underflows.
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
    """|dy/dt| with the tiny entries at zero; infinite where that is no number."""
    zeroed = y.copy()
    zeroed[places] = 0.0
    return np.nan_to_num(np.abs(slope(zeroed)), nan=np.inf)


def _rounding(y: np.ndarray, places: np.ndarray, slope: Slope) -> np.ndarray:
    """The rounding of dy/dt, from fourth differences along the tiny entries, to which what is smooth adds `STEP`^4."""
    total = np.zeros(y.size)
    for k, weight in enumerate((1.0, -4.0, 6.0, -4.0, 1.0)):
        moved = y.copy()
        moved[places] *= 1.0 + k * STEP
        total += weight * slope(moved)
    return np.nan_to_num(np.abs(total), nan=np.inf) / DIFFERENCES


def _require_representable(y: np.ndarray, places: np.ndarray, slope: Slope) -> None:
    """Raise `UsageError` if the slope of tiny entries is zero only because it is below the smallest number.

    A power law through the slopes at larger entries says what it would be.
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
