"""The tables [[event]] of a declaration: hitting times to locate."""

from collections.abc import Mapping
from typing import Any

from derivations.declare import fields
from derivations.declare.declaration import Event

KEYS = ("name", "of", "threshold", "direction", "absolute")


def events(tables: Mapping[str, Any]) -> tuple[Event, ...]:
    """Return the hitting times of [[event]]. Raises `fields.Mistake` for an invalid one."""
    declared_events = []
    for number, entry in enumerate(fields.entries(tables, "event"), 1):
        with fields.entry_of("event", number):
            declared_events.append(_event(entry))
    return tuple(declared_events)


def _event(entry: Mapping[str, Any]) -> Event:
    fields.require_known(entry, KEYS, "event")
    if not isinstance(entry.get("of"), str):
        raise fields.Mistake("an event needs of = 'M_ww', the order parameter that it watches", "event", "of")
    name = fields.name(entry, "name", "event", f"T_{entry['of']}")
    direction = entry.get("direction", 1)
    if type(direction) is not int or direction not in (1, -1):
        raise fields.Mistake(
            f"direction is 1 (upwards) or -1, but {fields.shown(direction)} was given", "event", "direction"
        )
    absolute = fields.flag(entry, "absolute", "event")
    return Event(name, entry["of"], fields.real(entry, "threshold", "event", 0.5), direction, absolute)
