"""From a case to a trajectory: initial condition, compiled right-hand side, integrator, recorder, outcome."""

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import derivations
from derivations.contract import Equations, Initial, load
from odesim import blocks, march, recursion, steppers, streams
from odesim.case import EULER, Case, plain
from odesim.effort import require_memory
from odesim.errors import UsageError, interruptible
from odesim.record import Recorder, flat_entries, save_times
from odesim.trajectory import Origin, Outcome, Trajectory, Variable

if TYPE_CHECKING:
    from odesim.store import Checkpoint

Progress = Callable[[float, float], None]
CHECKPOINT_SECONDS = 10.0
LOCAL = 0.1
"""Local errors add up over the escape from small overlaps: with this factor the answer was within what was asked."""
FLOOR = 2.3e-14
"""No step is asked for more than 100 ulp."""
LOCAL_TOLERANCE = {"CVODE": (1e-3, 1e-12), "NDF": (3e-4, 1e-11)}
"""The same for the methods of low order, whose many steps add up more: with these hitting times were within what was
asked; and the floor below which their cost was seen to explode."""
IMPLICIT = 1e-8
"""Below this relative tolerance the default method stays explicit: those of low order do not reach what is asked."""
RTOL_FLOOR = 1e-13
"""Below this relative tolerance float64 round-off, not the step size, decides the error."""


@dataclasses.dataclass(frozen=True)
class Past:
    """What went before a stage on the same clock: its end, and hitting times of entries that went on unchanged."""

    time: float = 0.0
    hits: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def of(self, name: str, found: np.ndarray) -> np.ndarray:
        """Hitting times on the whole clock, from those `found` since `time` (0: already past, infinite: not yet)."""
        known = self.hits.get(name)
        since = np.asarray(found + self.time)
        return since if known is None else np.where(np.isfinite(known), known, since)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A case with its equations, initial condition and compiled functions.

    It is integrated from 0 for the duration `case.until`; the clock of the trajectory goes on from the `past`.
    """

    case: Case
    equations: Equations
    initial: Initial
    arguments: tuple[Any, ...]
    functions: Mapping[str, Callable[..., Any]]
    past: Past = Past()

    def clock(self, t: float) -> float:
        """The reading of the clock `t` after the start of the stage."""
        return self.past.time + float(t)

    @property
    def start(self) -> np.ndarray:
        """The flat state at time 0."""
        return self.equations.start(self.initial)

    @functools.cached_property
    def bounds(self) -> steppers.Bounds:
        """The least and the greatest value of every entry of the flat state, infinite where none is declared."""
        size = self.start.size
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        for component in self.equations.state:
            entries = flat_entries(self.equations, component.name, size)
            if entries is not None:
                places = entries[entries >= 0]
                lower[places], upper[places] = component.bounds
        return lower, upper

    def tolerances(self, solver: str) -> tuple[float, float]:
        """The relative and absolute tolerance of one step of `solver`, below what is asked of the answer."""
        relative, floor = LOCAL_TOLERANCE.get(solver, (LOCAL, FLOOR))
        return max(relative * self.case.rtol, floor), LOCAL * self.atol

    @property
    def atol(self) -> float:
        """The absolute tolerance: rtol * 1e-2 times the typical size of the initial overlaps, unless given."""
        return self.case.atol if self.case.atol is not None else self.case.rtol * 1e-2 * self.initial.scale


def initial_condition(case: Case) -> Initial:
    """The initial condition of a case: drawn from its seed, or made of the arrays of its file."""
    stage = case.system.stage(case.stage)
    return load(stage.enter)(case.parameters, case.initial, streams.generator(case.seed, "initial"))


def prepare(case: Case, initial: Initial | None = None, past: Past = Past()) -> Problem:
    """Compile the equations of a case at its initial condition (or at a given one, after the `past`)."""
    stage = case.system.stage(case.stage)
    if case.rtol < RTOL_FLOOR:
        raise UsageError(f"--rtol must be at least {RTOL_FLOOR:g} in float64, but {case.rtol:g} was given")
    initial = initial_condition(case) if initial is None else initial
    _require_finite(initial)
    equations = load(stage.equations)(initial.parameters, case.tier)
    functions = compile_functions(equations, case.backend)
    return Problem(case, equations, initial, equations.arguments(initial), functions, past)


def _require_finite(initial: Initial) -> None:
    """Raise `UsageError` for a start that holds no numbers: too large to be squared, or none to begin with."""
    for name, values in {**initial.state, **initial.constants}.items():
        array = np.asarray(values)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UsageError(
                f"{name} is not finite at the start: the initial arrays hold what is no number, or numbers too large "
                "for their squares; rescale them"
            )


def compile_functions(equations: Equations, backend: str) -> Mapping[str, Callable[..., Any]]:
    """`flow` and `loss` for a back end ("numba", "jax" or "numpy"), called with the run-time arguments."""
    from odesim import compile

    if backend == "numba":
        return compile.compile_numba(equations)
    if backend == "jax":
        from odesim import device

        device.configure("auto" if device.version("jax") else "cpu")
    return compile.compile_arrays(equations, backend)


def solve(
    case: Case,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
    times: np.ndarray | None = None,
    initial: Initial | None = None,
    past: Past = Past(),
) -> Trajectory:
    """Integrate a case and return its trajectory; a numerical failure is its outcome, not an exception.

    States are saved at `times` (increasing, from 0), by default the equally spaced ones of the case; `initial`
    replaces the initial condition of the case, and with a `past` the clock goes on from its end.

    Raises `UsageError` for options that have no meaning here and for a stage that has no flow, and
    `KeyboardInterrupt` after writing a checkpoint.
    """
    case.require_clock()
    problem = prepare(case, initial, past)
    states = case.save_points if times is None else len(times)
    require_memory(float(states) * problem.start.size, f"{states:.3g} saved states", "--save-points")
    if problem.equations.march is not None:
        return march.solve(problem, times, progress, checkpoint)
    if problem.equations.kind == "recursion":
        return recursion.solve(problem, times, progress, checkpoint)
    if case.solver == EULER:
        return recursion.euler(problem, times, progress, checkpoint)
    if problem.equations.blocks is not None and case.backend == "numba" and case.solver in (None, blocks.SOLVER):
        return blocks.solve(problem, times, progress, checkpoint)
    solver = steppers.choose_solver(case.backend, case.solver)
    if solver == "NDF" and (problem.equations.coupled is None or case.backend != "numba"):
        raise UsageError(
            f"--solver NDF needs equations that say which entries are strongly coupled, and --backend numba; "
            f"tier {problem.equations.tier} on {case.backend} can have --solver CVODE"
        )
    statistics = steppers.Statistics(solver)
    recorder = Recorder(problem.equations, 0.0, problem.start, times if times is not None else save_times(case))
    stored = checkpoint.read() if checkpoint is not None else None
    if stored is not None:
        recorder.restore(stored[0])
    began = time.perf_counter()
    outcome = _run(problem, recorder, statistics, progress, checkpoint)
    seconds = time.perf_counter() - began
    return assemble(problem, recorder, outcome, {**statistics.known(), "seconds": seconds})


def _run(
    problem: Problem,
    recorder: Recorder,
    statistics: steppers.Statistics,
    progress: Progress | None,
    checkpoint: "Checkpoint | None",
) -> Outcome:
    until = problem.case.until
    written = time.monotonic()
    try:
        with interruptible():
            for segment in _segments(problem, recorder, statistics):
                if recorder.take(segment):
                    return Outcome("stopped", problem.clock(recorder.end[0]), recorder.reason)
                if progress is not None:
                    progress(segment.t1, until)
                if checkpoint is not None and time.monotonic() - written > CHECKPOINT_SECONDS:
                    checkpoint.write(recorder.checkpoint(), {})
                    written = time.monotonic()
    except steppers.StepFailure as failure:
        end = problem.clock(recorder.end[0])
        return Outcome("failed", end, f"{failure}; the last good state is at time {end:.6g}")
    except KeyboardInterrupt:
        if checkpoint is not None:
            checkpoint.write(recorder.checkpoint(), {})
        raise
    end = problem.clock(recorder.end[0])
    return Outcome("completed", end, f"reached time {end:g}")


def _segments(problem: Problem, recorder: Recorder, statistics: steppers.Statistics) -> Iterator[steppers.Segment]:
    """The steps of the chosen solver, from where the recorder stands."""
    case, (t, y) = problem.case, recorder.end
    if t >= case.until:
        return iter(())
    if statistics.solver != "automatic":
        return _steps(problem, statistics.solver, t, y, recorder, statistics)
    from odesim.automatic import automatic_steps

    name = "NDF" if problem.equations.coupled is not None and case.backend == "numba" else "CVODE"

    def explicit(t: float, y: np.ndarray) -> Iterator[steppers.Segment]:
        return _steps(problem, "DOP853", t, y, recorder, statistics)

    # An implicit method gains nothing at kinks: it was seen to creep, and to give up.
    if case.rtol < IMPLICIT or problem.equations.dense == "interpolant":
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
    until, tolerances, coupled = problem.case.until, problem.tolerances(solver), problem.equations.coupled
    if solver in steppers.DIFFRAX_SOLVERS:
        flow = problem.functions["flow"]
        return steppers.diffrax_steps(flow, problem.arguments, t, y, until, *tolerances, statistics, problem.bounds)
    if solver == "NDF":
        from odesim.ndf import ndf_steps

        return ndf_steps(problem.equations, problem.initial, t, y, until, *tolerances, statistics, recorder)
    slope = _slope(problem)
    if solver == "CVODE":
        from odesim.coupled import CoupledBlocks
        from odesim.sundials import cvode_steps

        blocks = CoupledBlocks(slope, coupled.labels(problem.initial), statistics) if coupled is not None else None
        return cvode_steps(slope, t, y, until, *tolerances, statistics, blocks)
    between = problem.equations.dense
    return steppers.scipy_steps(slope, t, y, until, *tolerances, statistics, between, problem.bounds)


def _slope(problem: Problem) -> Callable[[float, np.ndarray], np.ndarray]:
    """dy/dt = F(t, y) with NumPy arrays in and out, for an integrator that is not traced."""
    flow, arguments = problem.functions["flow"], problem.arguments
    if problem.case.backend != "jax":
        return lambda t, y: flow(t, y, *arguments)
    sizes, arrays = steppers.split(arguments)
    traced = steppers.jax_slope(flow, sizes)
    return lambda t, y: np.asarray(traced(t, y, arrays))


def _along(problem: Problem, role: str, states: np.ndarray) -> np.ndarray:
    """A compiled function of the state, such as the loss, at every saved state."""
    function, arguments = problem.functions[role], problem.arguments
    if problem.case.backend != "jax":
        return np.array([function(y, *arguments) for y in states])
    sizes, arrays = steppers.split(arguments)
    return np.asarray(steppers.jax_along(function, sizes)(states, arrays))


def _watched(
    problem: Problem, states: np.ndarray, components: dict[str, np.ndarray], extras: Mapping[str, Variable]
) -> dict[str, Variable]:
    """The compiled observables along the run, added to `components` and returned as variables."""
    if "watch" not in problem.functions or not problem.equations.watched:
        return {}
    flat, at, found = _along(problem, "watch", states), 0, {}
    known = [(v.dims, v.values.shape) for v in extras.values()]
    known += [(c.dims, components[c.name].shape[1:]) for c in problem.equations.state]
    shapes = {dim: size for dims, shape in known for dim, size in zip(dims, shape, strict=True)}
    for c in problem.equations.watched:
        shape = tuple(shapes[dim] for dim in c.dims)
        count = int(np.prod(shape))
        components[c.name] = flat[:, at : at + count].reshape(len(states), *shape)
        found[c.name] = Variable(("time", *c.dims), components[c.name], c.meaning)
        at += count
    return found


def assemble(
    problem: Problem, recorder: Recorder | blocks.Record | march.Record, outcome: Outcome, statistics: Mapping[str, Any]
) -> Trajectory:
    """The trajectory of what was recorded: state, observables, hitting times, invariants and summary."""
    case, equations, initial = problem.case, problem.equations, problem.initial
    times, states = recorder.result()
    outcome = _confirmed(problem, outcome, times, states)
    components = {**equations.unpack(states), "time": times}
    state = {
        c.name: Variable(("time", *c.dims), components[c.name], f"{c.meaning} ({c.symbol})") for c in equations.state
    }
    if "loss" in problem.functions:
        # An overlap may pass 1 by its error, and a loss that is a mean square would then be negative.
        components["loss"] = _along(problem, "loss", np.clip(states, *problem.bounds))
        state["loss"] = Variable(("time",), components["loss"], "population loss L")
    extras = {n: Variable(dims, v, meaning) for n, (dims, v, meaning) in equations.constants(initial).items()}
    state |= _watched(problem, states, components, extras)
    observed = {
        n: Variable(dims, v, meaning) for n, (dims, v, meaning) in equations.observe(initial, components).items()
    }
    dims = {c.name: c.dims for c in equations.state}
    hits = {name: problem.past.of(name, values) for name, values in recorder.hits.items()}
    for crossing in equations.crossings:
        values = hits[crossing.name]
        extras[crossing.name] = Variable(dims[crossing.component], values, f"{crossing.meaning}; inf: not reached")
    if equations.march is not None:
        for name, (dimension, meaning) in equations.march.names.items():
            if name not in hits:  # a stage without a clock
                continue
            extras[name] = Variable((dimension,), hits[name], f"{meaning}; inf: not reached")
    known = {**components, **{n: v.values for n, v in observed.items()}, **hits}
    return Trajectory(
        time=times + problem.past.time,
        state={**state, **observed},
        extras=extras,
        clock=case.system.stage(case.stage).clock,
        origin=_origin(problem),
        outcome=outcome,
        statistics=statistics,
        summary=equations.summary(initial, known),
        invariants=equations.invariants(initial, components),
    )


def _confirmed(problem: Problem, outcome: Outcome, times: np.ndarray, states: np.ndarray) -> Outcome:
    """The outcome of a run, which is a failure, whatever the integrator says, where a saved state is not finite."""
    good = np.isfinite(states).all(axis=1)
    if outcome.kind == "failed" or good.all():
        return outcome
    last = problem.clock(times[max(0, int(np.argmin(good)) - 1)])
    return Outcome("failed", last, f"the state is no longer finite; the last good state is at time {last:.6g}")


def _origin(problem: Problem) -> Origin:
    case = problem.case
    until = problem.clock(case.until)
    options = {"until": until, "rtol": case.rtol, "atol": problem.atol, "backend": case.backend}
    if case.step is not None:
        options = {"until": until, "backend": case.backend, "solver": EULER, "step": case.step}
    device = "cpu"
    if case.backend == "jax":
        import jax

        device = jax.devices()[0].platform
    return Origin(
        system=derivations.reference(case.system),
        stage=case.stage,
        tier=case.tier,
        method="flow",
        parameters={f.name: plain(getattr(problem.initial.parameters, f.name)) for f in _fields(problem)},
        options=options,
        precision="float64",
        device=device,
        seed=case.seed,
    )


def _fields(problem: Problem) -> tuple[Any, ...]:
    return dataclasses.fields(problem.initial.parameters)
