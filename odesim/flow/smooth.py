"""Smooth flows: an adaptive integrator passes one step after the other to the recorder."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from odesim.errors import UsageError
from odesim.flow.assemble import assemble
from odesim.flow.driver import Progress, drive
from odesim.flow.problem import Problem
from odesim.flow.record import Recorder
from odesim.flow.solvers.catalogue import choose
from odesim.flow.solvers.step import Leg, Segment, Solver, Statistics, StepFailure, shifted
from odesim.request.saved_times import saved_times
from odesim.request.trajectory import Outcome, Trajectory

if TYPE_CHECKING:
    from odesim.store import Checkpoint


CLOCKS = 32
"""Largest number of clocks that begin at one time. Each shows times that are 1e-15 of those of the clock before."""


def solve(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Follow a smooth flow to its horizon, or to a terminal crossing, and return the trajectory.

    Raises `UsageError` for an integrator that does not support these equations.
    """
    case, equations = problem.case, problem.equations
    solver = choose(case.backend, case.solver)
    if reason := solver.objection(problem):
        raise UsageError(reason)
    statistics = Statistics(solver.name)
    recorder = Recorder(equations, 0.0, problem.start, times if times is not None else saved_times(case, case.until))
    outcome, seconds = drive(_Steps(problem, solver, recorder, statistics), case.until, progress, checkpoint)
    return assemble(problem, recorder, outcome, {**statistics.known(), "seconds": seconds})


class _Steps:
    """The steps of an integrator as a computation in pieces; one piece is one recorded step.

    The integrator restarts when a tiny start has grown (`Tiny.phase`). For an autonomous flow it also restarts, with a
    new clock from `origin` on, if its steps have shrunk to the spacing of floats at the present time. For example, an
    escape after a time of 1e20 is shorter than this spacing.
    """

    def __init__(self, problem: Problem, solver: Solver, recorder: Recorder, statistics: Statistics) -> None:
        self.problem, self.solver, self.recorder, self.statistics = problem, solver, recorder, statistics
        self._segments: Iterator[Segment] | None = None  # the integrator starts at the time of the recorder
        self.origin, self.taken, self.again, self.pause = 0.0, 0, 0, np.inf

    @property
    def reached(self) -> float:
        return self.recorder.end[0]

    def advance(self) -> Outcome | None:
        recorder, case, clock = self.recorder, self.problem.case, self.problem.clock
        if self._segments is None:
            t, y = recorder.end
            self.problem, y = self.problem.onward(y)
            recorder.end, self.pause = (t, y), self.problem.next_break(t, y)
            leg = Leg(self.problem, t - self.origin, y, recorder, self.statistics, self.origin, self.pause)
            self._segments, self.taken = shifted(self.solver.steps(leg), leg) if t < case.until else iter(()), 0
        try:
            segment = next(self._segments, None)
            if segment is not None and not recorder.take(segment):
                self._renew(segment)
                self.taken += 1
                return None
        except StepFailure as failure:
            end = recorder.end[0]
            # Without a tiny start the failure belongs to the flow: new clocks would approach it for ever.
            escaping = self.problem.autonomous and self.problem.tiny is not None
            if escaping and self.taken and self.again < CLOCKS:
                self.again = 0 if self.origin < end else self.again + 1
                self.origin, self._segments = end, None
                return None
            why = self.problem.ended(recorder.end[1]) or failure
            return Outcome("failed", clock(end), f"{why}; the last good state is at time {clock(end):.6g}")
        end = clock(recorder.end[0])
        if segment is not None:
            return Outcome("stopped", end, recorder.reason)
        if self.pause < case.until:  # the leg ends at a jump of the equations, which no step crosses
            self._segments = None
            return None
        return Outcome("completed", end, f"reached time {end:g}")

    def _renew(self, segment: Segment) -> None:
        """Restart the integrator if more of a tiny start has grown, because its tolerance and method may change.

        A tiny tolerance for all other entries would make the steps of the flow follow the rounding of its terms.
        """
        if self.problem.phase(segment.y1) > self.problem.phase(segment.y0):
            self._segments = None

    def state(self) -> dict[str, np.ndarray]:
        return self.recorder.checkpoint()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.recorder.restore(arrays)
