"""The table [start] of a declaration: norms, overlaps, readouts, and explicit order parameters."""

import re
from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Group, Start


def start(table: Mapping[str, Any], students: tuple[Group, ...], weights: str) -> Start:
    """Norms by parameter name (`norm`, or `norm_v` with several slots), overlap, readout, and explicit arrays."""
    slots = [(group, slot) for group in students for slot in group.slots]
    norm_entry = table.get("norm", 1.0 if weights != "free" else 0.5)
    norms = []
    for group, slot in slots:
        value = norm_entry
        if isinstance(norm_entry, Mapping):
            fields.require_known(norm_entry, [word for g, s in slots for word in (s, g.named(s))], "start")
            value = norm_entry.get(group.named(slot), norm_entry.get(slot, 1.0))
        norms.append((norm_name(students, group, slot), fields.real({"norm": value}, "norm", "start", above=0.0)))
    overlap = table.get("overlap", "random")
    if overlap != "random":
        overlap = fields.real(table, "overlap", "start", minimum=-1.0, maximum=1.0)
    if "a" in table and not any(group.trained_readouts for group in students):
        raise fields.Mistake("a is the initial value of trained readouts, but no output is 'trained'", "start", "a")
    arrays, listed_keys = _readouts(table, students)
    readout = 1.0 if "a" in listed_keys else fields.real(table, "a", "start", 1.0)
    single = _of_heads(table, students, listed_keys)
    readouts = [name for g in students if g.heads for word in g.trained_readouts for name in (word, g.named(word))]
    known_keys = ("norm", "overlap", "a", *listed_keys, *readouts)
    array_entries = {key: value for key, value in table.items() if key not in known_keys}
    scalars = {word for group in students for word in group.scalars}
    for key, value in array_entries.items():
        if key in scalars:
            raise fields.Mistake(
                f"{key} starts at its default in [parameters] for every unit; give other initial values by --initial",
                "start",
                key,
            )
        if not re.fullmatch(r"(\w+_)?[QMP]_[a-z0-9]+", key):
            raise fields.Mistake(
                f"unknown key {key!r}; {fields.near_key(key, ['norm', 'overlap', 'a', *readouts, 'Q_ww', 'M_ww'])}",
                "start",
                key,
            )
        arrays.append((key, fields.matrices(value, "start", key)))
    return Start(tuple(norms), None if overlap == "random" else overlap, readout, tuple(arrays), single)


def _of_heads(
    table: Mapping[str, Any], students: tuple[Group, ...], listed_keys: list[str]
) -> tuple[tuple[str, float], ...]:  # fmt: skip
    """The initial values of all readouts of a head, by the name of the readouts in a run."""
    values = []
    for group in students:
        for word in group.trained_readouts if group.heads else ():
            name, keys = group.named(word), [key for key in (group.named(word), word) if key in table]
            if keys and name not in listed_keys and isinstance(table[keys[0]], list):
                message = f"{word} is a number for all groups; write {name} for a list of one"
                raise fields.Mistake(message, "start", word)
            if keys and name not in listed_keys:
                values.append((name, fields.real(table, keys[0], "start")))
    return tuple(values)


def _readouts(table: Mapping[str, Any], students: tuple[Group, ...]) -> tuple[list[tuple[str, Any]], list[str]]:
    """The trained readouts that [start] lists one by one, by their names in a run, and the keys for them."""
    arrays, keys = [], []
    trained_readouts = [(group, group.named(word)) for group in students for word in group.trained_readouts]
    for group, name in trained_readouts:
        if not isinstance(table.get(name), list):
            continue
        values = [fields.real({name: value}, name, "start") for value in table[name]]
        if len(values) != group.units:
            raise fields.Mistake(f"{name} has {len(values)} numbers, but there are {group.units} units", "start", name)
        arrays.append((name, tuple(values)))
        keys.append(name)
    return arrays, keys


def norm_name(students: tuple[Group, ...], group: Group, slot: str) -> str:
    """The parameter with the norm of a slot: `norm` if there is only one slot."""
    single_slot = sum(len(g.slots) for g in students) == 1
    return "norm" if single_slot else group.named(f"norm_{slot}")
