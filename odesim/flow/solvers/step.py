"""Types for integrators: legs, accepted steps, counters, and reasons for the end.

An integrator is a file of this folder with `SOLVERS`, which the catalogue finds by looking.  It never clips or repairs
a state; when it cannot go on it raises `StepFailure`, and the last segment it yielded holds the last good state.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from odesim.flow.problem import Problem
    from odesim.flow.record import Recorder

LOCAL = (0.1, 2.3e-14)
"""The tolerance of one step: this part of what is asked of the answer, because local errors add up over the escape from
small overlaps (with it the answer was within what was asked), but no step is asked for more than 100 ulp."""
INTERIOR = np.array([0.25, 0.5, 0.75])
"""Fractions of a step at which a crossing up and down again is searched."""
QUARTERS = np.array([[27, 5, 9, -3], [16, 16, 8, -8], [5, 27, 3, -9]]) / [[32.0, 32.0, 64.0, 64.0]]
"""The cubic Hermite basis (values at both ends, slopes at both ends) there."""

Bounds = tuple[Any, Any]
"""The least and the greatest value of every entry of a flat state, infinite where it has none."""
UNBOUNDED: Bounds = (-np.inf, np.inf)
Entries = np.ndarray | slice
Interior = Callable[[Entries], tuple[np.ndarray, np.ndarray]]


class StepFailure(Exception):
    """The integrator cannot take another step; the message says why."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """One accepted step from (t0, y0) to (t1, y1).

    `dense(t)` interpolates with the order of the method; `interior(entries)` are (times, those entries of the states)
    inside the step, of any accuracy, in which double crossings are looked for.
    """

    t0: float
    y0: np.ndarray
    t1: float
    y1: np.ndarray
    dense: Callable[[float], np.ndarray]
    interior: Interior


@dataclasses.dataclass
class Statistics:
    """Counters of an integrator; if the library does not report them, `evaluations` is 0 and `rejected` None."""

    solver: str
    steps: int = 0
    rejected: int | None = None
    evaluations: int = 0

    def known(self) -> dict[str, Any]:
        """Return the counters as a dictionary, without those that the solver does not report."""
        unknown = {"evaluations": 0, "rejected": None}
        return {name: value for name, value in vars(self).items() if name not in unknown or value != unknown[name]}

    def reject(self, steps: int) -> None:
        """Count attempts that were given up; 0 says that they are counted at all."""
        self.rejected = (self.rejected or 0) + steps


@dataclasses.dataclass(frozen=True)
class Span:
    """From (t, y) to `until` at the tolerances of one step, with what is counted on the way.

    `bounds` are those of the entries, from which Runge-Kutta methods measure their errors (`distance`).

    >>> Span(0.0, np.ones(2), 1.0, 1e-9, 1e-12, Statistics("DOP853")).bounds
    (-inf, inf)
    """

    t: float
    y: np.ndarray
    until: float
    rtol: float
    atol: float
    statistics: Statistics
    bounds: Bounds = UNBOUNDED


@dataclasses.dataclass(frozen=True)
class Leg:
    """Task of an integrator: a problem from (t, y) on, with a recorder and counters.

    `recorder.due` is the next time at which a state is saved, and `recorder.watched` what may still cross.  Times of
    the leg are counted from `origin` on the clock of the problem, those of the recorder and `end` on that clock itself.
    """

    problem: "Problem"
    t: float
    y: np.ndarray
    recorder: "Recorder"
    statistics: Statistics
    origin: float = 0.0
    end: float = np.inf

    @property
    def horizon(self) -> float:
        """The end of the leg on the clock of the problem, which the last step reaches exactly."""
        return min(self.problem.case.until, self.end)

    @property
    def until(self) -> float:
        """The end of the leg on its own clock."""
        return self.horizon - self.origin

    def span(self, local: tuple[float, float] = LOCAL) -> Span:
        """The leg without its problem; `local` is the tolerance of a step as `Problem.tolerances` takes it."""
        tolerances = self.problem.tolerances(*local, y=self.y)
        return Span(self.t, self.y, self.until, *tolerances, self.statistics, self.problem.error_bounds)


def shifted(segments: Iterator[Segment], leg: Leg) -> Iterator[Segment]:
    """The steps of a leg on the clock of its problem."""
    if leg.origin == 0.0:
        yield from segments
        return
    for segment in segments:
        yield _moved(segment, leg)


def _moved(segment: Segment, leg: Leg) -> Segment:
    """One of them.  Times between two steps are rounded into the step again."""
    origin = leg.origin

    def dense(t: float) -> np.ndarray:
        return segment.dense(min(max(t - origin, segment.t0), segment.t1))

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        times, states = segment.interior(entries)
        return times + origin, states

    end = leg.horizon if segment.t1 >= leg.until else segment.t1 + origin
    return Segment(segment.t0 + origin, segment.y0, end, segment.y1, dense, interior)


def anything(problem: "Problem") -> str:
    """An integrator that takes every smooth flow has no objection."""
    return ""


@dataclasses.dataclass(frozen=True)
class Solver:
    """An integrator of smooth flows as the catalogue offers it under `name`.

    `steps(leg)` yields the accepted steps from the leg's start to its horizon.  `traced` ones are JAX programs and take
    its right-hand sides alone; the others take any, as NumPy arrays in and out (`Problem.slope`).  `local` is the
    tolerance of a step, relative to what is asked, and its floor (`Problem.tolerances`).  `objection(problem)` is a
    sentence where it cannot take a problem, else empty.  One solver of each kind is the `default`.
    """

    name: str
    steps: Callable[[Leg], Iterator[Segment]]
    traced: bool = False
    local: tuple[float, float] = LOCAL
    objection: Callable[["Problem"], str] = anything
    default: bool = False


def distance(xp: Any, y: Any, bounds: Bounds) -> Any:
    """Return the distance of the entries of a state from 0 or from their bounds, whichever is nearer.

    A tolerance relative to it keeps what approaches a bound as accurate as what leaves 0.  Relative to the entry
    itself, an alignment that has reached 1 may be off by the tolerance, and an explicit method whose steps are held
    down by stability makes use of that: the loss then stays at the tolerance, of either sign, where the true one
    falls to 0.
    """
    lower, upper = bounds
    return xp.minimum(xp.abs(y), xp.minimum(xp.abs(y - lower), xp.abs(upper - y)))


def cubic_interior(t0: float, y0: np.ndarray, f0: np.ndarray, t1: float, y1: np.ndarray, f1: np.ndarray) -> Interior:
    """Three interior points of the cubic through both ends and slopes: cheap, and enough to notice a bump."""
    h = t1 - t0
    # With x = 1/4, 1/2, 3/4: (1 + 2x)(1 - x)^2 y0 + x^2 (3 - 2x) y1 + h x (1 - x)^2 f0 - h x^2 (1 - x) f1.
    weights = QUARTERS * np.array([1.0, 1.0, h, h])

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        return t0 + h * INTERIOR, weights @ np.stack([y0[entries], y1[entries], f0[entries], f1[entries]])

    return interior
