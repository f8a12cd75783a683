"""Files of a sweep's cells, one for each, which are small and fast to write."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from derivations.contract import npz
from odesim.store.files import replacing, storing
from odesim.sweeps.swept import ABOUT

NUMBERS, PLACES = "numbers", "places"
"""Names of the entries with all arrays of a cell one after another, and with the name, type and shape of each."""


def keep(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a cell atomically.

    The operating system decides when the file reaches the disk. A power failure may damage the last cells, which are
    then computed again.
    """
    with storing(path.parent), replacing(path, synchronised=False) as file:
        np.savez(file, **packed(arrays))  # type: ignore[arg-type]


def stored(path: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of a finished cell; None if it is missing or damaged, so that it is computed again."""
    try:
        return unpacked(npz.read_npz(path))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def packed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays in one and their descriptions, because every entry of a file takes 60 us.

    >>> found = packed({"about": np.asarray("{}"), "x": np.arange(3.0), "k": np.asarray(2)})
    >>> sorted(found), {name: array.tolist() for name, array in unpacked(found).items()}
    (['about', 'numbers', 'places'], {'about': '{}', 'x': [0.0, 1.0, 2.0], 'k': 2})
    """
    others = {name: np.asarray(array) for name, array in arrays.items() if name != ABOUT}
    places = [[name, array.dtype.str, array.shape] for name, array in others.items()]
    numbers = np.frombuffer(b"".join(array.tobytes() for array in others.values()), np.uint8)
    return {ABOUT: np.asarray(arrays[ABOUT]), PLACES: np.asarray(json.dumps(places)), NUMBERS: numbers}


def unpacked(held: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays from `packed`; arrays of a file of an earlier version are unchanged.

    Raises `KeyError`, `TypeError` or `ValueError` for other input.
    """
    if ABOUT in held and not {PLACES, NUMBERS} & set(held):
        return dict(held)
    found, numbers, at = {ABOUT: held[ABOUT]}, held[NUMBERS].tobytes(), 0
    for name, dtype, shape in json.loads(str(held[PLACES])):
        count = math.prod(shape)
        found[name] = np.frombuffer(numbers, dtype, count, at).reshape(shape).copy()
        at += count * np.dtype(dtype).itemsize
    return found
