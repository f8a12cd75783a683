"""Types for integrators: legs, accepted steps, counters, and reasons for the end.

An integrator is a file of this folder that defines `SOLVERS`; the catalogue lists all such files. An integrator never
clips or repairs a state. If it cannot continue, it raises `StepFailure`; the last segment then has the last good state.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from odesim.flow.problem import Problem
    from odesim.flow.record import Recorder

LOCAL = (0.1, 2.3e-14)
"""Tolerance of one step: the factor relative to the tolerance of the result, and the lower bound, 100 ulp. The factor
is needed because local errors add up over the escape from small overlaps; with it results were within the tolerance.
"""
WALL = 100
"""Spacings of the clock. If the slope is not a number after a shorter step, the flow ends here.

Shorter steps still succeed, but a change of the state below its own spacing is lost. The state then stands still in
front of the wall while the clock creeps on.
"""
INTERIOR = np.array([0.25, 0.5, 0.75])
"""Fractions of a step at which a double crossing (up and down again) is searched."""
QUARTERS = np.array([[27, 5, 9, -3], [16, 16, 8, -8], [5, 27, 3, -9]]) / [[32.0, 32.0, 64.0, 64.0]]
"""The cubic Hermite basis (values at both ends, slopes at both ends) at these fractions."""

Bounds = tuple[Any, Any]
"""Lower and upper bound of every entry of a flat state, infinite if it has none."""
UNBOUNDED: Bounds = (-np.inf, np.inf)
Entries = np.ndarray | slice
Interior = Callable[[Entries], tuple[np.ndarray, np.ndarray]]


class StepFailure(Exception):
    """The integrator cannot take another step. The message has the reason."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """One accepted step from (t0, y0) to (t1, y1).

    `dense(t)` interpolates with the order of the method; `interior(entries)` returns (times, these entries of the
    states) inside the step, of any accuracy, for the search of double crossings.
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
        """Count rejected attempts. The argument 0 marks that the integrator counts them."""
        self.rejected = (self.rejected or 0) + steps


@dataclasses.dataclass(frozen=True)
class Span:
    """Interval of integration from (t, y) to `until`, with the tolerances of one step and the counters.

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

    `recorder.due` is the next time at which a state is saved, and `recorder.watched` are the entries that may still
    cross. Times of the leg begin at `origin` on the clock of the problem. Times of the recorder and `end` are on the
    clock of the problem.
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
        """End of the leg on the clock of the problem, which the last step reaches exactly."""
        return min(self.problem.case.until, self.end)

    @property
    def until(self) -> float:
        """End of the leg on its own clock."""
        return self.horizon - self.origin

    def span(self, local: tuple[float, float] = LOCAL) -> Span:
        """Return the leg without its problem. `local` is the tolerance of a step in the form of
        `Problem.tolerances`.
        """
        tolerances = self.problem.tolerances(*local, y=self.y)
        return Span(self.t, self.y, self.until, *tolerances, self.statistics, self.problem.error_bounds)


def shifted(segments: Iterator[Segment], leg: Leg) -> Iterator[Segment]:
    """Yield the steps of a leg on the clock of its problem."""
    if leg.origin == 0.0:
        yield from segments
        return
    for segment in segments:
        yield _moved(segment, leg)


def _moved(segment: Segment, leg: Leg) -> Segment:
    """Return one of these steps. Rounding may move times between two steps, so they are clipped to the step."""
    origin = leg.origin

    def dense(t: float) -> np.ndarray:
        return segment.dense(min(max(t - origin, segment.t0), segment.t1))

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        times, states = segment.interior(entries)
        return times + origin, states

    end = leg.horizon if segment.t1 >= leg.until else segment.t1 + origin
    return Segment(segment.t0 + origin, segment.y0, end, segment.y1, dense, interior)


def anything(problem: "Problem") -> str:
    """Return "": an integrator that supports every smooth flow has no objection."""
    return ""


@dataclasses.dataclass(frozen=True)
class Solver:
    """Integrator of smooth flows, as listed in the catalogue under `name`.

    `steps(leg)` yields the accepted steps from the leg's start to its horizon. `traced` integrators are JAX programs
    and only support right-hand sides of JAX. The others support all, as functions of NumPy arrays (`Problem.slope`).
    `local` is the tolerance of a step, relative to that of the result, and its lower bound (`Problem.tolerances`).
    `objection(problem)` is the reason why the integrator does not support a problem, else empty. One solver of each
    kind is the `default`.
    """

    name: str
    steps: Callable[[Leg], Iterator[Segment]]
    traced: bool = False
    local: tuple[float, float] = LOCAL
    objection: Callable[["Problem"], str] = anything
    default: bool = False


def distance(xp: Any, y: Any, bounds: Bounds) -> Any:
    """Return the distance of the entries of a state from 0 or from their bounds, whichever is nearer.

    With a tolerance relative to this distance, an entry near a bound is as accurate as an entry near 0. With a
    tolerance relative to the entry, an alignment of 1 may have an error of the size of the tolerance. An explicit
    method whose steps are limited by stability then makes such errors: the loss stays at the tolerance, with either
    sign, and the true loss falls to 0.
    """
    lower, upper = bounds
    return xp.minimum(xp.abs(y), xp.minimum(xp.abs(y - lower), xp.abs(upper - y)))


def cubic_interior(t0: float, y0: np.ndarray, f0: np.ndarray, t1: float, y1: np.ndarray, f1: np.ndarray) -> Interior:
    """Return three interior points of the cubic through both ends and slopes, which is cheap and accurate enough to
    detect a bump.
    """
    h = t1 - t0
    # With x = 1/4, 1/2, 3/4: (1 + 2x)(1 - x)^2 y0 + x^2 (3 - 2x) y1 + h x (1 - x)^2 f0 - h x^2 (1 - x) f1.
    weights = QUARTERS * np.array([1.0, 1.0, h, h])

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        return t0 + h * INTERIOR, weights @ np.stack([y0[entries], y1[entries], f0[entries], f1[entries]])

    return interior
