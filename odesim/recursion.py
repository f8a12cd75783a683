"""Recursions: the map y -> y + h F(t, y), applied a whole number of times, in place of an integrator.

Either the equations are one (a training step of the population), or a smooth flow is descended at a given step.
"""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from odesim.blocks import Record
from odesim.case import EULER, Case
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
    for name in REFUSED:
        if name in problem.case.options:
            tier = problem.equations.tier
            raise UsageError(f"--{name} has no meaning for tier {tier}, which is a recursion; leave it out")
    name = problem.case.system.stage(problem.case.stage).stride
    h = float(getattr(problem.initial.parameters, name))
    return iterate(problem, h, plan(problem.case, h, f"-p {name}", times), "recursion", progress, checkpoint)


def euler(
    problem: "Problem",
    times: np.ndarray | None = None,
    progress: Callable[[float, float], None] | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Gradient descent at a given step: y -> y + h F(t, y) for a smooth flow, with the step h of the case.

    It is the recursion of the order parameters.  Where these are linear in the weights, and the weights move freely,
    that is gradient descent on the population loss itself; where they are inner products of trained vectors, or the
    weights stay on a sphere, it differs from descent of the weights by terms of order h^2 in every step.
    Raises `UsageError` for tolerances, and as `solve` does.
    """
    for name in ("rtol", "atol"):
        if name in problem.case.options:
            raise UsageError(f"--{name} has no meaning for --solver {EULER}, whose steps are given; leave it out")
    h = problem.case.step
    assert h is not None
    return iterate(problem, h, plan(problem.case, h, "--step", times), EULER, progress, checkpoint)


def iterate(
    problem: "Problem",
    h: float,
    schedule: np.ndarray,
    name: str,
    progress: Callable[[float, float], None] | None,
    checkpoint: "Checkpoint | None",
) -> Trajectory:
    """The map, applied up to the last of the numbers of steps in `schedule`, saved at each; a terminal hit ends it."""
    from odesim import integration

    case, equations = problem.case, problem.equations
    begin, advance = time.perf_counter(), stepper(problem, h)
    y, saved, at, hits = _beginning(problem, checkpoint)
    written = time.monotonic()

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
            reason = next((c.reason for c in equations.crossings if c.terminal and (hits[c.name] == at * h).any()), "")
            if reason or at == schedule[len(saved)]:
                saved.append(y)
            if reason:
                schedule = np.append(schedule[: len(saved) - 1], at)
                outcome = Outcome("stopped", problem.clock(at * h), reason)
                break
            if progress is not None:
                progress(at * h, case.until)
            if time.monotonic() - written > CHECKPOINT_SECONDS:
                _keep(checkpoint, y, saved, at, hits)
                written = time.monotonic()
    except KeyboardInterrupt:
        _keep(checkpoint, y, saved, at, hits)
        raise
    record = Record(schedule[: len(saved)] * h, np.array(saved), hits)
    seconds = time.perf_counter() - begin
    statistics = {"solver": name, "steps": at, "step": h, "seconds": seconds}
    return integration.assemble(problem, record, outcome, statistics)


def _beginning(
    problem: "Problem", checkpoint: "Checkpoint | None"
) -> tuple[np.ndarray, list[Any], int, dict[str, Any]]:
    """State, saved states, number of steps and hitting times to go on from: those of the checkpoint, or the start."""
    crossings = problem.equations.crossings
    stored = checkpoint.read() if checkpoint is not None else None
    if stored is not None:
        kept = stored[0]
        hits = {c.name: kept[f"hits_{c.name}"] for c in crossings}
        return kept["y"], list(kept["saved"]), int(kept["at"]), hits
    start = problem.start
    return start, [start], 0, {c.name: _first(problem, c, start, 0.0, None) for c in crossings}


def _keep(
    checkpoint: "Checkpoint | None", y: np.ndarray, saved: list[Any], at: int, hits: dict[str, np.ndarray]
) -> None:
    """Write what `_beginning` reads."""
    if checkpoint is not None:
        arrays = {f"hits_{name}": values for name, values in hits.items()}
        checkpoint.write({"y": y, "saved": np.array(saved), "at": np.array(at), **arrays}, {})


def plan(case: Case, h: float, name: str, times: np.ndarray | None) -> np.ndarray:
    """The numbers of steps h, which the user calls `name`, at which states are saved.

    Raises `UsageError` for `times` that are no whole numbers of steps, and for a case that ends before the first.
    """
    if times is not None:
        steps = np.asarray(times, float) / h
        if np.abs(steps - np.round(steps)).max() > OFF * max(1.0, float(steps.max())):
            raise UsageError(f"times to save at must be whole numbers of steps of {name}={h:g}")
        return np.round(steps).astype(int)
    last = round(case.until / h)
    if last < 1:
        raise UsageError(f"--until {case.until:g} is less than one step of {name}={h:g}")
    return np.unique(np.round(np.linspace(0, last, case.save_points)).astype(int))


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
