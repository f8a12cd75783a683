"""Several stages of a system in one run: each starts where the one before it ended."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, System, load
from odesim import integration, streams
from odesim.case import Case, digest_of, find_stage, find_system
from odesim.errors import UsageError
from odesim.record import Recorder
from odesim.trajectory import Outcome, Trajectory, Variable


@dataclasses.dataclass(frozen=True, eq=False)
class Pipeline:
    """The cases of the stages in order, and the stored run (its digest and arrays) they start from, if any."""

    cases: tuple[Case, ...]
    origin: str | None = None
    previous: Mapping[str, np.ndarray] | None = None

    @property
    def system(self) -> System:
        """The system of all stages."""
        return self.cases[0].system

    @property
    def seed(self) -> int:
        """The seed of every stream."""
        return self.cases[0].seed

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer."""
        return {"method": "flow", "from": self.origin, "stages": [case.request() for case in self.cases]}

    @functools.cached_property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the request."""
        return digest_of(self.request())


def build(
    system: str | System, parameters: Mapping[str, Any], stages: str | None, start: Any = None, **options: Any
) -> Pipeline:
    """The pipeline of the stages "NAME,NAME,..", "all" or one NAME, from the beginning or from a stored run `start`.

    `--until` applies to the first stage with a clock, the others run to their own horizon.  A run continued with
    `start` keeps its parameters unless they are given again.  Raises `UsageError` for stages out of order.
    """
    chosen = find_system(system) if isinstance(system, str) else system
    if start is not None:
        if start.trajectory.origin.system != chosen.name:
            raise UsageError(f"--from holds a run of {start.trajectory.origin.system}, but --system is {chosen.name}")
        stored = start.trajectory.origin.parameters
        given = {str(k): v for k, v in parameters.items()}
        parameters = {**{k: v for k, v in stored.items() if k != "tier"}, **given}
    names = stage_names(chosen, stages, start, _course(chosen, parameters, options))
    until, cases = options.pop("until", None), []
    for name in names:
        clocked = chosen.stage(name).kind == "dynamics"
        cases.append(Case.build(chosen, parameters, stage=name, until=until if clocked else None, **options))
        until = None if clocked else until
    previous = ending(start.trajectory) if start is not None else None
    return Pipeline(tuple(cases), start.digest if start is not None else None, previous)


def _course(system: System, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """The stages of a complete run, in order."""
    if system.course is None:
        return [stage.name for stage in system.stages]
    chosen = {name: options[name] for name in ("preset", "config", "initial") if name in options}
    return list(system.course(Case.build(system, parameters, **chosen).parameters))


def stage_names(system: System, stages: str | None, start: Any, course: list[str] | None = None) -> list[str]:
    """The stages asked for, in the system's order; "all" are those of `course` that are still to come."""
    known = [stage.name for stage in system.stages]
    if stages == "all":
        course = known if course is None else course
        done = start.trajectory.origin.stage if start is not None else None
        names = course[course.index(done) + 1 :] if done in course else course
        if not names:
            raise UsageError(f"--from holds a run of the last stage, {course[-1]}: nothing is left to do")
        return names
    names = [find_stage(system, name.strip()).name for name in (stages or known[0]).split(",")]
    if names != sorted(names, key=known.index):
        raise UsageError(f"stages run in the order {', '.join(known)}, but {stages} was given")
    if start is None and system.stage(names[0]).kind == "map":
        raise UsageError(f"stage {names[0]} starts from an earlier run: give --from RUN_DIR, or --stage all")
    return names


def ending(trajectory: Trajectory) -> dict[str, np.ndarray]:
    """The arrays at the end of a run: components at the last saved time, and everything without a time axis."""
    if "seed" in next(iter(trajectory.state.values())).dims:
        raise UsageError("a stage continues a flow, but --from holds a simulation of several replicas")
    arrays = {name: v.values[-1] for name, v in trajectory.state.items() if v.dims[0] == "time"}
    return arrays | {name: v.values for name, v in trajectory.extras.items()}


def run(
    pipeline: Pipeline, progress: Callable[[float, float], None] | None = None, checkpoint: Any = None
) -> list[Trajectory]:
    """All stages in order; a stage that fails ends the run, and is the last of the list."""
    previous, made = pipeline.previous, []
    for case in pipeline.cases:
        trajectory = run_stage(case, previous, progress, checkpoint if len(pipeline.cases) == 1 else None)
        made.append(trajectory)
        if trajectory.outcome.kind == "failed":
            break
        previous = ending(trajectory)
    return made


def run_stage(
    case: Case, previous: Mapping[str, np.ndarray] | None, progress: Any = None, checkpoint: Any = None
) -> Trajectory:
    """One stage from the end of an earlier one (or from its own initial condition)."""
    stage = case.system.stage(case.stage)
    rng = streams.generator(case.seed, "initial")
    initial: Initial = load(stage.enter)(case.parameters, previous if previous is not None else case.initial, rng)
    if stage.kind == "dynamics":
        return integration.solve(case, progress, checkpoint, initial=initial)
    result = load(stage.apply)(initial, streams.generator(case.seed, "data"))
    problem = integration.prepare(case, result.initial)
    recorder = Recorder(problem.equations, 0.0, problem.start, np.zeros(1))
    outcome = Outcome("completed", 0.0, f"stage {stage.name} is one step")
    trajectory = integration.assemble(problem, recorder, outcome, {})
    extras = {name: Variable(dims, values, text) for name, (dims, values, text) in result.extras.items()}
    return dataclasses.replace(trajectory, extras={**trajectory.extras, **extras}, summary=result.summary)
