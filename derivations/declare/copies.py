"""Copies of students among the teachers, and changes at the beginning of a stage: [teacher.copy], begin = {..}.

A group `from = "student"` of teachers has the vectors and readouts that the group of students had when the copy was
made: at the start of training, and at the beginning of every stage that renews it. Between these times it is fixed.

    begin = {copy = "student", w = "fresh", a = 0.1}

is evaluated from left to right: the copy is made again, the vectors w take random directions with the norm of the
start, and the readouts become 0.1. On the Gram matrix G of all rows a copy is G <- T G T^T, where T selects rows.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Declaration, Group
from derivations.declare.of_training import Change
from derivations.declare.readouts import COPIED

KEY = "from"
WHOLE = "student"
"""Name of the single group of students, if it has no name."""
FRESH = "fresh"


def group(entry: Mapping[str, Any], name: str, table: str, students: tuple[Group, ...]) -> Group:
    """Return a group of teachers that is a copy of a group of students.

    Raises `fields.Mistake` for a group that is not one of students, and for one with features that a copy cannot have
    yet.
    """
    fields.require_known(entry, (KEY, "name"), table)
    known = {one.name or WHOLE: one for one in students}
    given = entry[KEY]
    if not isinstance(given, str) or given not in known:
        said = f"{name or 'the teacher'} = {fields.shown(given)}: a copy can only be made of students"
        raise fields.Mistake(f"{said}; {fields.near(str(given), known)}", table, KEY)
    if not name:
        said = "a copy needs another teacher: give both a name, as in [teacher.one] and [teacher.copy]"
        raise fields.Mistake(said, table, KEY)
    of = known[given]
    for there, what in ((of.scalars, f"scalars of each unit ({', '.join(of.scalars)})"), (of.heads, "several heads")):
        if there:
            raise fields.Mistake(f"copies and {what} cannot be combined yet: leave out one of the two", table, KEY)
    output = COPIED if of.output == "trained" else of.output
    return dataclasses.replace(of, name=name, output=output, heads=(), copied=of.name or WHOLE)


def ordered(teachers: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return the groups of teachers, copies last. Raises `fields.Mistake` if all are copies."""
    stated = tuple(one for one in teachers if not one.copied)
    if teachers and not stated:
        raise fields.Mistake("a copy needs another teacher: give [teacher.one] too, for example", "teacher")
    return (*stated, *(one for one in teachers if one.copied))


def require(made: Declaration) -> None:
    """Raise an error for copies, and changes at the beginning of a stage, together with incompatible features."""
    copied = next((one for one in made.teachers if one.copied), None)
    fresh = any(change.kind == FRESH for change in made.changes)
    what, place = ("copies", (f"teacher.{copied.name}", KEY)) if copied else ("new directions", ("stage", "begin"))
    others = {
        "[inputs]": made.inputs is not None,
        "normalised weights": made.weights == "normalised" and copied,
    }
    for other, there in others.items():
        if there and (copied or fresh):
            raise fields.Mistake(f"{what} and {other} cannot be combined yet: leave out one of the two", *place)
    for name, _ in made.start.arrays:
        if any(f"_{one.name}_{letter}_" in f"_{name}" for one in made.teachers if one.copied for letter in "MP"):
            raise fields.Mistake(f"{name} belongs to a copy and follows from the students: leave it out", "start", name)


def changes(entry: Mapping[str, Any], stage: Declaration) -> tuple[Change, ...]:
    """Return the changes at the beginning of a stage, in the written order.

    Raises `fields.Mistake` for an unknown name, and for an invalid value.
    """
    if "begin" not in entry:
        return ()
    given = entry["begin"]
    if not isinstance(given, Mapping) or not given:
        said = 'begin is a table such as {copy = "student", w = "fresh", a = 0.1}'
        raise fields.Mistake(f"{said}, but {fields.shown(given)} was given", "stage", "begin")
    return tuple(change for key, value in given.items() for change in _change(str(key), value, stage))


def _change(key: str, value: Any, stage: Declaration) -> list[Change]:
    """Return one entry of `begin`: a change for every affected group of students."""
    copies = {one.name: one for one in stage.teachers if one.copied}
    vectors = [(g, slot) for g in stage.students for slot in g.slots if key in (slot, g.named(slot))]
    numbers = [(g, word) for g in stage.students for word in g.own if key in (word, g.named(word))]
    if key in copies:
        return [Change("copy", key, _copied(key, value, copies[key].copied))]
    if vectors:
        if value != FRESH:
            raise fields.Mistake(
                f"begin: {key} are vectors and can only begin {FRESH!r}, not {fields.shown(value)}", "stage", "begin"
            )
        return [Change(FRESH, g.named(slot), slot) for g, slot in vectors]
    if not numbers:
        every = [*copies, *(name for g in stage.students for name in (*g.slots, *g.own))]
        said = f"begin: {key!r} is neither a copy nor a vector or number of the students; {fields.near(key, every)}"
        raise fields.Mistake(said, "stage", "begin")
    if not isinstance(value, str):
        number = fields.real({"begin": value}, "begin", "stage")
        return [Change("number", g.named(word), number) for g, word in numbers]
    for g, _ in numbers:
        if value not in g.own:
            said = f"begin: {key} takes a number, or the name of another number of the unit"
            raise fields.Mistake(f"{said}; {fields.near(value, g.own)}", "stage", "begin")
    return [Change("number", g.named(word), g.named(value)) for g, word in numbers]


def _copied(key: str, value: Any, source: str) -> str:
    """Return the source of a copy, which its table states too."""
    if value != source:
        said = f"begin: {key} = {fields.shown(value)}, but [teacher.{key}] is a copy from {source!r}"
        raise fields.Mistake(said, "stage", "begin")
    return source


def stated(declared: Declaration) -> tuple[Group, ...]:
    """Return the groups of teachers that are not copies; they come first."""
    return tuple(one for one in declared.teachers if not one.copied)


def sources(declared: Declaration) -> list[tuple[int, int]]:
    """Return (number of the copy, number of the students that it is made of) of all copies, among all groups.

    >>> from derivations.declare import reading
    >>> tables = {"student": {"unit": "w"}, "teacher": {"one": {}, "copy": {"from": "student"}}}
    >>> sources(reading.declaration(tables))
    [(2, 0)]
    """
    students = [one.name or WHOLE for one in declared.students]
    return [(k, students.index(one.copied)) for k, one in enumerate(declared.groups) if one.copied]


def size_name(declared: Declaration, number: int) -> str:
    """Return the parameter with the number of units of a group; for a copy, that of its students."""
    number = dict(sources(declared)).get(number, number)
    return declared.groups[number].named("units" if number < len(declared.students) else "teachers")


def said(declared: Declaration) -> list[str]:
    """Return sentences for the page of a model on copies, and on changes at the beginning of the stage."""
    lines = [f"{one.name}: a copy of {one.copied}, which is fixed" for one in declared.teachers if one.copied]
    words = {"copy": "{0} := {1}", FRESH: "{0} := random directions", "number": "{0} := {1}"}
    begun = "; ".join(words[one.kind].format(one.name, one.value) for one in declared.changes)
    return [*lines, *([f"at the beginning: {begun}"] if begun else [])]
