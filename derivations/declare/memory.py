"""The table [memory]: numbers that accumulate during training, such as the sum of squared gradients of AdaGrad-Norm.

    db/dt = rate,   SGD: b <- b + tick rate, by the batch's gradient, before the step is taken

A rate may contain the time, shared numbers, entries and means of order parameters, memories, and

    g2 = sum over trained vectors of |g|^2, g the mean gradient of a batch, divided by d in an online limit

(`g2_w` of one slot). Its limits are sum_i E[c_i^2]/B online and sum_i |E[c_i x]|^2 in a flow. Values of training may
contain memories. Source: Ward, Wu & Bottou 2019 (AdaGrad-Norm).
"""

import re
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields, named, schedule_reading
from derivations.declare.declaration import Declaration, Group, Memory, Number, moves
from derivations.declare.schedules import TIME, Names

SQUARE = "g2"
KEYS = ("start", "rate")


def names_of(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the memories, before their rates are read."""
    return tuple(str(name) for name in table)


def squares(students: tuple[Group, ...], trained: tuple[str, ...]) -> tuple[str, ...]:
    """The names of squared gradients: of all vectors, and by slot."""
    slots = [g.named(slot) for g in students for slot in g.slots if moves(trained, g, slot)]
    return (SQUARE, *(f"{SQUARE}_{slot}" for slot in slots))


def memories(
    table: Mapping[str, Any], students: tuple[Group, ...], trained: tuple[str, ...], numbers: tuple[Number, ...]
) -> tuple[Memory, ...]:
    """Return the memories in [memory]. Raises `fields.Mistake` for a reserved name, and for an invalid rate."""
    shared = {number.name: number.default for number in numbers if not number.per_unit}
    names = (*names_of(table), *squares(students, trained))
    declared_memories = []
    for name, spec in table.items():
        place = f"memory.{name}"
        _require_name(name, [number.name for number in numbers], students)
        if not isinstance(spec, Mapping):
            message = (
                f"a memory is a table such as {{start = 0.1, rate = '{SQUARE}'}}, but {fields.shown(spec)} was given"
            )
            raise fields.Mistake(message, "memory", name)
        fields.require_known(spec, KEYS, place)
        if "rate" not in spec:
            raise fields.Mistake(f"memory {name} has no rate", "memory", name)
        entry = spec if isinstance(spec["rate"], str) else {**spec, "rate": str(fields.real(spec, "rate", place))}
        rate = schedule_reading.value(entry, "rate", place, Names(shared, names), named=name)
        assert not isinstance(rate, float)
        if rate.switches:
            message = "the rate of a memory cannot have jumps or kinks in time: step, sign, relu and abs are for values"
            raise fields.Mistake(message, place, "rate")
        declared_memories.append(
            Memory(name, fields.real(spec, "start", place, 0.0), rate.text, rate.pieces[0], rate.seen)
        )
    return tuple(declared_memories)


def _require_name(name: str, numbers: list[str], students: tuple[Group, ...]) -> None:
    """Raise an error for a name with another meaning."""
    slots = [slot for group in students for slot in group.slots]
    reserved = (*named.RESERVED, *named.OPTIONS, TIME, SQUARE, *numbers, *slots)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,19}", name) or name in reserved or named.WRITTEN.fullmatch(name):
        message = (
            f"{fields.shown(name)} cannot be the name of a memory: the name already has a meaning, or is not made of "
            "2 to 20 letters and digits"
        )
        raise fields.Mistake(message, "memory", name)


def of_squares(declared: Declaration) -> list[str]:
    """Return the squared gradients that memories use."""
    names = squares(declared.students, declared.trained)
    return [name for name in names if any(name in memory.seen for memory in declared.memories)]


def vectors_of(declared: Declaration, square: str) -> list[tuple[int, str]]:
    """Return the trained vectors (number of the group, slot) in the sum of a squared gradient."""
    vectors = [(k, s) for k, g in enumerate(declared.students) for s in g.slots if declared.moves(g, s)]
    if square == SQUARE:
        return vectors
    return [(k, s) for k, s in vectors if square == f"{SQUARE}_{declared.students[k].named(s)}"]
