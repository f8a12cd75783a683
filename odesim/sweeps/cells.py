"""The files of a sweep's cells: one each, as small and as quick to write as they can be."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from derivations.contract import npz
from odesim.store.files import replacing, storing
from odesim.sweeps.swept import ABOUT

NUMBERS, PLACES = "numbers", "places"
"""All arrays of a cell one behind the other, and the name, type and shape of each."""


def keep(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a cell at once.

    It is left to the operating system when the file reaches the disk: a power cut may damage or lose the last cells,
    which are then computed again.
    """
    with storing(path.parent), replacing(path, synchronised=False) as file:
        np.savez(file, **packed(arrays))  # type: ignore[arg-type]


def stored(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a finished cell; None where there is none, or a damaged one, which is computed again."""
    try:
        return unpacked(npz.read_npz(path))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def packed(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays in one, but for what they are: every entry of a file takes 60 us.

    >>> found = packed({"about": np.asarray("{}"), "x": np.arange(3.0), "k": np.asarray(2)})
    >>> sorted(found), {name: array.tolist() for name, array in unpacked(found).items()}
    (['about', 'numbers', 'places'], {'about': '{}', 'x': [0.0, 1.0, 2.0], 'k': 2})
    """
    others = {name: np.asarray(array) for name, array in arrays.items() if name != ABOUT}
    places = [[name, array.dtype.str, array.shape] for name, array in others.items()]
    numbers = np.frombuffer(b"".join(array.tobytes() for array in others.values()), np.uint8)
    return {ABOUT: np.asarray(arrays[ABOUT]), PLACES: np.asarray(json.dumps(places)), NUMBERS: numbers}


def unpacked(held: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that `packed` took; those of a file that an earlier version wrote as they are.

    Raises `KeyError`, `TypeError` or `ValueError` for what it cannot have made.
    """
    if ABOUT in held and not {PLACES, NUMBERS} & set(held):
        return dict(held)
    found, numbers, at = {ABOUT: held[ABOUT]}, held[NUMBERS].tobytes(), 0
    for name, dtype, shape in json.loads(str(held[PLACES])):
        count = math.prod(shape)
        found[name] = np.frombuffer(numbers, dtype, count, at).reshape(shape).copy()
        at += count * np.dtype(dtype).itemsize
    return found
