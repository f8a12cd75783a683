"""From a request for finite-sample SGD to a trajectory: replicas, save schedule, checkpoint, outcome."""

import dataclasses
import functools
import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Eigenspaces, Initial, Model, ScalarModel, load
from odesim.errors import UsageError
from odesim.flow.driver import Progress, drive
from odesim.flow.losses import divergence
from odesim.flow.stage_start import begun
from odesim.machine import streams
from odesim.machine.device import in_double
from odesim.request.case import Case, digest_of, plain, values_of
from odesim.request.parse import choice, real_number, whole_number
from odesim.request.saved_times import saved_times, with_start, without_start
from odesim.request.trajectory import Origin, Outcome, Trajectory, Variable
from odesim.sgd import effort, families, given_frame, normals, own_samples, phases
from odesim.sgd.beginning import START, Beginning, require_steps
from odesim.sgd.descent import Descent
from odesim.sgd.observed import constants, events, flow_of, hitting_times, population_values

if TYPE_CHECKING:
    from odesim.sgd.engines import Engine
    from odesim.store import Checkpoint

METHODS = ("explicit", "compressed")
DEVICES = ("auto", "cpu", "gpu")
PRECISIONS = ("float64", "float32")
FLOW_ONLY = ("rtol", "atol", "solver")


@dataclasses.dataclass(frozen=True, eq=False)
class Simulation:
    """Case for SGD: the method, the step size, the batch, the replicas, the device and the precision.

    With `population_loss` the loss of the flow's first tier is saved even if that costs as much as training. `batch` is
    that of the first step if the batch `changes`.
    """

    case: Case
    method: str
    step_size: float
    batch: int
    replicas: int
    device: str
    precision: str
    fresh_initial: bool
    population_loss: bool = False
    begin: Beginning = START
    changes: phases.Changes = ()

    @classmethod
    def build(
        cls,
        case: Case,
        *,
        method: str,
        step_size: Any = None,
        batch: Any = None,
        seeds: Any = 1,
        device: str = "auto",
        precision: str = "float64",
        fresh_initial: bool = False,
        population_loss: bool = False,
        begin: Beginning = START,
    ) -> "Simulation":
        """Check the options of `odesim simulate`. Raises `UsageError` for an option that is wrong or has no meaning.

        Numbers may be strings. The default step size and batch are those of the model, if it has them.
        """
        for name in FLOW_ONLY:
            if name in case.options:
                raise UsageError(f"--{name} has no meaning for SGD, whose step is --step-size; leave it out")
        choice(method, METHODS, "--method")
        choice(device, DEVICES, "--device")
        choice(precision, PRECISIONS, "--precision")
        constant = batch is not None
        step_size, batch = _usual(case, step_size, batch)
        seeds = whole_number(1 if seeds is None else seeds, "--seeds")
        if not (math.isfinite(step_size) and step_size > 0):
            raise UsageError(f"--step-size must be above 0, but {step_size:g} was given")
        if batch < 1:
            raise UsageError(f"--batch must be at least 1, but {batch} was given")
        if seeds < 1:
            raise UsageError(f"--seeds must be at least 1, but {seeds} was given: it is the number of replicas")
        case = families.at_step(case, step_size)
        own = families.family(case)
        patterns = own is not None
        if method == "explicit" and not patterns and "backend" in case.options and case.backend == "numba":
            raise UsageError("--method explicit runs in JAX only; leave --backend out or give --backend jax")
        if device == "gpu" and "backend" in case.options and case.backend == "numba":
            raise UsageError("--device gpu runs in JAX only; leave --backend out or give --backend jax")
        if method == "compressed" and precision == "float32":
            raise UsageError("--method compressed runs in float64 only: its factors would lose small overlaps")
        if fresh_initial and case.initial is not None:
            raise UsageError("--fresh-initial draws new weights for every replica, but --initial fixes them")
        stage = case.system.dynamics(case.stage)
        tick = stage.tick(case.parameters, step_size)
        if round(case.until / tick) < 1:
            raise UsageError(f"--until {case.until:g} is less than one step, which takes {tick:g} of the clock")
        stage.within(case.parameters, begin.time + case.until, begin.time)
        require_steps(stage, case.parameters, begin, tick)
        changes = () if constant else phases.changes(stage, case.parameters, tick)
        batch = phases.in_force(changes, begin.step(tick)) if changes else batch
        families.require_loss(case, population_loss)
        in_jax = families.require_jax(case, method) or device == "gpu" or (method == "explicit" and not patterns)
        backend = "jax" if in_jax else case.backend
        families.check(own, case, method, batch, precision, backend)
        case = dataclasses.replace(case, backend=backend)
        last = (fresh_initial, population_loss, begin, changes)
        return cls(case, method, step_size, batch, seeds, device, precision, *last)

    @property
    def system(self) -> Any:
        """System that is simulated."""
        return self.case.system

    @property
    def name(self) -> str:
        """Name of the system, with which the name of the default folder begins."""
        return self.system.name

    @property
    def seed(self) -> int:
        """Seed of all random streams."""
        return self.case.seed

    @property
    def tick(self) -> float:
        """Time by which one step advances the clock of the stage (the step size, for most systems)."""
        return self.case.system.dynamics(self.case.stage).tick(self.case.parameters, self.step_size)

    @property
    def steps(self) -> int:
        """Number of SGD steps: until / time of a step, rounded."""
        return round(self.case.until / self.tick)

    @property
    def schedule(self) -> np.ndarray:
        """Numbers of steps after which states are saved, from 0: those nearest to the times of the case."""
        if self.case.save_at is not None:
            saved = np.array(self.case.save_at) - self.begin.time
            return np.unique(np.round(with_start(saved) / self.tick)).astype(int)
        return np.unique(np.round(saved_times(self.case, self.steps, self.steps + 1)).astype(int))

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer, as a dictionary of JSON values."""
        request = {k: v for k, v in self.case.request().items() if k not in (*FLOW_ONLY, "tier")}
        options = {name: getattr(self, name) for name in ("method", "step_size", "batch", "precision")}
        options |= {"population_loss": True} if self.population_loss else {}
        # A checkpoint with other random numbers belongs to another request.
        options |= {"stream": normals.STREAM} if self.case.backend == "jax" else {}
        options |= {"begin": self.begin.time} if self.begin.time else {}
        options |= {"batches": [list(change) for change in self.changes]} if self.changes else {}
        return {**request, **options, "seeds": self.replicas, "fresh_initial": self.fresh_initial}

    @functools.cached_property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters."""
        return digest_of(self.request())


def _usual(case: Case, step_size: Any, batch: Any) -> tuple[float, int]:
    """Return step size and batch, by default those of the model. Raises `UsageError` if it has none."""
    stage = case.system.dynamics(case.stage)
    step, size = stage.usual(case.parameters) if stage.usual is not None else (None, None)
    step_size, batch = (step if step_size is None else step_size), (size if batch is None else batch)
    for name, value in (("--step-size", step_size), ("--batch", batch)):
        if value is None:
            raise UsageError(f"{name} is missing; give it, for example --step-size 1e-3 --batch 256")
    step_size = real_number(step_size, "--step-size") if isinstance(step_size, str) else step_size
    return step_size, whole_number(batch, "--batch")


def refuse_tier(case: Case) -> None:
    """Raise `UsageError` for a tier with SGD alone; in a comparison (`odesim compare`) the tier is that of the flow."""
    if "tier" in case.explicit and case.tier != case.system.stage(case.stage).tiers[0]:
        raise UsageError(
            f"-p tier={case.tier} is an approximation of the flow and has no meaning for SGD; leave it out"
        )


def condition_of(simulation: Simulation, replica: int = 0) -> Initial:
    """Return the initial condition of the first replica, which the flow shares, or one drawn for another `replica`."""
    case = simulation.case
    rng = streams.generator(case.seed, "initial", *([replica] if replica else []))
    arrays = simulation.begin.of(replica) if simulation.begin.arrays else case.initial
    initial = load(case.system.stage(case.stage).enter)(case.parameters, arrays, rng)
    if simulation.begin.stage == case.stage:
        return initial
    return begun(case, initial, replica if simulation.fresh_initial else 0)


def initial_conditions(simulation: Simulation) -> list[Initial]:
    """Return one initial condition per replica: that of the flow for all or, with `fresh_initial`, one each."""
    if simulation.fresh_initial or len(simulation.begin.arrays) > 1:
        return [condition_of(simulation, k) for k in range(simulation.replicas)]
    return [condition_of(simulation)] * simulation.replicas


@in_double
def simulate(
    simulation: Simulation,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
    threads: int | None = None,
) -> Trajectory:
    """Run SGD and return its trajectory with dimensions (seed, time, ...). A divergence is reported in its outcome."""
    stage = simulation.system.dynamics(simulation.case.stage)
    if not stage.model:
        raise UsageError(f"stage {stage.name} of {simulation.system.name} has no finite-sample model")
    model: Any = stage.truth(simulation.case.parameters)
    effort.check(simulation, condition_of(simulation))
    initials = initial_conditions(simulation)
    began = time.perf_counter()
    if families.family(simulation.case) is not None:
        engine, device = families.make_engine(simulation, model, initials, threads)
    else:
        engine, device = make_engine(simulation, model, initials, threads)
    if first := simulation.begin.step(simulation.tick):
        engine.restore({**engine.state(), "steps": np.array(first)})  # time-dependent values depend on the clock
    ready, course = time.perf_counter(), Descent(simulation, engine)
    outcome, seconds = drive(course, simulation.case.until, progress, checkpoint)
    schedule = course.schedule[: len(course.saved)]
    taken = int(schedule[-1])
    statistics = {
        "steps": taken,
        "seconds": seconds,
        "preparation_seconds": ready - began,
        "steps_per_second": course.pace(simulation.replicas),
        **families.remarks(engine),
    }
    grams = np.swapaxes(np.array(course.saved), 0, 1)
    made = _assemble(simulation, model, initials, grams, schedule, outcome, statistics, device)
    made = own_samples.with_loss(engine, initials[0].parameters, grams, made)
    listed = simulation.case.save_at
    begun = listed is None or round((listed[0] - simulation.begin.time) / simulation.tick) == 0
    return made if begun else without_start(made)


def make_engine(
    simulation: Simulation, model: Model, initials: list[Initial], threads: int | None
) -> tuple["Engine", str]:
    """Return the engine of a simulation with its replicas, and its device."""
    from odesim.machine import device
    from odesim.sgd.engines import NumbaChains, TracedReplicas

    if simulation.changes:
        return phases.engine(simulation, lambda one: make_engine(one, model, initials, threads))
    case, parameters = simulation.case, initials[0].parameters
    grams = np.array([model.place(initial) for initial in initials])
    step, batch, seed = simulation.step_size, simulation.batch, simulation.begin.seed(case.seed, simulation.tick)
    spaces = model.spaces(parameters) if isinstance(model, ScalarModel) else None
    if simulation.method == "compressed" and case.backend == "numba":
        engine = NumbaChains(
            model, parameters, grams, parameters.d, batch, step, seed, threads=threads, initials=initials
        )
        return engine, "cpu"
    platform: Any = simulation.device  # one of DEVICES, which `build` checks
    device.configure(platform, threads)
    rows = None
    if simulation.method == "explicit":
        effort.require_weights(simulation, grams.shape[-1], parameters.d)
        changed = bool(simulation.begin.arrays or case.system.dynamics(case.stage).begin)
        arrays = None if changed else case.initial  # the changes of a stage are known for overlaps only
        rows = explicit_rows(model, arrays, grams, parameters.d, model.sizes(parameters)[0], spaces, seed)
    if isinstance(model, ScalarModel):
        from odesim.sgd.scalar_traced import ScalarReplicas

        engine = ScalarReplicas(
            model, initials, grams, parameters.d, batch, step, seed, rows=rows, dtype=simulation.precision
        )
        return engine, device.kind()
    engine = TracedReplicas(
        model,
        parameters,
        grams,
        parameters.d,
        batch,
        step,
        seed,
        rows=rows,
        dtype=simulation.precision,
        initials=initials,
    )
    return engine, device.kind()


def explicit_rows(
    model: Model, arrays: Any, grams: np.ndarray, d: int, trained: int, spaces: Eigenspaces | None = None, seed: int = 0
) -> np.ndarray:
    """Return weight vectors (R, n, d): those of a file of weights, or any with the given Gram matrices.

    For isotropic inputs all such vectors are equivalent. For inputs with eigenvalues the vectors are rotated at random
    within each eigenspace, except a given frame.
    """
    from odesim.sgd.compressed import factor
    from odesim.sgd.spaces import weights

    given = model.weights(arrays) if arrays is not None and model.weights is not None else None
    if given is not None:
        return np.broadcast_to(given, (len(grams), grams.shape[-1], d)).copy()
    if spaces is not None:
        stacked = grams.reshape(len(grams), -1, *grams.shape[-2:])
        if spaces.frame is not None and (frame := spaces.frame()) is not None:
            return given_frame.weights(stacked, frame, spaces, seed)
        return weights(stacked, spaces, seed, trained)
    rows = np.zeros((len(grams), grams.shape[1], d))
    for k, gram in enumerate(grams):
        if d < len(gram):  # dependent vectors, whose Gram matrix has rank d or less
            values, vectors = np.linalg.eigh(gram)
            rows[k] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, -d:]
        else:
            rows[k, :, : len(gram)] = factor(gram, trained)
    return rows


def _assemble(
    simulation: Simulation, model: Any, initials: list[Initial], grams: np.ndarray,
    schedule: np.ndarray, outcome: Outcome, statistics: dict[str, Any], device: str,
) -> Trajectory:  # fmt: skip
    case, initial = simulation.case, initials[0]
    stage = case.system.stage(case.stage)
    observed = model.observe(initial.parameters, grams)
    state = {n: Variable(("seed", "time", *dims), values, text) for n, (dims, values, text) in observed.items()}
    values = {n: v.values for n, v in state.items()}
    times = simulation.begin.time + schedule * simulation.tick
    extras: dict[str, Variable] = {}
    observables: dict[str, Variable] = {}
    if hasattr(model, "fixed"):
        extras = constants(model, initials, grams[:, -1])
    equations = flow_of(stage, initial.parameters)
    if equations is not None:
        extras |= hitting_times(equations, values, times) | events(equations, initial, values, times)
        keeps = families.keeps_loss(model, initial.parameters, simulation.population_loss)
        if "loss" not in state and keeps:
            # The models of a family measure their own losses.
            watched = equations.watched if families.family(case) is None else ()
            observables = population_values(equations, initials, values, watched, times)
    diverged = _divergence(state | observables, list(state))
    state |= observables
    final = {n: np.median(v.values[:, -1]) for n, v in state.items() if v.values.ndim == 2}
    options = {"until": simulation.begin.time + case.until, "backend": case.backend, "replicas": simulation.replicas}
    options |= {name: getattr(simulation, name) for name in ("step_size", "batch", "fresh_initial")}
    options |= {"batches": [list(change) for change in simulation.changes]} if simulation.changes else {}
    origin = Origin.of(
        case.system,
        stage=case.stage,
        tier="sgd",
        method=simulation.method,
        parameters={n: plain(value) for n, value in values_of(stage, initial.parameters).items()},
        options=options,
        precision=simulation.precision,
        device=device,
        seed=case.seed,
    )
    summary = {
        "replicas": simulation.replicas,
        "steps": statistics["steps"],
        "steps_per_second": statistics["steps_per_second"],
        **{name: statistics[name] for name in ("batches",) if name in statistics},
        **{f"median_final_{name}": float(value) for name, value in final.items()},
    }
    summary |= diverged
    return Trajectory(
        time=times,
        step=schedule,
        state=state,
        extras=extras,
        clock=stage.clock,
        origin=origin,
        outcome=outcome,
        statistics=statistics,
        summary=summary,
        invariants={},
    )


def _divergence(variables: "dict[str, Variable]", moving: list[str]) -> dict[str, str]:
    """Return the entry of the summary on replicas whose loss diverged; empty if there are none.

    `moving` names the trained components. Other observables grow with the loss and give no further information.
    """
    if "loss" not in variables:
        return {}
    said = []
    for k, loss in enumerate(variables["loss"].values):
        own = [variables[name] for name in moving if name != "loss"]
        others = [v.values[k] for v in own if v.dims[:2] == ("seed", "time")]
        said.append(divergence(loss, others, "a smaller step size may not"))
    several = f" ({sum(map(bool, said))} of {len(said)} replicas)" if len(said) > 1 else ""
    first = next(filter(None, said), "")
    return {"diverged": first + several} if first else {}
