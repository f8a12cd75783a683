"""Files that the build writes into the sources only if they changed, so that Sphinx reads only changed ones again."""

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
KEPT = DOCS / "_build" / "kept"
PACKAGES = ("hermite", "derivations", "odesim", "figures")


def page(path: Path, lines: Iterable[str]) -> None:
    """Write a page, unless it is there as it should be."""
    text = "\n".join(lines).rstrip("\n") + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def only(folder: Path, names: Iterable[str], pattern: str = "*.md") -> None:
    """Remove the files of an earlier build from a folder, unless this build wrote them too."""
    kept = set(names)
    for path in folder.glob(pattern):
        if path.stem not in kept:
            path.unlink()


def sources(*modules: str) -> str:
    """A digest of all that can change a number on a page: the program, and the modules here that compute it."""
    found = hashlib.sha256()
    program = sorted(path for name in PACKAGES for path in (ROOT / name).rglob("*.py"))
    for path in [*program, *(Path(__file__).with_name(f"{name}.py") for name in modules)]:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def remembered(name: str, key: str, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """The result of `make(folder)`, stored in a folder with the files that it wrote there, until `key` changes."""
    folder = KEPT / name
    stored = folder / "kept.json"
    if stored.is_file():
        content = json.loads(stored.read_text(encoding="utf-8"))
        if content["key"] == key:
            return content["value"]
    folder.mkdir(parents=True, exist_ok=True)
    value = make(folder)
    stored.write_text(json.dumps({"key": key, "value": value}), encoding="utf-8")
    return value


def cell(text: object) -> str:
    """Text as a cell of a table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def prose(text: str) -> str:
    """Plain text as Markdown: an asterisk, as in w*, begins no emphasis."""
    return text.replace("*", "\\*")


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([cell(item) for item in row] for row in rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]
