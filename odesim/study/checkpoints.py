"""Weights of other programs as the arrays of `observe`: .npz and .npy files, and checkpoints of PyTorch.

Loading a file never runs its code: PyTorch's files are loaded by `torch.load(.., weights_only=True)`, NumPy's without
pickled objects. A pickled pytree of JAX can run code when it is loaded, so it raises `UsageError`; `numpy.savez` can
store its leaves. Several files with the same arrays are snapshots in their order. An array that only one file has, such
as a teacher, is fixed.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from derivations.contract import UsageError, npz
from odesim.errors import MissingError

TORCH = (".pt", ".pth", ".bin", ".ckpt")
PICKLED = (".pkl", ".pickle", ".joblib", ".dill", ".msgpack")
TURNED = ".T"
"""Ending of a slot whose array has the inputs first, (d, unit), like the kernels of JAX's libraries."""
TIME = "time"


def read(
    files: Sequence[str | os.PathLike[str]], names: Mapping[str, str], times: Sequence[float] | None,
    vectors: set[str],
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the arrays of checkpoints by the names of slots, snapshots along the first axis.

    Args:
        files: the files, snapshots in the order of time.
        names: array in a file -> slot, followed by `TURNED` for a transposed one; empty if the names are slots.
        times: the times of the snapshots, instead of an array `time`.
        vectors: slots with one number for every unit, whose arrays (1, unit) or (unit, 1) lose an axis.

    Raises `UsageError` for a file that cannot be read or is not safe to load, an array that no file has, and files with
    different arrays; `MissingError` if PyTorch is not installed.
    """
    files_arrays = [_named(_load(Path(file)), names, vectors) for file in files]
    if not files_arrays:
        raise UsageError("observe needs at least one file of weights")
    missing = [name for name, slot in names.items() if not any(_slot(slot)[0] in arrays for arrays in files_arrays)]
    if missing:
        array_names = ", ".join(sorted(_load(Path(files[0])))) or "none"
        raise UsageError(
            f"--map names {missing[0]}, but no file has this array; {Path(files[0]).name} has {array_names}"
        )
    merged = files_arrays[0] if len(files_arrays) == 1 else _stacked(files_arrays, [Path(file).name for file in files])
    if times is not None:
        merged[TIME] = np.asarray(times, float)
    elif TIME in merged:
        merged[TIME] = merged[TIME].reshape(-1)
    return merged


def assignments(words: Sequence[str]) -> dict[str, str]:
    """Return the names of `--map ARRAY=SLOT`. Raises `UsageError` for other words.

    >>> assignments(["layer.weight=w", "kernel=w.T"])
    {'layer.weight': 'w', 'kernel': 'w.T'}
    """
    slots: dict[str, str] = {}
    for word in words:
        name, sign, slot = word.rpartition("=")
        if not sign or not name or not slot:
            raise UsageError(f"--map is ARRAY=SLOT such as layer.weight=w, but {word!r} was given")
        slots[name] = slot
    return slots


def _slot(text: str) -> tuple[str, bool]:
    """Return a slot, and True if its array is transposed."""
    return text.removesuffix(TURNED), text.endswith(TURNED)


def _named(arrays: Mapping[str, np.ndarray], names: Mapping[str, str], vectors: set[str]) -> dict[str, np.ndarray]:
    """Return the arrays of a file by slot. With `names`, other arrays are left out."""
    by_slot: dict[str, np.ndarray] = {}
    for name, values in arrays.items():
        if names and name not in names and name != TIME:
            continue
        slot, transposed = _slot(names.get(name, name))
        if slot in by_slot:
            raise UsageError(f"two arrays of one file are mapped to {slot}: map each to a different name")
        values = np.swapaxes(values, -1, -2) if transposed and values.ndim > 1 else values
        if slot in vectors and values.ndim == 2 and names and 1 in values.shape:
            values = values.reshape(-1)  # the weight of a last layer, (1, unit)
        by_slot[slot] = values
    return by_slot


def _stacked(files_arrays: list[dict[str, np.ndarray]], files: list[str]) -> dict[str, np.ndarray]:
    """Return the arrays of several files. Arrays in more than one file are snapshots, all others are fixed."""
    counts = {name: sum(name in arrays for arrays in files_arrays) for arrays in files_arrays for name in arrays}
    moving = {name for name, count in counts.items() if count > 1}
    merged = {name: values for arrays in files_arrays for name, values in arrays.items() if name not in moving}
    if not moving:
        return merged
    chosen = [k for k, arrays in enumerate(files_arrays) if moving & arrays.keys()]
    for k in chosen:
        lacking = sorted(moving - files_arrays[k].keys())
        if lacking:
            raise UsageError(
                f"{files[k]} lacks {lacking[0]}, which other files have; every snapshot must have the same arrays"
            )
    for name in moving:
        shapes = {files_arrays[k][name].shape for k in chosen}
        if len(shapes) > 1:
            raise UsageError(f"{name} has different shapes in the files: {', '.join(map(str, sorted(shapes)))}")
        merged[name] = np.array([files_arrays[k][name] for k in chosen])
    return merged


def _load(path: Path) -> dict[str, np.ndarray]:
    """The arrays of one file by name."""
    kind = path.suffix.lower()
    if kind in PICKLED:
        raise UsageError(
            f"{path.name} could run code when it is loaded, so odesim does not read it: save the arrays with "
            "numpy.savez (for a JAX pytree, its leaves by name)"
        )
    try:
        if kind in TORCH:
            return _torch(path)
        if kind == ".npy":
            return {path.stem: _single(path)}
        return npz.read_npz(path)
    except OSError as error:
        raise UsageError(f"cannot read the file {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{error}; write it with numpy.savez") from None


def _single(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        try:
            array = np.load(file, allow_pickle=False)
        except npz.DAMAGED as error:
            raise ValueError(f"{path} is not a valid .npy file of numbers") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is not a valid .npy file of numbers")
    return array


def _torch(path: Path) -> dict[str, np.ndarray]:
    """The tensors and numbers of a checkpoint of PyTorch, names of nested dictionaries joined by dots."""
    import pickle

    try:
        import torch  # pyright: ignore[reportMissingImports] - only who has such files has it
    except ImportError:
        raise MissingError(
            f"{path.name} is a checkpoint of PyTorch, which is not installed: run `pip install torch`, or "
            "save the arrays with numpy.savez"
        ) from None
    with path.open("rb") as file:
        try:
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, *npz.DAMAGED) as error:
            first = str(error).partition("\n")[0][:120]
            raise UsageError(
                f"{path.name} contains more than weights ({first}): save the state_dict by torch.save"
            ) from None
    tensors: dict[str, np.ndarray] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                add(f"{name}.{key}" if name else str(key), inner)
        elif isinstance(value, torch.Tensor):
            tensors[name or path.stem] = value.detach().to(torch.float64).numpy()
        elif isinstance(value, int | float) and not isinstance(value, bool):
            tensors[name] = np.asarray(float(value))

    add("", checkpoint)
    return tensors
