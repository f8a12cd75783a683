"""Programs prepared for the compiled engine: once for the sizes of a statement, then for each set of its numbers.

Lowering takes seconds of SymPy. Its result depends on the values of the constants only by the lengths of series. It is
cached, in memory and in a file for later processes.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import pickle
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import derivations
from derivations import cache
from derivations.contract.layout import DIRECTION, Layout
from derivations.installed import version
from hermite.sealed import unsealed
from odesim.code.busy import busy
from odesim.code.right_hand_side import Filling, aligned

if TYPE_CHECKING:
    from derivations.equations.program import Item, Program
    from derivations.equations.setup import SetUp
    from derivations.statement import Statement
    from odesim.code.tables import Tables

What = Literal["rates", "loss", "watch", "jacobian"]
"""Result of a program: for "jacobian" the rates, and their derivatives along a direction of the state."""
Along = Mapping[str, tuple[str, ...]]
NO_DIRECTION: Along = MappingProxyType({})


@dataclasses.dataclass(frozen=True)
class Part:
    """Tables of one program for one set of sizes, for any values of its constants.

    `arrays` are W, T and N of the engine; W is without constants, whose places are in `read`. `setup` computes
    constants from constants. `series` are the coefficients of the power series for which W and N were made. The program
    returns `count` numbers. The constants in `own` have different values for every row of the state.
    """

    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]
    read: dict[str, int]
    setup: "tuple[Item, ...]"
    series: dict[str, np.ndarray]
    count: int
    own: frozenset[str] = frozenset()

    def serves(self, values: Mapping[str, Any]) -> bool:
        """Return True if the tables were made for the series of these constants."""
        return all(np.array_equal(values[name], known) for name, known in self.series.items())

    def bound(self, values: Mapping[str, Any], kernel: str, rows: int = 1) -> Filling:
        """Return the function fill(y, out) for values of the constants, including those of the set-up, and a number of
        rows.
        """
        from odesim.code.module_cache import load_module
        from odesim.code.places import put_constants
        from odesim.code.rows import with_rows

        own = {name: at for name, at in self.read.items() if name in self.own}
        arrays = with_rows(self.arrays, own, values, rows)
        tables = (aligned(arrays[0]), *arrays[1:])
        put_constants(tables[0], {name: at for name, at in self.read.items() if name not in own}, values)
        return Filling(tables, load_module("kernel", kernel).kernel, self.count * rows)


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Several programs of one statement, and the text of the module with the formulas of all of them."""

    kernel: str
    parts: dict[What, Part]


def lowered(
    statement: "Statement",
    layout: Layout,
    numbers: Mapping[str, Any],
    what: What,
    along: Along = NO_DIRECTION,
    shortcuts: bool = False,
) -> "Program":
    """Return the program for a result of a statement, after all passes; `along` and `shortcuts` are those of
    `lower`.
    """
    from derivations.equations.lower import lower

    asked: Literal["rates", "loss", "watch"] = "rates" if what == "jacobian" else what
    along = {**along, DIRECTION: ()} if what == "jacobian" else along
    return list(lower(statement, numbers, layout.symmetric, asked, along, shortcuts).values())[-1]


def tables_of(
    statement: "Statement",
    layout: Layout,
    numbers: Mapping[str, Any],
    what: What,
    along: Along = NO_DIRECTION,
    beside: "Tables | None" = None,
) -> "Tables":
    """Return the tables of that program, for the layout of the flat state and values of the constants.

    They share the kernel of the tables `beside`.
    """
    from derivations.equations.setup import setup
    from odesim.code.rows import require_separate
    from odesim.code.tables import Tables

    program = lowered(statement, layout, numbers, what, along, shortcuts=True)
    require_separate(program, summed=what == "loss")
    layout = layout.with_direction(DIRECTION) if what == "jacobian" else layout
    return Tables(program, layout, setup(program, numbers), beside)


def fillings(
    statement: "Statement",
    layout: Layout,
    numbers: Mapping[str, Any],
    wanted: tuple[What, ...],
    along: Along = NO_DIRECTION,
) -> dict[What, Filling]:
    """Return fill(y, out) for results of a statement at values of its constants, by cached tables if possible.

    If the state has rows that do not act on each other, the tables are those of one row.
    """
    from odesim.code.rows import count_rows, of_one_row

    one, rows = of_one_row(statement, numbers), count_rows(statement, numbers)
    key = _key(statement, layout, one, wanted, along)
    kept = _kept(key, statement)
    if kept is not None:
        made, setups = kept
        values = {what: setups[what](numbers) for what in wanted}
        if all(part.serves(values[what]) for what, part in made.parts.items()):
            return {what: part.bound(values[what], made.kernel, rows) for what, part in made.parts.items()}
    with busy(f"deriving {statement.name}"):
        tables: dict[What, Tables] = {}
        for what in wanted:
            tables[what] = tables_of(statement, layout, one, what, along, tables.get(wanted[0]))
        made = prepare_tables(tables)
    with contextlib.suppress(TypeError, AttributeError, pickle.PicklingError):  # a rule that has no name
        cache.offer_sealed(_path(key), key, pickle.dumps(made))
    setups = _remember(key, statement, made)
    return {what: part.bound(setups[what](numbers), made.kernel, rows) for what, part in made.parts.items()}


def prepare_tables(tables: "Mapping[What, Tables]") -> Prepared:
    """Return the cached part of some tables with one kernel."""
    from odesim.code.rows import constants_of_rows

    parts: dict[What, Part] = {}
    for what, one in tables.items():
        series = {label: one.places.constants[label] for label in sorted(one.steps.labels)}
        read, setup = dict(one.places.read), one.program.setup
        parts[what] = Part(one.steps.arrays(), read, setup, series, one.count, constants_of_rows(one.program))
    return Prepared(list(tables.values())[-1].kernel_text(), parts)


_memory: dict[str, "tuple[Prepared, dict[What, SetUp]]"] = {}
"""Objects that this process has read or computed, by key."""


def _kept(key: str, statement: "Statement") -> "tuple[Prepared, dict[What, SetUp]] | None":
    """Return the cached tables with their set-ups; None if there are none."""
    if key not in _memory:
        content = unsealed(_path(key), key)
        if content is None:
            return None
        _remember(key, statement, pickle.loads(content))
    return _memory[key]


def _remember(key: str, statement: "Statement", made: Prepared) -> "dict[What, SetUp]":
    from derivations.equations.setup import SetUp

    setups: dict[What, SetUp] = {}
    for what, part in made.parts.items():
        reads = frozenset(part.read).union(*(item.reads for item in part.setup))
        setups[what] = SetUp(statement, part.setup, reads)
    _memory[key] = made, setups
    return setups


def _path(key: str) -> Path:
    return cache.folder() / "tables" / f"{key}.pickle"


def _key(
    statement: "Statement", layout: Layout, numbers: Mapping[str, Any], wanted: tuple[What, ...], along: Along
) -> str:
    """Return a digest of everything that determines tables except the numbers: equations, sizes, layout, odesim's
    files, versions.
    """
    sizes = sorted((name, value) for name, value in numbers.items() if isinstance(value, int))
    said = repr((statement.fingerprint, sizes, layout, wanted, sorted(along.items())))
    rules = [d.rule for d in statement.arrays if d.rule is not None]
    loops = [x.compiled for x in (*rules, *(d.shortcut for d in statement.arrays)) if x is not None and x.compiled]
    # The text of a kernel contains the digests of its loops, so that tables of other loops do not match.
    modules = {rule.code.__module__ for rule in rules} | {reference.partition(":")[0] for reference in loops}
    return hashlib.sha256(f"{said} {loops} {_sources()} {_texts(tuple(sorted(modules)))}".encode()).hexdigest()[:32]


@functools.cache
def _texts(modules: tuple[str, ...]) -> str:
    """Return a digest of the files of some modules, which need not be imported."""
    specs = [importlib.util.find_spec(name) for name in modules]
    files = [Path(spec.origin).read_bytes() for spec in specs if spec is not None and spec.origin is not None]
    return hashlib.sha256(bytes(0).join(files)).hexdigest()


@functools.cache
def _sources() -> str:
    """Return a digest of the files that lower statements and write tables, and the versions of the packages that they
    use.
    """
    equations = Path(derivations.__file__).parent / "equations"
    writers = ("tables", "steps", "places", "formulas", "loop_text", "rows")
    here = [Path(__file__).with_name(f"{name}.py") for name in writers]
    content = hashlib.sha256()
    for path in (*sorted(equations.rglob("*.py")), *here, Path(__file__)):
        content.update(path.read_bytes())
    content.update(_texts(("derivations.statement", "derivations.lanes")).encode())
    used = [f"{name} {version(name)}" for name in ("sympy", "numpy", "scipy")]
    return f"{content.hexdigest()} {' '.join(used)} {sys.version}"
