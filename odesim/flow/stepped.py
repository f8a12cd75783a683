"""Equations with their own stepping function: right-hand sides that jump, and exact population recursions.

Their compiled `march` integrates from one save time to the next. This module handles save times and the outcome.
"""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from derivations.contract import Stepped
from odesim.errors import UsageError
from odesim.flow.assemble import assemble
from odesim.flow.driver import Pace, Progress, drive
from odesim.flow.problem import Problem
from odesim.flow.record import Record
from odesim.flow.recursion import require_whole_steps
from odesim.request.saved_times import saved_times
from odesim.request.trajectory import Outcome, Trajectory, Variable

if TYPE_CHECKING:
    from odesim.store import Checkpoint

COUNTS = ("steps", "rejected", "evaluations", "events")
SOLVER = "march"
"""Name of this integrator in the statistics of a run."""


def marched(problem: Problem) -> Stepped:
    """Return the stepping function of a problem that this module solves."""
    advance = problem.equations.advance
    assert isinstance(advance, Stepped)
    return advance


def check(problem: Problem) -> None:
    """Raise `UsageError` for options without a meaning here."""
    case = problem.case
    if marched(problem).map is not None:
        for name in ("rtol", "atol", "solver"):
            if name in case.options:
                raise UsageError(
                    f"--{name} has no meaning for tier {case.tier}, an exact recursion; leave it out, or take a tier "
                    "that is integrated"
                )
    if case.solver not in (None, SOLVER):
        raise UsageError(
            f"--solver {case.solver} does not work for tier {case.tier}, whose right-hand side jumps; leave "
            "out --solver"
        )
    if case.backend != "numba":
        raise UsageError(f"tier {case.tier} has its own compiled stepping function; leave out --backend, or give numba")


def whole_steps(times: np.ndarray, step: float | None) -> np.ndarray:
    """Return the save times. For a recursion these are the nearest whole steps, without repetitions."""
    if step is None:
        return times
    return np.unique(np.round(times / step)) * step


def solve(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Integrate a problem to its horizon, save time by save time, and return the trajectory."""
    check(problem)
    case, march = problem.case, marched(problem)
    step = float(getattr(problem.initial.parameters, march.map.step)) if march.map is not None else None
    if case.save_at is not None and march.map is not None and step is not None:
        require_whole_steps(np.array(case.save_at), step, f"-p {march.map.step}")
    times = whole_steps(saved_times(case, case.until) if times is None else np.asarray(times, float), step)
    if times.size < 2:
        raise UsageError(f"--until {case.until:g} is less than half a step of {step:g}: give at least one step")
    course = _March(problem, march, times, step)
    outcome, seconds = drive(course, times[-1], progress, checkpoint)
    counted = dict(zip(COUNTS, map(int, course.kept.counts), strict=True))
    statistics: dict[str, Any] = {"solver": SOLVER, **counted, "seconds": seconds}
    saved = slice(course.done + 1)
    record = Record(times[saved], course.states[saved], dict(zip(march.names, course.kept.hits, strict=True)))
    return _recorded(problem, assemble(problem, record, outcome, statistics), course.kept.memory)


class _Kept(NamedTuple):
    """Arrays that the stepping function writes: the flat state, hitting times (names, width), memory, and counters."""

    y: np.ndarray
    hits: np.ndarray
    memory: np.ndarray
    counts: np.ndarray


class _March:
    """Integration from one save time to the next, in pieces. A map with a given `step` can also stop between save
    times.
    """

    def __init__(self, problem: Problem, march: Stepped, times: np.ndarray, step: float | None) -> None:
        self.problem, self.times, self.done, self.step = problem, times, 0, step
        self.now, self.pace = float(times[0]), Pace()
        self.states = np.full((times.size, problem.start.size), np.nan)
        self.states[0] = problem.start
        hits = np.full((len(march.names), march.width), np.inf)
        memory = np.zeros(march.memory(problem.initial))
        self.kept = _Kept(problem.start.copy(), hits, memory, np.zeros(len(COUNTS), np.int64))
        self.tolerances = np.array(problem.tolerances())

    @property
    def reached(self) -> float:
        return self.now

    def advance(self) -> Outcome | None:
        if self.done + 1 == self.times.size:
            end = self.problem.clock(self.times[-1])
            return Outcome("completed", end, f"reached time {end:g}")
        before = _Kept(*(array.copy() for array in self.kept))
        (y, hits, memory, counts), march = self.kept, self.problem.functions["march"]
        now, then = self.now, self._next()
        try:
            with self.pace.timed():
                status = march(y, now, then, hits, memory, self.tolerances, counts, *self.problem.arguments)
        except BaseException:  # interrupted between: the arrays are half written
            self.kept = before
            raise
        if status != 0 or not np.isfinite(y).all():
            last = self.times[self.done]
            hits[hits > last] = np.inf
            return _failed(self.problem, int(status), last)
        self.now = then
        if then == self.times[self.done + 1]:
            self.done += 1
            self.states[self.done] = y
        return None

    def _next(self) -> float:
        """Return the next save time, or an earlier time for a map, after the steps of one piece."""
        end = float(self.times[self.done + 1])
        if self.step is None:
            return end
        first, last = round(self.now / self.step), round(end / self.step)
        count = self.pace.count(last - first)
        return end if first + count == last else (first + count) * self.step

    def state(self) -> dict[str, np.ndarray]:
        saved = {"states": self.states[: self.done + 1], "done": np.array(self.done), "now": np.array(self.now)}
        return {**saved, **self.kept._asdict()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.done, self.now = int(arrays["done"]), float(arrays["now"])
        self.states[: self.done + 1] = arrays["states"]
        self.kept = _Kept(*(arrays[name].copy() for name in _Kept._fields))


def _failed(problem: Problem, status: int, time: float) -> Outcome:
    """Return the reason for a status other than 0, and the last good time."""
    end = problem.clock(time)
    reason = marched(problem).reasons.get(status, "the state is no longer finite")
    return Outcome("failed", end, f"{reason}; the last good state is at time {end:g}")


def _recorded(problem: Problem, trajectory: Trajectory, memory: np.ndarray) -> Trajectory:
    """Return the trajectory with the data that the steps wrote to their memory."""
    record = marched(problem).record
    if record is None:
        return trajectory
    made = {name: Variable(*described) for name, described in record(problem.initial, memory).items()}
    return dataclasses.replace(trajectory, extras={**trajectory.extras, **made})
