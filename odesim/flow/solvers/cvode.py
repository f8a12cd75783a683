"""SUNDIALS' variable-order BDF with matrix-free Newton-Krylov, stepped one accepted step at a time.

The flow relaxes at rates O(1) over times that grow like a power of d: an explicit method takes a step or two per
unit of time whatever the accuracy, this one takes steps as long as the solution is smooth.
"""

import contextlib
import os
from collections.abc import Callable, Iterator

import numpy as np

from odesim.flow.solvers.coupled import CoupledBlocks
from odesim.flow.solvers.ndf import first_step
from odesim.flow.solvers.step import INTERIOR, Entries, Interior, Leg, Segment, Solver, Span, StepFailure

KRYLOV = 15
"""Krylov vectors kept by GMRES: with the library's 5, the plateaus at d = 1e12 cost seven times the evaluations."""
PERTURBATION = 1e-8
"""Largest entry of the displacement in a difference quotient: the library's own, of the size of the tolerance, drowns
in round-off when overlaps of 1e-6 are followed to ten digits."""
TOLERANCE = (1e-3, 1e-12)
"""The tolerance of a step relative to what is asked: the many steps of a low order add up more, and with this hitting
times were within it; and the floor below which the cost was seen to explode."""
LOGS = ("SUNLOGGER_WARNING_FILENAME", "SUNLOGGER_ERROR_FILENAME")
"""The variables that say where the library logs."""
COARSEST = 1e4 * float(np.finfo(float).eps)
"""The library's first step is no shorter than a hundred times the spacing of the numbers at the horizon; so close to
that the error test of a first step was seen to fail until it gave up."""
LONG = 1e8
"""Before this horizon the library is always asked for its first step: to look for another costs two evaluations."""
TINY = float(np.finfo(float).tiny)


def steps(leg: Leg) -> Iterator[Segment]:
    """The steps over a leg, preconditioned where the equations say what is strongly coupled."""
    problem, statistics = leg.problem, leg.statistics
    slope, coupled = problem.slope(), problem.smooth.coupled
    blocks = CoupledBlocks(slope, coupled(problem.initial), statistics) if coupled is not None else None
    return cvode_steps(slope, leg.span(TOLERANCE), blocks)


def cvode_steps(
    flow: Callable[[float, np.ndarray], np.ndarray], span: Span, blocks: CoupledBlocks | None = None
) -> Iterator[Segment]:
    """Accepted steps of CVODE's BDF on dy/dt = flow(t, y), the Jacobian applied by a difference quotient.

    With `blocks` GMRES is preconditioned by them.  States inside a step come from the method's own polynomial, which
    is valid until the next step is asked for.  Raises `StepFailure` when the step size has shrunk to round-off or the
    library gives up.
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
            # After a state inside the step was asked for, the library first returns the end of that step again.
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
    """Context manager in which the library takes note to log nothing, as it does once for every solver.

    Its warnings about vanishing steps would go to the terminal; they come back as `StepFailure` instead.
    """
    wanted = {name: os.devnull for name in LOGS if name not in os.environ}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name in wanted:
            del os.environ[name]


def _first_step(flow: Callable[[float, np.ndarray], np.ndarray], span: Span) -> float:
    """The first step where the library cannot find one, else 0: its own is at least `COARSEST` times the horizon."""
    if span.until < LONG:
        return 0.0
    slope = flow(span.t, span.y)
    span.statistics.evaluations += 2
    step = first_step(lambda y: flow(span.t, y), span.y, slope, span.until - span.t, span.rtol, span.atol)
    return step if step < COARSEST * span.until else 0.0


def _parabola(t_: float, y_: np.ndarray, t0: float, y0: np.ndarray, t1: float, y1: np.ndarray) -> Interior:
    """States inside the step (t0, t1), from the parabola that also goes through the state before it."""
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
