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


def with_stages(declared: Declaration, tables: Mapping[str, Any], read: Read) -> Declaration:
    """The declaration with its stages, if there are any. Raises `fields.Mistake` for invalid stages.

    `declared` is the declaration without them.
    """
    if "stage" not in tables:
        return declared
    entries = fields.entries(tables, "stage")
    if not 1 <= len(entries) <= MOST:
        raise fields.Mistake(f"there are 1 to {MOST} tables [[stage]], but {len(entries)} were given", "", "stage")
    declared_stages: list[Declaration] = []
    for number, entry in enumerate(entries, 1):
        with fields.entry_of("stage", number):
            name = _name(entry, [stage.stage for stage in declared_stages])
        begin = declared_stages[-1].until if declared_stages else 0.0
        with _of_stage(name, number, entry):
            stage = read(_tables(declared, tables, entry), (name, begin))
            stage = dataclasses.replace(stage, changes=copies.changes(entry, stage))
            copies.require(stage)
        if stage.until <= begin:
            location = "its start" if stage.until == begin else f"but begins at {begin:g}"
            raise fields.Mistake(f"stage {name} ends at {stage.until:g}, {location}", "stage", "until", number)
        declared_stages.append(dataclasses.replace(stage, own=_own(declared, stage, entry)))
    _require_velocities(declared, declared_stages)
    differ = len({stage.labelling for stage in declared_stages}) > 1
    labels = tuple((stage.stage, stage.labelling) for stage in declared_stages) if differ else ()
    shared_fields = {"name": declared.name, "text": declared.text, "labels": labels}
    titled_stages = (
        dataclasses.replace(s, title=f"{declared.title}, stage {s.stage}", **shared_fields) for s in declared_stages
    )
    return dataclasses.replace(declared, labels=labels, stages=tuple(titled_stages))


def _require_velocities(declared: Declaration, stages: list[Declaration]) -> None:
    """Raise an error for velocities in the state if stages train different parameters, because each state has its own
    velocities.
    """
    moving = {
        tuple(
            group.named(word)
            for group in stage.students
            for word in (*group.slots, *group.own)
            if stage.moves(group, word)
        )
        for stage in stages
    }
    if declared.inertial and len(moving) > 1:
        feature = "momentum of giant steps" if declared.limit == "batch" else "momentum = {time = ..}"
        instead = "" if declared.limit == "batch" else "momentum = 0.9, or "
        raise fields.Mistake(
            f"{feature} and stages that train different vectors, readouts or numbers cannot be combined yet: "
                f"use {instead}the same `trained` and `head` in all stages",
            "training", "momentum",
        )  # fmt: skip


def _name(entry: Mapping[str, Any], used_names: list[str]) -> str:
    """The name of a stage, which no other stage has."""
    name = entry.get("name")
    if name is None:
        raise fields.Mistake("every table [[stage]] needs a unique name", "stage")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9]{0,19}", name) or name == "all":
        message = "a stage's name is made of at most 20 letters and digits, and is not 'all'"
        message += f", but {fields.shown(name)} was given"
        raise fields.Mistake(message, "stage", "name")
    if name in used_names:
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


def _tables(declared: Declaration, tables: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a stage: those of the model with the stage's keys in place of others."""
    left = {key: table for key, table in tables.items() if key not in ("stage", "preset", "claim")}
    training = {**fields.table(tables, "training")}
    trained, force = entry.get("trained", list(declared.trained)), entry.get("head", list(declared.head))
    heads = tuple(map(str, [force] if isinstance(force, str) else force)) if isinstance(force, str | list) else ()
    if isinstance(trained, list) and ("trained" in entry or "head" in entry):
        moving = {n for pair in rates.moving_names(declared.students, tuple(map(str, trained)), heads) for n in pair}
        for key in ("rates", "rule"):
            _restrict(training, key, moving)
        if isinstance(training.get("rule"), str) and not any(moving & set(group.slots) for group in declared.students):
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
    entries = training.get(key)
    if isinstance(entries, Mapping):
        training[key] = {name: value for name, value in entries.items() if name in moving}
        if not training[key]:
            del training[key]


def _own(declared: Declaration, stage: Declaration, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The additional parameters of a stage: those of its keys, and rates of parameters that only this stage trains."""
    names = [key for key in ("step", "batch", "noise", "decay") if key in entry]
    names += ["look_size"] if "look" in entry else []
    return (*names, *(name for name in stage.rate_names if "rates" in entry or name not in declared.rate_names))
