"""End of a run at a stable fixed point, where the state is constant until a far horizon."""

from collections.abc import Callable, Iterator

import numpy as np

from odesim.flow.solvers.step import Segment, Statistics, cubic_interior

APART = 1e-6
"""Relative step of the central differences of the Jacobian, which then has a relative accuracy of about 1e-10."""
CLEARLY = 1e-6
"""Fraction of the largest eigenvalue. Every eigenvalue must be below minus this, because a smaller one may be a
direction of slow escape.
"""
LOOK, AWAY = 100, 1e6
"""Numbers of steps: every `LOOK` steps the flow is tested for rest, if the horizon is more than `AWAY` steps away."""

Slope = Callable[[float, np.ndarray], np.ndarray]
Steps = Callable[[float, np.ndarray], Iterator[Segment]]
"""Steps of a method from (t, y) to the horizon."""


def at_rest(slope: Slope, t: float, y: np.ndarray, tolerance: np.ndarray) -> bool:
    """Return True if y is within `tolerance` of a fixed point to which every direction returns exponentially.

    With the Jacobian J of an autonomous dy/dt = F(y), all eigenvalues of J have a negative real part, and the Newton
    step -J^{-1} F(y) is within the tolerance (n,) in every entry. A saddle, or a direction without a restoring force,
    is not a stable fixed point, however small F is.

    Example:
        >>> y = np.array([1.0, 1e-13])
        >>> at_rest(lambda t, y: np.array([1 - y[0], -2 * y[1]]), 0.0, y, np.full(2, 1e-12))
        True
        >>> at_rest(lambda t, y: np.array([1 - y[0], 2 * y[1]]), 0.0, y, np.full(2, 1e-12))
        False
    """
    step = APART * max(float(np.abs(y).max(initial=0.0)), np.finfo(float).tiny)
    J = np.empty((y.size, y.size))
    for k in range(y.size):
        moved = y.copy()
        moved[k] = y[k] + step
        above = slope(t, moved).copy()
        moved[k] = y[k] - step
        J[:, k] = (above - slope(t, moved)) / (2 * step)
    if not np.isfinite(J).all():
        return False
    rates = np.linalg.eigvals(J)
    largest = float(np.abs(rates).max(initial=0.0))
    if not largest > 0.0 or float(rates.real.max()) >= -CLEARLY * largest:
        return False
    return bool((np.abs(np.linalg.solve(J, slope(t, y))) <= tolerance).all())


def _rest(t: float, y: np.ndarray, until: float) -> Segment:
    """Return the last step, with a constant state."""
    still = np.zeros_like(y)
    return Segment(t, y, until, y, lambda _: y, cubic_interior(t, y, still, until, y, still))


def until_rest(
    method: Steps, slope: Slope, until: float, tolerance: Callable[[np.ndarray], np.ndarray], statistics: Statistics
) -> Steps:
    """Yield the steps of a method until the flow is at rest, then one step with a constant state to the horizon.

    At rest the rounding of the right-hand side determines the length of a step, so that steps stop growing.
    """

    def onward(t: float, y: np.ndarray) -> Iterator[Segment]:
        for taken, segment in enumerate(method(t, y), start=1):
            yield segment
            end, state = segment.t1, segment.y1
            far = until - end > AWAY * (end - segment.t0)
            if taken % LOOK == 0 and far and at_rest(slope, end, state, tolerance(state)):
                statistics.solver += f", at rest from time {end:.6g}"
                yield _rest(end, state, until)
                return

    return onward
