"""One entry of a declaration: read as a number, a word, a matrix or an expression, or refused with its place."""

import difflib
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from derivations.contract import UsageError
from derivations.declare.grammar import Tree, read


class Mistake(UsageError):
    """What is wrong with one entry of a declaration: its table and key, by which its line is found."""

    def __init__(self, sentence: str, table: str = "", key: str = "") -> None:
        super().__init__(sentence)
        self.table, self.key = table, key

    def line(self, text: str) -> int | None:
        """The number of the line of a TOML text that holds the entry; that of its table where it has no line."""
        found, here = None, ""
        for at, line in enumerate(text.splitlines(), 1):
            head = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
            if head:
                here = head.group(1)
            if here == self.table and head and found is None:
                found = at
            if self.key and here == self.table and re.match(rf"\s*\"?{re.escape(self.key)}\"?\s*=", line):
                return at
            if self.key and not self.table and re.match(rf"\s*\[?\[?\s*{re.escape(self.key)}\b", line):
                return at
        return found


def matrix(value: Any, table: str, key: str) -> tuple[tuple[float, ...], ...]:
    rows = value if isinstance(value, list) and all(isinstance(row, list) for row in value) else None
    if not rows or len({len(row) for row in rows}) != 1:
        raise Mistake(f"{key} is a matrix such as [[1.0, 0.0], [0.0, 1.0]]", table, key)
    return tuple(tuple(real({key: item}, key, table) for item in row) for row in rows)


def entries(tables: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    given = tables.get(key, [])
    if not isinstance(given, list) or not all(isinstance(entry, Mapping) for entry in given):
        raise Mistake(f"write [[{key}]], one table for each", "", key)
    return given


def table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    given = tables.get(key, {})
    if key == "teacher" and isinstance(given, list):
        return {}
    if not isinstance(given, Mapping):
        raise Mistake(f"{key} must be a table: write [{key}] and its entries below", "", key)
    return given


def require_known(given: Mapping[str, Any], known: Collection[str], table: str) -> None:
    for key in given:
        if key not in known:
            raise Mistake(f"unknown key {key!r}; {near(key, known)}", table, key)


def near(word: str, known: Collection[str]) -> str:
    found = difflib.get_close_matches(word, list(known), 1, 0.6)
    return f"did you mean {found[0]!r}?" if found else f"known are {', '.join(sorted(known))}"


def expression(text: str, table: str, key: str, names: Collection[str] | None = None) -> Tree:
    try:
        return read(text, names)
    except UsageError as error:
        raise Mistake(str(error), table, key) from None


def text(table: Mapping[str, Any], key: str, place: str, default: str) -> str:
    given = table.get(key, default)
    if not isinstance(given, str):
        raise Mistake(f"{key} is a text, but {given!r} was given", place, key)
    return given


def choice(table: Mapping[str, Any], key: str, words: Collection[str], default: str, place: str) -> str:
    given = table.get(key, default)
    if given not in words:
        raise Mistake(
            f"{key} is one of {', '.join(words)}, but {given!r} was given; {near(str(given), words)}", place, key
        )
    return given


def real(
    table: Mapping[str, Any], key: str, place: str, default: float | None = None, *, minimum: float | None = None,
    maximum: float | None = None, above: float | None = None,
) -> float:  # fmt: skip
    given = table.get(key, default)
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise Mistake(f"{key} is a finite number, but {given!r} was given", place, key)
    for bound, holds, words in (
        (minimum, lambda b: given >= b, "at least"),
        (maximum, lambda b: given <= b, "at most"),
        (above, lambda b: given > b, "above"),
    ):
        if bound is not None and not holds(bound):
            raise Mistake(f"{key} must be {words} {bound:g}, but {given} was given", place, key)
    return float(given)


def whole(table: Mapping[str, Any], key: str, place: str, default: int) -> int:
    given = table.get(key, default)
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= 10_000_000:
        raise Mistake(f"{key} is a whole number from 1 on, but {given!r} was given", place, key)
    return given
