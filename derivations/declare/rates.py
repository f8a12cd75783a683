"""Step, decay, noise, and the factors of the step in [training] and [teacher]: numbers or schedules."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from derivations.declare import batches, fields, noise, schedule_reading, schedules
from derivations.declare.declaration import Group, Law, Number, moves
from derivations.declare.readouts import word_of
from derivations.declare.schedules import Names, Schedule

STEPS = {"online": 1.0, "batch": 1.0, "flow": 1e-3}
"""Default step: eta of the online limit, of giant steps, or of SGD that is compared with a flow."""


@dataclasses.dataclass(frozen=True)
class Values:
    """Numbers of training; `schedules` has the schedules, and the numbers have their values at time 0.

    If the noise has a `law`, its number is the factor 1.
    """

    step: float
    decay: float
    noise: float
    rates: tuple[tuple[str, float], ...]
    schedules: tuple[Schedule, ...]
    law: Law | None


def values(
    training: Mapping[str, Any], teacher: Mapping[str, Any], limit: str, moving: list[tuple[str, str]],
    numbers: tuple[Number, ...], memories: tuple[str, ...] = (), begin: float = 0.0,
) -> Values:  # fmt: skip
    """Return the numbers and schedules of a declaration; `moving` are the names of `moving_names`.

    Values may depend on `memories`. They are valid from the time `begin` on.

    Raises `fields.Mistake` for a value outside of its domain, and for a rate of an untrained parameter.
    """
    defaults = {number.name: number.default for number in numbers if not number.per_unit}
    if limit == "flow" and isinstance(training.get("step"), str | list):
        raise fields.Mistake(
            "in a flow, time is steps x step, so step must be constant: for a time-dependent speed write rates = '..'",
            "training",
            "step",
        )
    names, law = Names(defaults, memories), noise.law(teacher, defaults)
    entries: dict[str, float | Schedule] = {
        "step": _entry(training, "step", "training", STEPS[limit], names, above=True),
        "decay": _entry(training, "decay", "training", 0.0, names),
        "noise": _entry(teacher, "noise", "teacher", 0.0, names) if law is None else 1.0,
    }
    if isinstance(entries["noise"], Schedule) and entries["noise"].seen:
        message = "noise may depend only on time, because it is drawn before memories and order parameters are known"
        raise fields.Mistake(message, "teacher", "noise")
    pairs = batches.schedule(training, names)
    rates = _rates(training, moving, names)
    if pairs is not None:
        entries["batch"] = pairs
    all_values = {**entries, **{f"rate_{name}": value for name, value in rates.items()}}
    start = {name: _start(value, defaults, begin) for name, value in all_values.items()}
    return Values(
        start["step"],
        start["decay"],
        start["noise"],
        tuple((name, start[f"rate_{name}"]) for name in rates),
        tuple(value for value in all_values.values() if isinstance(value, Schedule)),
        law,
    )


def _entry(
    table: Mapping[str, Any], key: str, place: str, default: float, names: Names, *, above: bool = False
) -> float | Schedule:
    return schedule_reading.value(table, key, place, names, above=above) if key in table else default


def _start(value: float | Schedule, defaults: Mapping[str, float], begin: float) -> float:
    """The value at the beginning and the defaults of the user's numbers."""
    return schedules.first(value, defaults, begin) if isinstance(value, Schedule) else value


def _rates(training: Mapping[str, Any], moving: list[tuple[str, str]], names: Names) -> dict[str, float | Schedule]:
    """Return the factor of every slot, readout and scalar that has one; a value that is not a table is the factor of
    all.
    """
    entry = training.get("rates")
    if entry is None:
        return {}
    if not isinstance(entry, Mapping):
        words = dict.fromkeys(word for word, _ in moving)
        read_rate = functools.partial(schedule_reading.value, training, "rates", "training", names)
        return {word: read_rate(named=f"rate_{word}") for word in words}
    trained_names = {name for pair in moving for name in pair}
    for name in entry:
        if name not in trained_names:
            raise fields.Mistake(
                f"rates names {fields.shown(name)}, which is not trained; {fields.near(name, trained_names)}",
                "training",
                "rates",
            )
    return {name: schedule_reading.value(entry, name, "training.rates", names, named=f"rate_{name}") for name in entry}


def moving_names(
    students: tuple[Group, ...], trained: tuple[str, ...], heads: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    """Return the names of all trained parameters, without and with the name of the group; for readouts those of some
    heads.

    >>> from derivations.declare.grammar import read
    >>> moving_names((Group("fast", read("w + b"), "w + b", ("w",), ("b",), 1, "trained"),), ("w",))
    [('w', 'fast_w'), ('a', 'fast_a')]
    """
    pairs = []
    for group in students:
        readouts = group.trained_readouts if group.heads else ()
        for word in (*group.slots, *group.own):
            if not moves(trained, group, word) or (word in readouts and heads and word not in map(word_of, heads)):
                continue
            if word in readouts:  # by one name for all heads, and by that of each
                pairs += [("a", group.named("a")), ("a", word), ("a", group.named(word))]
            else:
                pairs.append((word, group.named(word)))
    return pairs
