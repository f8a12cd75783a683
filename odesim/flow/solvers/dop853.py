"""DOP853, the explicit method of order 8 of Hairer, Norsett & Wanner (1993), for any right-hand side.

The steps are those of SciPy's DOP853, whose packages take longer to import than most runs. There are two differences:
errors are measured from the bounds of the entries, and a state between two steps comes from a shorter step if the flow
requests this.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.flow.solvers.step import (
    WALL,
    Leg,
    Segment,
    Solver,
    Span,
    StepFailure,
    cubic_interior,
    distance,
)
from odesim.flow.tableau import dop853, weights

if TYPE_CHECKING:
    from odesim.code.right_hand_side import RightHandSide

SAFETY, LEAST, MOST = 0.9, 0.2, 10.0
"""Safety factor of the step that the error promises, and the smallest and largest ratio to the last step."""
ORDER = 8
LARGEST = (4 / 7) ** 4 * (3 / 7) ** 3
"""Largest value of x^4 (1 - x)^3, the factor of the last coefficient of the interpolant."""
TRUSTED = 20.0
"""Largest size of the last term of an accurate interpolant, in tolerances."""

LARGE = 256
"""Number of entries from which steps are compiled. This takes half a second; a default run of a smaller state takes
less.
"""
Slope = Callable[[float, np.ndarray], np.ndarray]
Dense = Callable[[float], np.ndarray]


def steps(leg: Leg, strict: bool = False) -> Iterator[Segment]:
    """Yield the steps over a leg."""
    return dop853_steps(leg.problem.slope(), leg.span(), leg.problem.smooth.between, strict)


def dop853_steps(slope: Slope, span: Span, between: str = "step", strict: bool = False) -> Iterator[Segment]:
    """Yield accepted steps on dy/dt = slope(t, y), and count all evaluations; `between` is that of `Smooth`.

    If the interpolant of a step is not accurate, `strict` steps end before this step; otherwise the step is repeated in
    halves. Raises `StepFailure` if the step has shrunk to the spacing of the numbers or the state is no longer finite.
    """
    statistics = span.statistics
    method = _Method(_attempts(slope, span), span)
    while method.t < span.until:
        t0, y0, f0 = method.t, method.y, method.f
        method.step()
        if not np.isfinite(method.y).all():
            raise StepFailure("the state is no longer finite")
        if strict:
            dense, accurate = method.interpolant()
            if not accurate:
                return
        else:
            dense = _shorter_step(method.attempts, t0, y0, f0) if between == "step" else _interpolant(method)
        statistics.steps += 1
        interior = cubic_interior(t0, y0, f0, method.t, method.y, method.f)
        yield Segment(t0, y0, method.t, method.y, dense, interior)


class _Attempts:
    """Single steps of length h from a state y with slope f at time t. The slopes of the stages are written to K (>= 13,
    n).
    """

    def __init__(self, slope: Slope, span: Span) -> None:
        self.slope, self.span, self.table = slope, span, dop853()
        self.bounded = bool(np.isfinite(span.bounds).any())

    def flow(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the slope at a state, and count the evaluation."""
        self.span.statistics.evaluations += 1
        return self.slope(t, y)

    def state(self, t: float, y: np.ndarray, f: np.ndarray, h: float, K: np.ndarray) -> np.ndarray:
        """Return the state after the step; its slope is K[12]."""
        K[0] = f
        for s, (c, a) in enumerate(self.table.rows, start=1):
            K[s] = self.flow(t + c * h, y + K[:s].T.dot(a) * h)
        new = y + h * K[:12].T.dot(self.table.B)
        K[12] = self.flow(t + h, new)
        return new

    def attempt(self, t: float, y: np.ndarray, f: np.ndarray, h: float, K: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the state and its error in units of the tolerance, relative to the distance from the bounds."""
        with np.errstate(over="ignore", invalid="ignore"):  # too long a step of a stiff flow overflows and is rejected
            new = self.state(t, y, f, h, K)
            return new, self.error(y, new, h, (K[:13].T.dot(self.table.E5), K[:13].T.dot(self.table.E3)))

    def error(self, y: np.ndarray, new: np.ndarray, h: float, sums: tuple[np.ndarray, np.ndarray]) -> float:
        """Return the error of a new state from the sums of slopes of order five and three."""
        if self.bounded:
            size = np.maximum(distance(np, y, self.span.bounds), distance(np, new, self.span.bounds))
        else:
            size = np.maximum(np.abs(y), np.abs(new))
        scale = self.span.atol + self.span.rtol * size
        five, three = (rates / scale for rates in sums)
        if (both := _square(five) + 0.01 * _square(three)) != 0:
            return h * _square(five) / math.sqrt(both * scale.size)
        # Squares of slopes of 1e-270, from a start of 1e-90, underflow; times the step they are of the size of the
        # entries.
        both = _square(h * five) + 0.01 * _square(h * three)
        return _square(h * five) / math.sqrt(both * scale.size) if both != 0 else 0.0


class _CompiledAttempts(_Attempts):
    """The same steps in compiled code, for an autonomous flow that the engine evaluates."""

    def __init__(self, slope: "RightHandSide", span: Span) -> None:
        from odesim.flow.solvers import dop853_loops

        super().__init__(slope, span)
        self.compiled, self.program = dop853_loops.attempt, slope.program(span.y.size)
        self.sums = np.empty((3, span.y.size))

    def state(self, t: float, y: np.ndarray, f: np.ndarray, h: float, K: np.ndarray) -> np.ndarray:
        """Return the state after the step; its slope is K[12]."""
        K[0] = f
        self.compiled(y, h, (weights(), K), self.sums.ravel(), *self.program)
        self.span.statistics.evaluations += 12
        return self.sums[0].copy()

    def attempt(self, t: float, y: np.ndarray, f: np.ndarray, h: float, K: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the state and its error."""
        new = self.state(t, y, f, h, K)
        return new, self.error(y, new, h, (self.sums[2], self.sums[1]))


def _attempts(slope: Any, span: Span) -> _Attempts:
    """Return compiled attempts if the flow has an address and the state is large, otherwise those of NumPy."""
    return (
        _CompiledAttempts(slope, span) if hasattr(slope, "program") and span.y.size >= LARGE else _Attempts(slope, span)
    )


class _Method:
    """State (t, y) of the method with slope f, after a step from (t0, y0) of length h with the stages K (16, n)."""

    def __init__(self, attempts: _Attempts, span: Span, longest: float = np.inf) -> None:
        self.attempts, self.flow, self.span, self.longest = attempts, attempts.flow, span, longest
        self.t, self.y = span.t, np.array(span.y, float)
        self.f = self.flow(self.t, self.y)
        self.next = _first_step(self.flow, span, self.f) if longest == np.inf else longest
        self.K = np.empty((16, self.y.size))
        self.t0, self.y0, self.h = self.t, self.y, 0.0

    def step(self) -> None:
        """Take a step that is accurate enough. Other attempts are repeated with a shorter step."""
        t, y, until, statistics = self.t, self.y, self.span.until, self.span.statistics
        spacing = abs(np.nextafter(t, np.inf) - t)
        least = 10 * spacing
        h, again = min(max(self.next, least), self.longest), False
        while True:
            if not h >= least:  # also not with length 0, from a state that is not finite
                raise StepFailure("DOP853 stopped: Required step size is less than spacing between numbers.")
            end = min(t + h, until)
            h = end - t
            new, error = self.attempts.attempt(t, y, self.f, h, self.K)
            statistics.reject(0 if error < 1.0 else 1)
            if error < 1.0:
                break
            if not math.isfinite(error) and h < WALL * spacing:
                raise StepFailure("DOP853 stopped: the right-hand side is not finite beyond this time.")
            h *= max(LEAST, SAFETY * error ** (-1 / ORDER))
            again = True
        factor = MOST if error == 0 else min(MOST, SAFETY * error ** (-1 / ORDER))
        self.next = h * (min(1.0, factor) if again else factor)
        self.t0, self.y0, self.h = t, y, h
        self.t, self.y, self.f = end, new, self.K[12].copy()

    def interpolant(self) -> tuple[Dense, bool]:
        """Return a function for states inside the last step, of order 7, and True if it is accurate. This takes three
        evaluations.

        The polynomial is the sum of F_i x^a (1 - x)^b, a + b = i + 1, at the fraction x of the step. In long steps of a
        smooth flow its error was up to 60 tolerances, although the ends of the steps were right. In 38 long steps of
        chen's default run the error was at most a quarter of the last term, mostly a twentieth.
        """
        table, K, h, y0 = dop853(), self.K, self.h, self.y0
        for s, (a, c) in enumerate(zip(table.more_A, table.more_C, strict=True), start=13):
            K[s] = self.flow(self.t0 + c * h, y0 + np.dot(K[:s].T, a[:s]) * h)
        rise = self.y - y0
        F = np.array([rise, h * K[0] - rise, 2 * rise - h * (self.f + K[0]), *(h * np.dot(table.D, K))])
        t0 = self.t0

        def dense(t: float) -> np.ndarray:
            x, y = (t - t0) / h, np.zeros_like(y0)
            for i, term in enumerate(F[::-1]):
                y = (y + term) * (x if i % 2 == 0 else 1 - x)
            return y + y0

        scale = self.span.atol + self.span.rtol * np.abs(self.y)
        return dense, bool((np.abs(F[-1]) * LARGEST <= TRUSTED * scale).all())


def _square(x: np.ndarray) -> float:
    """Return |x|^2, rounded as the square of a norm.

    |x|^2, rounded as the square of a norm.
    """
    root = math.sqrt(x.dot(x))
    return root * root


def _first_step(flow: Slope, span: Span, f: np.ndarray) -> float:
    """Return a step of first order with an error of about a hundredth of the tolerance (Hairer, Norsett & Wanner
    1993).
    """
    t, y, whole = span.t, span.y, span.until - span.t
    scale = span.atol + np.abs(y) * span.rtol

    def size(x: np.ndarray) -> float:
        return float(np.linalg.norm(x / scale) / x.size**0.5)

    far, fast = size(y), size(f)
    guess = min(1e-6 if far < 1e-5 or fast < 1e-5 else 0.01 * far / fast, whole)
    bend = size(flow(t + guess, y + guess * f) - f) / guess
    still = fast <= 1e-15 and bend <= 1e-15
    return min(100 * guess, max(1e-6, guess * 1e-3) if still else (0.01 / max(fast, bend)) ** (1 / ORDER), whole)


def _shorter_step(attempts: _Attempts, t0: float, y0: np.ndarray, f0: np.ndarray) -> Dense:
    """Return a function for states inside an accepted step, by one shorter step of the same method from its start.

    The interpolant is not used, because its error was 3e-7 at a tolerance of 1e-11 where stability limits the step, as
    near a fixed point.
    """
    K = np.empty((13, y0.size))
    return lambda t: attempts.state(t0, y0, f0, t - t0, K)


def _interpolant(method: _Method) -> Dense:
    """Return `_between` of the last step, evaluated at the first request, because it costs three evaluations."""
    made = functools.cache(functools.partial(_between, method))
    return lambda t: made()(t)


def _between(method: _Method) -> Dense:
    """Return the interpolant of the last step, or those of its halves if it is not accurate. Halves have a hundredth of
    the error.
    """
    span, (dense, accurate) = method.span, method.interpolant()
    if accurate:
        return dense
    half = Span(method.t0, method.y0, method.t, span.rtol, span.atol, span.statistics, span.bounds)
    finer = _Method(method.attempts, half, longest=method.h / 2.0)
    times, pieces = [], []
    while finer.t < method.t:
        try:
            finer.step()
        except StepFailure:
            return dense
        times.append(finer.t)
        pieces.append(finer.interpolant()[0])
    return lambda t: pieces[min(int(np.searchsorted(times, t)), len(pieces) - 1)](t)


SOLVERS = (Solver("DOP853", steps),)
