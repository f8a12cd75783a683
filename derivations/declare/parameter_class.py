"""The parameters of a declared model: a dataclass with domains and meanings, and the sizes of its order parameters.

The class of the parameters carries the declaration. Functions found by name (`equations`, `enter`, ..) therefore know
the model.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from derivations.contract import UsageError, load, parameter
from derivations.declare import batches, copies, data, episodes, looks, schedules, spectra
from derivations.declare.declaration import Declaration
from derivations.declare.momentum import add_number
from derivations.declare.rows import Rows
from derivations.declare.stage_parameters import Between, fields_of, of_stage

TIERS = ("exact", "mixed", "sampled", "leading")
"""The tiers of a declared model; "auto" selects the first of exact, mixed and sampled that exists."""
LARGEST = 10_000
"""Maximal number of vectors: their Gram matrix takes 800 MB."""


def parameters_of(declared: Declaration) -> type:
    """Return the dataclass of all numbers of a declaration, each with domain and meaning; the user's numbers come
    first.

    Declarations with one text share one class, so that unpickled parameters equal the pickled ones.
    """
    return _parameters_of(declared, declared.text)


@functools.lru_cache(maxsize=256)
def _parameters_of(declared: Declaration, text: str) -> type:
    """Return the class; `text` is part of the key because comparisons of declarations ignore claims."""
    model_fields = fields_of(declared, _fields) if declared.stages else _fields(declared)
    return _class(declared, model_fields)


def _fields(declared: Declaration) -> list[tuple[str, Any, Any]]:
    """The numbers of a declaration without its stages: name, type, field."""
    fields: list[tuple[str, Any, Any]] = []

    def add(name: str, kind: Any, default: Any, meaning: str, **domain: Any) -> None:
        if any(name == existing for existing, *_ in fields):
            raise UsageError(f"two parameters of {declared.name} are called {name}: rename the parameter or the group")
        fields.append((name, kind, parameter(default, meaning, **domain)))

    _add_training(declared, add)
    _add_start(declared, add)
    _add_numbers(declared, add)
    return fields


def _class(declared: Declaration, fields: list[tuple[str, Any, Any]]) -> type:
    namespace = {"declaration": declared, "__reduce__": _pickled}
    parameter_class = dataclasses.make_dataclass("Parameters", fields, frozen=True, namespace=namespace)
    parameter_class.__module__ = __name__
    return parameter_class


def between(declared: Declaration, stage: Declaration) -> Between:
    """The conversions between the parameters of a model and those of one of its stages."""
    return _between(declared, stage, declared.text)


@functools.lru_cache(maxsize=256)
def _between(declared: Declaration, stage: Declaration, text: str) -> Between:
    fields = of_stage(stage, fields_of(declared, _fields))
    return Between(stage, parameters_of(declared), _class(stage, fields))


def _add_training(declared: Declaration, add: Callable[..., None]) -> None:
    """Add the sizes and the numbers of training."""
    for group in declared.students:
        unit_text = f"units {group.text!r}"
        add(group.named("units"), int, group.units, f"number of student {unit_text}", minimum=1, maximum=100_000)
    for group in copies.stated(declared):
        unit_text = f"units {group.text!r}"
        add(group.named("teachers"), int, group.units, f"number of teacher {unit_text}", minimum=1, maximum=100_000)
    d = data.dimension(declared.inputs) or 1000
    add("d", int, d, "input dimension", minimum=1, maximum=10**15)
    meaning = "eta of the online limit: SGD steps by eta / d" if declared.limit == "online" else "step size of SGD"
    meaning = "eta of a giant step of the weights" if declared.limit == "batch" else meaning
    _add_value(declared, add, "step", declared.step, meaning, above=0.0)
    batches.add_number(declared, add)
    _add_value(declared, add, "noise", declared.noise, "standard deviation of the label noise", minimum=0.0)
    text = "weight decay lambda: -lambda u is added to the motion"
    _add_value(declared, add, "decay", declared.decay, text, minimum=0.0)
    for name, value in declared.rates:
        text = f"factor of step for {name} (0: it does not move)"
        _add_value(declared, add, f"rate_{name}", value, text, minimum=0.0)
    add_number(declared, add)
    looks.add_number(declared, add)
    episodes.add_number(declared, add)
    if declared.teachers and (declared.gram is None or isinstance(declared.gram, float)):
        text = "overlap of any two teacher vectors (0: orthonormal)"
        add("gram", float, declared.gram or 0.0, text, minimum=-1.0, maximum=1.0)


def _add_value(
    declared: Declaration, add: Callable[..., None], name: str, value: float, meaning: str, **domain: float
) -> None:
    """Add a number of training; for a schedule the default is `None`, until a number replaces it."""
    changing: Any = next((schedule for schedule in declared.schedules if schedule.name == name), None)
    if name == "noise" and declared.law is not None:
        changing = declared.law
    if changing is None:
        add(name, float, value, meaning, **domain)
    else:
        add(name, float | None, None, f"{meaning} (none: {changing.text}, as declared)", **domain)


def _add_start(declared: Declaration, add: Callable[..., None]) -> None:
    """Add the parameters that only the start of a run depends on."""
    for name, value in declared.start.norms:
        slot_text = name.rpartition("norm")[2].strip("_")
        text = f"norm of the student vectors {slot_text} at the start".replace("  ", " ")
        add(name, float, value, text, above=0.0, start=True)
    if declared.teachers:
        add(
            "overlap", float | None, declared.start.overlap,
            "cosine of student i with teacher i at the start (none: random directions)",
            minimum=-1.0, maximum=1.0, start=True,
        )  # fmt: skip
    for group in declared.students:
        for name in map(group.named, group.trained_readouts):
            if any(name == array_name for array_name, _ in declared.start.arrays):
                add(name, float | None, None, "readouts at the start (none: the list that is declared)", start=True)
            else:
                value = dict(declared.start.readouts).get(name, declared.start.readout)
                add(name, float, value, "readouts at the start", start=True)
    for memory in declared.memories:
        add(memory.name, float, memory.start, f"memory at the start, with the rate {memory.text}", start=True)


def _add_numbers(declared: Declaration, add: Callable[..., None]) -> None:
    """Add the parameters of the model, and of its tier."""
    for number in declared.numbers:
        domain = {"minimum": number.minimum, "maximum": number.maximum, "above": number.above}
        text = number.meaning or ("scalar of each unit at the start" if number.per_unit else "number of the model")
        if number.formula is not None:
            add(number.name, float | None, None, f"{text} (none: its expression in j, as declared)", **domain)
            continue
        schedule: Any = next((candidate for candidate in declared.schedules if candidate.name == number.name), None)
        if schedule is not None:
            add(number.name, float | None, None, f"{text} (none: {schedule.text}, as declared)", **domain)
            continue
        constant = any(number.name in declared.constants(group) for group in declared.students)
        add(number.name, float, number.default, text, start=number.per_unit and not constant, **domain)
    add(
        "tier",
        str,
        "auto",
        "level of approximation (auto: the first of exact, mixed and sampled that exists)",
        choices=("auto", *TIERS),
    )
    add(
        "points",
        int,
        2**14,
        "tiers sampled and mixed: random points, a power of two; sampling_error in the summary is the relative error "
        "of the derivative at the start, half-way and at the end",
        minimum=2**6,
        maximum=2**24,
    )
    add("sample_seed", int, 0, "tier sampled: seed of its random points", minimum=0)


def _pickled(parameters: Any) -> tuple[Any, ...]:
    """Return the pickled form of parameters: it contains the declaration, because the class has no name to import."""
    values = {field.name: getattr(parameters, field.name) for field in dataclasses.fields(parameters)}
    declared = parameters.declaration
    return _unpickled, (declared.text, values, *([declared.stage] if declared.stage else []))


def _unpickled(text: str, values: dict[str, Any], stage: str = "") -> Any:
    """Return the parameters with the given values, of the class of the declaration in `text` or of one of its
    stages.
    """
    # By name: the reader of declarations imports this module to check their parameters.
    declared = load("derivations.declare.written_systems:stated")(text)
    declared_stage = next((candidate for candidate in declared.stages if candidate.stage == stage), None)
    return (parameters_of(declared) if declared_stage is None else between(declared, declared_stage).own)(**values)


def sizes(parameters: Any) -> tuple[int, ...]:
    """The number of units of every group, students first, and of named means if there are any."""
    declared: Declaration = parameters.declaration
    students = [getattr(parameters, group.named("units")) for group in declared.students]
    teachers = [getattr(parameters, group.named("teachers")) for group in copies.stated(declared)]
    teachers += [students[number] for _, number in copies.sources(declared)]
    return (*students, *teachers, *(group.units for group in declared.kinds[len(declared.groups) :]))


def rows(parameters: Any) -> Rows:
    """The rows of the Gram matrix at the parameters' sizes."""
    blocks = spectra.blocks(parameters)
    return _rows(parameters.declaration, sizes(parameters), 1 if blocks is None else len(blocks.share))


@functools.lru_cache(maxsize=64)
def _rows(declared: Declaration, counts: tuple[int, ...], spaces: int) -> Rows:
    return Rows(declared, counts, spaces)


def numbers(parameters: Any) -> tuple[float, ...]:
    """The values of the user's shared numbers, in the order of `Declaration.names`."""
    return tuple(schedules.shared(parameters).values())


def require_room(parameters: Any) -> None:
    """Raise `UsageError` for more vectors than a Gram matrix can contain."""
    total = rows(parameters).total
    if total > LARGEST:
        raise UsageError(f"at most {LARGEST} vectors of students and teachers are supported, but there are {total}")
