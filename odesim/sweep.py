"""One request over a grid of parameters and seeds: cells computed by many processes, kept one by one, then joined."""

import collections
import concurrent.futures
import dataclasses
import functools
import importlib
import itertools
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import System, UsageError
from odesim.case import Case, digest_of, find_system, plain
from odesim.errors import MissingError
from odesim.parse import expression, nearest
from odesim.store.files import CELLS, MANIFEST, SUMMARY, storing, synchronise, write_json
from odesim.store.files import SWEEP as DATA
from odesim.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray

    from odesim.integration import Problem

NAMED = ("seed",)
"""What may be swept beside the parameters of the system."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One run of a sweep: its case, and the words it is built of, which another process can be sent."""

    case: Case
    words: tuple[str, dict[str, Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """A grid of runs: `over` maps names to their values, `request` is what all cells have in common.

    `until` may be an expression in the parameters of a cell, such as `2*sqrt(d)`.
    """

    system: System
    over: Mapping[str, tuple[Any, ...]]
    parameters: Mapping[str, Any]
    until: str | float | None
    options: Mapping[str, Any]

    @classmethod
    def build(
        cls,
        system: str | System,
        over: Mapping[str, Sequence[Any]],
        parameters: Mapping[str, Any] | None = None,
        *,
        until: str | float | None = None,
        **options: Any,
    ) -> "Sweep":
        """Check a sweep: every cell is resolved once.  Raises `UsageError` for anything that one of them refuses."""
        chosen = find_system(system) if isinstance(system, str) else system
        given = dict(parameters or {})
        known = [field.name for field in dataclasses.fields(chosen.parameters)]
        for name, values in over.items():
            if name not in (*known, *NAMED):
                raise UsageError(f"--over: {chosen.name} has no parameter {name!r}; {nearest(name, [*known, *NAMED])}")
            if name in given or (name == "seed" and options.get("seed") is not None):
                raise UsageError(f"{name} is swept and fixed at the same time; give it once")
            if len(set(map(str, values))) != len(values) or not values:
                raise UsageError(f"--over {name} needs different values, at least one")
        if not over:
            raise UsageError("a sweep needs at least one --over KEY=v1,v2,..")
        fixed = {name: value for name, value in options.items() if value is not None}
        sweep = cls(chosen, {name: tuple(values) for name, values in over.items()}, given, until, fixed)
        _ = sweep.cells
        return sweep

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """All cells, the last name of `over` running fastest."""
        return [
            self._cell(dict(zip(self.over, values, strict=True))) for values in itertools.product(*self.over.values())
        ]

    def _cell(self, values: Mapping[str, Any]) -> Cell:
        seed = {"seed": values["seed"]} if "seed" in values else {}
        parameters = {**self.parameters, **{k: v for k, v in values.items() if k not in NAMED}}
        options = {**self.options, **seed}
        case = Case.build(self.system, parameters, **options)
        if self.until is not None:
            numbers = {f.name: getattr(case.parameters, f.name) for f in dataclasses.fields(case.parameters)}
            options["until"] = expression(self.until, numbers, "--until")
            case = Case.build(self.system, parameters, **options)
        return Cell(case, (self.system.name, parameters, options))

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer, as plain data."""
        return {
            "method": "sweep",
            "over": {name: plain(list(values)) for name, values in self.over.items()},
            "cells": [cell.case.digest for cell in self.cells],
        }

    @property
    def digest(self) -> str:
        """Twelve hexadecimal characters that name the request."""
        return digest_of(self.request())

    @property
    def seed(self) -> int:
        """The seed of the cells, or of the first of them where seeds are swept."""
        return self.cells[0].case.seed


def compute(system: str, parameters: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """One cell, ready to be stored: what its trajectory ends with, and `about`, the rest as JSON."""
    from odesim import integration

    return condensed(integration.solve(Case.build(system, parameters, **options)))


def condensed(run: Trajectory) -> dict[str, np.ndarray]:
    """The last state, the extras and the summary of a trajectory as arrays; `about` tells what they are."""
    arrays, about = {}, {}
    for name, variable in run.state.items():
        arrays[f"final_{name}"] = np.asarray(variable)[-1]
        about[f"final_{name}"] = [list(variable.dims[1:]), f"{variable.meaning}, at the end"]
    for name, variable in run.extras.items():
        arrays[name], about[name] = np.asarray(variable), [list(variable.dims), variable.meaning]
    for name, number in run.summary.items():
        if isinstance(number, int | float | np.number) and not isinstance(number, bool):
            arrays.setdefault(name, np.asarray(float(number)))
            about.setdefault(name, [[], "headline number of the run"])
    arrays["outcome_time"] = np.asarray(run.outcome.time)
    about["outcome_time"] = [[], "time at which the run ended"]
    arrays["evaluations"] = np.asarray(float(run.statistics.get("evaluations", np.nan)))
    about["evaluations"] = [[], "right-hand sides evaluated"]
    told = {"variables": about, "outcome": run.outcome.kind, "reason": run.outcome.reason}
    return {**arrays, "about": np.asarray(json.dumps(told))}


def executor(scheduler: str, workers: int) -> Any:
    """Processes of this machine for "local", otherwise those of the dask scheduler at an address.

    Raises `MissingError` where the extra `cluster` is not installed or nobody answers at the address.
    """
    if scheduler == "local":
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        return concurrent.futures.ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts)
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise MissingError("--scheduler ADDRESS needs dask: install odesim[cluster].") from None
    try:
        return distributed.Client(scheduler, timeout="10s").get_executor()
    except (OSError, ValueError) as error:
        raise MissingError(f"no dask scheduler answers at {scheduler} ({error}).") from None


def _ignore_interrupts() -> None:
    """Ctrl-C is for the parent, which sends its workers home."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(
    sweep: Sweep,
    folder: Path,
    *,
    scheduler: str = "local",
    workers: int = 1,
    report: Callable[[int, int], None] | None = None,
) -> "xarray.Dataset":
    """Compute the cells that `folder` lacks, the longest first, and join all of them.

    Every finished cell is a file of its own, named by the digest of its case: a kill loses what was in progress.
    With "local" and `backend="jax"`, flows that share equations, sizes and a solver of diffrax are integrated together
    in this process, by one program on JAX's device (`odesim.ensemble`), to the tolerances of single runs.  All other
    cells are computed one by one; so are those of a dask scheduler, and those of several workers where JAX has but the
    CPU, on which one program for many cells gains less than a second core.
    """
    store = folder / CELLS
    store.mkdir(parents=True, exist_ok=True)
    missing = [cell for cell in sweep.cells if not _path(store, cell).is_file()]
    missing.sort(key=lambda cell: -cell.case.until)
    done, fresh = len(sweep.cells) - len(missing), {}
    for cell, arrays in _results(missing, scheduler, workers):
        _keep(_path(store, cell), arrays)
        fresh[cell.case.digest] = arrays
        done += 1
        if report is not None:
            report(done, len(sweep.cells))
    # Reading a file takes a millisecond, and all cells are needed in memory anyway.
    return joined(sweep, [fresh.get(cell.case.digest) or stored(_path(store, cell)) for cell in sweep.cells])


def _results(cells: Sequence[Cell], scheduler: str, workers: int) -> Iterator[tuple[Cell, dict[str, np.ndarray]]]:
    if scheduler == "local" and any(cell.case.backend == "jax" for cell in cells) and (workers <= 1 or _accelerated()):
        lanes, cells = _together(cells)
        yield from _ensemble(lanes)
    if scheduler == "local" and min(workers, len(cells)) <= 1:
        yield from ((cell, compute(*cell.words)) for cell in cells)
        return
    from odesim.workers import single_threaded

    with single_threaded():
        pool = executor(scheduler, min(workers, len(cells)))
        futures = {pool.submit(compute, *cell.words): cell for cell in cells}
    try:
        for future in concurrent.futures.as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _accelerated() -> bool:
    """Whether JAX has a device other than the CPU."""
    from odesim import device

    device.configure("auto")
    import jax

    return jax.default_backend() != "cpu"


def _together(cells: Sequence[Cell]) -> tuple[list[tuple[Cell, "Problem"]], list[Cell]]:
    """The cells that share a program of JAX with at least one other, prepared, and the rest."""
    from odesim import ensemble, integration

    prepared = [(cell, integration.prepare(cell.case)) for cell in cells if cell.case.backend == "jax"]
    shapes = {id(cell): ensemble.shape(problem) for cell, problem in prepared if ensemble.fits(problem)}
    common = {shape for shape, count in collections.Counter(shapes.values()).items() if count > 1}
    lanes = [(cell, problem) for cell, problem in prepared if shapes.get(id(cell)) in common]
    chosen = {id(cell) for cell, _ in lanes}
    return lanes, [cell for cell in cells if id(cell) not in chosen]


def _ensemble(lanes: Sequence[tuple[Cell, "Problem"]]) -> Iterator[tuple[Cell, dict[str, np.ndarray]]]:
    """Cells integrated together on JAX, each as soon as its run ends."""
    from odesim import ensemble

    for k, run in ensemble.finished([problem for _, problem in lanes]):
        yield lanes[k][0], condensed(run)


def _path(store: Path, cell: Cell) -> Path:
    return store / f"{cell.case.digest}.npz"


def _keep(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a cell at once: under a temporary name, then renamed."""
    temporary = path.with_name(path.name + ".partial")
    with storing(path.parent):
        try:
            with temporary.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def stored(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a finished cell."""
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def joined(sweep: Sweep, cells: Sequence[Mapping[str, np.ndarray]]) -> "xarray.Dataset":
    """All cells as one dataset over the swept names; arrays whose shape differs from cell to cell are left out."""
    import xarray

    told = [json.loads(str(cell["about"])) for cell in cells]
    shape = tuple(len(values) for values in sweep.over.values())
    names = tuple(sweep.over)
    variables: dict[str, Any] = {
        "outcome": (names, np.array([t["outcome"] for t in told]).reshape(shape), {"meaning": "how the run ended"})
    }
    for name, first in cells[0].items():
        if name == "about":
            continue
        dims, meaning = told[0]["variables"][name]
        if any(name not in cell or cell[name].shape != first.shape for cell in cells):
            continue
        values = np.stack([cell[name] for cell in cells]).reshape(shape + first.shape)
        variables[name] = ((*names, *dims), values, {"meaning": meaning})
    coordinates = {
        name: np.array([_of_cell(sweep, name, k) for k in _first_cells(shape, i)]) for i, name in enumerate(names)
    }
    return xarray.Dataset(variables, coordinates, {"system": sweep.system.name, "digest": sweep.digest})


def _first_cells(shape: tuple[int, ...], axis: int) -> range:
    """The places of the cells along one axis, at the first value of every other."""
    stride = int(np.prod(shape[axis + 1 :]))
    return range(0, shape[axis] * stride, stride)


def _of_cell(sweep: Sweep, name: str, k: int) -> Any:
    """The value of a swept name in cell k, as the case read it; what NumPy cannot hold as one item, as text."""
    case = sweep.cells[k].case
    value = case.seed if name == "seed" else plain(getattr(case.parameters, name))
    return value if isinstance(value, int | float | str) else json.dumps(value)


def save(sweep: Sweep, data: "xarray.Dataset", folder: Path) -> None:
    """Write dataset, summary and, last, the manifest of a finished sweep; the files of its cells go."""
    from odesim.store.manifest import file_hashes, versions

    with storing(folder):
        partial = folder / f"{DATA}.partial"
        data.to_netcdf(partial, engine="h5netcdf")
        synchronise(partial)
        os.replace(partial, folder / DATA)
        write_json(folder / SUMMARY, {"cells": data["outcome"].size, "outcomes": counts(data)})
        content = {"schema": 1, "kind": "sweep", "digest": sweep.digest, "request": sweep.request(), "seed": sweep.seed}
        cases = [cell.case.request() for cell in sweep.cells[:1]]
        files = {name: entry for name, entry in file_hashes(folder).items() if not name.startswith(CELLS)}
        write_json(folder / MANIFEST, {**content, "first_cell": cases[0], "versions": versions(), "files": files})
        clear(folder)


def clear(folder: Path) -> None:
    """Remove the files of finished cells."""
    shutil.rmtree(folder / CELLS, ignore_errors=True)


def load(folder: Path) -> "xarray.Dataset":
    """The dataset of a finished sweep, read into memory."""
    import xarray

    return xarray.load_dataset(folder / DATA, engine="h5netcdf")


def counts(data: "xarray.Dataset") -> dict[str, int]:
    """How many cells ended in which way."""
    kinds, numbers = np.unique(data["outcome"].values.astype(str), return_counts=True)
    return {str(kind): int(number) for kind, number in zip(kinds, numbers, strict=True)}


def medians(data: "xarray.Dataset") -> tuple[list[str], list[list[Any]]]:
    """A table: the headline numbers of every point of the grid, as medians over the seeds where they are swept."""
    names = [str(name) for name in data["outcome"].dims if name != "seed"]
    scalar = [
        str(name)
        for name, values in data.data_vars.items()
        if set(values.dims) == set(data["outcome"].dims) and values.dtype.kind == "f"
    ]
    table = data[scalar].median("seed") if "seed" in data["outcome"].dims else data[scalar]
    rows = []
    for place in itertools.product(*(range(table.sizes[name]) for name in names)):
        at = table.isel(dict(zip(names, place, strict=True)))
        rows.append([*(at[name].item() for name in names), *(float(at[name]) for name in scalar)])
    return [*names, *scalar], rows
