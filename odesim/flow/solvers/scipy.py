"""SciPy's integrators for a compiled right-hand side; errors of Runge-Kutta steps are measured from the bounds."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from odesim.flow.solvers.step import (
    Bounds,
    Leg,
    Segment,
    Solver,
    Span,
    Statistics,
    StepFailure,
    cubic_interior,
    distance,
)


def steps(leg: Leg, name: str) -> Iterator[Segment]:
    """Yield the steps of the method called `name` over a leg."""
    return scipy_steps(name, leg.problem.slope(), leg.span(), leg.problem.smooth.between)


def scipy_steps(
    name: str, slope: Callable[[float, np.ndarray], np.ndarray], span: Span, between: str = "step"
) -> Iterator[Segment]:
    """Yield accepted steps of the SciPy solver called `name` on dy/dt = slope(t, y); `between` is that of `Smooth`.

    The errors of Runge-Kutta steps are measured against `distance`. Evaluations are counted here, because SciPy does
    not count those for states between two steps.
    """
    import scipy.integrate

    statistics = span.statistics

    def flow(t: float, y: np.ndarray) -> np.ndarray:
        statistics.evaluations += 1
        return slope(t, y)

    method = getattr(scipy.integrate, name)
    if hasattr(method, "A"):
        method = _measured(method, span.bounds, statistics)
    solver = method(flow, span.t, span.y, span.until, rtol=span.rtol, atol=span.atol)
    derivative = flow(span.t, span.y)
    while solver.status == "running":
        t0, y0, f0 = solver.t, solver.y.copy(), derivative
        try:
            message = solver.step()
        except (ValueError, np.linalg.LinAlgError) as error:  # a Jacobian that is not finite
            raise StepFailure(f"{name} stopped: {error}") from None
        if solver.status == "failed":
            raise StepFailure(f"{name} stopped: {message}")
        if not np.isfinite(solver.y).all():
            raise StepFailure("the state is no longer finite")
        statistics.steps += 1
        derivative = solver.f if hasattr(solver, "f") else flow(solver.t, solver.y)
        interior = cubic_interior(t0, y0, f0, solver.t, solver.y, derivative)
        again = between == "step" and hasattr(solver, "A")
        dense = _shorter_step(solver, flow, t0, y0, f0) if again else solver.dense_output()
        yield Segment(t0, y0, solver.t, solver.y.copy(), dense, interior)


def _measured(method: Any, bounds: Bounds, statistics: Statistics) -> Any:
    """Return a Runge-Kutta class of SciPy with errors relative to `distance` instead of the entries themselves.

    SciPy computes the error of every attempt. If it is above 1, SciPy repeats the step without reporting this.
    """

    class Measured(method):
        def _estimate_error_norm(self, K: np.ndarray, h: float, scale: np.ndarray) -> Any:
            moved = self.y + h * (K[:-1].T @ self.B)
            size = np.maximum(distance(np, self.y, bounds), distance(np, moved, bounds))
            error = super()._estimate_error_norm(K, h, self.atol + self.rtol * size)
            statistics.reject(0 if error < 1.0 else 1)
            return error

    return Measured


def _shorter_step(
    solver: Any, flow: Callable[[float, np.ndarray], np.ndarray], t0: float, y0: np.ndarray, f0: np.ndarray
) -> Callable[[float], np.ndarray]:
    """Return a function for states inside an accepted Runge-Kutta step, by one shorter step from its start.

    Dense output is not used, because its error was 3e-7 at a tolerance of 1e-11 where stability limits the step, as
    near a fixed point.
    """
    stages = np.empty((len(solver.B) + 1, y0.size))

    def evaluate(t: float) -> np.ndarray:
        h, stages[0] = t - t0, f0
        for s in range(1, len(solver.B)):
            stages[s] = flow(t0 + solver.C[s] * h, y0 + np.dot(stages[:s].T, solver.A[s, :s]) * h)
        return y0 + h * np.dot(stages[:-1].T, solver.B)

    return evaluate


SOLVERS = tuple(Solver(name, functools.partial(steps, name=name)) for name in ("RK45", "RK23", "Radau", "BDF", "LSODA"))
