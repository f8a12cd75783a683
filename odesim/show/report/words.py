"""Values, times and lists of pairs as text for readers."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any

Rows = tuple[tuple[str, str], ...]


def shown(value: Any) -> str:
    """Return a number, interval, list or mapping as text: six digits, a dash for nothing."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool | str | int):
        return str(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {shown(item)}" for name, item in value.items())
    if isinstance(value, Iterable):
        return "[" + ", ".join(shown(item) for item in value) + "]"
    return str(value)


def rows_of(content: Mapping[str, Any], prefix: str = "") -> Rows:
    """Return names and values as text, with dotted names for nested mappings."""
    rows: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, Mapping):
            rows += rows_of(value, f"{prefix}{name}.")
        else:
            rows.append((f"{prefix}{name}", shown(value)))
    return tuple(rows)


def instant(seconds: float) -> str:
    """Return a time of day in the form of the page."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
