"""Initial arrays of a run, from a file or by name, and the digest of their content."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import UsageError, npz


def read_arrays(
    source: str | os.PathLike[str] | Mapping[str, Any] | None,
) -> tuple[dict[str, np.ndarray] | None, str | None]:
    """Return the arrays of an .npz file or a mapping, and the digest of their content; `(None, None)` for `None`."""
    if source is None:
        return None, None
    if isinstance(source, Mapping):
        arrays = {str(name): np.asarray(values) for name, values in source.items()}
    else:
        arrays = _read_npz(Path(source))
    for name, values in arrays.items():
        if values.dtype.kind not in "biuf":
            raise UsageError(f"array {name!r} of the initial state must hold real numbers, but has {values.dtype}.")
    content = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        content.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        content.update(values.tobytes())
    return arrays, content.hexdigest()


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz file."""
    try:
        return npz.read_npz(path)
    except OSError as error:
        raise UsageError(f"cannot read the file {path} of --initial: {error.strerror or error}.") from None
    except ValueError as error:
        raise UsageError(f"{error}; write it with numpy.savez.") from None
