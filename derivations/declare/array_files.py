"""Arrays that a declaration takes from files or from Python, identified by their digests.

A declaration has the name of a file, the shape of its array and the SHA-256 of its numbers. A stored run is opened
without the file. If the numbers are needed, the file is read again; a changed file raises an error.
"""

import collections
import csv
import dataclasses
import hashlib
import re
import stat
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import UsageError, npz

SUFFIXES = (".npy", ".npz", ".csv", ".txt")
KEYS = ("file", "sha256", "shape", "dimension", "gram", "classes")
"""The keys of an array in the text of a declaration."""
RECENT = 4
"""Largest number of arrays in memory, in addition to those from Python."""
NAMED = re.compile(rb"[\"']([^\"'\n]+\.(?:npy|npz|csv|txt))[\"']", re.IGNORECASE)

_recent: collections.OrderedDict[str, np.ndarray] = collections.OrderedDict()
_given: dict[str, np.ndarray] = {}
"""Arrays by digest: those that were read last, and those from Python."""


class MissingArrayError(UsageError):
    """The array of a declaration is missing, or its file has changed."""


@dataclasses.dataclass(frozen=True)
class ArrayFile:
    """Array of a declaration, identified by its content; comparisons ignore `path`.

    `dimension` is the number of coordinates of a sample that vary; constant columns do not count. Arrays from Python
    are stored in the cache (`kept_name`).
    """

    sha256: str
    shape: tuple[int, ...]
    dimension: int
    path: str = dataclasses.field(default="", compare=False, repr=False)

    @property
    def name(self) -> str:
        """Name for messages."""
        return "the array from Python" if self.of_python else Path(self.path).name

    @property
    def of_python(self) -> bool:
        """True for an array from Python."""
        return Path(self.path).name == kept_name(self.sha256)

    def table(self) -> dict[str, Any]:
        """Return the entry of a normalised declaration."""
        return {"file": self.path, "sha256": self.sha256, "shape": list(self.shape), "dimension": self.dimension}


def is_file_name(value: Any) -> bool:
    """Return True for a text with the ending of a file of numbers.

    >>> is_file_name("X.npy"), is_file_name("j^(-1.5)")
    (True, False)
    """
    return isinstance(value, str) and value.lower().endswith(SUFFIXES)


def is_record(value: Any) -> bool:
    """Return True for the entry that replaces an array in a normalised declaration."""
    return isinstance(value, Mapping) and "sha256" in value


def digest(values: np.ndarray) -> str:
    """Return the SHA-256 of the shape and the numbers of an array, in 64 hexadecimal digits."""
    checksum = hashlib.sha256(f"{values.shape}\n".encode())
    checksum.update(np.ascontiguousarray(values, float).data)
    return checksum.hexdigest()


def remember(values: np.ndarray, path: str) -> ArrayFile:
    """Return the record of an array, and keep the array in memory; `dimension` is the length of its last axis.

    If the path is a folder, it is the cache of arrays from Python, which stay in memory to the end.
    """
    sha256 = digest(values)
    if not path.endswith("/"):
        _hold(sha256, values)
        return ArrayFile(sha256, values.shape, values.shape[-1], path)
    _given[sha256] = values
    return ArrayFile(sha256, values.shape, values.shape[-1], path + kept_name(sha256))


def kept_name(sha256: str) -> str:
    """Return the name in the cache of an array that was given in Python."""
    return f"array_{sha256[:32]}.npy"


def from_table(entry: Mapping[str, Any]) -> ArrayFile:
    """Return the record of an entry of a normalised declaration.  Raises `UsageError` for any other mapping."""
    shape, dimension, sha256 = entry.get("shape"), entry.get("dimension"), entry.get("sha256")
    good = isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256) and set(entry) <= set(KEYS)
    good = good and isinstance(entry.get("file"), str) and isinstance(shape, list) and len(shape) in (1, 2)
    if not good or not all(type(n) is int and 0 < n < 1 << 40 for n in [*(shape or []), dimension]):
        raise UsageError("give the name of a file, or in Python an array, but not a table")
    return ArrayFile(str(sha256), tuple(shape or ()), int(dimension or 0), entry["file"])


def at_hand(file: ArrayFile) -> bool:
    """Return True if this process has the numbers in memory."""
    return file.sha256 in _given or file.sha256 in _recent


def values(file: ArrayFile) -> np.ndarray:
    """Return the numbers of an array. Raises `MissingArrayError` if they are missing or have changed."""
    if file.sha256 in _given:
        return _given[file.sha256]
    if file.sha256 not in _recent:
        path = Path(file.path)
        try:
            content = read(path)
        except UsageError as error:
            if file.of_python:
                raise MissingArrayError(
                    "the declaration contains an array from Python, which this process does not have: declare "
                    "the model again with the same array, or save it as .npy and use the name of the file"
                ) from None
            raise MissingArrayError(f"{error}; the declaration was made with this file") from None
        if digest(content) != file.sha256:
            raise MissingArrayError(
                f"{path} has changed since the model was declared: restore the earlier file (shape "
                f"{file.shape}, SHA-256 of the numbers {file.sha256[:12]}..), or declare the model again"
            )
        _hold(file.sha256, content)
    _recent.move_to_end(file.sha256)
    return _recent[file.sha256]


def _hold(sha256: str, values: np.ndarray) -> None:
    _recent[sha256] = values
    while len(_recent) > RECENT:
        _recent.popitem(last=False)


def stamps(folder: Path, content: bytes) -> tuple[tuple[str, int, int], ...]:
    """Return name, time of change and size of all files of numbers that the text of a declaration names.

    They are part of the key under which a declared file is cached, because another content of X.npy is another model.
    """
    entries = []
    for name in sorted({match.decode("utf-8", "replace") for match in NAMED.findall(content)}):
        try:
            status = (folder / name).stat()
            entries.append((name, status.st_mtime_ns, status.st_size))
        except (OSError, ValueError):
            entries.append((name, 0, -1))
    return tuple(entries)


def read(path: Path) -> np.ndarray:
    """Return the finite real numbers of a file (.npy, .npz with one array, .csv, .txt), as float64.

    Raises `UsageError` in one sentence for a file that is missing, damaged, too large, or holds anything else.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device would never end
            raise UsageError(f"cannot read {path}: it is not a file")
        if status.st_size > npz.LARGEST:
            raise UsageError(f"{path} has {status.st_size} bytes; a file of numbers has at most {npz.LARGEST}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an empty text, which raises an error below
            content = _content(path)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except npz.DAMAGED as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{path} is not a valid {path.suffix} file of numbers") from None
    return real(content, path.name)


def _content(path: Path) -> np.ndarray:
    kind = path.suffix.lower()
    if kind == ".npy":
        return np.load(path, allow_pickle=False)
    if kind == ".npz":
        arrays = npz.read_npz(path)
        if len(arrays) != 1:
            raise UsageError(
                f"{path} contains {len(arrays)} arrays, {', '.join(arrays) or 'none'}: save the right one as .npy"
            )
        return next(iter(arrays.values()))
    if kind == ".csv":
        return _of_csv(path)
    return np.loadtxt(path, ndmin=1)


def _of_csv(path: Path) -> np.ndarray:
    """The numbers of a table with commas, below a line of names or without one."""
    names = False
    with path.open(newline="", encoding="utf-8-sig") as file:
        for row in csv.reader(file):
            if row:
                names = not all(map(_is_number, row))
                break
    try:
        return np.loadtxt(
            path, delimiter=",", skiprows=int(names), ndmin=2, comments=None, quotechar='"', encoding="utf-8-sig"
        )
    except ValueError:
        raise UsageError(f"{path}{_fault(path, names)}") from None


def _fault(path: Path, names: bool) -> str:
    """Return the first cell of a table that is not a number, or the first line of another length, as the end of a
    message.
    """
    length = 0
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        for number, row in enumerate(row for row in reader if row):
            if number < names:
                continue
            length = length or len(row)
            for column, cell in enumerate(row, 1):
                if not _is_number(cell):
                    problem = f"got {cell[:40]!r}" if cell.strip() else "the cell is empty"
                    return f", line {reader.line_num}, column {column}: expected a number, but {problem}"
            if len(row) != length:
                return f", line {reader.line_num}: expected {length} numbers as before, but got {len(row)}"
    return "is not a table of numbers separated by commas"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def real(entries: Any, name: str) -> np.ndarray:
    """Return an array or a table of pandas as finite float64. Raises `UsageError` for anything else."""
    table = entries
    entries = np.asarray(entries)
    if entries.dtype.kind not in "biuf":
        bad_entry = _text_column(table, entries)
        raise UsageError(f"{name} must contain real numbers, but {bad_entry or f'its type is {entries.dtype}'}")
    numbers = np.ascontiguousarray(entries, float)
    if not numbers.size:
        raise UsageError(f"{name} is empty: its shape is {numbers.shape}")
    if not np.isfinite(numbers).all():
        place = np.argwhere(~np.isfinite(numbers))[0]
        template = "row {}, column {}" if numbers.ndim == 2 else "place {}"
        location = template.format(*(int(k) + 1 for k in place)) if numbers.ndim in (1, 2) else str(place.tolist())
        raise UsageError(
            f"{name} contains {numbers[tuple(place)]} in {location}: all numbers must be present and finite"
        )
    return numbers


def _text_column(table: Any, values: np.ndarray) -> str:
    """Return in words the column of the first entry that is not a number, or "" if unknown."""
    if values.dtype.kind not in "OSU" or values.ndim != 2:
        return ""
    for row, entries in enumerate(values[:1000], 1):
        for column, entry in enumerate(entries):
            if isinstance(entry, bool | int | float | np.number):
                continue
            named = list(getattr(table, "columns", []))
            label = repr(str(named[column])) if named else str(column + 1)
            return f"row {row}, column {label} is {str(entry)[:40]!r}"
    return ""
