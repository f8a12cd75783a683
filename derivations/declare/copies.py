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
    groups_by_name = {student.name or WHOLE: student for student in students}
    source = entry[KEY]
    if not isinstance(source, str) or source not in groups_by_name:
        message = f"{name or 'the teacher'} = {fields.shown(source)}: a copy can only be made of students"
        raise fields.Mistake(f"{message}; {fields.near(str(source), groups_by_name)}", table, KEY)
    if not name:
        message = "a copy needs another teacher: give both a name, as in [teacher.one] and [teacher.copy]"
        raise fields.Mistake(message, table, KEY)
    of = groups_by_name[source]
    for present, feature in (
        (of.scalars, f"scalars of each unit ({', '.join(of.scalars)})"),
        (of.heads, "several heads"),
    ):
        if present:
            raise fields.Mistake(f"copies and {feature} cannot be combined yet: leave out one of the two", table, KEY)
    output = COPIED if of.output == "trained" else of.output
    return dataclasses.replace(of, name=name, output=output, heads=(), copied=of.name or WHOLE)


def ordered(teachers: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return the groups of teachers, copies last. Raises `fields.Mistake` if all are copies."""
    originals = tuple(teacher for teacher in teachers if not teacher.copied)
    if teachers and not originals:
        raise fields.Mistake("a copy needs another teacher: give [teacher.one] too, for example", "teacher")
    return (*originals, *(teacher for teacher in teachers if teacher.copied))


def require(declared: Declaration) -> None:
    """Raise an error for copies, and changes at the beginning of a stage, together with incompatible features."""
    copied = next((teacher for teacher in declared.teachers if teacher.copied), None)
    fresh = any(change.kind == FRESH for change in declared.changes)
    subject, place = ("copies", (f"teacher.{copied.name}", KEY)) if copied else ("new directions", ("stage", "begin"))
    conflicts = {
        "[inputs]": declared.inputs is not None,
        "normalised weights": declared.weights == "normalised" and copied,
    }
    for feature, present in conflicts.items():
        if present and (copied or fresh):
            raise fields.Mistake(f"{subject} and {feature} cannot be combined yet: leave out one of the two", *place)
    for name, _ in declared.start.arrays:
        if any(
            f"_{teacher.name}_{letter}_" in f"_{name}"
            for teacher in declared.teachers
            if teacher.copied
            for letter in "MP"
        ):
            raise fields.Mistake(f"{name} belongs to a copy and follows from the students: leave it out", "start", name)


def changes(entry: Mapping[str, Any], stage: Declaration) -> tuple[Change, ...]:
    """Return the changes at the beginning of a stage, in the written order.

    Raises `fields.Mistake` for an unknown name, and for an invalid value.
    """
    if "begin" not in entry:
        return ()
    begin_table = entry["begin"]
    if not isinstance(begin_table, Mapping) or not begin_table:
        message = 'begin is a table such as {copy = "student", w = "fresh", a = 0.1}'
        raise fields.Mistake(f"{message}, but {fields.shown(begin_table)} was given", "stage", "begin")
    return tuple(change for key, value in begin_table.items() for change in _change(str(key), value, stage))


def _change(key: str, value: Any, stage: Declaration) -> list[Change]:
    """Return one entry of `begin`: a change for every affected group of students."""
    copies = {teacher.name: teacher for teacher in stage.teachers if teacher.copied}
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
        all_names = [*copies, *(name for g in stage.students for name in (*g.slots, *g.own))]
        message = (
            f"begin: {key!r} is neither a copy nor a vector or number of the students; {fields.near(key, all_names)}"
        )
        raise fields.Mistake(message, "stage", "begin")
    if not isinstance(value, str):
        number = fields.real({"begin": value}, "begin", "stage")
        return [Change("number", g.named(word), number) for g, word in numbers]
    for g, _ in numbers:
        if value not in g.own:
            message = f"begin: {key} takes a number, or the name of another number of the unit"
            raise fields.Mistake(f"{message}; {fields.near(value, g.own)}", "stage", "begin")
    return [Change("number", g.named(word), g.named(value)) for g, word in numbers]


def _copied(key: str, value: Any, source: str) -> str:
    """Return the source of a copy, which its table states too."""
    if value != source:
        message = f"begin: {key} = {fields.shown(value)}, but [teacher.{key}] is a copy from {source!r}"
        raise fields.Mistake(message, "stage", "begin")
    return source


def stated(declared: Declaration) -> tuple[Group, ...]:
    """Return the groups of teachers that are not copies; they come first."""
    return tuple(teacher for teacher in declared.teachers if not teacher.copied)


def sources(declared: Declaration) -> list[tuple[int, int]]:
    """Return (number of the copy, number of the students that it is made of) of all copies, among all groups.

    >>> from derivations.declare import reading
    >>> tables = {"student": {"unit": "w"}, "teacher": {"one": {}, "copy": {"from": "student"}}}
    >>> sources(reading.declaration(tables))
    [(2, 0)]
    """
    students = [member.name or WHOLE for member in declared.students]
    return [(k, students.index(member.copied)) for k, member in enumerate(declared.groups) if member.copied]


def size_name(declared: Declaration, number: int) -> str:
    """Return the parameter with the number of units of a group; for a copy, that of its students."""
    number = dict(sources(declared)).get(number, number)
    return declared.groups[number].named("units" if number < len(declared.students) else "teachers")


def said(declared: Declaration) -> list[str]:
    """Return sentences for the page of a model on copies, and on changes at the beginning of the stage."""
    lines = [f"{entry.name}: a copy of {entry.copied}, which is fixed" for entry in declared.teachers if entry.copied]
    words = {"copy": "{0} := {1}", FRESH: "{0} := random directions", "number": "{0} := {1}"}
    beginning = "; ".join(words[entry.kind].format(entry.name, entry.value) for entry in declared.changes)
    return [*lines, *([f"at the beginning: {beginning}"] if beginning else [])]
