"""Equations of independent blocks, each integrated with its own steps, so that slow blocks take few steps."""

import concurrent.futures
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Independent
from odesim.code.generated import Generated
from odesim.flow.assemble import assemble
from odesim.flow.blocks import MOST_STEPS, STATUS, Control, Found, tables
from odesim.flow.driver import Progress, drive
from odesim.flow.problem import Problem
from odesim.flow.record import Record
from odesim.machine.processes import thread_count
from odesim.request.saved_times import saved_times
from odesim.request.trajectory import Outcome, Trajectory

if TYPE_CHECKING:
    from odesim.store import Checkpoint

SOLVER = "blocks"
"""Name of this integrator for `--solver`."""


def solve(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Integrate all blocks of a problem to its horizon and return the trajectory."""
    case, equations = problem.case, problem.equations
    times = saved_times(case, case.until) if times is None else np.asarray(times, float)
    with _Blocks(problem, times) as course:
        ended, seconds = drive(course, case.until, progress, checkpoint)
    if ended.kind == "interrupted":  # some blocks are at the horizon, others have not begun: no common state
        raise KeyboardInterrupt
    steps, rejected, evaluations = (int(n) for n in course.found.counts.sum(axis=0))
    statistics = {
        "solver": SOLVER, "steps": steps, "rejected": rejected, "evaluations": evaluations,
        "blocks": len(course.start), "seconds": seconds,
    }  # fmt: skip
    record = Record(times, np.swapaxes(course.found.saved, 0, 1).reshape(times.size, -1), {})
    dims = equations.unpack(problem.start)
    for (name, columns), crossing in zip(course.places, equations.crossings, strict=True):
        record.hits[name] = course.found.hits[:, columns].reshape(dims[crossing.component].shape)
        reached = crossing.margin(dims[crossing.component]) >= 0
        record.hits[name] = np.where(reached, 0.0, record.hits[name])
    return assemble(problem, record, outcome_of(problem, record, course.found.status), statistics)


class _Blocks:
    """All blocks as one computation. A piece is a few chunks of blocks for every worker, integrated to the horizon."""

    def __init__(self, problem: Problem, times: np.ndarray) -> None:
        equations = problem.equations
        assert isinstance(equations.advance, Independent)
        size = equations.advance.size
        assert isinstance(problem.derivative, Generated)
        self.programs = problem.derivative.programs
        self.problem, self.times, self.done = problem, times, 0
        self.start = np.ascontiguousarray(problem.start.reshape(-1, size))
        self.watch, self.places = tables(equations, size)
        count = len(self.start)
        self.found = Found.empty(self.start, times.size, self.watch.entries.size)
        self.workers = min(thread_count(), max(1, count // 16))
        self.width = max(1, min(256, -(-count // (4 * self.workers))))

    def __enter__(self) -> "_Blocks":
        self.pool = concurrent.futures.ThreadPoolExecutor(self.workers)
        return self

    def __exit__(self, *raised: Any) -> None:
        self.pool.shutdown()

    @property
    def reached(self) -> float:
        return self.problem.case.until * self.done / len(self.start)

    def advance(self) -> Outcome | None:
        count = len(self.start)
        if self.done == count:
            until = self.problem.clock(self.problem.case.until)
            return Outcome("completed", until, f"reached time {until:g}")  # or not finished: `outcome_of` reads it
        end = min(self.done + 4 * self.workers * self.width, count)
        list(self.pool.map(self._take, (slice(k, min(k + self.width, end)) for k in range(self.done, end, self.width))))
        self.done = end
        return None

    def _take(self, chunk: slice) -> None:
        from odesim.flow.row_blocks import as_blocks  # which compiles the loops

        control = Control(*self.problem.tolerances(), MOST_STEPS, np.inf, self.problem.case.until)
        found = Found(*(values[chunk] for values in self.found))
        blocks = as_blocks(*self.programs, chunk)  # each thread needs its own tables
        blocks.integrate(self.start[chunk], self.times, control, self.watch, found)

    def state(self) -> dict[str, np.ndarray]:
        done, found = self.done, self.found
        arrays = {"saved": found.saved[:done], "hits": found.hits[:done], "counts": found.counts[:done]}
        return {"done": np.array(done), **arrays}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.done = done = int(arrays["done"])
        for name in ("saved", "hits", "counts"):
            getattr(self.found, name)[:done] = arrays[name]


def outcome_of(problem: Problem, record: Record, status: np.ndarray) -> Outcome:
    """Return the outcome: completed, or failed at the last time at which every block is good. Later states are left
    out.
    """
    if not status.any():
        until = problem.clock(problem.case.until)
        return Outcome("completed", until, f"reached time {until:g}")
    worst = int(np.argmax(status != 0))
    good = np.isfinite(record.states).all(axis=1)
    last = int(np.argmin(good)) if not good.all() else good.size
    record.times, record.states = record.times[:last], record.states[:last]
    reason = (
        f"{STATUS[int(status[worst])]} in {int((status != 0).sum())} of {status.size} blocks, first in block {worst}"
    )
    end = problem.clock(record.times[-1])
    return Outcome("failed", end, f"{reason}; all are good until {end:.6g}")
