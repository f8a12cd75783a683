"""Presets of a declaration: named sets of numbers with a description, chosen by `--preset`."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Declaration, Preset

KEYS = ("name", "meaning", "parameters")


def presets(tables: Mapping[str, Any]) -> tuple[Preset, ...]:
    """Return the [[preset]] tables. Raises `fields.Mistake` for an invalid one, or a repeated name."""
    declared_presets: list[Preset] = []
    for number, entry in enumerate(fields.entries(tables, "preset"), 1):
        with fields.entry_of("preset", number):
            declared_presets.append(_preset(entry))
            if len({preset.name for preset in declared_presets}) != len(declared_presets):
                raise fields.Mistake(f"two presets are called {declared_presets[-1].name}", "preset", "name")
    return tuple(declared_presets)


def _preset(entry: Mapping[str, Any]) -> Preset:
    fields.require_known(entry, KEYS, "preset")
    if "name" not in entry:
        raise fields.Mistake("a preset needs a name = '..'", "preset")
    parameters = entry.get("parameters")
    if not isinstance(parameters, Mapping) or not parameters:
        raise fields.Mistake("a preset needs parameters = {..}, the numbers that it sets", "preset", "parameters")
    for word, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise fields.Mistake(
                f"{word} takes a number or a word, but {fields.shown(value)} was given", "preset", "parameters"
            )
    name = fields.name(entry, "name", "preset", "")
    return Preset(name, fields.text(entry, "meaning", "preset", ""), tuple(parameters.items()))


def require(declared: Declaration, parameters: Any) -> None:
    """Raise `fields.Mistake` if a preset contains a name that is not a parameter of the model."""
    names = [field.name for field in dataclasses.fields(parameters)]
    for number, preset in enumerate(declared.presets, 1):
        for word, _ in preset.parameters:
            if word not in names:
                raise fields.Mistake(
                    f"preset {preset.name} names {fields.shown(word)}, which is not a parameter of the model; "
                    f"{fields.near(word, names)}",
                    "preset",
                    "parameters",
                    number,
                )
