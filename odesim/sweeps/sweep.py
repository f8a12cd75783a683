"""One request over a grid of parameters and seeds: cells computed by many processes, stored one by one, then joined."""

import dataclasses
import functools
import itertools
import json
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import derivations
from derivations.contract import System, UsageError
from odesim.machine.executor import LOCAL, completed
from odesim.request.case import EULER, Case, digest_of, find_system, plain, read_config
from odesim.request.parse import expression, nearest, parse, real_number, seed_number, whole_number
from odesim.request.trajectory import Outcome, Trajectory, Variable
from odesim.sgd.simulation import Simulation
from odesim.store.files import CELLS, storing
from odesim.study import limit
from odesim.study.pair import FLOW, Pair
from odesim.sweeps.cells import keep, stored
from odesim.sweeps.swept import ABOUT, CURVE, POINT, joined

if TYPE_CHECKING:
    import xarray


Readers = Mapping[str, Callable[[Any, str], Any]]
NAMED: Readers = {"seed": seed_number}
"""Names besides parameters that can be swept, with the functions that parse their values."""
OF_EULER: Readers = {"step": real_number}
"""Further name that can be swept if the solver has a fixed step."""
OF_SGD: Readers = {"step_size": real_number, "batch": whole_number}
"""Further names that can be swept if the cells are runs of SGD."""


@dataclasses.dataclass(frozen=True, eq=False)
class Cell:
    """One run of a sweep: its request, and the picklable description from which a process can build it."""

    request: Case | Simulation | Pair
    words: tuple[System, dict[str, Any], dict[str, Any], dict[str, Any], bool]

    @property
    def case(self) -> Case:
        """Case of the flow, or the case that SGD runs."""
        return self.request if isinstance(self.request, Case) else self.request.case

    @property
    def digest(self) -> str:
        """Return the request that identifies the cell."""
        return self.request.digest

    def value(self, name: str) -> Any:
        """Return the value of a swept name, as parsed for the request."""
        if name in NAMED or (name in OF_EULER and self.case.solver == EULER):
            return getattr(self.case, name)
        if name in OF_SGD:
            return getattr(self.request, name)
        return plain(self.case.by_name[name])


def resolved(
    system: str | System,
    parameters: Mapping[str, Any],
    options: Mapping[str, Any],
    sgd: Mapping[str, Any],
    compared: bool = False,
) -> Case | Simulation | Pair:
    """Return a case of the flow; with options of SGD a simulation; with `compared` the simulation with its flow."""
    of_flow = {name: options[name] for name in FLOW if compared and name in options}
    case = Case.build(system, parameters, **{name: value for name, value in options.items() if name not in of_flow})
    if not sgd:
        return case
    simulation = Simulation.build(case, **typing.cast(Any, sgd))
    return Pair.build(simulation, of_flow) if compared else simulation


@dataclasses.dataclass(frozen=True, eq=False)
class Sweep:
    """A grid of runs: `over` maps names to their values; parameters, options and `sgd` are common to all cells.

    `until` may be an expression in the parameters of a cell, such as `2*sqrt(d)`. With `sgd` (method, step_size, batch,
    seeds, ..) a cell is a simulation of `seeds` replicas. If the sweep is `compared`, a cell is the comparison of these
    replicas with their flow. Otherwise a cell is a flow.
    """

    system: System
    over: Mapping[str, tuple[Any, ...]]
    parameters: Mapping[str, Any]
    until: str | float | None
    options: Mapping[str, Any]
    sgd: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    compared: bool = False

    @classmethod
    def build(
        cls,
        system: str | System,
        over: Mapping[str, Sequence[Any]],
        parameters: Mapping[str, Any] | None = None,
        *,
        until: str | float | None = None,
        sgd: Mapping[str, Any] | None = None,
        compared: bool = False,
        **options: Any,
    ) -> "Sweep":
        """Check a sweep by resolving every cell once. Raises `UsageError` if one of them is invalid."""
        chosen = find_system(system) if isinstance(system, str) else system
        given, learning = dict(parameters or {}), {k: v for k, v in (sgd or {}).items() if v is not None}
        over = {name.replace("-", "_"): values for name, values in over.items()}
        fixed = {name: value for name, value in options.items() if value is not None}
        axes = {name: tuple(values) for name, values in over.items()}
        sweep = cls(chosen, axes, given, until, fixed, learning, compared)
        _check_over(chosen, over, {*given, *learning, *fixed}, sweep.readers)
        for cell in sweep.cells:
            cell.case.require_clock()
        return sweep

    @functools.cached_property
    def readers(self) -> Readers:
        """Return the options that may be swept with their parsers; every other swept name is a parameter."""
        solver = self.options.get("solver")
        if solver is None and "config" in self.options:
            solver = read_config(self.options["config"], self.system).get("solver")
        return {**NAMED, **(OF_EULER if solver == EULER else {}), **(OF_SGD if self.sgd else {})}

    @functools.cached_property
    def cells(self) -> list[Cell]:
        """All cells, the last name of `over` running fastest."""
        return [
            self._cell(dict(zip(self.over, values, strict=True))) for values in itertools.product(*self.over.values())
        ]

    def _cell(self, values: Mapping[str, Any]) -> Cell:
        named = {name: value for name, value in values.items() if name in self.readers}
        learning = {name: OF_SGD[name](value, name) for name, value in named.items() if name in OF_SGD}
        options = {**self.options, **{name: value for name, value in named.items() if name not in OF_SGD}}
        sgd = {**self.sgd, **learning}
        parameters = {**self.parameters, **{name: value for name, value in values.items() if name not in named}}
        if self.until is not None:
            case = Case.build(self.system, parameters, **options)
            options["until"] = expression(self.until, case.by_name, "--until")
        words = (self.system, parameters, options, sgd, self.compared)
        return Cell(resolved(*words), words)

    def request(self) -> dict[str, Any]:
        """Everything that determines the answer, as plain data."""
        return {
            "method": "sweep",
            "over": {name: plain(list(values)) for name, values in self.over.items()},
            "cells": [cell.digest for cell in self.cells],
        }

    @property
    def digest(self) -> str:
        """Identifier of the request: twelve hexadecimal characters."""
        return digest_of(self.request())

    @property
    def name(self) -> str:
        """Name of the system, with which the name of the default folder begins."""
        return self.system.name

    @property
    def seed(self) -> int:
        """Seed of the cells, or of the first cell if seeds are swept."""
        return self.cells[0].case.seed


def fractional(system: str | System) -> list[str]:
    """The names that may be swept whose values need not be whole: real parameters, and real options of SGD and Euler.

    >>> "d" in fractional("liao"), "step_size" in fractional("liao")
    (False, True)
    """
    chosen = find_system(system) if isinstance(system, str) else system
    kinds = typing.get_type_hints(chosen.parameters)
    readers = {**OF_EULER, **OF_SGD}
    real = [name for name, kind in kinds.items() if kind is not int and int not in typing.get_args(kind)]
    return [*real, *(name for name, reader in readers.items() if reader is real_number and name not in kinds)]


def list_parameters(system: str | System) -> list[str]:
    """Return the parameters of a system that are lists. Their values contain commas, so `;` separates the values of a
    sweep.
    """
    chosen = find_system(system) if isinstance(system, str) else system
    kinds = typing.get_type_hints(chosen.parameters)
    return [name for name, kind in kinds.items() if typing.get_origin(kind) is tuple]


def _check_over(system: System, over: Mapping[str, Sequence[Any]], fixed: set[str], readers: Readers) -> None:
    """Raise `UsageError` for names that cannot be swept, and for values that are the same."""
    kinds = typing.get_type_hints(system.parameters)
    names = [*(field.name for field in dataclasses.fields(system.parameters)), *readers]
    if not over:
        raise UsageError("a sweep needs at least one --over KEY=v1,v2,..")
    for name, values in over.items():
        if name in OF_SGD and name not in readers:
            raise UsageError(
                f"--over {name} needs --method explicit or compressed, because the flow has no such option"
            )
        if name in OF_EULER and name not in names:
            raise UsageError(f"--over {name} needs --solver {EULER}, the only solver with steps of one size")
        if name not in names:
            raise UsageError(f"--over: {system.name} has no parameter {name!r}; {nearest(name, names)}")
        if name in fixed:
            raise UsageError(f"{name} is swept and fixed at the same time; give it once")
        read = [
            readers[name](value, f"--over {name}") if name in readers else parse(value, kinds[name], f"--over {name}")
            for value in values
        ]
        if len(set(map(repr, read))) != len(values) or not values:
            raise UsageError(
                f"--over {name} needs different values, but has {', '.join(map(str, values)) or 'no value'}"
            )


def compute(*words: Any) -> dict[str, np.ndarray]:
    """Compute one cell from its description. Return its end state for storage, and `about`, the rest as JSON."""
    request = resolved(*words)
    if isinstance(request, Pair):
        return with_about(*limit.condensed(request.run_without_band()))
    if isinstance(request, Simulation):
        from odesim.sgd.simulation import simulate

        return condensed(simulate(request), request.case)
    from odesim.flow import solve

    return condensed(solve.solve(request), request)


def condensed(run: Trajectory, case: Case) -> dict[str, np.ndarray]:
    """Return the last state, the extras and the summary of a trajectory as arrays, with their descriptions `about`.

    If the user lists times, or requests more than the two ends, the curves are included too.
    """
    arrays, about = {}, {}

    def named(dims: Sequence[str]) -> list[str]:
        return [limit.REPLICA if dim == "seed" else dim for dim in dims if dim != "time"]

    for name, variable in run.state.items():
        arrays[f"final_{name}"] = np.asarray(np.take(np.asarray(variable), -1, variable.dims.index("time")))
        about[f"final_{name}"] = (named(variable.dims), f"{variable.meaning}, at the end")
    if case.save_points > 2 or case.save_at is not None:
        kept = {"time": Variable(("time",), run.time, run.clock), **run.state}
        for name, variable in kept.items():
            arrays[f"{CURVE}{name}"] = np.asarray(np.moveaxis(variable.values, variable.dims.index("time"), -1))
            about[f"{CURVE}{name}"] = ([*named(variable.dims), POINT], variable.meaning)
    for name, variable in run.extras.items():
        arrays[name], about[name] = np.asarray(variable), (named(variable.dims), variable.meaning)
    for name, number in run.summary.items():
        if isinstance(number, int | float | np.number) and not isinstance(number, bool):
            arrays.setdefault(name, np.asarray(float(number)))
            about.setdefault(name, ([], "headline number of the run"))
    arrays["outcome_time"] = np.asarray(run.outcome.time)
    about["outcome_time"] = ([], "time at the end of the run")
    arrays["evaluations"] = np.asarray(float(run.statistics.get("evaluations", np.nan)))
    about["evaluations"] = ([], "right-hand sides evaluated")
    return with_about(arrays, about, run.outcome)


def with_about(
    arrays: Mapping[str, np.ndarray], about: Mapping[str, tuple[Sequence[str], str]], outcome: Outcome
) -> dict[str, np.ndarray]:
    """Return the arrays of a cell with `about`: dimensions and meaning of each, and the outcome of the run, as JSON."""
    told = {"variables": about, "outcome": outcome.kind, "reason": outcome.reason}
    return {**arrays, ABOUT: np.asarray(json.dumps(told))}


def run(
    sweep: Sweep,
    folder: Path,
    *,
    scheduler: str = "local",
    workers: int = 1,
    report: Callable[[int, int], None] | None = None,
) -> "xarray.Dataset":
    """Compute the cells that `folder` lacks, the longest first, and join all of them.

    Every finished cell has a file, named by the digest of its case. A kill loses only the cells in progress.
    """
    store = folder / CELLS
    with storing(folder):
        store.mkdir(parents=True, exist_ok=True)
    # All cells are needed in memory anyway.
    held = {cell.digest: arrays for cell in sweep.cells if (arrays := stored(_path(store, cell))) is not None}
    missing = [cell for cell in sweep.cells if cell.digest not in held]
    missing.sort(key=lambda cell: -cell.case.until)
    for cell, arrays in _results(missing, scheduler, workers):
        keep(_path(store, cell), arrays)
        held[cell.digest] = arrays
        if report is not None:
            report(len(held), len(sweep.cells))
    data = joined(sweep, [held[cell.digest] for cell in sweep.cells])
    return limit.with_exponent(data) if sweep.compared else data


def _results(cells: Sequence[Cell], scheduler: str, workers: int) -> Iterator[tuple[Cell, dict[str, np.ndarray]]]:
    if scheduler == LOCAL and min(workers, len(cells)) <= 1:
        yield from ((cell, compute(*cell.words)) for cell in cells)
        return
    for cell in cells[:1]:
        derivations.address(cell.case.system)  # which another process must be able to import
    tasks = [cell.words for cell in cells]
    for number, arrays in completed(compute, tasks, scheduler, min(workers, len(cells))):
        yield cells[number], arrays


def _path(store: Path, cell: Cell) -> Path:
    return store / f"{cell.digest}.npz"
