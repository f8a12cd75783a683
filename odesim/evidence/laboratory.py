"""Measurements for claims. Every run is made once, cached, and recorded as evidence."""

import collections
import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.claim import Effort, Evaluator
from derivations.contract import Dynamics, Initial, System, load
from odesim.errors import NumericalError, UsageError
from odesim.flow import pipeline, solve
from odesim.flow.problem import Past, compile_functions, initial_condition
from odesim.machine import streams
from odesim.request.case import OPTIONS, Case, digest_of
from odesim.request.saved_times import SAVED
from odesim.request.trajectory import Trajectory
from odesim.sgd import course, families, simulation
from odesim.sgd.beginning import Beginning
from odesim.study.answers import bands, sensitivity
from odesim.study.answers.bands import Bands
from odesim.study.answers.sensitivity import Gradient

SGD = ("seeds", "device", "precision", "fresh_initial")
"""Options of a simulation that a claim may set, in addition to step and batch."""
BANDS = 11
"""Number of times of bands if only the end is used."""
FAR = 1_000_003
"""Distance of the seeds of two laboratories."""
REMEMBERED_BYTES = 256 * 2**20
"""Bytes of memory for the trajectories of one laboratory, because claims share runs. Four claims of chen's Theorem 4.2
read the same 160 runs, 0.3 MB each; a limit on their number below 160 would make every run four times, because each
claim begins with the run that was dropped first.
"""


class Laboratory:
    """Implements `derivations.claim.Lab` for one system, back end and effort.

    Parameters of the system are keyword arguments. A parameter with the name of an option, such as `batch`, is given in
    a mapping `parameters`.
    """

    def __init__(self, system: System, effort: Effort = "quick", backend: str = "numba", seed: int = 0) -> None:
        self.system, self.effort, self.backend, self.seed = system, effort, backend, seed
        self.evidence: dict[str, Any] = {}
        self._runs: collections.OrderedDict[str, Trajectory] = collections.OrderedDict()
        self._bytes = 0
        self._functions: dict[str, Any] = {}
        self._drifts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._measurements: dict[Any, tuple[Any, dict[str, Any]]] = {}

    def integrate(
        self,
        *,
        seed: int = 0,
        until: float | None = None,
        start: Initial | None = None,
        stiff: bool = False,
        begin: float = 0.0,
        **request: Any,
    ) -> Trajectory:
        """Return the trajectory of the flow; with `start` from a given initial condition instead of a drawn one.

        The clock begins at `begin`, and `until` is the duration. `stiff` selects an implicit method, whose steps grow
        on the plateaus between two recoveries, for back ends that do not detect stiffness.

        Raises `NumericalError` if the integration fails, because an incomplete run does not decide a claim.
        """
        if stiff and self.backend == "jax":
            request["solver"] = "automatic"
        case = self._case(seed, until, request)
        digest = case.digest
        if start is not None:  # its parameters may differ from those of the case
            arrays = content({**start.state, **start.constants})
            digest = digest_of({"case": digest, "start": arrays, "parameters": repr(start.parameters)})
        asked = case.request() | ({"start": "given by the claim"} if start is not None else {})
        if begin:
            digest, asked = digest_of({"case": digest, "begin": begin}), asked | {"begin": begin}
        return self._remember(digest, asked, lambda: solve.solve(case, initial=start, past=Past(begin)))

    def simulate(
        self, *, method: str, step_size: float | None = None, batch: int | None = None, seed: int = 0, **request: Any
    ) -> Trajectory:
        """Return the trajectory of finite-sample SGD, with the options `seeds`, `device`, `precision` and
        `fresh_initial`.

        Its clock begins at the option `begin`.
        """
        options = {name: request.pop(name) for name in SGD if name in request}
        options["begin"] = Beginning(request.pop("begin", 0.0))
        case = self._case(seed, request.pop("until", None), {"backend": None, **request})
        wanted = simulation.Simulation.build(case, method=method, step_size=step_size, batch=batch, **options)
        return self._remember(wanted.digest, wanted.request(), lambda: simulation.simulate(wanted))

    def bands(self, *, seed: int = 0, until: float | None = None, of: Sequence[str] = (), **request: Any) -> Bands:
        """Return bands of SGD with hitting times `of`, with the options `level`, `fresh_initial`, `step_size` and
        `batch`.
        """
        level = request.pop("level", 0.9)
        options = {name: request.pop(name) for name in ("fresh_initial", "step_size", "batch") if name in request}
        times = None if "save_at" in request else BANDS
        case = self._case(seed, until, {"save_points": times, **request, "backend": None})
        wanted = simulation.Simulation.build(case, method="compressed", **options)
        asked = bands.question(wanted, level=level, of=of)
        self.evidence[asked.digest] = asked.request()
        return bands.answer(wanted, level=level, of=of)

    def gradient(self, of: Sequence[str], *, seed: int = 0, until: float | None = None, **request: Any) -> Gradient:
        """Return the derivatives of measures of the flow with respect to every parameter that has a derivative."""
        case = self._case(seed, until, {**request, "backend": None})
        asked = sensitivity.question(case, of, ())
        self.evidence[asked.digest] = asked.request()
        return sensitivity.answer(case, of)

    def initial(self, *, seed: int = 0, stage: str | None = None, **parameters: Any) -> Initial:
        """Return the initial condition from which `integrate` starts."""
        case = self._case(seed, None, {**parameters, "stage": stage})
        return initial_condition(case)

    def functions(self, initial: Initial, tier: str | None = None, stage: str | None = None) -> Evaluator:
        """Return the compiled right-hand side and loss for the sizes and constants of `initial`, by components."""
        chosen = self.system.stage(stage) if stage else self.system.stages[0]
        equations = load(chosen.equations)(initial.parameters, tier)
        key = f"{equations.code.structure} {self.backend}"
        if key not in self._functions:
            functions = compile_functions(equations, self.backend)
            self._functions[key] = jitted(functions) if self.backend == "jax" else functions
        compiled, arguments = self._functions[key], equations.arguments(initial)

        def at(state: Mapping[str, np.ndarray]) -> np.ndarray:
            return equations.start(dataclasses.replace(initial, state=state))

        return Evaluator(
            lambda state: equations.unpack(np.asarray(compiled["flow"](0.0, at(state), *arguments))),
            lambda state: float(compiled["loss"](at(state), *arguments)),
        )

    def drift(
        self, initial: Initial, samples: int, seed: int = 0, stage: str | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and standard error of the model's drift in a stage (by default the first): of the raw Gram matrix
        for Gaussian inputs, otherwise of the result of `descent`. For inputs with L eigenspaces the shape is (L, n, n),
        one part for each. Forms of a claim with the same request share the result.
        """
        arrays = content({**initial.state, **initial.constants})
        asked = {"start": arrays, "parameters": repr(initial.parameters), "stage": stage}
        digest = digest_of({**asked, "samples": samples, "seed": seed})
        if digest not in self._drifts:
            model = self._model(initial, stage)
            self._drifts[digest] = families.drift_of(model)(model, initial, samples, seed + 7919 * self.seed)
        return self._drifts[digest]

    def descent(
        self, initial: Initial, batch: int, repeats: int, seed: int = 0, fresh: bool = True, stage: str | None = None
    ) -> np.ndarray:
        """Return minus the model's mean gradients over batches in a stage (by default the first), by its family of
        data.

        For alphabets (repeats, k, m + 1, F): the coefficients along the F frame vectors of the m neurons (filters) of
        each of k experts, then of its router. For Gaussian inputs (repeats, n, n + frame): inner products of minus the
        gradient of each of n trained vectors with all vectors, [trained, frame], in each of several eigenspaces of the
        inputs (repeats, L, n, n + frame). Every repeat draws its routing noise. With `fresh` it also draws its samples;
        otherwise all repeats use one batch.
        """
        model = self._model(initial, stage)
        rng = streams.generator(seed + 7919 * self.seed, "descent")
        return families.descent_of(model)(model, initial, batch, repeats, rng, fresh)

    def _model(self, initial: Initial, stage: str | None) -> Any:
        chosen = self.system.dynamics(stage or self.system.stages[0].name)
        if not chosen.model:
            raise UsageError(f"stage {chosen.name} of {self.system.name} has no finite-sample model")
        return chosen.truth(initial.parameters)

    def stage(self, name: str, previous: Trajectory, *, seed: int = 0, **request: Any) -> Trajectory:
        """Return the trajectory of stage `name`, started from the end of `previous`."""
        parameters = {k: v for k, v in previous.origin.parameters.items() if k != "tier"}
        case = self._case(seed, request.pop("until", None), {**parameters, **request, "stage": name})
        arrays = pipeline.ending(previous)
        digest = digest_of({"case": case.digest, "start": content(arrays)})
        asked = case.request() | {"start": "the end of an earlier stage"}
        return self._remember(digest, asked, lambda: pipeline.run_stage(case, arrays))

    def course(
        self, *, method: str = "flow", seed: int = 0, until: float | None = None, **request: Any
    ) -> list[Trajectory]:
        """Return the trajectories of all stages with a clock in order, of the flow or of SGD, up to a time on their
        clock.
        """
        names, ends = _stages_until(self.system, until)
        sgd = {name: request.pop(name) for name in (*SGD, "step_size", "batch") if name in request}
        options = {name: request.pop(name) for name in (*OPTIONS, "preset", "initial") if name in request}
        options = {"backend": self.backend, **options, "seed": seed + FAR * self.seed, "until": ends or None}
        if method == "flow":
            asked: Any = pipeline.build(self.system, request, ",".join(names), **options)
        else:
            options["backend"] = None
            asked = course.build(self.system, request, ",".join(names), None, {"method": method, **sgd}, **options)
        made: list[Trajectory] = []

        def stage(k: int) -> Trajectory:
            if not made:
                made.extend(pipeline.run(asked) if method == "flow" else course.run(asked))
            return made[k]

        return [
            self._remember(f"{asked.digest}-{k}", case.request(), functools.partial(stage, k))
            for k, case in enumerate(asked.cases)
        ]

    def measurement(self, measure: Callable[..., Any], point: Mapping[str, Any], seed: int) -> Any:
        """Return the value of a claim's `measure` at a point, computed once for all forms with the same request.

        Its runs are evidence of every form. The runs themselves may be too many for the cache.
        """
        key = (measure, repr(point), seed)
        if key not in self._measurements:
            before, self.evidence = self.evidence, {}
            try:
                self._measurements[key] = measure(self, point, seed), self.evidence
            finally:
                self.evidence = {**before, **self.evidence}
        value, runs = self._measurements[key]
        self.evidence.update(runs)
        return value

    def take_evidence(self) -> dict[str, Any]:
        """Return the requests of the runs since the last call, by digest."""
        taken, self.evidence = self.evidence, {}
        return taken

    def exhibit(self, seed: int) -> int:
        """Return the seed with which this laboratory makes the draw that `seed` has in the laboratory of seed 0."""
        return seed - FAR * self.seed

    def _case(self, seed: int, until: float | None, request: Mapping[str, Any]) -> Case:
        options = {name: value for name, value in request.items() if name in (*OPTIONS, "preset", "initial")}
        parameters = {name: value for name, value in request.items() if name not in options}
        parameters |= parameters.pop("parameters", {})
        options = {
            "backend": self.backend,
            "save_points": None if "save_at" in options else SAVED,
            **options,
            "seed": seed + FAR * self.seed,
            "until": until,
        }
        return Case.build(self.system, parameters, **options)

    def _remember(self, digest: str, asked: Mapping[str, Any], run: Any) -> Trajectory:
        self.evidence[digest] = asked
        if digest in self._runs:
            self._runs.move_to_end(digest)
            return self._runs[digest]
        trajectory = run()
        if trajectory.outcome.kind == "failed":
            raise NumericalError(trajectory.outcome.reason)
        self._runs[digest] = trajectory
        self._bytes += size_of(trajectory)
        while self._bytes > REMEMBERED_BYTES and len(self._runs) > 1:
            self._bytes -= size_of(self._runs.popitem(last=False)[1])
        return trajectory


def _stages_until(system: System, until: float | None) -> tuple[list[str], dict[str, float]]:
    """Return the stages with a clock that begin before a time, and the end of the last one, if given."""
    names, end, parameters = [], 0.0, system.parameters()
    for stage in system.stages:
        if isinstance(stage, Dynamics) and (until is None or end < until):
            names.append(stage.name)
            end += stage.horizon(stage.adapt(parameters))
    return names, {} if until is None else {names[-1]: until}


def jitted(functions: Mapping[str, Any]) -> dict[str, Any]:
    """Return JAX functions compiled with their sizes (the integers among the arguments) held fixed."""
    import equinox

    return {name: equinox.filter_jit(function) for name, function in functions.items()}


def size_of(trajectory: Trajectory) -> int:
    """Return the number of bytes of the arrays of a trajectory."""
    return trajectory.time.nbytes + sum(
        v.values.nbytes for v in (*trajectory.state.values(), *trajectory.extras.values())
    )


def content(arrays: Mapping[str, np.ndarray]) -> str:
    """Return a digest of named arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
