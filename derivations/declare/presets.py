"""Presets of a declaration: named sets of numbers with a description, chosen by `--preset`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Declaration, Preset

KEYS = ("name", "meaning", "parameters")


def presets(tables: Mapping[str, Any]) -> tuple[Preset, ...]:
    """Return the [[preset]] tables. Raises `fields.Mistake` for an invalid one, or a repeated name."""
    found: list[Preset] = []
    for number, entry in enumerate(fields.entries(tables, "preset"), 1):
        with fields.entry_of("preset", number):
            found.append(_preset(entry))
            if len({preset.name for preset in found}) != len(found):
                raise fields.Mistake(f"two presets are called {found[-1].name}", "preset", "name")
    return tuple(found)


def _preset(entry: Mapping[str, Any]) -> Preset:
    fields.require_known(entry, KEYS, "preset")
    if "name" not in entry:
        raise fields.Mistake("a preset needs a name = '..'", "preset")
    given = entry.get("parameters")
    if not isinstance(given, Mapping) or not given:
        raise fields.Mistake("a preset needs parameters = {..}, the numbers that it sets", "preset", "parameters")
    for word, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise fields.Mistake(
                f"{word} takes a number or a word, but {fields.shown(value)} was given", "preset", "parameters"
            )
    name = fields.name(entry, "name", "preset", "")
    return Preset(name, fields.text(entry, "meaning", "preset", ""), tuple(given.items()))


def require(made: Declaration, parameters: Any) -> None:
    """Raise `fields.Mistake` if a preset contains a name that is not a parameter of the model."""
    known = [field.name for field in dataclasses.fields(parameters)]
    for number, preset in enumerate(made.presets, 1):
        for word, _ in preset.parameters:
            if word not in known:
                raise fields.Mistake(
                    f"preset {preset.name} names {fields.shown(word)}, which is not a parameter of the model; "
                    f"{fields.near(word, known)}",
                    "preset",
                    "parameters",
                    number,
                )
