"""The user's numbers, and reserved names."""

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
"""Keys and tables whose expressions may contain a time-dependent number, or which have no expressions."""
RESERVED = (
    "d", "step", "batch", "decay", "noise", "gram", "norm", "overlap", "tier", "units", "teachers", "points", "f", "y",
    "p", "pi", "x", "a", "j", "time", "loss", "error", "numbers", "scalars", "sample_seed", "np", "nan", "inf",
    "classification_error",
)  # fmt: skip
"""Reserved words of a declaration, which cannot be slots or numbers of the user."""
OPTIONS = (
    "stage", "seed", "until", "save_points", "rtol", "atol", "backend", "solver", "preset", "config", "initial",
    "after", "system", "method", "step_size", "seeds", "device", "precision", "fresh_initial", "population_loss",
    "parameters", "declaration", "self",
)  # fmt: skip
"""Names of options of odesim's functions, where a parameter with this name could not be given."""
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
    """Return the user's numbers: a value, or a table with default, meaning, domain, and per = "unit".

    The default of a time-dependent number is its value at the time `begin`.
    """
    declared_numbers = []
    moving = {schedule.name: schedule for schedule in changing(table)}
    constant = _constants(table)
    for name, raw_value in table.items():
        entry = raw_value if isinstance(raw_value, Mapping) else {"default": raw_value}
        word = re.fullmatch(r"[A-Za-z]\w{0,39}", name, re.ASCII) and not keyword.iskeyword(name)
        reserved = name in (*RESERVED, *FUNCTIONS, *OPTIONS) or MADE.fullmatch(name)
        reserved = reserved or ("per" not in entry and WRITTEN.fullmatch(name))
        if not name.isascii() and name.isidentifier():
            raise fields.Mistake(foreign(name), "parameters", name)
        if keyword.iskeyword(name):
            message = (
                f"{name!r} cannot be the name of a parameter, because it is a word of Python; choose another such "
                f"as {name[:3]}"
            )
            raise fields.Mistake(message, "parameters", name)
        if not word or reserved or re.match("[qxz]_", name):
            raise fields.Mistake(
                f"{fields.shown(name)} cannot be the name of a parameter: it "
                + (
                    "is the name of something else in odesim; choose a longer one"
                    if word
                    else "is not a name of at most 40 letters"
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
        raw_value = entry["default"] if formula is None else number(formula, {"j": 1.0})
        raw_value = schedules.first(moving[name], constant, begin) if name in moving else raw_value
        default = fields.real({name: raw_value}, name, "parameters", **bounds)
        meaning = fields.text(entry, "meaning", place, "")
        declared_numbers.append(Number(name, default, meaning, per_unit="per" in entry, formula=formula, **limits))
    return tuple(declared_numbers)


def _formula(entry: Mapping[str, Any], place: str) -> Tree:
    """The default of every unit as an expression in its number j = 1, 2, .."""
    return fields.formula(entry["default"], place, "default", ("j",))


def _default(entry: Any) -> Any:
    """Return the default of a number in an entry of [parameters]: its value, an expression, or pairs."""
    return entry.get("default") if isinstance(entry, Mapping) else entry


def _constants(table: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of [parameters] that do not change, by name."""
    return {name: float(v) for name, entry in table.items() if isinstance(v := _default(entry), int | float)}


def changing(table: Mapping[str, Any]) -> tuple[schedules.Schedule, ...]:
    """Return the schedules of time-dependent shared numbers: expressions in t, or pairs.

    They may contain constant numbers. Raises `fields.Mistake` for one that depends on the state, because labels and
    units cannot.
    """
    timed_numbers = []
    constant = _constants(table)
    for name, entry in table.items():
        default, per_unit = _default(entry), isinstance(entry, Mapping) and "per" in entry
        if per_unit or not isinstance(default, str | list):
            continue
        place, key = (f"parameters.{name}", "default") if isinstance(entry, Mapping) else ("parameters", name)
        limits = {key: fields.real(entry, key, place) for key in LIMITS if isinstance(entry, Mapping) and key in entry}
        schedule = schedule_reading.value({key: default}, key, place, schedules.Names(constant), named=name)
        assert isinstance(schedule, schedules.Schedule)
        if schedule.seen:
            raise fields.Mistake(
                f"parameter {name} can depend only on time, but contains {schedule.seen[0]}", place, key
            )
        timed_numbers.append(dataclasses.replace(schedule, domain=schedules.Domain(**limits)))
    return tuple(timed_numbers)


def require_constant(tables: Mapping[str, Any], changing: tuple[schedules.Schedule, ...]) -> None:
    """Raise `fields.Mistake` if a constant entry contains a time-dependent number."""
    for name in (schedule.name for schedule in changing):
        for table, key, text in _texts(tables):
            if re.search(rf"\b{name}\b", text):
                place = f"[{table}] {key}" if table else key
                message = (
                    f"parameter {name} is time-dependent, but {place} takes constant numbers only: {fields.shown(text)}"
                )
                raise fields.Mistake(message, table, key)


def _texts(entries: Any, table: str = "", key: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield table, key and text of all expressions except those that may be time-dependent: units, predictions, loss
    and rules.
    """
    if isinstance(entries, str) and table:
        yield table, key, entries
    elif isinstance(entries, list):
        for entry in entries:
            yield from _texts(entry, table, key)
    elif isinstance(entries, Mapping):
        for name, entry in entries.items():
            if name not in MAY_CHANGE:
                yield from _texts(entry, table or str(name), str(name))
