"""Systems of declarations that are text: a file, or the normalised text of a stored run."""

import functools
import tomllib
from pathlib import Path

from derivations.contract import System, UsageError
from derivations.declare import array_files, reading
from derivations.declare.declaration import Declaration
from derivations.declare.system import system


def of_file(path: Path, content: bytes, reference: str) -> System:
    """Return the system of a declaration file, under the name `reference`.

    `content` is the text of the file. It is part of the key of the cache, and so are the times of change of the arrays
    that the text names. Edited files are therefore read again.
    """
    return _of_file(path, content, reference, array_files.stamps(path.parent, content))


@functools.cache
def _of_file(path: Path, content: bytes, reference: str, stamps: tuple[tuple[str, int, int], ...]) -> System:
    return system(reading.from_file(path), reference)


@functools.lru_cache(maxsize=256)
def of_text(text: str, reference: str) -> System:
    """Return the system of a normalised declaration (`Declaration.text`), under the name `reference`.

    Raises `UsageError` for a text that declares no model.
    """
    return system(stated(text), reference)


def stated(text: str) -> Declaration:
    """Return the declaration of a normalised text (`Declaration.text`).  Raises `UsageError` for any other text."""
    try:
        return reading.declaration(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the stored declaration is not valid TOML: {error}") from None
