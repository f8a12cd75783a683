"""Equations that bring their own steps: right-hand sides that jump, and exact population recursions.

Their compiled `march` goes from one save time to the next; here is what remains: save times, progress, checkpoints, and
the outcome.
"""

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.blocks import Record
from odesim.errors import UsageError, interruptible
from odesim.record import save_times
from odesim.trajectory import Outcome, Trajectory, Variable

if TYPE_CHECKING:
    from odesim.integration import Problem
    from odesim.store import Checkpoint

CHECKPOINT_SECONDS = 10.0
COUNTS = ("steps", "rejected", "evaluations", "events")
SOLVER = "march"
"""The name of this integrator in the statistics of a run."""


def check(problem: "Problem") -> None:
    """Raise `UsageError` for options that have no meaning here."""
    case, march = problem.case, problem.equations.march
    assert march is not None
    if march.step is not None:
        for name in ("rtol", "atol", "solver"):
            if name in case.options:
                raise UsageError(
                    f"--{name} has no meaning for tier {case.tier}, an exact recursion; leave it out, or take a tier "
                    "that is integrated"
                )
    if case.solver not in (None, SOLVER):
        raise UsageError(f"--solver {case.solver} cannot step tier {case.tier}, which jumps; leave --solver out")
    if case.backend != "numba":
        raise UsageError(f"tier {case.tier} steps itself in compiled loops; leave --backend out or give numba")


def whole_steps(times: np.ndarray, step: float | None) -> np.ndarray:
    """The save times; for a recursion the nearest whole steps, each once."""
    if step is None:
        return times
    return np.unique(np.round(times / step)) * step


def solve(
    problem: "Problem",
    times: np.ndarray | None = None,
    progress: Callable[[float, float], None] | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Take a problem to its horizon, save time by save time, and return the trajectory."""
    from odesim import integration

    check(problem)
    case, march = problem.case, problem.equations.march
    assert march is not None
    times = whole_steps(save_times(case) if times is None else np.asarray(times, float), march.step)
    if times.size < 2:
        raise UsageError(f"--until {case.until:g} is less than half a step of {march.step:g}: give at least one step")
    states = np.full((times.size, problem.start.size), np.nan)
    y, hits = problem.start.copy(), np.full((len(march.names), march.width), np.inf)
    memory, counts, done = np.zeros(march.memory(problem.initial)), np.zeros(len(COUNTS), np.int64), 0
    stored = checkpoint.read() if checkpoint is not None else None
    if stored is not None:
        arrays = stored[0]
        done, y, hits, memory, counts = (
            int(arrays["done"]), arrays["y"].copy(), arrays["hits"].copy(), arrays["memory"].copy(),
            arrays["counts"].copy(),
        )  # fmt: skip
        states[: done + 1] = arrays["states"]

    def keep() -> None:
        if checkpoint is not None:
            saved = {"states": states[: done + 1], "done": np.array(done), "y": y, "hits": hits}
            checkpoint.write({**saved, "memory": memory, "counts": counts}, {})

    advance, tolerances = problem.functions["march"], np.array(problem.tolerances(SOLVER))
    began = written = time.monotonic()
    states[0], outcome = problem.start, None
    while done + 1 < times.size:
        before = [a.copy() for a in (y, hits, memory, counts)]
        try:
            with interruptible():
                status = advance(y, times[done], times[done + 1], hits, memory, tolerances, counts, *problem.arguments)
        except KeyboardInterrupt:
            y, hits, memory, counts = before
            keep()
            raise
        if status != 0 or not np.isfinite(y).all():
            outcome = _failed(problem, int(status), times[done])
            hits[hits > times[done]] = np.inf
            break
        done += 1
        states[done] = y
        if progress is not None:
            progress(times[done], times[-1])
        if time.monotonic() - written > CHECKPOINT_SECONDS:
            keep()
            written = time.monotonic()
    end = problem.clock(times[-1])
    outcome = outcome or Outcome("completed", end, f"reached time {end:g}")
    statistics: dict[str, Any] = {"solver": SOLVER, **dict(zip(COUNTS, map(int, counts), strict=True))}
    statistics["seconds"] = time.monotonic() - began
    record = Record(times[: done + 1], states[: done + 1], dict(zip(march.names, hits, strict=True)))
    return _recorded(problem, integration.assemble(problem, record, outcome, statistics), memory)


def _failed(problem: "Problem", status: int, time: float) -> Outcome:
    """What a status other than 0 says, and the last good time."""
    march, end = problem.equations.march, problem.clock(time)
    assert march is not None
    reason = march.reasons.get(status, "the state is no longer finite")
    return Outcome("failed", end, f"{reason}; the last good state is at time {end:g}")


def _recorded(problem: "Problem", trajectory: Trajectory, memory: np.ndarray) -> Trajectory:
    """The trajectory with what the steps wrote down in their memory."""
    march = problem.equations.march
    if march is None or march.record is None:
        return trajectory
    made = {name: Variable(*described) for name, described in march.record(problem.initial, memory).items()}
    return dataclasses.replace(trajectory, extras={**trajectory.extras, **made})
