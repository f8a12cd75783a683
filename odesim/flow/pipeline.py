"""Several stages of a system in one run. Each starts at the end of the stage before."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Dynamics, Initial, Map, System, load
from odesim.errors import Interrupted, Unfinished, UsageError
from odesim.flow import solve
from odesim.flow.assemble import assemble
from odesim.flow.continuation import ending, taken_over
from odesim.flow.problem import Past, prepare
from odesim.flow.record import Recorder
from odesim.flow.stage_start import begun
from odesim.machine import streams
from odesim.machine.device import in_double
from odesim.request.case import Case, find_stage, find_system, restated, stated
from odesim.request.parse import parse_assignments
from odesim.request.several_stages import SeveralStages
from odesim.request.trajectory import Outcome, Trajectory, Variable


@dataclasses.dataclass(frozen=True, eq=False)
class Pipeline(SeveralStages[Case]):
    """Cases of the stages in order, and the stored run (its digest and arrays) that they continue, if any.

    The stages share one clock if they have the same unit of time. `until` of a case is an end time on this clock if the
    user gives it, otherwise the duration of the stage. `time`, `clock` and `stage` are those at the end of the stored
    run.
    """

    previous: Mapping[str, np.ndarray] | None = None
    time: float = 0.0
    clock: str = ""
    stage: str = ""

    @property
    def method(self) -> str:
        """Method: a flow."""
        return "flow"


def build(
    system: str | System | None,
    parameters: Mapping[str, Any],
    stages: str | None,
    start: Any = None,
    *,
    until: Any = None,
    **options: Any,
) -> Pipeline:
    """Return the pipeline of the stages "NAME,NAME,..", "all" or one NAME, from the beginning or from a stored run
    `start`.

    `until` is the end time of the one stage with a clock, or "NAME=T,NAME=T" (or a mapping), the end times of the named
    stages. The other stages run for their horizons. A continued run keeps the system, parameters and seed of `start`
    unless the user gives others. Raises `UsageError` for stages out of order, and for end times that leave a stage no
    time.
    """
    previous = None
    if start is not None:
        own = start.trajectory.origin.required(find_system(system) if isinstance(system, str) else system)
        own, parameters = restated(own, stated(own, parameters, None, options.get("config")))
        named = {name: options.get(name) for name in ("preset", "config")}
        previous, parameters = taken_over(start.trajectory, own, parameters, **named)
        system = own
        if options.get("seed") is None and options.get("config") is None and start.trajectory.origin.seed is not None:
            options["seed"] = start.trajectory.origin.seed
    if system is None:
        raise UsageError("Missing option '--system': `odesim systems` lists them")
    chosen = find_system(system) if isinstance(system, str) else system
    names = stage_names(chosen, stages, start, _course(chosen, parameters, options, start is not None))
    if len(names) > 1 and options.get("save_at") is not None:
        raise UsageError(
            f"--save-at gives the times of one stage, but you asked for {', '.join(names)}: choose one stage"
        )
    ends = end_times(chosen, names, until)
    cases = tuple(
        Case.build(chosen, parameters, stage=name, until=ends.get(name), continued=start is not None, **options)
        for name in names
    )
    if start is None:
        made = Pipeline(cases)
    else:
        run = start.trajectory
        made = Pipeline(cases, start.digest, previous, float(run.time[-1]), run.clock, run.origin.stage)
    _require_time(made)
    return made


def end_times(system: System, names: list[str], until: Any) -> dict[str, Any]:
    """Return the given end times, by stage."""
    clocked = [name for name in names if isinstance(system.stage(name), Dynamics)]
    if until is None:
        return {}
    if isinstance(until, str) and "=" in until:
        until = parse_assignments(until.split(","), "--until", "T or STAGE=T,STAGE=T such as train=20,tune=50")
    if not isinstance(until, Mapping) and len(clocked) > 1:
        raise UsageError(
            f"--until {until} does not say which stage it ends ({' or '.join(clocked)}): give end times by "
            f"name, such as --until {','.join(f'{name}={until}' for name in clocked[:1])}, on the clock that "
            "they share"
        )
    if not isinstance(until, Mapping):
        until = {clocked[0] if clocked else "": until}
    for name in until:
        if name not in clocked:
            raise UsageError(
                f"--until {name + '=' if name else ''}{until[name]} has no meaning here: of the requested "
                f"stages, those with a clock are {', '.join(clocked) or 'none'}"
            )
    return dict(until)


def _require_time(pipeline: Pipeline) -> None:
    """Raise `UsageError` if a stage would end before it starts, as far as this is known in advance."""
    time, clock, before = pipeline.time, pipeline.clock, "the run of --from"
    for case in pipeline.cases:
        stage = case.system.stage(case.stage)
        if not isinstance(stage, Dynamics):
            continue
        begin = time if stage.clock == clock else 0.0
        given = "until" in case.options
        if given and case.until <= begin:
            raise UsageError(
                f"--until {case.until:g} leaves no time for stage {stage.name}, because {before} ends at "
                f"{begin:g} on the same clock; give a later end time, or one for each stage: --until "
                "NAME=T,NAME=T"
            )
        time, clock, before = case.until if given else begin + case.until, stage.clock, f"stage {stage.name}"


def _course(system: System, parameters: Mapping[str, Any], options: Mapping[str, Any], continued: bool) -> list[str]:
    """Return the stages of a complete run, in order."""
    if system.course is None:
        return [stage.name for stage in system.stages]
    chosen = {name: options[name] for name in ("preset", "config", "initial") if name in options}
    return list(system.course(Case.build(system, parameters, continued=continued, **chosen).parameters))


def stage_names(system: System, stages: str | None, start: Any, course: list[str] | None = None) -> list[str]:
    """Return the requested stages in the system's order; "all" are the remaining stages of `course`."""
    known = [stage.name for stage in system.stages]
    if stages == "all":
        course = known if course is None else course
        done = start.trajectory.origin.stage if start is not None else None
        names = course[course.index(done) + 1 :] if done in course else course
        if not names:
            raise UsageError(f"--from is a run of the last stage, {course[-1]}, so there is nothing to continue")
        return names
    names = [find_stage(system, name.strip()).name for name in (stages or known[0]).split(",")]
    if names != sorted(set(names), key=known.index):
        raise UsageError(f"each stage runs once, in the order {', '.join(known)}, but {stages} was given")
    if start is None and isinstance(system.stage(names[0]), Map):
        raise UsageError(
            f"stage {names[0]} starts from the end of an earlier run: give this run by --from RUN_DIR, or use "
            "--stage all"
        )
    return names


def run(
    pipeline: Pipeline, progress: Callable[[float, float], None] | None = None, checkpoint: Any = None
) -> list[Trajectory]:
    """Run all stages in order. A stage that fails, or that no stage can follow, is the last.

    Raises `Unfinished` if a later stage cannot start, and `Interrupted` if the user stops a stage. Both exceptions have
    the stages before.
    """
    previous, made = pipeline.previous, []
    time, clock = pipeline.time, pipeline.clock
    for case in pipeline.cases:
        try:
            trajectory, ended = _staged(
                case,
                previous,
                time,
                clock,
                progress,
                checkpoint if checkpoint is None or checkpoint.ends or len(pipeline.cases) == 1 else None,
                goes_on=case.stage == pipeline.stage,
            )
        except UsageError as error:
            if not made:
                raise
            raise Unfinished(f"stage {case.stage} could not start: {error}", made) from error
        except KeyboardInterrupt:
            if not made:
                raise
            raise Interrupted(f"interrupted in stage {case.stage}", made) from None
        made.append(trajectory)
        if trajectory.outcome.kind in ("failed", "interrupted") or ended:
            break
        previous, time, clock = ending(trajectory), float(trajectory.time[-1]), trajectory.clock
    return made


def run_stage(case: Case, previous: Mapping[str, np.ndarray] | None) -> Trajectory:
    """Run one stage from the end of an earlier one (or from its own initial condition), with its clock at 0."""
    return _staged(case, previous, 0.0, "")[0]


@in_double
def _staged(
    case: Case,
    previous: Mapping[str, np.ndarray] | None,
    time: float,
    clock: str,
    progress: Any = None,
    checkpoint: Any = None,
    goes_on: bool = False,
) -> tuple[Trajectory, str]:
    """Run one stage. Return its trajectory, and the reason why no stage can follow ("" if one can). ¶ The clock
    continues from `time` if the clock is the same.

    A stage that `goes_on` has begun before, so its changes at the beginning are not repeated.
    """
    stage = case.system.stage(case.stage)
    rng = streams.generator(case.seed, "initial")
    initial: Initial = load(stage.enter)(case.parameters, previous if previous is not None else case.initial, rng)
    if isinstance(stage, Dynamics):
        initial = initial if goes_on else begun(case, initial)
        begin = time if stage.clock == clock else 0.0
        if begin and "until" in case.options:
            case = dataclasses.replace(case, until=case.until - begin)
        past = _past(case, initial, previous, begin, {})
        return solve.solve(case, progress, checkpoint, initial=initial, past=past), ""
    result = load(stage.apply)(initial, streams.generator(case.seed, "data"))
    past = _past(case, result.initial, previous, time, result.kept)
    problem = prepare(case, result.initial, past)
    recorder = Recorder(problem.equations, 0.0, problem.start, np.zeros(1))
    outcome = Outcome(
        "stopped" if result.ended else "completed", time, result.ended or f"stage {stage.name} is one step"
    )
    trajectory = assemble(problem, recorder, outcome, {})
    extras = {name: Variable(dims, values, text) for name, (dims, values, text) in result.extras.items()}
    trajectory = dataclasses.replace(
        trajectory, extras={**trajectory.extras, **extras}, summary=result.summary, clock=clock or stage.clock
    )
    return trajectory, result.ended


def _past(
    case: Case,
    initial: Initial,
    previous: Mapping[str, np.ndarray] | None,
    time: float,
    kept: Mapping[str, np.ndarray],
) -> Past:
    """Return the hitting times of earlier stages on the same clock, for components that continued unchanged.

    A component that a stage draws anew has no earlier hitting times; `kept` selects the remaining entries.
    """
    if not time or previous is None:
        return Past(time)
    equations = load(case.system.stage(case.stage).equations)(initial.parameters, case.tier)
    now = equations.unpack(equations.start(initial))
    dims = {component.name: component.dims for component in equations.state}

    def left(values: np.ndarray, component: str) -> np.ndarray:
        for axis, dim in enumerate(dims[component]):
            places = kept.get(dim)
            values = values if places is None else np.take(values, places, axis)
        return values

    hits = {}
    for crossing in equations.crossings:
        name, component = crossing.name, crossing.component
        if name not in previous or component not in previous:
            continue
        before = left(previous[component], component)
        if before.shape == now[component].shape and np.allclose(before, now[component], rtol=1e-12, atol=1e-12):
            hits[name] = left(previous[name], component)
    return Past(time, hits)
