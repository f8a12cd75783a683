"""Smooth flows, followed by an adaptive integrator: one step after the other into the recorder."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivations.contract import Smooth
from odesim.errors import UsageError
from odesim.flow.assemble import assemble
from odesim.flow.driver import Progress, drive
from odesim.flow.problem import Problem
from odesim.flow.record import Recorder, save_times
from odesim.flow.solvers import steppers
from odesim.request.trajectory import Outcome, Trajectory

if TYPE_CHECKING:
    from odesim.store import Checkpoint

IMPLICIT = 1e-8
"""Below this relative tolerance the default method stays explicit: those of low order do not reach what is asked."""


def solve(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Follow a smooth flow to its horizon, or to a terminal crossing, and return the trajectory.

    Raises `UsageError` for an integrator that cannot take these equations.
    """
    case, equations = problem.case, problem.equations
    solver = steppers.choose_solver(case.backend, case.solver)
    if solver == "NDF" and (smoothly(problem).coupled is None or case.backend != "numba"):
        raise UsageError(
            f"--solver NDF needs equations that say which entries are strongly coupled, and --backend numba; "
            f"tier {equations.tier} on {case.backend} can have --solver CVODE"
        )
    statistics = steppers.Statistics(solver)
    recorder = Recorder(equations, 0.0, problem.start, times if times is not None else save_times(case))
    outcome, seconds = drive(_Steps(problem, recorder, statistics), case.until, progress, checkpoint)
    return assemble(problem, recorder, outcome, {**statistics.known(), "seconds": seconds})


def smoothly(problem: Problem) -> Smooth:
    """How one integrator follows a flow: independent blocks, taken together, are a smooth flow like any other."""
    advance = problem.equations.advance
    return advance if isinstance(advance, Smooth) else Smooth()


class _Steps:
    """The steps of an integrator as a course: one piece is one step, recorded."""

    def __init__(self, problem: Problem, recorder: Recorder, statistics: steppers.Statistics) -> None:
        self.problem, self.recorder, self.statistics = problem, recorder, statistics
        self._segments: Iterator[steppers.Segment] | None = None  # made where the recorder stands: after `restore`

    @property
    def reached(self) -> float:
        return self.recorder.end[0]

    def advance(self) -> Outcome | None:
        recorder, clock = self.recorder, self.problem.clock
        if self._segments is None:
            self._segments = _segments(self.problem, recorder, self.statistics)
        try:
            segment = next(self._segments, None)
            if segment is not None and not recorder.take(segment):
                return None
        except steppers.StepFailure as failure:
            end = clock(recorder.end[0])
            return Outcome("failed", end, f"{failure}; the last good state is at time {end:.6g}")
        end = clock(recorder.end[0])
        if segment is not None:
            return Outcome("stopped", end, recorder.reason)
        return Outcome("completed", end, f"reached time {end:g}")

    def state(self) -> dict[str, np.ndarray]:
        return self.recorder.checkpoint()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.recorder.restore(arrays)


def _segments(problem: Problem, recorder: Recorder, statistics: steppers.Statistics) -> Iterator[steppers.Segment]:
    """The steps of the chosen solver, from where the recorder stands."""
    case, (t, y) = problem.case, recorder.end
    if t >= case.until:
        return iter(())
    if statistics.solver != "automatic":
        return _steps(problem, statistics.solver, t, y, recorder, statistics)
    from odesim.flow.solvers.automatic import automatic_steps

    name = "NDF" if smoothly(problem).coupled is not None and case.backend == "numba" else "CVODE"

    def explicit(t: float, y: np.ndarray) -> Iterator[steppers.Segment]:
        return _steps(problem, "DOP853", t, y, recorder, statistics)

    # An implicit method gains nothing at kinks: it was seen to creep, and to give up.
    if case.rtol < IMPLICIT or smoothly(problem).between == "interpolant":
        statistics.solver = "DOP853"
        return explicit(t, y)
    return automatic_steps(
        explicit, lambda t, y: _steps(problem, name, t, y, recorder, statistics), name, (t, y), case.until,
        problem.tolerances("DOP853")[0], statistics,
    )  # fmt: skip


def _steps(
    problem: Problem, solver: str, t: float, y: np.ndarray, recorder: Recorder, statistics: steppers.Statistics
) -> Iterator[steppers.Segment]:
    """The steps of one integrator from (t, y) to the horizon."""
    until, tolerances, coupled = problem.case.until, problem.tolerances(solver), smoothly(problem).coupled
    if solver in steppers.DIFFRAX_SOLVERS:
        flow = problem.functions["flow"]
        return steppers.diffrax_steps(flow, problem.arguments, t, y, until, *tolerances, statistics, problem.bounds)
    if solver == "NDF":
        from odesim.flow.solvers.ndf import ndf_steps

        return ndf_steps(problem.equations, problem.initial, t, y, until, *tolerances, statistics, recorder)
    slope = slope_of(problem)
    if solver == "CVODE":
        from odesim.flow.solvers.coupled import CoupledBlocks
        from odesim.flow.solvers.sundials import cvode_steps

        blocks = CoupledBlocks(slope, coupled.labels(problem.initial), statistics) if coupled is not None else None
        return cvode_steps(slope, t, y, until, *tolerances, statistics, blocks)
    between = smoothly(problem).between
    return steppers.scipy_steps(slope, t, y, until, *tolerances, statistics, between, problem.bounds)


def slope_of(problem: Problem) -> Callable[[float, np.ndarray], np.ndarray]:
    """dy/dt = F(t, y) with NumPy arrays in and out, for an integrator that is not traced."""
    flow, arguments = problem.functions["flow"], problem.arguments
    if problem.case.backend != "jax":
        return lambda t, y: flow(t, y, *arguments)
    sizes, arrays = steppers.split(arguments)
    traced = steppers.jax_slope(flow, sizes)
    return lambda t, y: np.asarray(traced(t, y, arrays))
