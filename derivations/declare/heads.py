"""Several answers of one network: output = {one = "trained", two = "sum"}, and the heads whose losses are minimised.

    f_h(x) = sum over groups of sum_i a_hi phi(u_i . x, ..),   loss = sum over the heads in use of l(f_h, y_h)

A group of teachers with the name of a head is its label; one with a table `output` adds to the named labels. Source:
Lee, Goldt & Saxe 2021.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Group, Number
from derivations.declare.grammar import Tree
from derivations.declare.readouts import OUTPUTS, Readout, word_of

MOST_HEADS = 8
JOINT = re.compile(r"[fy]_([A-Za-z0-9]+)")
"""Pattern of the answer or label of a head in a user's loss."""
RESERVED = ("star",)
"""Names that a head cannot have, because its readout would be that of a teacher."""
OF_HEADS = ("f", "y", "a", "slope", "error")
"""Quantities that every head has separately; the name of the head follows each."""


def readouts(entries: Mapping[str, Any], table: str, names: list[str], teacher: bool) -> tuple[Readout, ...]:
    """The readouts of a group by head. Raises `fields.Mistake` for an invalid name, and as `output` does."""
    place = f"{table}.output"
    if not 0 < len(entries) <= MOST_HEADS:
        message = f"output has 1 to {MOST_HEADS} heads, such as {{one = 'trained', two = 'sum'}}, not {len(entries)}"
        raise fields.Mistake(message, table, "output")
    group_readouts = []
    for head, value in entries.items():
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,19}", head):
            message = f"a head's name is made of at most 20 letters and digits, but {fields.shown(head)} was given"
            raise fields.Mistake(message, place, str(head))
        if head in RESERVED:
            raise fields.Mistake(
                f"the readout of head {head} would be a_{head}, which already has a meaning", place, head
            )
        group_readouts.append(Readout(head, *output({head: value}, head, place, names, teacher)))
    return tuple(group_readouts)


def output(
    entry: Mapping[str, Any], key: str, table: str, names: list[str], teacher: bool
) -> tuple[str, Tree | None]:  # fmt: skip
    """Return one readout: a word of `OUTPUTS`, or "own" with its expression in the number j of a unit."""
    readout_text = entry.get(key, "sum")
    if isinstance(readout_text, str) and readout_text in OUTPUTS:
        if teacher and readout_text == "trained":
            raise fields.Mistake("a teacher's readout is not trained", table, key)
        return readout_text, None
    message = f"output is one of {', '.join(OUTPUTS)}, or an expression in j"
    if not isinstance(readout_text, str):
        raise fields.Mistake(f"{message}, not {fields.shown(readout_text)}", table, key)
    if re.fullmatch(r"[A-Za-z_]\w*", readout_text.strip()) and readout_text.strip() not in ("j", *names):
        raise fields.Mistake(f"{message}; {fields.near(readout_text, OUTPUTS)}", table, key)
    return "own", fields.expression(readout_text, table, key, ("j", *names))


def names_of(students: tuple[Group, ...]) -> tuple[str, ...]:
    """Return the heads of some groups of students; empty for a single answer."""
    return tuple(dict.fromkeys(readout.head for group in students for readout in group.heads))


def require(
    tables: Mapping[str, Any], students: tuple[Group, ...], teachers: tuple[Group, ...], labelled: bool
) -> None:  # fmt: skip
    """Raise an error for mixed groups with and without heads, labels of unknown heads, and features incompatible with
    heads.
    """
    heads, taught = names_of(students), names_of(teachers)
    if not heads and not taught:
        return
    if heads and "teacher" in fields.table(tables, "training"):
        message = (
            "teacher selects the groups that make a single label, but the network has heads: write head = "
            f"{heads[0]!r}, for example"
        )
        raise fields.Mistake(message, "training", "teacher")
    _require_names(tables, heads)
    if not heads:
        raise fields.Mistake("the teacher has heads, but no group of students has", "teacher", "output")
    without = next((group for group in students if not group.heads), None)
    if without is not None:
        message = (
            f"group {without.name} of students needs output = {{{heads[0]} = 'sum'}}, say, since others have heads"
        )
        raise fields.Mistake(message, f"student.{without.name}", "output")
    if labelled:
        raise fields.Mistake("heads and labels of clusters cannot be combined yet: give [teacher]", "inputs", "cluster")
    if "rule" in fields.table(tables, "training"):
        raise fields.Mistake("heads and rules cannot be combined yet: leave out rule or the heads", "training", "rule")
    for group in teachers:
        if not group.heads and group.name not in heads:
            subject = f"teacher group {group.name}" if group.name else "the teacher"
            message = (
                f"{subject} contributes to no head: give it the name of a head, or output = {{{heads[0]} = 'sum'}}"
            )
            raise fields.Mistake(message, f"teacher.{group.name}" if group.name else "teacher")
        wrong = next((readout.head for readout in group.heads if readout.head not in heads), None)
        if wrong is not None:
            message = (
                f"the teacher contributes to the head {wrong!r}, which no student has; {fields.near(wrong, heads)}"
            )
            raise fields.Mistake(message, f"teacher.{group.name}" if group.name else "teacher", "output")
    fed = {readout.head for group in teachers for readout in group.heads} | {g.name for g in teachers if not g.heads}
    missing = next((head for head in heads if head not in fed), None)
    if missing is not None:
        message = f"head {missing} has no label: write [teacher.{missing}], or an output of a teacher with that name"
        raise fields.Mistake(message, "teacher")


def _require_names(tables: Mapping[str, Any], heads: tuple[str, ...]) -> None:
    """Raise an error for numbers and memories with the name of an answer, a label, a readout or an error of a head."""
    used_names = {word_of(head, letter) for head in heads for letter in OF_HEADS}
    for table in ("parameters", "memory"):
        for name in fields.table(tables, table):
            if name in used_names:
                raise fields.Mistake(f"{name} is already a name that belongs to a head: choose another", table, name)


def force(training: Mapping[str, Any], students: tuple[Group, ...]) -> tuple[str, ...]:
    """Return the heads in use, in the order of the heads; empty for all.

    Raises `fields.Mistake` for an unknown head.
    """
    entry = training.get("head")
    if entry is None:
        return ()
    heads = names_of(students)
    if not heads:
        message = (
            "head names heads of the network, but the network has one output; declare heads by output = "
            "{one = 'trained'}"
        )
        raise fields.Mistake(message, "training", "head")
    selection = [entry] if isinstance(entry, str) else entry
    if not isinstance(selection, list) or not selection or not all(isinstance(name, str) for name in selection):
        message = f"head is a name or a list of names, but {fields.shown(entry)} was given"
        raise fields.Mistake(message, "training", "head")
    for name in selection:
        if name not in heads:
            raise fields.Mistake(f"no head is called {name!r}; {fields.near(name, heads)}", "training", "head")
    if len(set(selection)) < len(selection):
        raise fields.Mistake("head names a head twice", "training", "head")
    selected = tuple(head for head in heads if head in selection)
    return () if selected == heads else selected


def require_loss(
    loss: str, tree: Tree | None, heads: tuple[str, ...], in_force: tuple[str, ...], numbers: tuple[Number, ...]
) -> None:  # fmt: skip
    """Raise an error for softmax of one answer, and a user's loss of heads that do not exist or are not in use."""
    if loss == "softmax" and len(in_force or heads) < 2:
        raise fields.Mistake("softmax needs two heads", "training", "loss")
    if tree is None:
        return
    names = {name for head in in_force or heads for name in (f"f_{head}", f"y_{head}")}
    read = [name for name in tree.names() if JOINT.fullmatch(name) and name not in {n.name for n in numbers}]
    for name in read:
        if name not in names:
            hint = fields.near(name, names) if names else "the network has one answer, f"
            message = f"the loss contains {name}, which is not an output or label of the selected heads; {hint}"
            raise fields.Mistake(message, "training", "loss")
    if read and {"f", "y"} & set(tree.names()):
        message = (
            f"the loss names {read[0]} and f or y: write it either in f and y, or in the outputs and labels of "
            "the heads"
        )
        raise fields.Mistake(message, "training", "loss")


def of_loss(heads: Collection[str]) -> tuple[str, ...]:
    """Return the names that a user's loss may contain in addition to f and y.

    >>> of_loss(("one",))
    ('f_one', 'y_one')
    """
    return tuple(f"{letter}_{head}" for head in heads for letter in "fy")
