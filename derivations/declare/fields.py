"""Reader of one entry of a declaration: a number, a word, a matrix or an expression, or an error with its place."""

import contextlib
import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from derivations.contract import UsageError, synonyms
from derivations.declare.grammar import OF_NUMBERS, Tree, read

MOST = 1e100
"""Largest number; beyond it powers are not finite."""
LONGEST = 1000
"""Largest number of characters of a text."""


class Mistake(UsageError):
    """Mistake in one entry of a declaration, with its table and key, from which its line is found.

    `nth` counts the tables of that name ([[event]]) from 1 on; 0 means any.
    """

    def __init__(self, sentence: str, table: str = "", key: str = "", nth: int = 0) -> None:
        super().__init__(sentence)
        self.table, self.key, self.nth = table, key, nth

    def line(self, text: str) -> int | None:
        """Return the line number of the entry in a TOML text, or that of its table."""
        lines = text.splitlines()
        parts = self.table.split(".") if self.table else []
        for count in range(len(parts), -1, -1):  # [a.b] key = .., then [a] b = { key = .. }, then a = { b = .. }
            table, inner = ".".join(parts[:count]), [*parts[count:], *([self.key] if self.key else [])]
            number = _line(lines, table, inner, self.nth if count == len(parts) else 0)
            if number is not None:
                return number
        return None


def _line(lines: list[str], table: str, inner: list[str], nth: int) -> int | None:
    """Return the line of the key inner[0] in a table, `inner` with dots included, or that of the head."""
    head_line, current_table, count = None, "", 0
    for number, line in enumerate(lines, 1):
        head = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
        if head:
            current_table = re.sub(r"[\"'\s]", "", head.group(1))
            count += current_table == table
        if current_table != table or (nth and count != nth):
            if not table and inner and head and current_table.split(".")[0] == inner[0]:
                return number
            continue
        if head and head_line is None:
            head_line = number
        if inner and re.match(rf"\s*[\"']?{re.escape(inner[0])}[\"']?\s*(?:=|\.)", line):
            return number
    return head_line


@contextlib.contextmanager
def entry_of(table: str, nth: int) -> Iterator[None]:
    """Context manager: every mistake in it belongs to the table of this name and number."""
    try:
        yield
    except Mistake as mistake:
        mistake.table, mistake.nth = mistake.table or table, nth
        raise
    except UsageError as error:
        raise Mistake(str(error), table, "", nth) from None


@contextlib.contextmanager
def entry_at(table: str, key: str) -> Iterator[None]:
    """Context manager: every mistake in it belongs to this key of a table."""
    try:
        yield
    except Mistake:
        raise
    except UsageError as error:
        raise Mistake(str(error), table, key) from None


def matrix(value: Any, table: str, key: str) -> tuple[tuple[float, ...], ...]:
    rows = value if isinstance(value, list) and all(isinstance(row, list) for row in value) else None
    if not rows or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise Mistake(f"{key} is a matrix such as [[1.0, 0.0], [0.0, 1.0]]", table, key)
    return tuple(tuple(real({key: item}, key, table) for item in row) for row in rows)


def matrices(value: Any, table: str, key: str) -> tuple[Any, ...]:
    """One matrix, or a list of them."""
    several = isinstance(value, list) and value and all(isinstance(x, list) and x for x in value)
    if several and all(isinstance(row, list) for x in value for row in x):
        return tuple(matrix(x, table, key) for x in value)
    return matrix(value, table, key)


def entries(tables: Mapping[str, Any], key: str, parent: str = "") -> list[Mapping[str, Any]]:
    """The tables [[key]], or [[inside.key]]."""
    key_tables = tables.get(key, [])
    if not isinstance(key_tables, list) or not all(isinstance(entry, Mapping) for entry in key_tables):
        path = f"{parent}.{key}" if parent else key
        raise Mistake(f"write [[{path}]], one table for each; in Python {key} is a list of mappings", parent, key)
    return key_tables


def table(tables: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = tables.get(key, {})
    if key == "teacher" and isinstance(value, list):
        return {}
    if not isinstance(value, Mapping):
        raise Mistake(f"{key} must be a table: write [{key}] and its entries below", "", key)
    return value


def require_known(mapping: Mapping[str, Any], keys: Collection[str], table: str) -> None:
    for key in mapping:
        if key not in keys:
            raise Mistake(f"unknown key {shown(key)}; {near_key(key, keys)}", table, key)


def near_key(word: str, keys: Collection[str]) -> str:
    """Return the key most similar to an unknown one, by synonyms and then by spelling, or all keys and their page."""
    return synonyms.key_hint(word[:60], keys) or near(word, keys, f"; {synonyms.PAGE} says what a declaration covers")


def near(word: str, words: Collection[str], suffix: str = "") -> str:
    """Return the word most similar to an unknown one, by synonyms and then by spelling, or all words and `suffix`."""
    meant = synonyms.meant(word[:60], words)
    close = [meant] if meant else difflib.get_close_matches(word[:60], list(words), 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(sorted(set(words))) or 'none'}{suffix}"


def shown(value: Any) -> str:
    """Return a given value as text for a message on one line; long values are truncated."""
    words = repr(value)
    return words if len(words) <= 80 else f"{words[:60]}... ({len(words)} characters)"


def expression(
    text: str, table: str, key: str, names: Collection[str] | None = None, entries: bool = False
) -> Tree:  # fmt: skip
    try:
        return read(text, names, entries)
    except UsageError as error:
        raise Mistake(str(error), table, key) from None


def formula(value: Any, table: str, key: str, names: Collection[str]) -> Tree:
    """Return a number, or an expression in some names and functions of numbers, as a tree."""
    if isinstance(value, str):
        tree = expression(value, table, key, names)
        wrong = [call.word for call in tree.walk() if call.kind == "call" and call.word not in (*OF_NUMBERS, "He")]
        if wrong:
            raise Mistake(f"{wrong[0]} is not a function of numbers; use {', '.join(OF_NUMBERS)}", table, key)
        return tree
    return Tree("number", value=real({key: value}, key, table))


def text(table: Mapping[str, Any], key: str, place: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise Mistake(f"{key} is a text, but {shown(value)} was given", place, key)
    if len(value) > LONGEST or not value.isprintable():
        raise Mistake(f"{key} is one line of at most {LONGEST} printable characters", place, key)
    return value


def address(table: Mapping[str, Any], key: str) -> str:
    """The address of a page, or nothing."""
    value = text(table, key, "", "")
    if value and not re.fullmatch(r"https?://[^\s<>\"]+", value):
        raise Mistake(f"{key} is an address such as https://doi.org/.., but {shown(value)} was given", "", key)
    return value


def name(table: Mapping[str, Any], key: str, place: str, default: str) -> str:
    """A name of a file or a variable."""
    value = text(table, key, place, default)
    if not re.fullmatch(r"\w[\w-]{0,59}", value):
        raise Mistake(
            f"{key} is made of at most 60 letters, digits, hyphens and underscores, but {shown(value)} was given",
            place,
            key,
        )
    return value


def choice(table: Mapping[str, Any], key: str, words: Collection[str], default: str, place: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or value not in words:
        hint = near(str(value), words)
        hint = f"; {hint}" if hint.startswith("did you") else ""
        raise Mistake(f"{key} is one of {', '.join(words)}, but {shown(value)} was given{hint}", place, key)
    return value


def real(
    table: Mapping[str, Any], key: str, place: str, default: float | None = None, *, minimum: float | None = None,
    maximum: float | None = None, above: float | None = None,
) -> float:  # fmt: skip
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        raise Mistake(f"{key} is a finite number of at most {MOST:g} in size, but {shown(value)} was given", place, key)
    for bound, holds, words in (
        (minimum, lambda b: value >= b, "at least"),
        (maximum, lambda b: value <= b, "at most"),
        (above, lambda b: value > b, "above"),
    ):
        if bound is not None and not holds(bound):
            raise Mistake(f"{key} must be {words} {bound:g}, but {shown(value)} was given", place, key)
    return float(value)


def flag(table: Mapping[str, Any], key: str, place: str) -> bool:
    """Return a value that is true or false, by default false.  Raises `Mistake` for any other."""
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise Mistake(f"{key} is true or false, but {shown(value)} was given", place, key)
    return value


def whole(table: Mapping[str, Any], key: str, place: str, default: int, maximum: int = 10_000_000) -> int:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= maximum:
        raise Mistake(f"{key} is a whole number from 1 to {maximum}, but {shown(value)} was given", place, key)
    return value
