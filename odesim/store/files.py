"""File operations of the store: JSON, hashes, and atomic replacement."""

import contextlib
import errno
import hashlib
import json
import math
import numbers
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from odesim.errors import StorageError

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
TRAJECTORY = "trajectory.nc"
CHECKPOINT = "checkpoint.npz"
STAGES = "stages"
SWEEP = "sweep.nc"
CELLS = "cells"
VERDICTS = "verdicts.json"
LEDGER = "verdicts.jsonl"
EVIDENCE = "evidence.json"
FIGURES = "figures.json"
ANSWER = "answer.nc"
TABLES = "tables"
JUDGED = "verdicts"
BESIDE = "comparison"
CHECK, CHECK_PAGE = "check.json", "check.html"
"""Files of a check; its verdicts and its comparison are in subfolders."""


def is_ours(name: str) -> bool:
    """Return True if odesim writes files of this name into a run folder."""
    ours = (
        MANIFEST, SUMMARY, TRAJECTORY, CHECKPOINT, STAGES, SWEEP, CELLS, VERDICTS, LEDGER, EVIDENCE, ANSWER, TABLES,
        JUDGED, BESIDE, CHECK, CHECK_PAGE,
    )  # fmt: skip
    written = name in ours or name.endswith((".png", ".svg", ".partial"))
    return written or (name.startswith(".") and (".partial-" in name or name.endswith(".lock")))


def jsonable(value: Any) -> Any:
    """Convert a value to types of JSON: arrays become lists, and numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, numbers.Real):
        return float(value) if math.isfinite(value) else None
    return str(value)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file atomically: under a temporary name, synchronised, then renamed."""
    text = json.dumps(jsonable(content), indent=2, ensure_ascii=False, allow_nan=False)
    with replacing(path) as file:
        file.write(f"{text}\n".encode())


@contextlib.contextmanager
def replacing(path: Path, synchronised: bool = True) -> Iterator[IO[bytes]]:
    """Context manager with a file for writing that replaces `path` at the end, or is removed after an error.

    A `synchronised` file is on the disk at the end, and survives a power failure.
    """
    temporary = path.with_name(path.name + ".partial")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            if synchronised:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def synchronise(path: Path) -> None:
    """Ask the operating system to write a file or folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot synchronise a folder
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Context manager that converts errors of the operating system while `folder` is written to `StorageError`."""
    try:
        yield
    except StorageError:
        raise
    except (OSError, RuntimeError) as error:  # HDF5 reports a full disk as either
        full = "No space left" in str(error) or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if isinstance(error, RuntimeError) and not full:
            raise
        if full:
            raise StorageError(
                f"the disk is full: {folder} could not be written, and incomplete files were removed; free some "
                "space or choose another --out."
            ) from error
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"{folder} could not be written ({reason}), and incomplete files were removed; try another --out."
        ) from error
