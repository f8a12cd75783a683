"""The intermediate form between a statement and machine code: a list of array definitions without nested sums.

`derivations.equations.lower` makes a `Program`. Its items are `Define`, one array by one formula; `Apply`, arrays
computed by a rule; `Pairs`, a kernel at many index tuples; and `Product`, sums as a product of matrices. Three modules
use them: `arrays` evaluates them with NumPy or JAX, `odesim.code.tables` converts them to the steps of the compiled
engine, and `text` prints them.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from derivations.statement import Rule, Shortcut, Statement, key_of, sp

series = type("series", (sp.Function,), {"__doc__": "series(label, x) = sum_s label[s] x^s, for constants label[s]."})

NODE_X, NODE_W = "node_x", "node_w"
"""Nodes on [0, 1] and weights of the Gauss-Legendre rule of a `Mean`, with the number of nodes appended."""


@dataclasses.dataclass(frozen=True)
class Define:
    """name[axes] = sum (or maximum) of `value` over the indices `over`.

    `value` contains entries of arrays, numbers and elementary functions, but no sums, kernels or rules.
    """

    name: str
    axes: tuple[Any, ...]
    value: Any
    over: tuple[Any, ...] = ()
    reduction: Literal["sum", "max"] = "sum"
    meaning: str = ""

    @property
    def domain(self) -> tuple[Any, ...]:
        """All indices at which the formula is evaluated."""
        return (*self.axes, *self.over)

    @property
    def reads(self) -> frozenset[str]:
        """Names of the arrays and numbers in the formula."""
        return names_in(self.value)

    @property
    def writes(self) -> frozenset[str]:
        """The name of the defined array."""
        return frozenset([self.name])


@dataclasses.dataclass(frozen=True)
class Apply:
    """Arrays `targets` (name, axes) computed by a `rule`, or by a shortcut, from the whole arrays in `arguments`."""

    targets: tuple[tuple[str, tuple[Any, ...]], ...]
    rule: Rule | Shortcut
    arguments: tuple[str, ...]
    meaning: str = ""

    @property
    def reads(self) -> frozenset[str]:
        """Names of the arguments of the rule."""
        return frozenset(self.arguments)

    @property
    def writes(self) -> frozenset[str]:
        """Names of the arrays that the rule computes."""
        return frozenset(name for name, _ in self.targets)


@dataclasses.dataclass(frozen=True)
class Use:
    """Evaluation of a `Pairs` kernel: its outputs at all entries of the arrays `targets`.

    `arguments` are leaves in the indices `axes`. With `mirrored` the last two axes run only over pairs i <= j: target k
    at (j, i) is output `mirrored[k]` at (i, j).
    """

    targets: tuple[str, ...]
    axes: tuple[Any, ...]
    arguments: tuple[Any, ...]
    mirrored: tuple[int, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Several functions of the same arguments, evaluated together: `values` in the symbols `slots`.

    If `as_written` is True, their brackets are not rearranged.
    """

    name: str
    slots: tuple[Any, ...]
    values: tuple[Any, ...]
    uses: tuple[Use, ...]
    as_written: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """Names of the arrays in the arguments, and of constants in the functions."""
        arguments = frozenset().union(*(names_in(a) for use in self.uses for a in use.arguments))
        constants = frozenset().union(*map(names_in, self.values)) - {slot.name for slot in self.slots}
        return arguments | constants

    @property
    def writes(self) -> frozenset[str]:
        """Names of the filled arrays."""
        return frozenset(name for use in self.uses for name in use.targets)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of a `Product`: (number, matrix) for every block of its inner dimension, and the names of its columns."""

    axis: Any
    left: tuple[tuple[Any, Any], ...]
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Product:
    """Many sums over one index as one product of matrices.

    names[k][i, j] = sum over blocks b and over r of number_b left_b[i, r] right[b][k][r, j], for all `rows`. An entry
    of `right` is None if a block does not occur in a sum. `inner[b]` is the index r of a block, `columns[k]` the j of a
    sum.
    """

    rows: tuple[Rows, ...]
    inner: tuple[Any, ...]
    columns: tuple[Any, ...]
    right: tuple[tuple[Any, ...], ...]

    @property
    def reads(self) -> frozenset[str]:
        """Names of the matrices."""
        left = {key_of(x) for rows in self.rows for _, x in rows.left}
        return frozenset(left | {key_of(x) for block in self.right for x in block if x is not None})

    @property
    def writes(self) -> frozenset[str]:
        """Names of the sums."""
        return frozenset(name for rows in self.rows for name in rows.names)


Item = Define | Apply | Pairs | Product


@dataclasses.dataclass(frozen=True)
class Output:
    """An array `name` with the rates of the entries `axes` of a component of the state, or with an observable."""

    component: str
    axes: tuple[Any, ...]
    name: str


@dataclasses.dataclass(frozen=True)
class Program:
    """Definitions that depend only on constants (`setup`), and those that depend on the state (`body`), in order."""

    statement: Statement
    ranges: "Ranges"
    setup: tuple[Item, ...]
    body: tuple[Item, ...]
    outputs: tuple[Output, ...]

    @property
    def output_names(self) -> frozenset[str]:
        """Names of the output arrays."""
        return frozenset(output.name for output in self.outputs)

    @property
    def reads(self) -> frozenset[str]:
        """Names of all arrays that its items use."""
        return frozenset().union(*(item.reads for item in (*self.setup, *self.body)))

    @property
    def changing(self) -> frozenset[str]:
        """Names of all arrays that depend on the state."""
        components = {key_of(v.target) for v in self.statement.state}
        return frozenset(components).union(*(item.writes for item in self.body))


class Ranges:
    """Values of the indices of a statement at given numbers of its constants.

    >>> n = sp.Symbol("n", integer=True)
    >>> ranges = Ranges({"n": 3}, {})
    >>> ranges.values(sp.Idx("i", n)), ranges.volume([sp.Idx("i", n), sp.Idx("j", (1, n))])
    (range(0, 3), 9)
    """

    def __init__(self, numbers: Mapping[str, Any], terms: Mapping[str, int]) -> None:
        self.numbers, self.terms = numbers, terms
        self._known: dict[Any, range] = {}

    def whole(self, bound: Any) -> int:
        """The whole number that is the value of an expression in the constants."""
        bound = sp.sympify(bound)
        return int(bound.subs({s: int(self.numbers[s.name]) for s in bound.free_symbols}))

    def values(self, index: Any) -> range:
        """The values of an index; an infinite one is truncated as the statement says."""
        known = self._known.get(index)  # one look-up: SymPy compares equal indices part by part
        if known is None:
            infinite = index.upper == sp.oo
            end = self.terms[index.name] if infinite else self.whole(index.upper) + 1
            known = self._known[index] = range(self.whole(index.lower), end)
        return known

    def size(self, index: Any) -> int:
        """The number of values of an index."""
        return len(self.values(index))

    def end(self, index: Any) -> int:
        """The length of an axis that the index runs over: one more than its largest value."""
        values = self.values(index)
        return values[-1] + 1 if values else 0

    def volume(self, indices: Iterable[Any]) -> int:
        """The number of points of a product of index sets."""
        return int(np.prod([self.size(i) for i in indices], dtype=np.int64))


@functools.cache
def indices_in(expression: Any) -> frozenset[Any]:
    """The indices in an expression.

    Cached: SymPy's `atoms` traverses the whole tree at every call, which took 16 % of the lowering of liao.
    """
    if isinstance(expression, sp.Idx):
        return frozenset([expression])
    return frozenset().union(*map(indices_in, expression.args))


@functools.cache
def names_in(expression: Any) -> frozenset[str]:
    """The names of arrays and numbers in an expression; subscripts count, indices do not."""
    if isinstance(expression, sp.Idx):
        return frozenset()
    if isinstance(expression, sp.Symbol):
        return frozenset([expression.name])
    if isinstance(expression, sp.Indexed):
        return frozenset([key_of(expression)]).union(*map(names_in, expression.indices))
    return frozenset().union(*map(names_in, expression.args))


def operations(expression: Any) -> int:
    """The number of arithmetic operations of an expression without its subscripts.

    >>> x, y = sp.symbols("x y")
    >>> operations(x * y + sp.exp(x))
    3
    """
    if not expression.args or isinstance(expression, (sp.Indexed, sp.Idx)):
        return 0
    own = len(expression.args) - 1 if isinstance(expression, (sp.Add, sp.Mul)) else 1
    return own + sum(map(operations, expression.args))


def is_leaf(expression: Any) -> bool:
    """Return True for a number, an index, a symbol, or an entry of an array."""
    return not expression.args or isinstance(expression, (sp.Indexed, sp.Idx)) or bool(expression.is_number)


def is_condition(expression: Any) -> bool:
    """Return True for one or several relations: SymPy counts a symbol as Boolean, and a relation not."""
    boolalg = sp.logic.boolalg
    return isinstance(expression, (sp.core.relational.Relational, boolalg.BooleanFunction, boolalg.BooleanAtom))


def entry(name: str, axes: tuple[Any, ...]) -> Any:
    """The entry of an array at indices; the number itself without indices.

    >>> entry("x", (sp.Idx("i", 3),)), entry("t", ())
    (x[i], t)
    """
    return sp.IndexedBase(name)[axes] if axes else sp.Symbol(name)
