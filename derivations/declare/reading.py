"""From a user's text (TOML, or the same tables in Python) to a declaration, with one sentence per mistake."""

import dataclasses
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from derivations.contract import UsageError
from derivations.declare import (
    array_files,
    batches,
    copies,
    data,
    episodes,
    events,
    fields,
    fits,
    giant,
    growth,
    heads,
    inputs,
    labels,
    looks,
    memory,
    momentum,
    named,
    predictions,
    presets,
    rates,
    rules,
    stages,
    starts,
    sums,
)
from derivations.declare.declaration import Declaration, Group, Number
from derivations.declare.declaration_text import declaration_text
from derivations.declare.grammar import Tree
from derivations.declare.model_files import content as content
from derivations.declare.model_files import parsed as parsed

LARGEST_GRAM = 10**9
"""Largest number of bytes of a file with a Gram matrix."""
TABLES = (
    "title", "about", "source", "paper", "link", "name", "student", "teacher", "inputs", "training", "start",
    "parameters", "event", "preset", "claim", "memory", "stage",
)  # fmt: skip
STUDENT = ("unit", "units", "output", "name")
STUDENTS = (*STUDENT, "prediction")
TEACHER = (*STUDENTS, "gram", "noise", "spread")
TRAINING = (
    "loss", "weights", "limit", "step", "batch", "decay", "trained", "rates", "rule", "until", "decades", "head",
    "momentum", "nesterov", "teacher", "look", "episode",
)  # fmt: skip
LOSSES = ("squared", "correlation", "logistic", "hinge", "softmax")


def from_file(path: Path) -> Declaration:
    """The declaration in a TOML file.

    Raises `UsageError` with the line for a file that is too large, not text, not TOML, or does not declare a model.
    """
    text, tables = parsed(path)
    try:
        return declaration(tables, name=_word(path.stem), folder=path.parent)
    except fields.Mistake as mistake:
        line = mistake.line(text)
        raise UsageError(f"{path}, line {line}: {mistake}" if line else f"{path}: {mistake}") from None


def declaration(
    tables: Mapping[str, Any], name: str = "declared", folder: Path | None = None, stage: tuple[str, float] = ("", 0.0)
) -> Declaration:
    """Return the declaration of some tables; `folder` is the folder of its files.

    For the tables of a stage, `stage` are its name and the time at which it begins.

    Raises `fields.Mistake` for a key that is unknown, of a wrong type or outside of its domain, and for inconsistent
    keys.
    """
    fields.require_known(tables, TABLES, "")
    fields.require_known(fields.table(tables, "training"), TRAINING, "training")
    declared = _stated(tables, name, folder, stage)
    looks.require(declared)
    episodes.require(declared)
    giant.require(declared)
    declared = dataclasses.replace(declared, text=declaration_text(tables, declared))
    declared = stages.with_stages(declared, tables, lambda entries, place: declaration(entries, name, folder, place))
    copies.require(declared)
    if not stage[0]:
        episodes.require_effect(declared)
    if all(map(array_files.at_hand, data.files(declared.inputs))):  # a stored declaration was checked when it was made
        fits.require(declared)
    return declared


def _stated(tables: Mapping[str, Any], name: str, folder: Path | None, stage: tuple[str, float]) -> Declaration:
    """The declaration of some tables without its text and its stages."""
    training, parameters = fields.table(tables, "training"), fields.table(tables, "parameters")
    numbers, moving = named.numbers(parameters, stage[1]), named.changing(parameters)
    named.require_constant(tables, moving)
    teacher_table = fields.table(tables, "teacher")
    law = inputs.inputs(tables, numbers, folder)
    students, teachers = _sides(tables, numbers, law is not None and law.labels)
    words, in_force = heads.names_of(students), heads.force(training, students)
    loss, tree = _loss(training, numbers, words, in_force)
    weights: Any = fields.choice(training, "weights", ("free", "sphere", "normalised"), "free", "training")
    limit: Any = fields.choice(training, "limit", ("flow", "online", "batch"), "flow", "training")
    count, expression = batches.batch(training, limit, tuple(n.name for n in numbers if not n.per_unit))
    trained = _trained(training, students, numbers)
    remembering = fields.table(tables, "memory")
    memory_names = memory.names_of(remembering)
    values = rates.values(
        training, teacher_table, limit, rates.moving_names(students, trained, in_force), numbers, memory_names, stage[1]
    )
    return Declaration(
        name=fields.name(tables, "name", "", name),
        title=fields.text(tables, "title", "", name),
        source=fields.text(tables, "source", "", ""),
        students=students,
        teachers=teachers,
        loss=loss,
        own_loss=tree,
        weights=weights,
        limit=limit,
        trained=trained,
        step=values.step,
        batch=count,
        batch_size=expression,
        decay=values.decay,
        noise=values.noise,
        gram=data.gram_of_file(law, teacher_table) or _gram(teacher_table, folder),
        start=starts.start(fields.table(tables, "start"), students, weights),
        numbers=numbers,
        events=events.events(tables),
        about=fields.text(tables, "about", "", ""),
        link=fields.address(tables, "link"),
        paper=fields.text(tables, "paper", "", ""),
        until=fields.real(training, "until", "training", 100.0, above=0.0),
        decades=fields.flag(training, "decades", "training"),
        inputs=law,
        presets=presets.presets(tables),
        claims=_claims(tables),
        rates=values.rates,
        schedules=(*values.schedules, *moving),
        law=values.law,
        memories=memory.memories(remembering, students, trained, numbers),
        momentum=momentum.momentum(training, weights, law),
        look=looks.look(training),
        episode=episodes.episode(training, numbers),
        rules=rules.rules(training, students, trained, numbers, weights),
        head=in_force,
        predictions=predictions.predictions(fields.table(tables, "student"), "student", students, words, numbers),
        label_predictions=predictions.predictions(teacher_table, "teacher", teachers, words, numbers),
        labelling=labels.labelling(training, teachers),
        stage=stage[0],
        begin=stage[1],
    )


def _sides(
    tables: Mapping[str, Any], numbers: tuple[Number, ...], labelled: bool
) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """Return the groups of students and teachers; without a teacher if clusters of the inputs are `labelled`."""
    students = _groups(tables, "student", STUDENTS, numbers, None)
    teachers = _unlabelled(tables) if labelled else _groups(tables, "teacher", TEACHER, numbers, students)
    heads.require(tables, students, teachers, labelled)
    return students, teachers


def _unlabelled(tables: Mapping[str, Any]) -> tuple[Group, ...]:
    """Return an empty teacher if clusters have labels; [teacher] then has only the noise of these."""
    teacher = tables.get("teacher", {})
    wrong = next((key for key in teacher if key != "noise"), "") if isinstance(teacher, Mapping) else "[teacher]"
    if wrong:
        raise fields.Mistake(
            "the labels of the clusters replace a teacher: [teacher] may have only noise",
            "teacher", "" if wrong == "[teacher]" else wrong,
        )  # fmt: skip
    return ()


def plain(tables: Any) -> Any:
    """Tables with every SymPy expression written as text, arrays as lists and tuples as lists.

    >>> plain({"unit": "He(2, w)", "sizes": (1, 2)})
    {'unit': 'He(2, w)', 'sizes': [1, 2]}
    """
    if isinstance(tables, Mapping):
        return {str(key): plain(value) for key, value in tables.items()}
    if isinstance(tables, list | tuple):
        return [plain(item) for item in tables]
    if hasattr(tables, "free_symbols"):
        return re.sub(r"\bAbs\(", "abs(", str(tables))
    return tables.tolist() if hasattr(tables, "tolist") else tables


def _groups(
    tables: Mapping[str, Any], key: str, keys: Collection[str], numbers: tuple[Number, ...],
    like: tuple[Group, ...] | None,
) -> tuple[Group, ...]:  # fmt: skip
    """The groups of a side: one table, a table of tables, or a list of tables with names."""
    side = tables.get(key)
    if side is None and like is not None:
        side = {}
    if isinstance(side, list):
        named = [(str(entry.get("name", "")), entry) for entry in side if isinstance(entry, Mapping)]
        keys = STUDENT
        if len(named) != len(side) or len({name for name, _ in named}) != len(named) or not named:
            raise fields.Mistake(f"[[{key}]] needs a name of its own in every entry", key)
    elif isinstance(side, Mapping):
        tables_within = {name: entry for name, entry in side.items() if isinstance(entry, Mapping)}
        inner = {
            name: e
            for name, e in tables_within.items()
            if name not in ("output", "prediction") and not array_files.is_record(e)
        }
        plain = {name: entry for name, entry in side.items() if name not in inner}
        named = list(inner.items()) if inner else [("", side)]
        if inner:
            keys = STUDENT
            fields.require_known(plain, ("prediction", *(("gram", "noise", "spread") if key == "teacher" else ())), key)
    else:
        raise fields.Mistake(f"a model needs a table [{key}] with unit = '..'", "", key)
    groups = []
    for name, entry in named:
        table = f"{key}.{name}" if name and not isinstance(side, list) else key
        if key == "teacher" and copies.KEY in entry:
            groups.append(copies.group(entry, str(name), table, like or ()))
            continue
        fields.require_known(entry, keys, table)
        groups.append(_group(entry, str(name), table, numbers, like, key == "teacher"))
    if len(groups) > 8:
        raise fields.Mistake(f"at most 8 groups of {key}s, but {len(groups)} are given", key)
    return copies.ordered(tuple(groups)) if key == "teacher" else tuple(groups)


def _group(
    entry: Mapping[str, Any], name: str, table: str, numbers: tuple[Number, ...], like: tuple[Group, ...] | None,
    teacher: bool,
) -> Group:  # fmt: skip
    if name and not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,19}", name):
        raise fields.Mistake(
            f"a group's name is made of at most 20 letters and digits, but {fields.shown(name)} was given",
            table,
            "name",
        )
    if not name and entry.get("name"):
        raise fields.Mistake("name is only for one of several groups: write [[student]] for each group", table, "name")
    if "unit" not in entry and not (like and len(like) == 1):
        raise fields.Mistake(f"[{table}] has no unit: write one, such as unit = 'erf(w)'", table)
    text = entry.get("unit", like[0].text if like else None)
    if not isinstance(text, str) or not text.strip():
        raise fields.Mistake(
            f"unit is an expression such as 'erf(w)', but {fields.shown(text)} was given", table, "unit"
        )
    unit = fields.expression(text, table, "unit")
    shared = {number.name: number for number in numbers}
    names = unit.names()
    slots = tuple(word for word in names if word not in shared)
    scalars = tuple(word for word in names if word in shared and shared[word].per_unit)
    _require_slots(unit, text, slots, table, {number.name for number in numbers if number.per_unit})
    if teacher and scalars:
        raise fields.Mistake(
            f"the teacher's unit uses {', '.join(scalars)}, numbers that student units have; give [{table}] a unit of "
            f"its own, with a number such as 0.5 for {scalars[0]}",
            table,
            "unit",
        )
    try:
        growth.require_unit(unit, text, slots, {n.name: n.default for n in numbers if not n.per_unit})
    except UsageError as error:
        raise fields.Mistake(str(error), table, "unit") from None
    output_entry, words = entry.get("output"), list(shared)
    by_head = heads.readouts(output_entry, table, words, teacher) if isinstance(output_entry, Mapping) else ()
    output, tree = ("sum", None) if by_head else heads.output(entry, "output", table, words, teacher)
    units = fields.whole(entry, "units", table, 1, 100_000)
    return Group(name, unit, text, slots, scalars, units, output, tree, by_head)


def _require_slots(unit: Tree, text: str, slots: tuple[str, ...], table: str, moving: Collection[str]) -> None:
    """Raise an error for invalid names of weight vectors, too many, and two for one vector; `moving` are numbers of a
    unit.
    """
    if not slots:
        raise fields.Mistake(
            f"the unit {text!r} uses no weight vector: every name that is not a parameter is a weight vector",
            table,
            "unit",
        )
    if len(slots) > 4:
        raise fields.Mistake(f"a unit has at most 4 weight vectors, {text!r} has {', '.join(slots)}", table, "unit")
    for word in slots:
        if word == "x":
            raise fields.Mistake(
                f"an expression does not contain the input x: write {text!r} without x, because w stands for w . x",
                table,
                "unit",
            )
        if word in named.RESERVED or not re.fullmatch(r"[a-z][a-z0-9]{0,19}", word):
            raise fields.Mistake(
                f"{word!r} cannot be a weight vector: use a short name in small letters such as w"
                + (f", not one of {', '.join(named.RESERVED)}" if word in named.RESERVED else ""),
                table,
                "unit",
            )
    pair = sums.together(unit, slots, moving)
    if pair:
        bias = next((word for word in pair if word.startswith("b")), pair[1])
        raise fields.Mistake(
            f"{pair[0]} and {pair[1]} enter {text!r} only through their sum, so they are one weight vector; "
            f'declare a bias in [parameters]: {bias} = {{default = 0.0, per = "unit"}}',
            table,
            "unit",
        )


def _loss(
    training: Mapping[str, Any], numbers: tuple[Number, ...], words: tuple[str, ...], in_force: tuple[str, ...]
) -> tuple[Any, Tree | None]:  # fmt: skip
    entry = training.get("loss", "squared")
    if isinstance(entry, str) and entry in LOSSES:
        heads.require_loss(entry, None, words, in_force, numbers)
        return entry, None
    if not isinstance(entry, str) or re.fullmatch(r"\s*[A-Za-z_]\w*\s*", entry):
        raise fields.Mistake(
            f"loss is one of {', '.join(LOSSES)}, or an expression in f and y, not {fields.shown(entry)}; "
            f"{fields.near(str(entry), LOSSES)}",
            "training",
            "loss",
        )
    shared = [n.name for n in numbers if not n.per_unit]
    tree = fields.expression(entry, "training", "loss", ("f", "y", *heads.of_loss(words), *shared))
    heads.require_loss("own", tree, words, in_force, numbers)
    if not any(name.startswith("f_") or name == "f" for name in tree.names() if name not in shared):
        raise fields.Mistake(f"the loss {entry!r} does not depend on f", "training", "loss")
    if any(call.word in ("softmax", "top1", "wick") for call in tree.walk()):
        raise fields.Mistake(f"softmax, top1 and wick have no meaning in a loss, {entry!r}", "training", "loss")
    return "own", tree


def _trained(training: Mapping[str, Any], students: tuple[Group, ...], numbers: tuple[Number, ...]) -> tuple[str, ...]:
    everything = {word for group in students for word in (*group.slots, *group.scalars)}
    everything |= {group.named(word) for group in students for word in (*group.slots, *group.scalars)}
    for group in students:
        everything |= {name for word in ("a", *group.trained_readouts) if group.trained_readouts
                       for name in (word, group.named(word))}  # fmt: skip
    names = training.get("trained")
    if names is None:
        return tuple(sorted({word for group in students for word in (*group.slots, *group.scalars)}))
    if not isinstance(names, list) or not all(isinstance(word, str) for word in names):
        raise fields.Mistake(
            f"trained is a list of names such as ['w'], but {fields.shown(names)} was given", "training", "trained"
        )
    for word in names:
        if word not in everything:
            raise fields.Mistake(
                f"trained names {fields.shown(word)}, which is not a trainable quantity; "
                f"{fields.near(word, everything)}",
                "training",
                "trained",
            )
    return tuple(sorted(names))


def _gram(table: Mapping[str, Any], folder: Path | None) -> Any:
    """None for an orthonormal teacher, a number for equal overlaps, a matrix, or that of a file of numbers."""
    entry = table.get("gram", "orthonormal")
    if entry == "orthonormal":
        return None
    if isinstance(entry, list):
        return fields.matrix(entry, "teacher", "gram")
    if not isinstance(entry, str):
        return fields.real(table, "gram", "teacher", minimum=-1.0, maximum=1.0)
    import numpy as np

    path = (folder or Path()) / entry
    try:
        if not 0 < path.stat().st_size <= LARGEST_GRAM or not path.is_file():
            raise ValueError(entry)
        matrix = np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, ndmin=2)
        return fields.matrix(np.atleast_2d(np.asarray(matrix, float)).tolist(), "teacher", "gram")
    except fields.Mistake:
        raise
    except (OSError, ValueError, TypeError, EOFError):
        raise fields.Mistake(
            "gram is 'orthonormal', a number, a matrix, or a file of numbers (.npy, .txt), but "
            f"{fields.shown(entry)} was given",
            "teacher",
            "gram",
        ) from None


def _claims(tables: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(entry) for entry in fields.entries(tables, "claim"))


def _word(stem: str) -> str:
    """Return a file's name as the name of a system: letters, digits, hyphens and underscores."""
    return re.sub(r"[^\w-]+", "_", stem)[:60].lstrip("-") or "declared"
