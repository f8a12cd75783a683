"""The `System` of a declaration: its parameters, its stages, and the modules with its functions."""

import dataclasses
import hashlib
from typing import Any

from derivations.contract import Dynamics, Source, System, UsageError, load
from derivations.declare import batches, copies, episodes, giant, growth, mixture, noise, schedules
from derivations.declare.declaration import Declaration
from derivations.declare.declaration_text import said
from derivations.declare.fields import MOST
from derivations.declare.initial import teacher_gram
from derivations.declare.momentum import check_number
from derivations.declare.parameter_class import TIERS, between, numbers, parameters_of, require_room, rows
from derivations.declare.stage_parameters import dynamics, steps
from derivations.declare.step_sizes import stepped, tick, usual

HERE = "derivations.declare"


def system(declared: Declaration, reference: str = "") -> System:
    """Return the system of a declaration; `reference` is the user's name for it, if there is one."""
    paper = declared.paper or declared.title
    source = Source(declared.source or "declared by the user", paper, "", 0, link=declared.link)
    return System(
        name=declared.name,
        title=declared.title,
        about=declared.about,
        source=source,
        parameters=parameters_of(declared),
        presets={preset.name: dict(preset.parameters) for preset in declared.presets},
        headlines="derivations.declare.headlines:HEADLINES",
        stages=_stages(declared),
        check=check,
        restate=f"{HERE}.restated:restate",
        read_initial=f"{HERE}.initial:read",
        plot=f"{HERE}.picture:draw",
        references=f"{HERE}.power_law:references",
        claims=f"{HERE}.claims:claims",
        sizes=sizes_of(declared),
        digest=hashlib.sha256(said(declared).encode()).hexdigest()[:12],
        declaration=declared.text,
        reference=reference,
    )


def _stages(declared: Declaration) -> tuple[Dynamics, ...]:
    """The stages of a model: `train` if it declares none."""
    train = Dynamics(
        name="train",
        tiers=TIERS,
        equations=f"{HERE}.tiers:equations",
        statement=f"{HERE}.statements:statement",
        enter=f"{HERE}.initial:enter",
        model=f"{HERE}.model:model",
        clock=clock(declared),
        horizon=lambda parameters: declared.until,
        meaning="population dynamics of all trained vectors, readouts and scalars",
        tick=tick,
        stepped=stepped,
        usual=usual,
        step_symbol=_step_symbol(declared),
        settled=f"{HERE}.tiers:settled",
        noisy=declared.noisy,
        decades=declared.decades,
        within=_require_within,
        batches=batches.changing,
        finite=f"{HERE}.finite_steps:finite",
    )
    declared_stages = [dynamics(train, between(declared, s), _step_symbol(s)) for s in declared.stages]
    return tuple(declared_stages) or (train,)


def _require_within(parameters: Any, until: float, begin: float) -> None:
    """Raise `UsageError` for values that leave their domains (`tiers.require_within`)."""
    load(f"{HERE}.tiers:require_within")(parameters, until, begin)


def _step_symbol(declared: Declaration) -> str:
    """The symbol of a step size; none if the step changes."""
    if any(schedule.name == "step" for schedule in declared.schedules):
        return ""
    return "eta/d" if declared.limit == "online" else "eta"


def sizes_of(declared: Declaration) -> dict[str, str]:
    """The numbers in a title: dimension, units of every group, and eta of an online limit (a flow has no step).

    The symbols are m for students and m* for teachers, with the name of their group.
    """
    title_symbols = {"d": "d"}
    for groups, word, symbol in ((declared.students, "units", "m"), (copies.stated(declared), "teachers", "m*")):
        title_symbols |= {group.named(word): f"{symbol}_{group.name}".rstrip("_") for group in groups}
    return title_symbols | (steps(declared) if declared.limit != "flow" else {})


def clock(declared: Declaration) -> str:
    """Return the meaning of the time."""
    if declared.limit == "batch":
        return giant.clock(declared)
    if declared.limit == "online":
        return "steps / d of online SGD with step eta / d, in the limit of large d"
    return "time t of the gradient flow; one SGD step advances it by the step size"


def check(parameters: Any, drawn: bool = True) -> None:
    """Raise `UsageError` for parameters that do not fit together: m vectors in general position need d >= m."""
    for stage in parameters.declaration.stages:
        check(between(parameters.declaration, stage).adapt(parameters), drawn)
    if parameters.declaration.stages:
        return
    noisy = parameters.noise is None
    noise.check(parameters)
    episodes.check(parameters)
    check_number(parameters)
    parameters = schedules.begun(parameters)
    require_room(parameters)
    for field in dataclasses.fields(parameters):
        value = getattr(parameters, field.name)
        if isinstance(value, float) and not abs(value) <= MOST:
            raise UsageError(f"parameter {field.name} is at most {MOST:g} in size, but {value:g} was given")
    for name, _ in parameters.declaration.start.norms:
        if getattr(parameters, name) < 1 / MOST:
            raise UsageError(f"parameter {name} must be at least {1 / MOST:g}, because smaller squares underflow")
    names = parameters.declaration.names
    size = 1.0 if noisy else parameters.noise
    growth.require(noise.in_force(parameters), dict(zip(names, numbers(parameters), strict=True)), size)
    layout = rows(parameters)
    if parameters.d < layout.spaces:
        raise UsageError(
            f"d must be at least the number of blocks of the inputs, {layout.spaces}, but d = {parameters.d}"
        )
    if drawn and parameters.d < layout.total:
        kinds = "teachers and means" if layout.means else "teachers"
        fixed_count = layout.total - layout.students
        raise UsageError(
            f"d must be at least the number of vectors, {layout.students} of students and {fixed_count} of {kinds}, "
            f"but d = {parameters.d}: choose a larger d or fewer units"
        )
    batches.samples(parameters)
    mixture.require_small_means(parameters)
    mixture.require_signs(parameters)
    if parameters.points & (parameters.points - 1):
        raise UsageError(f"points must be a power of two such as 16384, but {parameters.points} was given")
    teacher_gram(parameters)
