"""Files that declare a model: their bytes, their encoding, and the tables of their TOML."""

import codecs
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from derivations.contract import UsageError

LARGEST = 1_000_000
"""Largest number of bytes of a file that declares a model."""
DOTS = 10
DOTTED = re.compile(rf"(?:\.[ \t]*[\w\"'-]+[ \t]*){{{DOTS}}}")


def content(path: Path) -> bytes:
    """Return the bytes of a file that may declare a model. Raises `UsageError` for anything but a file, or for too
    large a one.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device would never end
            raise UsageError(f"cannot read {path}: it is not a file, and a model is declared in a file")
        if status.st_size > LARGEST:
            raise UsageError(f"{path} has {status.st_size} bytes; a model is declared in a file of at most {LARGEST}")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def parsed(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and its tables. Raises `UsageError` if it is not text or not TOML."""
    raw = content(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} {encoding_of(raw, error.start)}") from None
    dotted = DOTTED.search(text)
    if dotted:  # the time of tomllib grows like a power of their number
        line = text.count("\n", 0, dotted.start()) + 1
        raise UsageError(f"{path}, line {line}: a name of {DOTS} dots and more, but tables are nested twice at most")
    try:
        return text, tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{path} is not valid TOML: its brackets are nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path} is not valid TOML: {str(error).split(';')[0]}{_unquoted(text, str(error))}") from None


def encoding_of(raw: bytes, place: int) -> str:
    """Return a sentence on bytes that are not UTF-8 from `place` on: text in another encoding, or not text.

    >>> encoding_of("unit".encode("utf-16"), 0)
    'is text in UTF-16: save it in UTF-8'
    """
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "is text in UTF-16: save it in UTF-8"
    if not re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", raw):
        line = raw.count(b"\n", 0, place) + 1
        description = f"has {raw[place : place + 1].decode('latin-1')!r} in line {line} as text in Latin-1"
        return f"{description}, or another encoding of one byte a letter: save it in UTF-8"
    return "is not a text file: a model is declared in TOML"


def _unquoted(text: str, error_text: str) -> str:
    """Return a hint for a text without quotes, or an empty text for another mistake."""
    place = re.search(r"\(at line (\d+)", error_text)
    line = text.splitlines()[int(place[1]) - 1] if place and int(place[1]) <= len(text.splitlines()) else ""
    words = re.fullmatch(r"""\s*([\w.-]+)\s*=\s*([A-Za-z][^"'#]*?)\s*(#.*)?""", line)
    return f'; write an expression or a word in quotes, {words[1]} = "{words[2][:60]}"' if words else ""
