"""Ensembles on JAX: runs of one shape (same equations and sizes) integrated together in one vmapped program.

Runs that differ in seed, in d or in arrays share a compiled program with one lane for each.  Lanes step in lockstep,
each with steps of its own; only a step in which something may happen that the recorder of a lane waits for comes back
from the device.  The method, its tolerances and the root-finding are those of the same run by itself.
"""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from derivations.contract import Independent, Smooth
from odesim.errors import UsageError
from odesim.flow.assemble import assemble
from odesim.flow.ensemble_steps import lane_functions
from odesim.flow.problem import Problem, prepare
from odesim.flow.record import Recorder, save_times
from odesim.flow.solvers import diffrax
from odesim.flow.solvers.catalogue import choose
from odesim.flow.solvers.step import Segment, Statistics, cubic_interior
from odesim.request.case import EULER, Case
from odesim.request.trajectory import Outcome, Trajectory

BYTES = 2**28
"""What the lanes of one program may hold, by a count of 40 states and a Jacobian each."""
MOST, MOST_ON_CPU = 1024, 16
"""Lanes of one program, at most.  A CPU gains nothing from more, and waits for the slowest of them."""
FEW = 4
"""No program is compiled for fewer lanes, where there were more to begin with."""
NEVER = (0, 0.0, np.inf)
"""A watched entry (place, sign, level) that never crosses, to fill up."""

After = dict[str, Any]
"""What `advance` leaves of one lane: arrays and numbers by name."""


class _Pending(Exception):
    """A state inside a step is needed that has not been computed yet."""

    def __init__(self, time: float) -> None:
        super().__init__(time)
        self.time = time


@dataclasses.dataclass(eq=False)
class _Lane:
    """One run on its way: where it stands, and what was recorded."""

    index: int
    problem: Problem
    recorder: Recorder
    statistics: Statistics
    began: float
    t: float
    y: np.ndarray
    step: float = 0.0
    streak: int = 0
    outcome: Outcome | None = None


def solve(cases: Sequence[Case], lanes: int | None = None) -> list[Trajectory]:
    """Integrate many cases of `backend="jax"` together, with at most `lanes` side by side; in the order of `cases`.

    Cases of different shapes make programs of their own.  A lane that fails ends with the outcome "failed" and its
    last good state, and the others go on.  The answer is that of `solve.solve` case by case, to the tolerance
    of the solver (Dopri8 unless the case names another of diffrax's); `seconds` among the statistics is the time
    from a lane's start to its end, which it shared with others.  Raises `UsageError` for cases that cannot be lanes.
    """
    problems = [prepare(case) for case in cases]
    for problem in problems:
        if not fits(problem):
            raise UsageError(
                "an ensemble integrates differential equations with --backend jax and one of the solvers "
                f"{', '.join(solver.name for solver in diffrax.SOLVERS)}; these are tier {problem.equations.tier} on "
                f"{problem.case.backend} with {problem.case.solver or 'its default solver'}"
            )
    found = dict(finished(problems, lanes))
    return [found[k] for k in range(len(problems))]


def fits(problem: Problem) -> bool:
    """Whether a case can be a lane: a flow on JAX that a solver of diffrax integrates."""
    case, equations = problem.case, problem.equations
    if case.backend != "jax" or case.solver == EULER or not isinstance(equations.advance, Smooth | Independent):
        return False
    return choose("jax", case.solver).traced


def shape(problem: Problem) -> tuple[Any, ...]:
    """What cases must have in common to be lanes of one program: equations, sizes, solver, and shapes of arrays."""
    sizes = tuple(a if isinstance(a, int) else np.shape(a) for a in problem.arguments)
    solver = choose("jax", problem.case.solver).name
    return problem.equations.structure, problem.equations.tier, problem.start.size, sizes, solver


def finished(problems: Sequence[Problem], lanes: int | None = None) -> Iterator[tuple[int, Trajectory]]:
    """(Place among `problems`, trajectory) of every run as soon as it ends."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for k, problem in enumerate(problems):
        groups.setdefault(shape(problem), []).append(k)
    for places in groups.values():
        for k, trajectory in _Program([problems[k] for k in places], lanes).run():
            yield places[k], trajectory


def most_lanes(size: int) -> int:
    """How many lanes of `size` entries are integrated side by side on JAX's device, a power of two."""
    import jax

    most = MOST_ON_CPU if jax.default_backend() == "cpu" else MOST
    return 2 ** int(np.log2(np.clip(BYTES / (8 * size * (size + 40)), 1, most)))


def power(count: int, base: int = 2) -> int:
    """The smallest power of `base` that is at least `count`."""
    found = 1
    while found < count:
        found *= base
    return found


class _Program:
    """The lanes of one shape: the longest first, new ones taken in where others have ended."""

    def __init__(self, problems: Sequence[Problem], lanes: int | None) -> None:
        first = problems[0]
        self.problems = problems
        self.solver = choose("jax", first.case.solver).name
        self.queue = sorted(range(len(problems)), key=lambda k: -problems[k].case.until)
        self.most = min(lanes or most_lanes(first.start.size), power(len(problems)))
        arrays = [[np.asarray(a) for a in p.arguments if not isinstance(a, int)] for p in problems]
        same = tuple(all(np.array_equal(a, column[0]) for a in column) for column in zip(*arrays, strict=True))
        self.arrays, self.shared = arrays, same
        sizes = tuple(a if isinstance(a, int) else None for a in first.arguments)
        self.advance, self.again = lane_functions(first.functions["flow"], sizes, same, self.solver)
        self.watched, self.kept = 1, ((), [])

    def run(self) -> Iterator[tuple[int, Trajectory]]:
        """Advance all lanes until each has ended."""
        active: list[_Lane] = []
        size = power(self.most)
        while active or self.queue:
            while self.queue and len(active) < self.most:
                active.append(self._start(self.queue.pop(0)))
            going = [lane for lane in active if lane.outcome is None]
            if going:
                # A smaller program is compiled only where it saves three quarters of the lanes.
                least = power(max(len(going), FEW))
                size = least if 4 * least <= size else size
                self._chunk(going, size)
            for lane in active:
                if lane.outcome is not None:
                    yield lane.index, _trajectory(lane)
            active = [lane for lane in active if lane.outcome is None]

    def _start(self, k: int) -> _Lane:
        problem = self.problems[k]
        recorder = Recorder(problem.equations, 0.0, problem.start, save_times(problem.case))
        if recorder.watched is not None:
            self.watched = max(self.watched, recorder.watched[0].size)
        lane = _Lane(k, problem, recorder, Statistics(self.solver), time.perf_counter(), 0.0, problem.start)
        if lane.t >= problem.case.until:
            lane.outcome = _completed(lane)
        return lane

    def _chunk(self, lanes: list[_Lane], size: int) -> None:
        """One call of the compiled program; the recorder of every lane takes its last step."""
        state = {
            "t": [lane.t for lane in lanes], "y": [lane.y for lane in lanes], "step": [lane.step for lane in lanes],
            "streak": [lane.streak for lane in lanes], "running": [True] * len(lanes),
        }  # fmt: skip
        state = {name: _filled(np.array(values), size) for name, values in state.items()}
        state["running"][len(lanes) :] = False
        found = self.advance(state, self._fixed(lanes, size), self._arguments(lanes, size))
        found = {name: np.asarray(values) for name, values in found.items()}
        steps = []
        for k, lane in enumerate(lanes):
            after = {name: values[k] for name, values in found.items()}
            diffrax.count(lane.statistics, self.solver, int(after["accepted"]), int(after["rejected"]))
            lane.t, lane.y, lane.step = float(after["t"]), after["y"].copy(), float(after["step"])
            lane.streak = int(after["streak"])
            if after["accepted"]:
                steps.append((lane, after))
        self._record(steps)
        for k, lane in enumerate(lanes):
            if lane.outcome is None:
                lane.outcome = _ended(lane, bool(found["running"][k]), int(found["accepted"][k]))

    def _fixed(self, lanes: list[_Lane], size: int) -> dict[str, np.ndarray]:
        """What every lane keeps during a chunk."""
        tolerances = [lane.problem.tolerances() for lane in lanes]
        numbers = {
            "until": [lane.problem.case.until for lane in lanes], "due": [lane.recorder.due for lane in lanes],
            "rtol": [rtol for rtol, _ in tolerances], "atol": [atol for _, atol in tolerances],
            "always": [lane.recorder.watched is None for lane in lanes],
            "lower": [lane.problem.bounds[0] for lane in lanes], "upper": [lane.problem.bounds[1] for lane in lanes],
        }  # fmt: skip
        for j, name in enumerate(("places", "signs", "levels")):
            rows = np.full((len(lanes), self.watched), NEVER[j])
            for row, lane in zip(rows, lanes, strict=True):
                if lane.recorder.watched is not None:
                    row[: lane.recorder.watched[j].size] = lane.recorder.watched[j]
            numbers[name] = rows
        return {name: _filled(np.array(values), size) for name, values in numbers.items()}

    def _arguments(self, lanes: list[_Lane], size: int) -> list[Any]:
        """The run-time arrays, over lanes where they differ, on the device; kept while the lanes stay the same."""
        import jax

        key = (size, *(lane.index for lane in lanes))
        if self.kept[0] != key:
            self.kept = (key, [jax.device_put(a) for a in self._stacked(lanes, size)])
        return self.kept[1]

    def _stacked(self, lanes: list[_Lane], size: int) -> Iterable[np.ndarray]:
        for j, same in enumerate(self.shared):
            if same:
                yield self.arrays[0][j]
            else:
                yield _filled(np.array([self.arrays[lane.index][j] for lane in lanes]), size)

    def _record(self, steps: list[tuple[_Lane, After]]) -> None:
        """Let the recorders take their steps.  The states that they ask for are computed for all lanes at once.

        A recorder whose state is missing is set back and takes its step again when it is there.
        """
        waiting = [(lane, after, {}) for lane, after in steps]
        while waiting:
            asked = []
            for lane, after, known in waiting:
                try:
                    if _take(lane.recorder, _segment(after, known)):
                        lane.outcome = Outcome("stopped", lane.recorder.end[0], lane.recorder.reason)
                except _Pending as pending:
                    asked.append((lane, after, known, pending.time))
            for (_, _, known, at), y in zip(asked, self._states(asked), strict=True):
                known[at] = y
            waiting = [(lane, after, known) for lane, after, known, _ in asked]

    def _states(self, asked: list[tuple[_Lane, After, dict[float, np.ndarray], float]]) -> np.ndarray:
        """The states at the times asked for, each by one step of the method from the start of the accepted step."""
        if not asked:
            return np.empty((0, 0))
        lanes, size = [lane for lane, *_ in asked], power(max(len(asked), min(FEW, self.most)), 4)
        tolerances = np.array([lane.problem.tolerances() for lane in lanes])
        columns = (
            np.array([after["t0"] for _, after, *_ in asked]), np.array([after["y0"] for _, after, *_ in asked]),
            np.array([at for *_, at in asked]), tolerances[:, 0], tolerances[:, 1],
        )  # fmt: skip
        arrays = list(self._stacked(lanes, size))
        return np.asarray(self.again(*(_filled(column, size) for column in columns), arrays))[: len(asked)]


def _filled(rows: np.ndarray, size: int) -> np.ndarray:
    """`rows` with the first of them repeated up to `size`."""
    return np.concatenate([rows, np.repeat(rows[:1], size - len(rows), axis=0)])


def _segment(after: After, known: dict[float, np.ndarray]) -> Segment:
    """The last step of a lane; states inside that are not among `known` are pending."""
    t0, t1 = float(after["t0"]), float(after["t"])

    def dense(t: float) -> np.ndarray:
        if t not in known:
            raise _Pending(t)
        return known[t]

    interior = cubic_interior(t0, after["y0"], after["f0"], t1, after["y"], after["f"])
    return Segment(t0, after["y0"], t1, after["y"], dense, interior)


def _take(recorder: Recorder, segment: Segment) -> bool:
    """`recorder.take`, undone where a state is pending."""
    before = {name: hits.copy() for name, hits in recorder.hits.items()}, recorder.watched, recorder.reason
    try:
        return recorder.take(segment)
    except _Pending:
        recorder.hits, recorder.watched, recorder.reason = before
        raise


def _ended(lane: _Lane, running: bool, accepted: int) -> Outcome | None:
    """How a lane has ended after a chunk; `None` where it goes on."""
    if lane.t >= lane.problem.case.until:
        return _completed(lane)
    why = ""
    if not np.isfinite(lane.y).all():
        why = "the state is no longer finite"
    elif lane.streak >= diffrax.CHUNK:
        why = f"{lane.statistics.solver} rejected {diffrax.CHUNK} steps in a row from time {lane.t:g}"
    elif not running and not (lane.step > 0 and lane.t + lane.step > lane.t):
        why = "the step size has shrunk to the spacing of the numbers"
    if not why:
        return None
    return Outcome("failed", lane.recorder.end[0], f"{why}; the last good state is at time {lane.recorder.end[0]:.6g}")


def _completed(lane: _Lane) -> Outcome:
    return Outcome("completed", lane.recorder.end[0], f"reached time {lane.recorder.end[0]:g}")


def _trajectory(lane: _Lane) -> Trajectory:
    assert lane.outcome is not None
    counted = {**lane.statistics.known(), "seconds": time.perf_counter() - lane.began}
    return assemble(lane.problem, lane.recorder, lane.outcome, counted)
