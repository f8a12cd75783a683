"""Types for the equations of a tier, which can be read, printed and evaluated.

A `Statement` is SymPy in index notation: `Idx` for index sets, `Indexed` for arrays, `Sum` over an `Idx`, functions for
named kernels. `derivations.equations.interpreter` evaluates it without rearrangements, and
`derivations.equations.lower` converts it for compilation. The printers of `odesim.show.page` write it for a reader.

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
"""SymPy without types, because its annotations are too imprecise here."""
Base = sp.IndexedBase
expm1: Any = cfunctions.expm1
log1p: Any = cfunctions.log1p
HALF = sp.Rational(1, 2)


@dataclasses.dataclass(frozen=True)
class Named:
    """A state variable or a constant: `target` (an `Indexed`, or a symbol), its meaning, and a constant's default.

    The default is a number, or NumPy code in the names declared before it. With `unit` the diagonal is 1 by definition:
    it is never integrated, because a deviation could grow. `whole` marks an array of whole numbers.

    A state variable that is integrated also has the names of its dimensions (`dims`), `bounds` of its entries, its
    `symbol` in the paper, and `symmetric` for a symmetric matrix in its last two indices, of which half is integrated.
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

    The first `orders` arguments are whole numbers, written as subscripts. `means` is the printed definition of each
    function (expectations, derivatives), `values` is the closed form or series for its evaluation. With `as_written`
    the values keep their brackets, because terms cancel inside them that would not cancel after an expansion.
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
    """Named array operation that cannot be written as sums: a mean by quadrature, an ordering, the root of an equation.

    `code` is a Python function of whole arrays that needs only `np`.  It is evaluated, and the Python page prints it
    after the `helpers` that it calls.  The definition that uses the rule describes its result in `means`.

    `compiled` ("module:function") is the same function as loops for numba.  Its arguments are numbers and matrices; the
    arrays that it fills come last.  An array with more than two indices is passed as a matrix, with the first index
    and all others combined.
    """

    name: str
    code: Callable[..., Any]
    helpers: tuple[Callable[..., Any], ...] = ()
    compiled: str = ""


@dataclasses.dataclass(frozen=True)
class Shortcut:
    """Loops that fill an array faster than its formula, as sorting is faster than comparing all pairs.

    `compiled` ("module:function") takes the arrays named in `arguments`, like that of a `Rule`.  Only the compiled
    engine uses a shortcut.  Pages, JAX, derivatives and the interpreter evaluate the formula; tests compare the two.
    After the arrays of its definition the function fills those of `also`, which have their own definitions below.
    `groups` has the number of arrays in each argument of the function; several arrays form a tuple.
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
    """Named array: target = value.

    Several targets can share one call of a `kernel`, whose arguments are `value`, or of a `rule`, whose arguments are
    the arrays named in `value`.  `means` is printed together with the value or, for a rule, instead of it.  A
    `shortcut` computes the same array in less time.
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
    """Observable that is saved together with the state: target = value, with the attributes of a `Named`."""

    target: Any
    value: Any
    meaning: str
    dims: tuple[str, ...] = ()
    bounds: tuple[float, float] = (0.0, 1.0)
    symbol: str = ""


@dataclasses.dataclass(frozen=True)
class Step:
    """Line of the derivation that is printed but not evaluated: left = right."""

    left: Any
    right: Any
    meaning: str = ""


@dataclasses.dataclass(frozen=True)
class Example:
    """Example of a printed page: an initial state as NumPy code in the names of the constants.

    The example integrates to `until` and prints the times at which entries of the state `watched` pass `level`.
    """

    code: str
    watched: str
    level: float
    until: float


@dataclasses.dataclass(frozen=True)
class Statement:
    """Equations of one tier of one stage, from which its page is printed and its code is generated.

    The equations of a "flow" are rates, and those of a "recursion" one `step` of its clock.  A "map" (a stage without
    a clock) states its result by definitions.

    Attributes:
        bind: bind(initial) returns the values of the constants for a run.
        notation: Mapping from names to (LaTeX, text); other names are printed by SymPy.
        laws: For each variable of a `Mean`: the two ends of its uniform distribution, and the number of Gauss-Legendre
            nodes.
        terms: Numbers of terms at which infinite sums are truncated.
        rules: Sentences on the behaviour where the right-hand side jumps.
        loss_is_square: True if the loss is a mean square.  If its sums cancel, a small negative result is set to 0.

    A statement with a `tier` is also compiled and integrated (`derivations.equations.tier`).  It then has these
    attributes:

        sizes: Lengths of the axes of the state, by the names of their symbols.
        begin: begin(initial) returns the state at time 0.
        admits: admits(initial) raises `UsageError` for an initial state that the tier does not support.
        crossings: Events that are located.
        watched: Numbers and arrays that are evaluated at saved states.
        observables: Other reported quantities.
        rows: Index whose entries do not interact, such as neurons under a correlation loss.  It is the first index of
            every state variable, and the loss is a sum over it.  The equations are then compiled for one entry, and are
            used for any number of entries.
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
        """Return the constants of the page, by name, with their initial values."""
        known = self.bind(initial)
        return {key_of(c.target): known[key_of(c.target)] for c in self.constants}

    @functools.cached_property
    def fingerprint(self) -> str:
        """Return 16 hexadecimal characters that identify the equations, without the values of the constants."""
        parts: list[Any] = [*self.equations, self.loss, self.loss_is_square, self.step, dict(self.laws)]
        parts += [dict(self.terms), [(n.target, n.unit, n.symmetric) for n in self.state], self.rows]
        parts += [(n.target, n.size) for n in self.constants] + [(w.target, w.value) for w in self.watched]
        parts += [(d.targets, d.value, d.kernel and d.kernel.name, d.rule and d.rule.name) for d in self.arrays]
        parts += [(k.name, k.arguments, dict(k.values), k.orders, k.as_written) for k in self.kernels]
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:16]

    def arguments(self, initial: Initial) -> tuple[Any, ...]:
        """The numbers of the constants in their order, whole ones as `int`: sizes, which are constants of code compiled
        by JAX.
        """
        numbers = self.numbers(initial)
        return tuple(
            int(numbers[key_of(c.target)]) if c.size else np.asarray(numbers[key_of(c.target)]) for c in self.constants
        )

    def named(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        """Numbers of `arguments` by the names of the constants."""
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
    """The SymPy function called `name`; `rule(arguments, index)` is its derivative with respect to argument `index`
    (from 1).
    """
    if rule is not None:
        return type(name, (sp.Function,), {"fdiff": lambda self, index=1: rule(self.args, index)})
    if name not in _PLAIN:
        _PLAIN[name] = type(name, (sp.Function,), {})
    return _PLAIN[name]


E, Gate, Partial, Rate = (function(name) for name in ("E", "Gate", "Partial", "Rate"))
"""For display only: the mean of a product over the inputs, pi^(n)(z), dy/dx, dx/dt."""
He, Mean, Largest = (function(name) for name in ("He", "Mean", "Largest"))
"""Also evaluated: Hermite's He_n(z); Mean(f, x), an expectation over a number x with the distribution in the statement;
and Largest(f, i), the largest f over an index. Derivatives treat `Largest` as constant, because it is subtracted where
it cancels.
"""


class Indicator(sympy.Function):
    """Indicator(condition), 1 if the condition is true, else 0; its derivative is 0, without the jumps."""

    is_real = True

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Return 1 or 0 if the condition is decided."""
        return sp.Integer(bool(args[0])) if args[0] in (sp.true, sp.false) else None

    def _eval_derivative(self, s: Any) -> Any:
        return sp.Integer(0)


class Special(sympy.Function):
    """A function of numbers that neither SymPy nor the array libraries have.

    `code` is a Python function of numbers or whole arrays in terms of `np` and `erf`, and `compiled`
    ("module:function") the same function for numba.
    """

    code: Callable[..., Any]
    compiled: str


class AtLeast(sympy.Function):
    """AtLeast(x, y), the larger of two numbers; SymPy's `Max` would compare them symbolically, for a tenth of a second
    each time.
    """

    nargs = 2
    is_real = True

    @classmethod
    def eval(cls, *args: Any) -> Any:
        """Return the larger of two numbers; other arguments are unchanged."""
        return max(args) if all(x.is_comparable for x in args) else None

    def fdiff(self, argindex: int = 1) -> Any:
        """Return the derivative for different arguments."""
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
    """The entry of a symmetric matrix with its last two indices in a standard order.

    >>> i, j = sp.Idx("i"), sp.Idx("j")
    >>> in_order(Base("Q")[j, i])
    Q[i, j]
    """
    *stack, row, column = entry.indices
    return entry.base[(*stack, *sorted((row, column), key=str))]


def indices_of(target: Any) -> tuple[Any, ...]:
    """The indices of a target; empty for a number."""
    return target.indices if isinstance(target, sp.Indexed) else ()
