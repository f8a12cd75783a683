"""Smooth flows, followed by an adaptive integrator: one step after the other into the recorder."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from odesim.errors import UsageError
from odesim.flow.assemble import assemble
from odesim.flow.driver import Progress, drive
from odesim.flow.problem import Problem
from odesim.flow.record import Recorder, save_times
from odesim.flow.solvers.catalogue import choose
from odesim.flow.solvers.step import Leg, Segment, Solver, Statistics, StepFailure
from odesim.request.trajectory import Outcome, Trajectory

if TYPE_CHECKING:
    from odesim.store import Checkpoint


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
    solver = choose(case.backend, case.solver)
    if reason := solver.objection(problem):
        raise UsageError(reason)
    statistics = Statistics(solver.name)
    recorder = Recorder(equations, 0.0, problem.start, times if times is not None else save_times(case))
    outcome, seconds = drive(_Steps(problem, solver, recorder, statistics), case.until, progress, checkpoint)
    return assemble(problem, recorder, outcome, {**statistics.known(), "seconds": seconds})


class _Steps:
    """The steps of an integrator as a course: one piece is one step, recorded."""

    def __init__(self, problem: Problem, solver: Solver, recorder: Recorder, statistics: Statistics) -> None:
        self.problem, self.solver, self.recorder, self.statistics = problem, solver, recorder, statistics
        self._segments: Iterator[Segment] | None = None  # made where the recorder stands: after `restore`

    @property
    def reached(self) -> float:
        return self.recorder.end[0]

    def advance(self) -> Outcome | None:
        recorder, clock = self.recorder, self.problem.clock
        if self._segments is None:
            leg = Leg(self.problem, *recorder.end, recorder, self.statistics)
            self._segments = self.solver.steps(leg) if leg.t < leg.until else iter(())
        try:
            segment = next(self._segments, None)
            if segment is not None and not recorder.take(segment):
                return None
        except StepFailure as failure:
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
