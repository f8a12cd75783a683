"""Schedules that are given with a run: an expression in the time, or pairs, instead of a number.

    -p step="1/(1 + t)"    is    [training] step = "1/(1 + t)"

A parameter is one number for all times. A time-dependent value is part of the equations, so that a run with it is a run
of another declaration. This module makes that declaration, and the run stores its text. Its claims are left out,
because they concern the original model.
"""

import json
import tomllib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import tomli_w

from derivations.contract import System, UsageError
from derivations.declare import written_systems
from derivations.declare.declaration import Declaration
from derivations.declare.stage_parameters import named

TABLES = {"step": "training", "batch": "training", "decay": "training", "noise": "teacher"}
"""Values of training that may be time-dependent, and their tables in a declaration."""
RATE = "rate_"
"""Prefix of a factor of the step in the name of its parameter."""
LEFT_OUT = "claim"


def restate(system: System, parameters: Mapping[str, Any]) -> tuple[System, dict[str, Any]]:
    """Return the system and the parameters of a request, schedules among the parameters moved into the declaration.

    A request without schedules is returned unchanged.

    Arguments:
        system: A declared model.
        parameters: Parameters by name, as strings or values.

    Returns:
        The system with the schedules in it, and the parameters: `None`, "as declared", for each schedule.

    Raises:
        UsageError: A schedule is invalid in the declaration.

    Example:
        >>> from derivations.declare import reading, system
        >>> tables = {"student": {"unit": "w"}, "teacher": {}, "training": {"limit": "online"}}
        >>> linear = system.system(reading.declaration(tables))
        >>> changed, given = restate(linear, {"step": "1/(1 + t)", "d": 100})
        >>> changed.parameters.declaration.schedules[0].text, given
        ('1/(1 + t)', {'step': None, 'd': 100})
    """
    declared: Declaration = system.parameters.declaration  # type: ignore[attr-defined]
    values = {name: _schedule(value, name) for name, value in parameters.items() if entry(declared, name)}
    values = {name: value for name, value in values.items() if value is not None}
    if not values:
        return system, dict(parameters)
    try:
        return with_schedules(system, values), {**parameters, **dict.fromkeys(values)}
    except UsageError as mistake:
        raise UsageError(f"{' and '.join(f'parameter {name}' for name in values)}: {mistake}") from None


def with_schedules(system: System, values: Mapping[str, Any]) -> System:
    """Return a model with schedules instead of numbers; `values` has expressions or pairs by parameter.

    Raises `UsageError` for values that are invalid in the declaration.
    """
    return written_systems.of_text(text(system, values), "")


def text(system: System, values: Mapping[str, Any]) -> str:
    """Return the declaration of a model with schedules instead of numbers, as TOML."""
    declared: Declaration = system.parameters.declaration  # type: ignore[attr-defined]
    tables = tomllib.loads(system.declaration)
    tables.pop(LEFT_OUT, None)
    for name, value in values.items():
        *path, key = entry(declared, name)
        place: Any = tables
        for step in path:
            if step == "rates" and not isinstance(place.get(step), Mapping):  # one value for all times
                place[step] = dict.fromkeys([word for word, _ in declared.rates], place[step])
            place = place[step] if isinstance(step, int) else place.setdefault(step, {})
        if isinstance(place.get(key), Mapping):  # a number of the user with its meaning and bounds
            place, key = place[key], "default"
        place[key] = value
    return tomli_w.dumps(tables)


def entry(declared: Declaration, name: str) -> tuple[Any, ...]:
    """Return the keys of the entry of a parameter in a declaration; () if it cannot be time-dependent.

    A shared number with a meaning or bounds is a table, whose entry is called "default".
    """
    for number, stage in enumerate(declared.stages):
        for stage_parameter in stage.own:
            if named(stage.stage, stage_parameter) == name:
                return ("stage", number, *_key(stage, stage_parameter))
    if name in declared.names:
        return ("parameters", name)
    key = _key(declared, name)
    return (TABLES.get(name, "training"), *key) if key else ()


def _key(declared: Declaration, name: str) -> tuple[str, ...]:
    """Return the key of a value of training within its table; () for other parameters."""
    if name in TABLES:
        return (name,)
    words = [word for word, _ in declared.rates]
    return ("rates", name.removeprefix(RATE)) if name.startswith(RATE) and name.removeprefix(RATE) in words else ()


def _schedule(value: Any, name: str) -> Any:
    """Return the expression or the list of pairs in a value of a parameter; None for a number or `None`."""
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if getattr(value, "free_symbols", None):  # an expression of SymPy
        return str(value)
    if isinstance(value, list | tuple):
        return [list(pair) if isinstance(pair, list | tuple) else pair for pair in value]
    if not isinstance(value, str) or value.strip().lower() == "none" or _is_number(value):
        return None
    if not value.strip().startswith("["):
        return value.strip()
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        form = '[[0, 1.0], [50, "0.2/(1 + t/10)"]]'
        raise UsageError(f"parameter {name} is a number, an expression in t, or pairs such as {form}") from None


def _is_number(word: str) -> bool:
    """Return True for a word that parameters read as a number, such as 1e-3 or 1/3."""
    try:
        Fraction(word.strip()) if "/" in word else float(word)
    except (ValueError, ZeroDivisionError):
        return False
    return True
