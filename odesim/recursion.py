"""Recursions: the population map y -> y + h F(t, y), applied a whole number of times, in place of an integrator."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.blocks import Record
from odesim.errors import UsageError, interruptible
from odesim.record import margin
from odesim.trajectory import Outcome, Trajectory

if TYPE_CHECKING:
    from odesim.integration import Problem
    from odesim.store import Checkpoint

REFUSED = ("rtol", "atol", "solver")
CHECKPOINT_SECONDS = 10.0
OFF = 1e-6
"""Times to save at may be off a whole number of steps by this much of a step, which is rounding."""


def solve(
    problem: "Problem",
    times: np.ndarray | None = None,
    progress: Callable[[float, float], None] | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Apply the map from 0 to the end of the case and save at the steps nearest to equally spaced times, or at `times`.

    A hitting time is the first step at or past the threshold: a map has nothing between two steps.
    Raises `UsageError` for the options of an integrator, and for `times` that are no whole numbers of steps.
    """
    from odesim import integration

    case, equations = problem.case, problem.equations
    for name in REFUSED:
        if name in case.options:
            raise UsageError(f"--{name} has no meaning for tier {equations.tier}, which is a recursion; leave it out")
    h, schedule = plan(problem, times)
    begin, advance = time.perf_counter(), stepper(problem, h)
    y, saved, at = problem.start, [problem.start], 0
    hits = {c.name: _first(problem, c, y, 0.0, None) for c in equations.crossings}
    stored = checkpoint.read() if checkpoint is not None else None
    if stored is not None:
        y, saved, at = stored[0]["y"], list(stored[0]["saved"]), int(stored[0]["at"])
        hits = {name: stored[0][f"hits_{name}"] for name in hits}
    written = time.monotonic()

    def keep() -> None:
        if checkpoint is not None:
            arrays = {f"hits_{name}": values for name, values in hits.items()}
            checkpoint.write({"y": y, "saved": np.array(saved), "at": np.array(at), **arrays}, {})

    outcome = Outcome("completed", problem.clock(schedule[-1] * h), f"took {schedule[-1]} steps of {h:g}")
    try:
        while at < schedule[-1]:
            count = 1 if equations.crossings else int(schedule[len(saved)]) - at
            with interruptible():
                moved = advance(at * h, y, count)
            if not np.isfinite(moved).all():
                last = problem.clock(schedule[len(saved) - 1] * h)
                outcome = Outcome("failed", last, f"the state is no longer finite by step {at + count}: smaller steps?")
                break
            y, at = moved, at + count
            hits = {c.name: _first(problem, c, y, at * h, hits[c.name]) for c in equations.crossings}
            if at == schedule[len(saved)]:
                saved.append(y)
            if progress is not None:
                progress(at * h, case.until)
            if time.monotonic() - written > CHECKPOINT_SECONDS:
                keep()
                written = time.monotonic()
    except KeyboardInterrupt:
        keep()
        raise
    record = Record(schedule[: len(saved)] * h, np.array(saved), hits)
    seconds = time.perf_counter() - begin
    statistics = {"solver": "recursion", "steps": at, "step": h, "seconds": seconds}
    return integration.assemble(problem, record, outcome, statistics)


def plan(problem: "Problem", times: np.ndarray | None) -> tuple[float, np.ndarray]:
    """The step of the clock and the numbers of steps at which states are saved."""
    case = problem.case
    name = case.system.stage(case.stage).stride
    h = float(getattr(problem.initial.parameters, name))
    if times is not None:
        steps = np.asarray(times, float) / h
        if np.abs(steps - np.round(steps)).max() > OFF * max(1.0, float(steps.max())):
            raise UsageError(f"times to save at must be whole numbers of steps of -p {name}={h:g}")
        return h, np.round(steps).astype(int)
    last = round(case.until / h)
    if last < 1:
        raise UsageError(f"--until {case.until:g} is less than one step of -p {name}={h:g}")
    return h, np.unique(np.round(np.linspace(0, last, case.save_points)).astype(int))


def stepper(problem: "Problem", h: float) -> Callable[[float, np.ndarray, int], np.ndarray]:
    """`advance(t, y, count)`: the state after `count` steps."""
    flow, arguments = problem.functions["flow"], problem.arguments
    if problem.case.backend != "jax":

        def advance(t: float, y: np.ndarray, count: int) -> np.ndarray:
            for k in range(count):
                y = y + h * flow(t + k * h, y, *arguments)
            return y

        return advance
    import jax

    numbers = [a for a in arguments if not isinstance(a, int)]

    @jax.jit
    def run(t: Any, y: Any, count: Any, arrays: list[Any]) -> Any:
        remaining = iter(arrays)
        merged = [a if isinstance(a, int) else next(remaining) for a in arguments]
        return jax.lax.fori_loop(0, count, lambda k, y: y + h * flow(t + k * h, y, *merged), y)

    return lambda t, y, count: np.asarray(run(t, y, count, numbers))


def _first(problem: "Problem", crossing: Any, y: np.ndarray, now: float, known: np.ndarray | None) -> np.ndarray:
    """The hitting times so far: `now` for entries that are past the threshold for the first time."""
    reached = margin(crossing, problem.equations.unpack(y)[crossing.component]) >= 0
    before = np.full(reached.shape, np.inf) if known is None else known
    return np.where(np.isinf(before) & reached, now, before)
