"""A program made ready for the compiled engine: made once for the sizes of a statement, then bound to its numbers.

Lowering takes seconds of SymPy.  What it makes does not depend on the numbers of the constants, but for the lengths of
series, and is kept: in memory, and in a file of the cache for later processes.
"""

import contextlib
import dataclasses
import functools
import hashlib
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import derivations
from derivations import cache
from derivations.contract.layout import Dense, Layout
from derivations.installed import version
from hermite.sealed import unsealed
from odesim.code.busy import busy
from odesim.code.right_hand_side import Filling, aligned

if TYPE_CHECKING:
    from derivations.equations.program import Item, Program
    from derivations.equations.setup import SetUp
    from derivations.statement import Statement
    from odesim.code.tables import Tables

What = Literal["rates", "loss"]
Along = Mapping[str, tuple[str, ...]]
NO_DIRECTION: Along = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Prepared:
    """What evaluates a program for one set of sizes, at any numbers of its constants.

    `kernel` is the text of the module with its formulas, `arrays` are W, T and N of the engine, W without constants,
    whose places `read` says.  `setup` makes constants of constants.  `series` are the coefficients of the power series
    that W and N were made for.
    """

    kernel: str
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    read: dict[str, int]
    setup: "tuple[Item, ...]"
    series: dict[str, np.ndarray]

    def serves(self, values: Mapping[str, Any]) -> bool:
        """Return True if the series of these constants are those that the tables were made for."""
        return all(np.array_equal(values[name], known) for name, known in self.series.items())

    def bound(self, values: Mapping[str, Any]) -> Filling:
        """The function fill(y, out) at numbers of the constants, those of the set-up included."""
        from odesim.code.module_cache import load_module
        from odesim.code.places import put_constants

        W, T, N = self.arrays
        W = aligned(W)
        put_constants(W, self.read, values)
        return Filling((W, T, N), load_module("kernel", self.kernel).kernel)


def lowered(
    statement: "Statement", layout: Layout, numbers: Mapping[str, Any], what: What, along: Along = NO_DIRECTION
) -> "Program":
    """The program of the rates or of the loss of a statement, after all passes; `along` is that of `lower`."""
    from derivations.equations.lower import lower

    symmetric = frozenset(part.name for part in layout.parts if not isinstance(part, Dense))
    return list(lower(statement, numbers, symmetric, what, along).values())[-1]


def tables_of(
    statement: "Statement", layout: Layout, numbers: Mapping[str, Any], what: What, along: Along = NO_DIRECTION
) -> "Tables":
    """The tables of that program, for a flat state that is laid out so and given numbers of the constants."""
    from derivations.equations.setup import setup
    from odesim.code.tables import Tables

    program = lowered(statement, layout, numbers, what, along)
    return Tables(program, layout, setup(program, numbers))


def filling(
    statement: "Statement", layout: Layout, numbers: Mapping[str, Any], what: What, along: Along = NO_DIRECTION
) -> Filling:
    """fill(y, out) of a statement at numbers of its constants: by tables that are kept, else by new ones."""
    key = _key(statement, layout, numbers, what, along)
    made, values = _kept(key, statement, numbers)
    if made is None:
        with busy(f"deriving {statement.name}"):
            made = prepare_tables(tables_of(statement, layout, numbers, what, along))
        with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):  # a rule that has no name
            cache.offer_sealed(_path(key), key, pickle.dumps(made))
        values = _remembered(key, statement, made)(numbers)
    return made.bound(values)


def prepare_tables(tables: "Tables") -> Prepared:
    """What is kept of some tables."""
    series = {label: tables.places.constants[label] for label in sorted(tables.steps.labels)}
    read = dict(tables.places.read)
    return Prepared(tables.kernel_text(), tables.steps.arrays(), read, tables.program.setup, series)


_memory: dict[str, "tuple[Prepared, SetUp]"] = {}
"""What this process has read or made, by key."""


def _kept(key: str, statement: "Statement", numbers: Mapping[str, Any]) -> tuple[Prepared | None, Mapping[str, Any]]:
    """The kept tables with the constants at these numbers; None where none are kept, or for other series."""
    if key not in _memory:
        content = unsealed(_path(key), key)
        if content is None:
            return None, {}
        _remembered(key, statement, pickle.loads(content))
    made, setup = _memory[key]
    values = setup(numbers)
    return (made, values) if made.serves(values) else (None, {})


def _remembered(key: str, statement: "Statement", made: Prepared) -> "SetUp":
    from derivations.equations.setup import SetUp

    reads = frozenset(made.read).union(*(item.reads for item in made.setup))
    _memory[key] = made, SetUp(statement, made.setup, reads)
    return _memory[key][1]


def _path(key: str) -> Path:
    return cache.folder() / "tables" / f"{key}.pickle"


def _key(statement: "Statement", layout: Layout, numbers: Mapping[str, Any], what: What, along: Along) -> str:
    """Of everything that tables depend on but the numbers: equations, sizes, layout, our files, and versions."""
    sizes = sorted((name, value) for name, value in numbers.items() if isinstance(value, int))
    said = repr((statement.fingerprint, sizes, layout, what, sorted(along.items())))
    modules = tuple(sorted({d.rule.code.__module__ for d in statement.arrays if d.rule}))
    return hashlib.sha256(f"{said} {_sources()} {_texts(modules)}".encode()).hexdigest()[:32]


@functools.cache
def _texts(modules: tuple[str, ...]) -> str:
    """A digest of the files of some modules."""
    files = [Path(str(sys.modules[name].__file__)).read_bytes() for name in modules]
    return hashlib.sha256(bytes(0).join(files)).hexdigest()


@functools.cache
def _sources() -> str:
    """A digest of the files that lower statements and write tables, and the versions of what they use."""
    equations = Path(derivations.__file__).parent / "equations"
    loose = [sys.modules[name].__file__ for name in ("derivations.statement", "derivations.lanes", __name__)]
    here = [Path(__file__).with_name(f"{name}.py") for name in ("tables", "steps", "places", "formulas", "loop_text")]
    content = hashlib.sha256()
    for path in (*sorted(equations.rglob("*.py")), *map(Path, filter(None, loose)), *here):
        content.update(path.read_bytes())
    used = [f"{name} {version(name)}" for name in ("sympy", "numpy", "scipy")]
    return f"{content.hexdigest()} {' '.join(used)} {sys.version}"
