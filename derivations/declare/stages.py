"""The tables [[stage]] of a declaration: one declaration for each stage, with the stage's keys in place of others.

A stage ends at `until`, a time on a clock common to all stages. Missing keys are those of [training], and of [teacher]
noise. Units, sizes, inputs and start belong to the model, and so do the keys of `ONE`.
"""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from derivations.declare import copies, fields, rates
from derivations.declare.declaration import Declaration

TRAINING = ("trained", "loss", "rule", "step", "batch", "decay", "rates", "teacher", "head", "look", "until")
"""The keys of a stage that replace those of [training]."""
KEYS = ("name", *TRAINING, "noise", "begin")
ONE = (
    "weights",
    "limit",
    "decades",
    "memory",
    "momentum",
    "nesterov",
    "episode",
    "start",
    "inputs",
    "parameters",
)
MOST = 20
Read = Callable[[Mapping[str, Any], tuple[str, float]], Declaration]
"""Function that parses the tables of one stage, given its name and start time."""


def with_stages(made: Declaration, tables: Mapping[str, Any], read: Read) -> Declaration:
    """The declaration with its stages, if there are any. Raises `fields.Mistake` for invalid stages.

    `made` is the declaration without them.
    """
    if "stage" not in tables:
        return made
    entries = fields.entries(tables, "stage")
    if not 1 <= len(entries) <= MOST:
        raise fields.Mistake(f"there are 1 to {MOST} tables [[stage]], but {len(entries)} were given", "", "stage")
    found: list[Declaration] = []
    for number, entry in enumerate(entries, 1):
        with fields.entry_of("stage", number):
            name = _name(entry, [stage.stage for stage in found])
        begin = found[-1].until if found else 0.0
        with _of_stage(name, number, entry):
            stage = read(_tables(made, tables, entry), (name, begin))
            stage = dataclasses.replace(stage, changes=copies.changes(entry, stage))
            copies.require(stage)
        if stage.until <= begin:
            where = "its start" if stage.until == begin else f"but begins at {begin:g}"
            raise fields.Mistake(f"stage {name} ends at {stage.until:g}, {where}", "stage", "until", number)
        found.append(dataclasses.replace(stage, own=_own(made, stage, entry)))
    _require_velocities(made, found)
    differ = len({stage.labelling for stage in found}) > 1
    labels = tuple((stage.stage, stage.labelling) for stage in found) if differ else ()
    same = {"name": made.name, "text": made.text, "labels": labels}
    every = (dataclasses.replace(s, title=f"{made.title}, stage {s.stage}", **same) for s in found)
    return dataclasses.replace(made, labels=labels, stages=tuple(every))


def _require_velocities(made: Declaration, stages: list[Declaration]) -> None:
    """Raise an error for velocities in the state if stages train different parameters, because each state has its own
    velocities.
    """
    moving = {
        tuple(
            group.named(word) for group in one.students for word in (*group.slots, *group.own) if one.moves(group, word)
        )
        for one in stages
    }
    if made.inertial and len(moving) > 1:
        stated = "momentum of giant steps" if made.limit == "batch" else "momentum = {time = ..}"
        instead = "" if made.limit == "batch" else "momentum = 0.9, or "
        raise fields.Mistake(
            f"{stated} and stages that train different vectors, readouts or numbers cannot be combined yet: "
                f"use {instead}the same `trained` and `head` in all stages",
            "training", "momentum",
        )  # fmt: skip


def _name(entry: Mapping[str, Any], taken: list[str]) -> str:
    """The name of a stage, which no other stage has."""
    name = entry.get("name")
    if name is None:
        raise fields.Mistake("every table [[stage]] needs a unique name", "stage")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,19}", name) or name == "all":
        said = "a stage's name is made of at most 20 letters and digits, and is not 'all'"
        said += f", but {fields.shown(name)} was given"
        raise fields.Mistake(said, "stage", "name")
    if name in taken:
        raise fields.Mistake(f"two stages are called {name}: give them different names", "stage", "name")
    for key in entry:
        if key in ONE:
            raise fields.Mistake(f"stage {name}: {key} is common to all stages and not a key of a stage", "stage", key)
    try:
        fields.require_known(entry, KEYS, "stage")
    except fields.Mistake as mistake:
        raise fields.Mistake(f"stage {name}: {mistake}", "stage", mistake.key) from None
    return name


@contextlib.contextmanager
def _of_stage(name: str, number: int, entry: Mapping[str, Any]) -> Iterator[None]:
    """Assign every mistake in the training keys of a stage to its table."""
    try:
        yield
    except fields.Mistake as mistake:
        first, _, inner = mistake.table.partition(".")
        key = inner or mistake.key
        if first not in ("training", "teacher", "stage") or key not in entry:
            raise
        raise fields.Mistake(f"stage {name}: {mistake}", "stage", key, number) from None


def _tables(made: Declaration, tables: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a stage: those of the model with the stage's keys in place of others."""
    left = {key: table for key, table in tables.items() if key not in ("stage", "preset", "claim")}
    training = {**fields.table(tables, "training")}
    trained, force = entry.get("trained", list(made.trained)), entry.get("head", list(made.head))
    heads = tuple(map(str, [force] if isinstance(force, str) else force)) if isinstance(force, str | list) else ()
    if isinstance(trained, list) and ("trained" in entry or "head" in entry):
        moving = {n for pair in rates.moving_names(made.students, tuple(map(str, trained)), heads) for n in pair}
        for key in ("rates", "rule"):
            _restrict(training, key, moving)
        if isinstance(training.get("rule"), str) and not any(moving & set(group.slots) for group in made.students):
            del training["rule"]
    left["training"] = {**training, **{key: value for key, value in entry.items() if key in TRAINING}}
    if "noise" in entry:
        groups = tables.get("teacher", {})
        if isinstance(groups, list):
            groups = {str(group.get("name", "")): group for group in groups if isinstance(group, Mapping)}
        left["teacher"] = {**groups, "noise": entry["noise"]}
    return left


def _restrict(training: dict[str, Any], key: str, moving: set[str]) -> None:
    """Keep only the rates or rules of [training] for parameters that move in a stage."""
    given = training.get(key)
    if isinstance(given, Mapping):
        training[key] = {name: value for name, value in given.items() if name in moving}
        if not training[key]:
            del training[key]


def _own(made: Declaration, stage: Declaration, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The additional parameters of a stage: those of its keys, and rates of parameters that only this stage trains."""
    found = [key for key in ("step", "batch", "noise", "decay") if key in entry]
    found += ["look_size"] if "look" in entry else []
    return (*found, *(name for name in stage.rate_names if "rates" in entry or name not in made.rate_names))
