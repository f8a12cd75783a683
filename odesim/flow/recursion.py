"""Recursions: the map y -> y + h F(t, y), applied a whole number of times, in place of an integrator.

Either the equations are a recursion (a training step of the population), or a smooth flow is followed with a given
step.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Recursion
from odesim.errors import UsageError
from odesim.flow.assemble import assemble
from odesim.flow.driver import Pace, Progress, drive
from odesim.flow.problem import Problem
from odesim.flow.record import Record
from odesim.request.case import EULER, Case
from odesim.request.saved_times import saved_times
from odesim.request.trajectory import Outcome, Trajectory

if TYPE_CHECKING:
    from odesim.store import Checkpoint

REFUSED = ("rtol", "atol", "solver")
OFF = 1e-6
"""Rounding that is accepted between a save time and a whole number of steps, in steps."""


def solve(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Apply the map from 0 to the end of the case and save at the steps nearest to equally spaced times, or at `times`.

    A hitting time is the first step at or past the threshold, because a map has no states between two steps. Raises
    `UsageError` for options of an integrator, and for `times` that are not whole numbers of steps.
    """
    for name in REFUSED:
        if name in problem.case.options:
            tier = problem.equations.about.name
            raise UsageError(f"--{name} has no meaning for tier {tier}, which is a recursion; leave it out")
    advance = problem.equations.advance
    assert isinstance(advance, Recursion)
    name = advance.step
    h = float(getattr(problem.initial.parameters, name)) if name else 1.0
    called = f"-p {name}" if name else ""
    return iterate(problem, h, plan(problem.case, h, called, times), "recursion", progress, checkpoint)


def euler(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Gradient descent at a given step: y -> y + h F(t, y) for a smooth flow, with the step h of the case.

    This is the recursion of the order parameters. If they are linear in unconstrained weights, it equals gradient
    descent on the population loss. If they are inner products of trained vectors, or the weights stay on a sphere, it
    differs from gradient descent of the weights by terms of order h^2 in every step. Raises `UsageError` for
    tolerances, and as `solve` does.
    """
    for name in ("rtol", "atol"):
        if name in problem.case.options:
            raise UsageError(f"--{name} has no meaning for --solver {EULER}, whose steps are given; leave it out")
    h = problem.case.step
    assert h is not None
    return iterate(problem, h, plan(problem.case, h, "--step", times), EULER, progress, checkpoint)


def iterate(
    problem: Problem,
    h: float,
    schedule: np.ndarray,
    name: str,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Apply the map up to the last number of steps in `schedule`, and save at each. A terminal hitting time ends the
    run.
    """
    course = _Map(problem, h, schedule)
    outcome, seconds = drive(course, problem.case.until, progress, checkpoint)
    record = Record(course.schedule[: len(course.saved)] * h, np.array(course.saved), course.hits)
    statistics = {"solver": name, "steps": course.at, "step": h, "seconds": seconds}
    return assemble(problem, record, outcome, statistics)


class _Map:
    """The map as a computation in pieces: one step if hitting times are recorded, otherwise some of the steps to a
    save.
    """

    def __init__(self, problem: Problem, h: float, schedule: np.ndarray) -> None:
        self.problem, self.h, self.schedule = problem, h, schedule
        self.y, self.at = problem.start, 0
        self._change()
        self.saved, self.pace = [self.y], Pace()
        self.hits = {c.name: _first(problem, c, self.y, 0.0, None) for c in problem.equations.crossings}

    @property
    def reached(self) -> float:
        return self.at * self.h

    def _change(self) -> None:
        """Set the arguments that are valid from here on, up to the step `change` at which the equations jump or have a
        kink.
        """
        self.problem, self.y = self.problem.onward(self.y, OFF * self.h)
        self.take = stepper(self.problem, self.h)
        wait = self.problem.next_break(0.0, self.y) / self.h
        self.change = self.at + max(1.0, np.ceil(wait - OFF))

    def advance(self) -> Outcome | None:
        schedule, h, clock, crossings = self.schedule, self.h, self.problem.clock, self.problem.equations.crossings
        reasons = [c.reason for c in crossings if c.terminal and (self.hits[c.name] == self.reached).any()]
        if self.at and reasons:
            if self.at != schedule[len(self.saved) - 1]:
                self.saved.append(self.y)
            self.schedule = np.append(schedule[: len(self.saved) - 1], self.at)
            return Outcome("stopped", clock(self.reached), reasons[0])
        if self.at == schedule[-1]:
            return Outcome("completed", clock(schedule[-1] * h), f"took {schedule[-1]} steps of {h:g}")
        if self.at == self.change:
            self._change()
        count = 1 if crossings else self.pace.count(int(min(schedule[len(self.saved)], self.change)) - self.at)
        with self.pace.timed():
            moved = self.take(self.reached, self.y, count)
        if not np.isfinite(moved).all():
            last = clock(schedule[len(self.saved) - 1] * h)
            return Outcome("failed", last, f"the state is no longer finite by step {self.at + count}: smaller steps?")
        self.y, self.at = moved, self.at + count
        self.hits = {c.name: _first(self.problem, c, self.y, self.reached, self.hits[c.name]) for c in crossings}
        if self.at == schedule[len(self.saved)]:
            self.saved.append(self.y)
        return None

    def state(self) -> dict[str, np.ndarray]:
        hits = {f"hits_{name}": values for name, values in self.hits.items()}
        return {"y": self.y, "saved": np.array(self.saved), "at": np.array(self.at), **hits}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.y, self.saved, self.at = arrays["y"], list(arrays["saved"]), int(arrays["at"])
        self._change()
        self.hits = {name: arrays[f"hits_{name}"] for name in self.hits}


def plan(case: Case, h: float, name: str, times: np.ndarray | None) -> np.ndarray:
    """Return the numbers of steps at which states are saved. The step is h, an option called `name`.

    Raises `UsageError` for `times` that are not whole numbers of steps, and for a case that ends before the first step.
    """
    if times is not None:
        return require_whole_steps(np.asarray(times, float), h, name)
    last = round(case.until / h)
    if last < 1:
        raise UsageError(f"--until {case.until:g} is less than one step of {_step(h, name)}")
    return np.unique(np.round(saved_times(case, last)).astype(int))


def require_whole_steps(times: np.ndarray, h: float, name: str) -> np.ndarray:
    """Return the numbers of steps at some times. The step is h, an option called `name`.

    Raises `UsageError` for times between two steps, at which a map has no state.
    """
    steps = times / h
    if np.abs(steps - np.round(steps)).max() > OFF * max(1.0, float(steps.max())):
        raise UsageError(f"times to save at must be whole numbers of steps of {_step(h, name)}")
    return np.round(steps).astype(int)


def _step(h: float, name: str) -> str:
    """Return a step as text, with the name of its option if it has one."""
    return f"{name}={h:g}" if name else f"{h:g}"


def stepper(problem: Problem, h: float) -> Callable[[float, np.ndarray, int], np.ndarray]:
    """Return `advance(t, y, count)`, which computes the state after `count` steps."""
    flow, arguments = problem.functions["flow"], problem.arguments
    if problem.case.backend != "jax":

        def advance(t: float, y: np.ndarray, count: int) -> np.ndarray:
            for k in range(count):
                y = y + h * flow(t + k * h, y, *arguments)
            return y

        return advance
    import jax

    from odesim.code import traced

    sizes, arrays = traced.split(arguments)

    @jax.jit
    def run(t: Any, y: Any, count: Any, arrays: list[Any]) -> Any:
        merged = traced.joined(sizes, arrays)
        return jax.lax.fori_loop(0, count, lambda k, y: y + h * flow(t + k * h, y, *merged), y)

    return lambda t, y, count: np.asarray(run(t, y, count, arrays))


def _first(problem: Problem, crossing: Any, y: np.ndarray, now: float, known: np.ndarray | None) -> np.ndarray:
    """Return the hitting times so far: `now` for entries that are past the threshold for the first time."""
    reached = crossing.margin(crossing.entries(problem.equations.unpack(y)[crossing.component])) >= 0
    before = np.full(reached.shape, np.inf) if known is None else known
    return np.where(np.isinf(before) & reached, now, before)
