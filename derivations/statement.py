"""The vocabulary in which a system states the equations of a tier, so that they can be read, printed and evaluated.

A `Statement` is SymPy in index notation: `Idx` for index sets, `Indexed` for arrays, `Sum` over an `Idx`, functions for
named kernels.  `derivations.equations.interpreter` turns it into numbers without rearranging a term, and
`derivations.equations.lower` into what is compiled; the printers of `odesim.show.page` write it for a reader.

Names of state variables are the names of the components of the tier's `Equations`, so that a state evaluates directly.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import sympy
from sympy.codegen import cfunctions

from derivations.contract import Advance, Crossing, Initial, Observables, Smooth

sp: Any = sympy
"""SymPy, whose annotations are too loose to say anything useful where it is used as here."""
Base = sp.IndexedBase
expm1: Any = cfunctions.expm1
log1p: Any = cfunctions.log1p
HALF = sp.Rational(1, 2)


@dataclasses.dataclass(frozen=True)
class Named:
    """A state variable or a constant: `target` (an `Indexed`, or a symbol), what it is, and a constant's default.

    The default is a number, or NumPy code in the names declared before it.  With `unit` the diagonal is 1 by
    definition: it is never integrated, as a deviation could grow.  `whole` marks an array of whole numbers.

    A state variable that is integrated also has the names of its dimensions (`dims`), `bounds` of its entries, its
    `symbol` in the paper, and `symmetric` where it is a symmetric matrix in its last two indices, of which half is
    integrated.
    """

    target: Any
    meaning: str
    default: Any = None
    unit: bool = False
    whole: bool = False
    dims: tuple[str, ...] = ()
    bounds: tuple[float, float] = (-1.0, 1.0)
    symbol: str = ""
    symmetric: bool = False

    @property
    def size(self) -> bool:
        """Return True for a whole number, which may be the length of an axis."""
        return isinstance(self.target, sp.Symbol) and (self.whole or bool(self.target.is_integer))


@dataclasses.dataclass(frozen=True)
class Kernel:
    """Named scalar functions of the same arguments, which are evaluated together.

    The first `orders` arguments are whole numbers, written as subscripts.  `means` says what each function is
    (expectations, derivatives: shown), `values` is the closed form or series by which it is evaluated.  Values that
    are to be taken `as_written` keep their brackets: terms cancel inside them that would not after an expansion.
    """

    name: str
    arguments: tuple[Any, ...]
    values: Mapping[str, Any]
    means: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    orders: int = 0
    note: str = ""
    as_written: bool = False

    def __getitem__(self, name: str) -> Any:
        """The SymPy function called `name`."""
        return function(name)


@dataclasses.dataclass(frozen=True)
class Rule:
    """A named array operation that no formula of sums says: a law by quadrature, an ordering, the root of an equation.

    `code` is a Python function of whole arrays that needs `np` alone; it is what is evaluated, and is printed with the
    Python page, after the `helpers` that it calls.  The definition that uses it shows in `means` what it computes.

    `compiled` ("module:function") is the same as loops that numba compiles: a function of numbers and of matrices, the
    arguments first and the arrays to fill last.  An array of more than two indices is a matrix there: its first index,
    and all others together.
    """

    name: str
    code: Callable[..., Any]
    helpers: tuple[Callable[..., Any], ...] = ()
    compiled: str = ""


@dataclasses.dataclass(frozen=True)
class Shortcut:
    """Loops that fill an array faster than its formula, as an ordering is faster than comparisons of all pairs.

    `compiled` ("module:function") takes the arrays named in `arguments`, as that of a `Rule` does.  Only the compiled
    engine uses it: pages, JAX, derivatives and the interpreter evaluate the formula, which holds the loops to it.
    Behind the arrays of its definition it fills those of `also`, which have definitions of their own further down.
    `groups` says how many of all these arrays make up each argument of the function: more than one are a tuple.
    """

    compiled: str
    arguments: tuple[Any, ...]
    also: tuple[Any, ...] = ()
    groups: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.compiled.partition(":")[2]


@dataclasses.dataclass(frozen=True)
class Definition:
    """An array named for short: target = value.

    Several targets share one call of a `kernel`, whose arguments are `value`, or of a `rule`, whose arguments are the
    arrays named in `value`.  `means` is shown beside or, for a rule, instead of the value.  A `shortcut` makes the
    same array in less time.
    """

    targets: tuple[Any, ...]
    value: Any
    meaning: str = ""
    kernel: Kernel | None = None
    rule: Rule | None = None
    means: Any = None
    shortcut: Shortcut | None = None


@dataclasses.dataclass(frozen=True)
class Equation:
    """d(target)/dt = rate (for a recursion: the change of the target in a step, over the step), and its place."""

    target: Any
    rate: Any
    source: str = ""


@dataclasses.dataclass(frozen=True)
class Watched:
    """An observable that is saved beside the state: target = value, with what `Named` says of a state variable."""

    target: Any
    value: Any
    meaning: str
    dims: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)
    symbol: str = ""


@dataclasses.dataclass(frozen=True)
class Step:
    """A line of the derivation that is shown, not evaluated: left = right."""

    left: Any
    right: Any
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Example:
    """An initial state in NumPy code over the names of the constants, and what the printed example reports.

    It integrates to `until` and prints when entries of the state `watched` pass `level`.
    """

    code: str
    watched: str
    level: float
    until: float


@dataclasses.dataclass(frozen=True)
class Statement:
    """One tier of one stage: everything that its page says, and everything that is needed to evaluate it.

    A "flow" states rates, a "recursion" one `step` of its clock, a "map" (a stage without a clock) its outcome as
    definitions.  `bind(initial)` gives the numbers of the constants where the program would start.  `notation` maps a
    name to (LaTeX, text); other names are SymPy's own.  `laws` says of a number behind `Mean` between which two
    constants or numbers it is uniform and how many Gauss-Legendre nodes take its mean; `terms` where an infinite index
    is cut.
    `rules` are sentences on what happens where the right-hand side jumps.  `loss_is_square` says that the loss is a
    mean square: where its sums cancel, a negative number of the size of their rounding is 0.

    A statement with a `tier` is also what runs (`derivations.equations.tier`).  Then `sizes` gives the lengths of the
    axes of its state by the names of their symbols, `begin(initial)` the state at time 0, `admits(initial)` raises
    `UsageError` for a start that the tier cannot follow, `crossings` are the events that are located, `watched` the
    numbers and arrays that are evaluated at saved states, and `observables` what else is told of a run.  `rows` is an
    index whose entries do not act on each other, as neurons under a correlation loss: it is the first of every state
    variable, and the loss is a sum over it.  The equations of one entry are then compiled, for any number of them.
    """

    name: str
    title: str
    source: str
    clock: str
    validity: str
    neglects: str
    indices: Sequence[tuple[tuple[Any, ...], str]]
    state: tuple[Named, ...]
    constants: tuple[Named, ...]
    equations: tuple[Equation, ...]
    bind: Callable[[Initial], Mapping[str, Any]]
    definitions: tuple[Any, ...] = ()
    steps: tuple[Step, ...] = ()
    loss: Any = None
    loss_is_square: bool = False
    conserved: tuple[Step, ...] = ()
    notation: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    laws: Mapping[str, tuple[Any, Any, int]] = dataclasses.field(default_factory=dict)
    terms: Mapping[str, int] = dataclasses.field(default_factory=dict)
    example: Example | None = None
    kind: Literal["flow", "recursion", "map"] = "flow"
    step: Any = None
    rules: tuple[str, ...] = ()
    tier: str = ""
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)
    begin: Callable[[Initial], Mapping[str, Any]] = lambda initial: initial.state
    admits: Callable[[Initial], None] = lambda initial: None
    crossings: tuple[Crossing, ...] = ()
    watched: tuple[Watched, ...] = ()
    observables: Observables | None = None
    advance: Advance = dataclasses.field(default_factory=Smooth)
    rows: Any = None

    def __post_init__(self) -> None:
        letters = {i.name for group, _ in self.indices for i in group}
        targets = [n.target for n in (*self.state, *self.constants)] + [t for d in self.arrays for t in d.targets]
        taken = {key_of(t) for t in targets} | {name for kernel in self.kernels for name in kernel.values}
        if letters & taken:
            raise ValueError(f"{self.name}: {', '.join(sorted(letters & taken))} is both an index and a name")
        if self.rows is not None and not all(indices_of(v.target)[:1] == (self.rows,) for v in self.state):
            raise ValueError(f"{self.name}: {self.rows} is not the first index of every state variable")

    def numbers(self, initial: Initial) -> dict[str, Any]:
        """The constants of the page, by name, as they are where the program would start."""
        known = self.bind(initial)
        return {key_of(c.target): known[key_of(c.target)] for c in self.constants}

    @functools.cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal characters of everything that its numbers depend on, beside those of its constants."""
        parts: list[Any] = [*self.equations, self.loss, self.loss_is_square, self.step, dict(self.laws)]
        parts += [dict(self.terms), [(n.target, n.unit, n.symmetric) for n in self.state], self.rows]
        parts += [(n.target, n.size) for n in self.constants] + [(w.target, w.value) for w in self.watched]
        parts += [(d.targets, d.value, d.kernel and d.kernel.name, d.rule and d.rule.name) for d in self.arrays]
        parts += [(k.name, k.arguments, dict(k.values), k.orders, k.as_written) for k in self.kernels]
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]

    def arguments(self, initial: Initial) -> tuple[Any, ...]:
        """The numbers of the constants in their order, whole ones as `int`: sizes, which are compiled in by JAX."""
        numbers = self.numbers(initial)
        return tuple(
            int(numbers[key_of(c.target)]) if c.size else np.asarray(numbers[key_of(c.target)]) for c in self.constants
        )

    def named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Such numbers by the names of the constants."""
        return {key_of(c.target): value for c, value in zip(self.constants, arguments, strict=True)}

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels among the definitions."""
        return [d for d in self.definitions if isinstance(d, Kernel)]

    @property
    def arrays(self) -> list[Definition]:
        """The named arrays among the definitions."""
        return [d for d in self.definitions if isinstance(d, Definition)]

    def kernel_of(self, name: str) -> Kernel | None:
        """The kernel that has a function of this name."""
        return self._functions.get(name)

    @functools.cached_property
    def _functions(self) -> dict[str, Kernel]:
        return {name: kernel for kernel in reversed(self.kernels) for name in kernel.values}


_PLAIN: dict[str, Any] = {}


def function(name: str, rule: Callable[[Any, int], Any] | None = None) -> Any:
    """The SymPy function called `name`; `rule(arguments, index)` is its derivative by argument `index` (from 1)."""
    if rule is not None:
        return type(name, (sp.Function,), {"fdiff": lambda self, index=1: rule(self.args, index)})
    if name not in _PLAIN:
        _PLAIN[name] = type(name, (sp.Function,), {})
    return _PLAIN[name]


E, Gate, Partial, Rate = (function(name) for name in ("E", "Gate", "Partial", "Rate"))
"""Shown only: the mean of a product over the inputs, pi^(n)(z), dy/dx, dx/dt."""
He, Mean, Largest = (function(name) for name in ("He", "Mean", "Largest"))
"""Evaluated too: Hermite's He_n(z); Mean(f, x), an expectation over a number x whose law the statement gives; and
Largest(f, i), the largest f over an index.  Derivatives take that as constant: it is subtracted where it cancels."""


class Indicator(sympy.Function):
    """Indicator(condition), 1 where it holds and 0 elsewhere; its derivative is that away from where it jumps, 0."""

    is_real = True

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Return 1 or 0 where the condition is decided."""
        return sp.Integer(bool(args[0])) if args[0] in (sp.true, sp.false) else None

    def _eval_derivative(self, s: Any) -> Any:
        return sp.Integer(0)


class Special(sympy.Function):
    """A function of numbers that neither SymPy nor the array libraries have.

    `code` is a Python function of numbers or whole arrays in terms of `np` and `erf`, `compiled` ("module:function")
    the same as numba compiles it.
    """

    code: Callable[..., Any]
    compiled: str


class AtLeast(sympy.Function):
    """AtLeast(x, y), the larger of two numbers; SymPy's `Max` tries to decide which, for a tenth of a second a time."""

    nargs = 2
    is_real = True

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Return the larger of two numbers; anything else stays as it is."""
        return max(args) if all(x.is_comparable for x in args) else None

    def fdiff(self, argindex: int = 1) -> Any:
        """Return the derivative away from where both are equal."""
        x, y = self.args
        return Indicator(sp.Ge(x, y) if argindex == 1 else sp.Lt(x, y))


def key_of(e: Any) -> str:
    """The declared name of an atom: of an array's entry, of a symbol, of a function."""
    if isinstance(e, str):
        return e
    return e.base.name if isinstance(e, sp.Indexed) else getattr(e, "name", str(e))


def sign(index: Any) -> Any:
    """+1 and -1 for the two values of an index."""
    return sp.Piecewise((1, sp.Eq(index, 0)), (-1, True))


def in_order(entry: Any) -> Any:
    """The entry of a symmetric matrix with its last two indices in one order, whichever they stood in.

    >>> i, j = sp.Idx("i"), sp.Idx("j")
    >>> in_order(Base("Q")[j, i])
    Q[i, j]
    """
    *stack, row, column = entry.indices
    return entry.base[(*stack, *sorted((row, column), key=str))]


def indices_of(target: Any) -> tuple[Any, ...]:
    """The indices of a target; none for a number."""
    return target.indices if isinstance(target, sp.Indexed) else ()
