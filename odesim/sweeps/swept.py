"""Result of a sweep: all cells as one dataset, stored with its manifest, and its summary as a table."""

import itertools
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import derivations
from odesim.request.trajectory import COUNTED, NOT_REACHED, NOT_SAVED
from odesim.store.files import CELLS, MANIFEST, SUMMARY, synchronise, write_json
from odesim.store.files import SWEEP as DATA
from odesim.store.folder import SCHEMA, manifest_of, require, write_manifest

ABOUT = "about"
"""Name of the array of a cell with the descriptions of the others, as JSON."""
CURVE = "curve_"
"""Prefix of variables that depend on time; `curve_time` has the times of every run."""
POINT = "point"
"""Dimension of the saved times of these variables; the times differ from run to run."""

if TYPE_CHECKING:
    import xarray

    from odesim.sweeps.sweep import Sweep


def joined(sweep: "Sweep", cells: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    """All cells as one dataset over the swept names; arrays whose shape differs from cell to cell are left out."""
    import xarray

    told = [json.loads(str(cell[ABOUT])) for cell in cells]
    shape = tuple(len(values) for values in sweep.over.values())
    names = tuple(sweep.over)
    variables: dict[str, Any] = {
        "outcome": (names, np.array([t["outcome"] for t in told]).reshape(shape), {"meaning": "how the run ended"})
    }
    for name in cells[0]:
        if name == ABOUT:
            continue
        dims, meaning = told[0]["variables"][name]
        found = [cell.get(name, np.empty(0)) for cell in cells]
        found = _as_long(found) if dims and dims[-1] == POINT else found
        if any(array.shape != found[0].shape for array in found):
            continue
        values = np.stack(found).reshape(shape + found[0].shape)
        variables[name] = ((*names, *dims), values, {"meaning": meaning})
    coordinates: dict[str, Any] = {
        name: np.array([_of_cell(sweep, name, k) for k in _first_cells(shape, i)]) for i, name in enumerate(names)
    }
    for dims, values, _ in variables.values():
        for dim, size in zip(dims, values.shape, strict=True):
            if dim not in coordinates and dim not in variables and dim != "replica":
                coordinates[dim] = (dim, np.arange(1, size + 1), {"meaning": COUNTED})
    attributes = {"system": derivations.reference(sweep.system), "digest": sweep.digest}
    return xarray.Dataset(variables, coordinates, attributes | _declared(sweep.system.declaration))


def _declared(declaration: str) -> dict[str, str]:
    """Return the attribute with the text of a declared model; empty for another system."""
    return {"declaration": declaration} if declaration else {}


def _as_long(curves: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return curves of runs that ended early, or have fewer saved times, filled with NaN to the length of the
    longest.
    """
    longest = max(curve.shape[-1] for curve in curves)
    if all(curve.shape[-1] == longest for curve in curves):
        return list(curves)
    return [
        np.pad(
            curve.astype(float), [(0, 0)] * (curve.ndim - 1) + [(0, longest - curve.shape[-1])], constant_values=np.nan
        )
        for curve in curves
    ]


def curves(cell: "xarray.Dataset") -> "xarray.Dataset":
    """Return the time-dependent variables of one cell of a sweep, named as in a run; empty if the sweep stored no
    curves.
    """
    kept = {str(name): str(name).removeprefix(CURVE) for name in cell if str(name).startswith(CURVE)}
    if not kept:
        return cell[[]]
    found = cell[list(kept)].reset_coords(drop=True).rename({f"{CURVE}time": "times", POINT: "time"})
    good = np.isfinite(found["times"].values)
    clock = found["times"].attrs
    found = found.isel(time=good).assign_coords(time=("time", found["times"].values[good], clock)).drop_vars("times")
    return found.rename({name: short for name, short in kept.items() if name in found})


def _first_cells(shape: tuple[int, ...], axis: int) -> range:
    """Return the places of the cells along one axis, at the first value of every other."""
    stride = int(np.prod(shape[axis + 1 :]))
    return range(0, shape[axis] * stride, stride)


def _of_cell(sweep: "Sweep", name: str, k: int) -> Any:
    """Return the value of a swept name in cell k; as text if NumPy cannot store it as one item."""
    value = sweep.cells[k].value(name)
    return value if isinstance(value, int | float | str) else json.dumps(value)


def save(sweep: "Sweep", data: "xarray.Dataset", folder: Path, *, keep: bool = False) -> None:
    """Replace `folder` by dataset, summary and manifest of a finished sweep. Its cells are removed unless `keep`."""
    from odesim.store.manifest import file_hashes, versions
    from odesim.store.write import installed

    with installed(folder) as staging:
        # Made in memory and written at once: the HDF5 library crashes at exit after a disk became full under it.
        stored = data.drop_attrs(deep=False).assign_attrs({k: v for k, v in data.attrs.items() if k != "declaration"})
        (staging / DATA).write_bytes(bytes(stored.to_netcdf(engine="h5netcdf")))
        synchronise(staging / DATA)
        write_json(staging / SUMMARY, {"cells": data["outcome"].size, "outcomes": counts(data)})
        told = {
            "schema": SCHEMA,
            "kind": "sweep",
            "digest": sweep.digest,
            "request": sweep.request(),
            **_declared(sweep.system.declaration),
            "seed": sweep.seed,
        }
        cases = [cell.request.request() for cell in sweep.cells[:1]]
        files = file_hashes(staging)
        write_manifest(staging / MANIFEST, {**told, "first_cell": cases[0], "versions": versions(), "files": files})
        if keep and (folder / CELLS).is_dir():
            shutil.copytree(folder / CELLS, staging / CELLS, copy_function=_linked)
        synchronise(staging)
    if not keep:
        clear(folder)  # if files were moved one by one


def _linked(source: str, target: str) -> None:
    """Link a file under a second name, or copy it if the file system does not support this."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def clear(folder: Path) -> None:
    """Remove the files of finished cells."""
    shutil.rmtree(folder / CELLS, ignore_errors=True)


def load(folder: Path) -> "xarray.Dataset":
    """Return the dataset of a finished sweep, read into memory after verifying its files."""
    return read(folder)[1]


def read(folder: Path) -> tuple[dict[str, Any], "xarray.Dataset"]:
    """Return manifest and dataset of a finished sweep, after verifying its files once."""
    import xarray

    require(folder, "sweep")
    manifest, data = manifest_of(folder), xarray.load_dataset(folder / DATA, engine="h5netcdf")
    return manifest, data.assign_attrs(_declared(manifest.get("declaration", "")))


def counts(data: "xarray.Dataset") -> dict[str, int]:
    """Return the number of cells for each outcome."""
    kinds, numbers = np.unique(data["outcome"].values.astype(str), return_counts=True)
    return {str(kind): int(number) for kind, number in zip(kinds, numbers, strict=True)}


def headlines(data: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """Return the numbers of which every cell has one, by name: hitting times first, and each quantity once.

    For a hitting time with several entries (units, teachers, replicas) the number is the first time, called first_NAME.
    """
    cells = set(data["outcome"].dims)
    hits = dict(_first(name, values, cells) for name, values in hitting_times(data).items())
    others = {str(name): v for name, v in data.data_vars.items() if set(v.dims) == cells and v.dtype.kind == "f"}
    return hits | {name: v for name, v in others.items() if name not in hits and not _repeated(data, v, hits)}


def hitting_times(data: "xarray.Dataset") -> "dict[str, xarray.DataArray]":
    """The hitting times of a sweep by name, with all their entries."""
    read = f"{CURVE}time" in data  # SGD of two saved times has no hitting time between them
    return {str(name): values for name, values in data.data_vars.items() if is_hitting_time(values, read)}


def not_reached(data: "xarray.Dataset") -> list[str]:
    """Return a sentence for each hitting time that is infinite in some cells, with the number of these cells."""
    cells = set(data["outcome"].dims)
    firsts = dict(_first(name, values, cells) for name, values in hitting_times(data).items())
    infinite = {name: int(np.isinf(values).sum()) for name, values in firsts.items()}
    return [f"{name} is not reached in {n} of {data['outcome'].size} cells" for name, n in infinite.items() if n]


def is_hitting_time(values: "xarray.DataArray", saved: bool = True) -> bool:
    """Return True for a variable of first times, infinite for no crossing; with `saved`, of first saved times."""
    endings = (NOT_REACHED, NOT_SAVED) if saved else (NOT_REACHED,)
    return str(values.attrs.get("meaning", "")).endswith(endings)


def _first(name: str, values: "xarray.DataArray", cells: set[Any]) -> "tuple[str, xarray.DataArray]":
    """Return a hitting time with one number in every cell, the smallest of its entries, and its name."""
    others = [dim for dim in values.dims if dim not in cells]
    if all(values.sizes[dim] == 1 for dim in others):
        return name, values.isel(dict.fromkeys(others, 0))
    words = f"{values.attrs['meaning']}; the first of all entries"
    return f"first_{name}", values.min(others).assign_attrs(meaning=words)


def _repeated(data: "xarray.Dataset", values: "xarray.DataArray", hits: "Mapping[str, xarray.DataArray]") -> bool:
    """Return True for a number of a summary that repeats an earlier column: loss_final is final_loss, or a hitting
    time.
    """
    name = str(values.name)
    last = data.get(f"final_{name.removesuffix('_final')}") if name.endswith("_final") else None
    earlier = [*hits.values(), *([] if last is None else [last])]
    return any(
        set(other.dims) == set(values.dims) and bool((other == values).all() and np.isfinite(values).any())
        for other in earlier
    )


def records(data: "xarray.Dataset") -> list[dict[str, Any]]:
    """Return every cell with its place in the grid, its outcome and its headline numbers, as plain data."""
    names, shown = list(map(str, data["outcome"].dims)), headlines(data)
    found = []
    for place in itertools.product(*(range(data.sizes[name]) for name in names)):
        at = dict(zip(names, place, strict=True))
        own = data[["outcome"]].isel(at)
        numbers = {name: values.isel(at).item() for name, values in shown.items()}
        found.append({**{name: own[name].item() for name in (*names, "outcome")}, **numbers})
    return found


def table(data: "xarray.Dataset") -> tuple[list[str], list[list[Any]], str]:
    """Return header, rows, and the meaning of the numbers, with one row for every point of the grid.

    If seeds are swept, a number is the median over them with the smallest and the largest.
    """
    names = [str(name) for name in data["outcome"].dims if name != "seed"]
    shown = headlines(data)
    seeds = data.sizes["seed"] if "seed" in data["outcome"].dims else 0
    rows = []
    for place in itertools.product(*(range(data.sizes[name]) for name in names)):
        at = dict(zip(names, place, strict=True))
        numbers = [_summarised(np.atleast_1d(values.isel(at).values)) for values in shown.values()]
        rows.append([*(data[name].isel({name: at[name]}).item() for name in names), *numbers])
    return [*names, *shown], rows, f"median [least, greatest] over {seeds} seeds" if seeds > 1 else ""


def _summarised(values: np.ndarray) -> Any:
    """Return one number as it is, several as "median [least, greatest]"; missing ones are counted."""
    values = values.astype(float)
    if values.size == 1:
        return float(values[0])
    known = values[~np.isnan(values)]
    if not known.size:
        return "-"
    text = f"{np.median(known):.6g} [{known.min():.6g}, {known.max():.6g}]"
    return text if known.size == values.size else f"{text} ({values.size - known.size} missing)"
