"""The user's own numbers, and the names that are taken."""

import dataclasses
import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

from derivations.declare import fields, schedule_reading, schedules
from derivations.declare.declaration import Number
from derivations.declare.grammar import FUNCTIONS, Tree, foreign, number

NUMBER = ("default", "meaning", "minimum", "maximum", "above", "per")
LIMITS = ("minimum", "maximum", "above")
MAY_CHANGE = ("unit", "prediction", "loss", "rule", "parameters", "claim", "preset", "name", "of")
"""Keys and tables whose expressions may name a number that changes in time, or which have no expressions."""
RESERVED = (
    "d", "step", "batch", "decay", "noise", "gram", "norm", "overlap", "tier", "units", "teachers", "points", "f", "y",
    "p", "pi", "x", "a", "j", "time", "loss", "error", "numbers", "scalars", "sample_seed", "np", "nan", "inf",
    "classification_error",
)  # fmt: skip
"""Words that mean something else in a declaration, and so cannot be a slot or a number of the user's."""
OPTIONS = (
    "stage", "seed", "until", "save_points", "rtol", "atol", "backend", "solver", "preset", "config", "initial",
    "after", "system", "method", "step_size", "seeds", "device", "precision", "fresh_initial", "population_loss",
    "parameters", "declaration", "self",
)  # fmt: skip
"""What the functions of odesim call their options: a parameter of this name could not be given there."""
WRITTEN = re.compile(
    "[CEGKRSabceijmnrstuvwxy]|aa|ai|angle|bias|both|counts|empty|factor|fields|first|gg|labels|learning|look_up|means|"
    "mov(ed|ing)|normal|ones|out|range|ratio|root|second|series|shape|sizes?|slope|square|starts|tilt(ed|s)|total|uniform|"
    r"v[gv]|wj|ww|xp|absolute|[ABbcdehlnrstu]\d*_.*|[stx]\d+|\w*_\d+\w*"
)
"""Names within written functions, which a number that all units share must not have."""

MADE = re.compile(
    r"(norm|weight)_\w+|(kernel|mean|series|[AESVcv])_\d\w*|(bend|along|[BCDEKSVW](own)?)_(\w+_)?[QMP]_\w+"
)
"""Names within the statement of a model (`algebra`), which no number must have."""


def numbers(table: Mapping[str, Any], begin: float = 0.0) -> tuple[Number, ...]:
    """The user's own numbers: a value, or a table with default, meaning, domain, and per = "unit".

    Of a number that changes in time the default is its value at the time `begin`.
    """
    found = []
    moving = {one.name: one for one in changing(table)}
    constant = _constants(table)
    for name, given in table.items():
        entry = given if isinstance(given, Mapping) else {"default": given}
        word = re.fullmatch(r"[A-Za-z]\w{0,39}", name, re.ASCII) and not keyword.iskeyword(name)
        ours = name in (*RESERVED, *FUNCTIONS, *OPTIONS) or MADE.fullmatch(name)
        ours = ours or ("per" not in entry and WRITTEN.fullmatch(name))
        if not name.isascii() and name.isidentifier():
            raise fields.Mistake(foreign(name), "parameters", name)
        if keyword.iskeyword(name):
            said = (
                f"{name!r} cannot be the name of a parameter, because it is a word of Python; choose another such "
                f"as {name[:3]}"
            )
            raise fields.Mistake(said, "parameters", name)
        if not word or ours or re.match("[qxz]_", name):
            raise fields.Mistake(
                f"{fields.shown(name)} cannot be the name of a parameter: it "
                + (
                    "is the name of something else in odesim; choose a longer one"
                    if word
                    else "is no name of at most 40 letters"
                ),
                "parameters",
                name,
            )
        place = f"parameters.{name}"
        fields.require_known(entry, NUMBER, place)
        limits = {key: fields.real(entry, key, place) for key in LIMITS if key in entry}
        if entry.get("per", "unit") != "unit":
            raise fields.Mistake(f'per is "unit" or left out, but {entry["per"]!r} was given', "parameters", name)
        if "default" not in entry:
            raise fields.Mistake(f"parameter {name} has no default", "parameters", name)
        bounds: Any = {"minimum": limits.get("minimum"), "maximum": limits.get("maximum"), "above": limits.get("above")}
        formula = _formula(entry, place) if isinstance(entry["default"], str) and "per" in entry else None
        given = entry["default"] if formula is None else number(formula, {"j": 1.0})
        given = schedules.first(moving[name], constant, begin) if name in moving else given
        default = fields.real({name: given}, name, "parameters", **bounds)
        meaning = fields.text(entry, "meaning", place, "")
        found.append(Number(name, default, meaning, per_unit="per" in entry, formula=formula, **limits))
    return tuple(found)


def _formula(entry: Mapping[str, Any], place: str) -> Tree:
    """The default of every unit as an expression in its number j = 1, 2, .."""
    return fields.formula(entry["default"], place, "default", ("j",))


def _default(entry: Any) -> Any:
    """What an entry of [parameters] says of a number: its value, an expression, or pairs."""
    return entry.get("default") if isinstance(entry, Mapping) else entry


def _constants(table: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of [parameters] that do not change, by name."""
    return {name: float(v) for name, entry in table.items() if isinstance(v := _default(entry), int | float)}


def changing(table: Mapping[str, Any]) -> tuple[schedules.Schedule, ...]:
    """Return the schedules of the shared numbers that change in time: expressions in t, or pairs.

    They may name the numbers that do not change.  Raises `fields.Mistake` for one that reads the state, of which labels
    and units know nothing.
    """
    found = []
    constant = _constants(table)
    for name, entry in table.items():
        given, per_unit = _default(entry), isinstance(entry, Mapping) and "per" in entry
        if per_unit or not isinstance(given, str | list):
            continue
        place, key = (f"parameters.{name}", "default") if isinstance(entry, Mapping) else ("parameters", name)
        limits = {key: fields.real(entry, key, place) for key in LIMITS if isinstance(entry, Mapping) and key in entry}
        made = schedule_reading.value({key: given}, key, place, schedules.Names(constant), named=name)
        assert isinstance(made, schedules.Schedule)
        if made.seen:
            raise fields.Mistake(f"parameter {name} changes in time alone, but reads {made.seen[0]}", place, key)
        found.append(dataclasses.replace(made, domain=schedules.Domain(**limits)))
    return tuple(found)


def require_constant(tables: Mapping[str, Any], changing: tuple[schedules.Schedule, ...]) -> None:
    """Raise `fields.Mistake` where a number that changes in time is named by what is the same at all times."""
    for name in (one.name for one in changing):
        for table, key, text in _texts(tables):
            if re.search(rf"\b{name}\b", text):
                where = f"[{table}] {key}" if table else key
                said = f"parameter {name} changes in time, but {where} takes numbers that do not: {fields.shown(text)}"
                raise fields.Mistake(said, table, key)


def _texts(entries: Any, table: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Table, key and text of all expressions but those that may change in time: units, predictions, loss and rules."""
    if isinstance(entries, str) and table:
        yield table, key, entries
    elif isinstance(entries, list):
        for entry in entries:
            yield from _texts(entry, table, key)
    elif isinstance(entries, Mapping):
        for name, entry in entries.items():
            if name not in MAY_CHANGE:
                yield from _texts(entry, table or str(name), str(name))
