"""Safe reading of untrusted array files: it executes no code, and limits the memory."""

import struct
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np

LARGEST = 1 << 33
"""Largest unpacked size of a file in bytes: larger ones are not opened (a few kilobytes can contain them)."""
DAMAGED = (
    ValueError, EOFError, KeyError, IndexError, TypeError, OverflowError, MemoryError, NotImplementedError,
    RuntimeError, SyntaxError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
"""Errors of NumPy and zipfile for files that are truncated, changed, encrypted or compressed by an unknown method."""


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file, by name.

    Raises `OSError` if the file cannot be read. Raises `ValueError` if it is damaged, is a single .npy array, contains
    Python objects, or unpacks to more than `LARGEST` bytes. Objects raise an error because loading them can execute
    code.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder) / "x.npz", a=[1.0, 2.0])
        ...     read_npz(Path(folder) / "x.npz")
        {'a': array([1., 2.])}
    """
    with path.open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise ValueError(f"{path} contains a single array, and is not an .npz file")
        try:
            with zipfile.ZipFile(file) as packed:
                size = sum(member.file_size for member in packed.infolist())
            file.seek(0)
            if size <= LARGEST:
                with np.load(file, allow_pickle=False) as held:
                    return {name: np.asarray(held[name]) for name in held.files}
        except DAMAGED as error:
            raise ValueError(f"{path} is not a valid .npz file of numbers") from error
    raise ValueError(f"{path} contains more than {LARGEST / 2**30:.0f} GiB")
