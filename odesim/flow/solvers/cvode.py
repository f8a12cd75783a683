"""SUNDIALS' variable-order BDF with matrix-free Newton-Krylov, stepped one accepted step at a time.

The flow relaxes at rates O(1) over times that grow like a power of d: an explicit method takes one or two steps per
unit of time at any accuracy. The steps of BDF are as long as the time over which the solution is smooth.
"""

import contextlib
import os
from collections.abc import Callable, Iterator

import numpy as np

from odesim.flow.solvers.coupled import CoupledBlocks
from odesim.flow.solvers.ndf import first_step
from odesim.flow.solvers.step import INTERIOR, Entries, Interior, Leg, Segment, Solver, Span, StepFailure

KRYLOV = 15
"""Number of Krylov vectors of GMRES. With the library's default 5, plateaus at d = 1e12 need seven times the
evaluations.
"""
PERTURBATION = 1e-8
"""Largest entry of the displacement in a difference quotient. The library's default, which is of the size of the
tolerance, is lost in round-off when overlaps of 1e-6 are integrated to ten digits.
"""
TOLERANCE = (1e-3, 1e-12)
"""Tolerance of a step relative to that of the result, and its lower bound. The errors of the many steps of a low order
add up; with this factor hitting times were within the tolerance. Below the bound the cost exploded.
"""
LOGS = ("SUNLOGGER_WARNING_FILENAME", "SUNLOGGER_ERROR_FILENAME")
"""Environment variables for the log files of the library."""
COARSEST = 1e4 * float(np.finfo(float).eps)
"""Smallest first step of the library relative to the horizon. It is a hundred times the spacing of floats at the
horizon. Nearer to the spacing, the error test of a first step failed until the library gave up.
"""
LONG = 1e8
"""Horizon below which the library always chooses the first step, because another choice costs two evaluations."""
TINY = float(np.finfo(float).tiny)


def steps(leg: Leg) -> Iterator[Segment]:
    """Yield the steps over a leg, preconditioned if the equations name strongly coupled entries."""
    problem, statistics = leg.problem, leg.statistics
    slope, coupled = problem.slope(), problem.smooth.coupled
    blocks = CoupledBlocks(slope, coupled(problem.initial), statistics) if coupled is not None else None
    return cvode_steps(slope, leg.span(TOLERANCE), blocks)


def cvode_steps(
    flow: Callable[[float, np.ndarray], np.ndarray], span: Span, blocks: CoupledBlocks | None = None
) -> Iterator[Segment]:
    """Yield accepted steps of CVODE's BDF on dy/dt = flow(t, y); products with the Jacobian are difference quotients.

    With `blocks` GMRES is preconditioned by them. States inside a step come from the method's own polynomial, which is
    valid until the next step. Raises `StepFailure` when the step size has shrunk to round-off or the library gives up.
    """
    from sksundae.cvode import CVODE, CVODEJacTimes, CVODEPrecond

    t, y, until, statistics = span.t, span.y, span.until, span.statistics

    def right_hand_side(time: float, state: np.ndarray, derivative: np.ndarray) -> None:
        statistics.evaluations += 1
        derivative[:] = flow(time, state)

    def slope_along(time: float, state: np.ndarray, now: np.ndarray, v: np.ndarray, product: np.ndarray) -> None:
        statistics.evaluations += 1
        scale = PERTURBATION / max(v.max(), -v.min(), TINY)
        np.subtract(flow(time, state + scale * v), now, out=product)
        product /= scale

    jacobian = CVODEJacTimes(None, slope_along)
    preconditioner = None if blocks is None else CVODEPrecond(blocks.setup, blocks.solve)
    with _quiet():
        solver = CVODE(
            right_hand_side, method="BDF", linsolver="gmres", krylov_dim=KRYLOV, jactimes=jacobian,
            precond=preconditioner, rtol=span.rtol, atol=span.atol, first_step=_first_step(flow, span),
        )  # fmt: skip
        solver.init_step(t, y)
    before = (t, y)
    while t < until:
        result = solver.step(until, method="onestep", tstop=until)
        if float(result.t) == t and result.success:
            # After a state inside the step, the library first returns the end of this step again.
            result = solver.step(until, method="onestep", tstop=until)
        t1, y1 = float(result.t), np.array(result.y)
        if not result.success:
            raise StepFailure(f"CVODE stopped: {result.message}")
        if not np.isfinite(y1).all():
            raise StepFailure("the state is no longer finite")
        if t1 - t <= 8 * np.spacing(t1) and t1 < until:
            raise StepFailure("CVODE's step size has shrunk to the spacing of the numbers")
        statistics.steps += 1

        def dense(time: float) -> np.ndarray:
            return np.array(solver.step(time, method="normal", tstop=until).y)

        yield Segment(t, y, t1, y1, dense, _parabola(*before, t, y, t1, y1))
        before, (t, y) = (t, y), (t1, y1)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Context manager that turns the log of the library off; each solver reads this setting once.

    The log would print warnings about vanishing steps on the terminal; odesim raises `StepFailure` for them.
    """
    wanted = {name: os.devnull for name in LOGS if name not in os.environ}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name in wanted:
            del os.environ[name]


def _first_step(flow: Callable[[float, np.ndarray], np.ndarray], span: Span) -> float:
    """Return the first step if the library cannot choose it (its own is at least `COARSEST` times the horizon), else
    0.
    """
    if span.until < LONG:
        return 0.0
    slope = flow(span.t, span.y)
    span.statistics.evaluations += 2
    step = first_step(lambda y: flow(span.t, y), span.y, slope, span.until - span.t, span.rtol, span.atol)
    return step if step < COARSEST * span.until else 0.0


def _parabola(t_: float, y_: np.ndarray, t0: float, y0: np.ndarray, t1: float, y1: np.ndarray) -> Interior:
    """Return a function for states inside the step (t0, t1): the parabola through its ends and the state before."""
    times = t0 + (t1 - t0) * INTERIOR

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        low, high = y0[entries], y1[entries]
        line = low + INTERIOR[:, None] * (high - low)
        if t_ == t0:
            return times, line
        bend = ((high - low) / (t1 - t0) - (low - y_[entries]) / (t0 - t_)) / (t1 - t_)
        return times, line + ((times - t0) * (times - t1))[:, None] * bend

    return interior


SOLVERS = (Solver("CVODE", steps, local=TOLERANCE),)
