"""Evaluation of a program by whole arrays, with NumPy or with JAX.

Every index of a formula is one axis of an array, and formulas broadcast. NumPy evaluates the set-up of a program and
checks the compiled engine. Under `jax.jit` the same functions are a traceable right-hand side.
"""

import functools
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from derivations.contract.layout import Layout
from derivations.equations.interpreter import infinite_tables
from derivations.equations.program import (
    NODE_W,
    NODE_X,
    Apply,
    Define,
    Item,
    Pairs,
    Product,
    Program,
    Ranges,
    Use,
    is_leaf,
    series,
)
from derivations.statement import AtLeast, Rule, Special, key_of, sp

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
RELATIONS = {
    sp.Eq: "equal",
    sp.Ne: "not_equal",
    sp.Gt: "greater",
    sp.Ge: "greater_equal",
    sp.Lt: "less",
    sp.Le: "less_equal",
}
FOLDS = {sp.Add: operator.add, sp.Mul: operator.mul}
NAMES = {"asin": "arcsin", "atan": "arctan", "atan2": "arctan2", "Abs": "abs"}


class Arrays:
    """Values of the arrays of a program by name, and the formulas that fill them.

    `library` is `numpy` or `jax.numpy`, `special` has its `erf` and `gammaln`.
    """

    def __init__(self, ranges: Ranges, values: Mapping[str, Any], library: Any = np, special: Any = None) -> None:
        self.ranges, self.values, self.xp = ranges, dict(values), library
        self.special = special or scipy_special()

    def run(self, item: Item) -> None:
        """Evaluate an item and store its arrays."""
        if isinstance(item, Apply):
            assert isinstance(item.rule, Rule), f"{item.rule.name} is only for the compiled engine"
            made = with_library(item.rule.code, self.xp)(*(self.values[name] for name in item.arguments))
            made = made if len(item.targets) > 1 else (made,)
            self.values.update({name: value for (name, _), value in zip(item.targets, made, strict=True)})
        elif isinstance(item, Pairs):
            for use in item.uses:
                self._use(item, use)
        elif isinstance(item, Product):
            self._multiply(item)
        else:
            self.values[item.name] = self._placed(item, self.define(item))

    def _multiply(self, product: Product) -> None:
        """Compute the sums of a product, one after the other."""
        for rows in product.rows:
            for k, (name, j) in enumerate(zip(rows.names, product.columns, strict=True)):
                parts = [
                    Define(name, (rows.axis, j), number * left * block[k], (r,))
                    for (number, left), block, r in zip(rows.left, product.right, product.inner, strict=True)
                    if block[k] is not None
                ]
                self.values[name] = functools.reduce(operator.add, map(self.define, parts))

    def _use(self, pairs: Pairs, use: Use) -> None:
        """The functions of a kernel at all entries, including mirrored pairs, which the engine omits."""
        shape = self._shape(use.axes)
        slots = {s.name: self.value(a, use.axes) for s, a in zip(pairs.slots, use.arguments, strict=True)}
        inner = Arrays(self.ranges, {**self.values, **slots}, self.xp, self.special)
        made = [self.xp.broadcast_to(inner.value(v, use.axes), shape) for v in pairs.values]
        self.values.update(zip(use.targets, made, strict=False))

    def define(self, item: Define) -> Any:
        """The array of a definition over the values of its axes."""
        if item.over and item.reduction == "sum":
            terms = [self._summed(term, item) for term in sp.Add.make_args(item.value)]
            return functools.reduce(operator.add, terms)
        value = self.xp.broadcast_to(self.value(item.value, item.domain), self._shape(item.domain))
        return self.xp.max(value, axis=tuple(range(len(item.axes), value.ndim))) if item.over else value

    def _shape(self, indices: tuple[Any, ...]) -> tuple[int, ...]:
        return tuple(map(self.ranges.size, indices))

    def _summed(self, term: Any, item: Define) -> Any:
        """One term of a sum: by `einsum` for a product of entries, which then needs no memory for the product."""
        shape = self._shape(item.axes)
        factors = sp.Mul.make_args(term)
        operands, subscripts, number = [], [], 1.0
        letters = dict(zip(item.domain, LETTERS, strict=False))
        for f in factors:
            value = self.value(f, item.domain)
            if not np.ndim(value):
                number = number * value
                continue
            present = [k for k in range(len(item.domain)) if value.shape[k] != 1]
            operands.append(value.reshape([value.shape[k] for k in present]))
            subscripts.append("".join(letters[item.domain[k]] for k in present))
        covered = set("".join(subscripts))
        for i in item.over:
            if letters[i] not in covered:  # it is independent of the index, or the index has one value
                number = number * self.ranges.size(i)
        kept = [i for i in item.axes if letters[i] in covered]
        target = "".join(letters[i] for i in kept)
        value = self.xp.einsum(",".join(subscripts) + "->" + target, *operands) if operands else 1.0
        full = [self.ranges.size(i) if i in kept else 1 for i in item.axes]
        return number * self.xp.broadcast_to(self.xp.reshape(self.xp.asarray(value), full), shape)

    def _placed(self, item: Define, value: Any) -> Any:
        """The values at the ranges of the axes inside an array that begins at 0."""
        if all(i.lower == 0 for i in item.axes):
            return value
        starts = [self.ranges.values(i).start for i in item.axes]
        return self.xp.pad(value, [(start, 0) for start in starts])

    def value(self, e: Any, domain: tuple[Any, ...]) -> Any:
        """A number, or an array with one axis for every index of `domain`, of length 1 for an index that does not
        occur.
        """
        if isinstance(e, sp.Idx):
            return self._along(np.array(self.ranges.values(e), float), e, domain)
        if isinstance(e, sp.Symbol):
            return self.values[e.name]
        if isinstance(e, sp.Indexed):
            return self._entry(e, domain)
        if e.is_number and not e.atoms(sp.Idx):
            return float(e)
        of = functools.partial(self.value, domain=domain)
        for kind, operation in FOLDS.items():
            if isinstance(e, kind):
                return functools.reduce(operation, map(of, e.args))
        if isinstance(e, sp.Pow):
            return _power(self.xp, of(e.base), e.exp, of)
        return self._call(e, of)

    def _call(self, e: Any, of: Callable[[Any], Any]) -> Any:
        name, xp = type(e).__name__, self.xp
        if isinstance(e, (sp.Max, sp.Min, AtLeast)):
            return functools.reduce(xp.minimum if isinstance(e, sp.Min) else xp.maximum, map(of, e.args))
        if isinstance(e, sp.Piecewise):
            *cases, last = e.args
            value = of(last[0]) if last[1] == sp.true else xp.where(self._condition(last[1], of), of(last[0]), np.nan)
            for case, condition in reversed(cases):
                value = xp.where(self._condition(condition, of), of(case), value)
            return value
        if name == "Indicator":
            return 1.0 * self._condition(e.args[0], of)
        if isinstance(e, sp.KroneckerDelta):
            return 1.0 * (xp.asarray(of(e.args[0])) == of(e.args[1]))
        if isinstance(e, series):
            return xp.polyval(xp.asarray(self.values[str(e.args[0])])[::-1], of(e.args[1]))
        values = [of(a) for a in e.args]
        if isinstance(e, Special):
            return with_library(type(e).code, xp, self.special.erf)(*values)
        if name == "Mod":
            return values[0] % values[1]
        if name in ("erf", "factorial", "binomial"):
            return getattr(self.special, name)(*values)
        return getattr(xp, NAMES.get(name, name))(*values)

    def _condition(self, c: Any, of: Callable[[Any], Any]) -> Any:
        if c in (sp.true, sp.false):
            return np.bool_(bool(c))
        for kind, name in RELATIONS.items():
            if isinstance(c, kind):
                return getattr(self.xp, name)(of(c.lhs), of(c.rhs))
        combine = {sp.And: operator.and_, sp.Or: operator.or_}
        if isinstance(c, sp.Not):
            return ~self._condition(c.args[0], of)
        return functools.reduce(combine[type(c)], (self._condition(a, of) for a in c.args))

    def _along(self, values: Any, index: Any, domain: tuple[Any, ...]) -> Any:
        return values.reshape([-1 if i == index else 1 for i in domain])

    def _entry(self, e: Any, domain: tuple[Any, ...]) -> Any:
        """The entries of an array: a view if its subscripts are distinct indices, else gathered."""
        array, subscripts = self.values[key_of(e)], e.indices
        plain = all(isinstance(i, sp.Idx) for i in subscripts) and len(set(subscripts)) == len(subscripts)
        if plain:
            cut = tuple(slice(v.start, v.stop) for v in map(self.ranges.values, subscripts))
            order = sorted(range(len(subscripts)), key=lambda k: domain.index(subscripts[k]))
            view = self.xp.transpose(array[cut], order)
            return view.reshape([self.ranges.size(i) if i in subscripts else 1 for i in domain])
        return array[tuple(self.subscript(i, domain) for i in subscripts)]

    def subscript(self, e: Any, domain: tuple[Any, ...]) -> Any:
        """The whole numbers of a subscript, which may be a sum of indices and constants."""
        if isinstance(e, sp.Idx):
            return self._along(np.array(self.ranges.values(e), int), e, domain)
        if is_leaf(e):
            return self.ranges.whole(e)
        if isinstance(e, (sp.Add, sp.Mul)):
            return functools.reduce(FOLDS[type(e)], (self.subscript(a, domain) for a in e.args))
        # A condition on indices, as in the place of the other one of two.
        return np.asarray(Arrays(self.ranges, self.ranges.numbers).value(e, domain)).astype(int)


def _power(xp: Any, base: Any, exponent: Any, of: Callable[[Any], Any]) -> Any:
    """base^exponent; whole and half powers by products, quotients and roots."""
    if exponent.is_Integer:
        value = xp.asarray(base) ** abs(int(exponent))
        return value if exponent > 0 else 1.0 / value
    if exponent in (sp.S.Half, -sp.S.Half):
        return xp.sqrt(base) if exponent > 0 else 1.0 / xp.sqrt(base)
    return xp.asarray(base) ** of(exponent)


class Library:
    """An array library with functions of NumPy that it lacks (Gauss-Legendre nodes): the `np` of a rule."""

    def __init__(self, library: Any) -> None:
        self.library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self.library, name) if hasattr(self.library, name) else getattr(np, name)


def with_library(function: Callable[..., Any], library: Any, erf: Any = None) -> Callable[..., Any]:
    """A function of a rule with `np` bound to an array library, and optionally `erf` to that of its arrays."""
    if library is np and erf is None:
        return function
    bound = {"np": np if library is np else Library(library)} | ({} if erf is None else {"erf": erf})
    return types.FunctionType(function.__code__, {**function.__globals__, **bound}, function.__name__)


@functools.cache
def scipy_special() -> Any:
    """Special functions for NumPy arrays; SciPy is imported only if a set-up needs one."""
    from scipy import special

    return types.SimpleNamespace(
        erf=special.erf, factorial=lambda n: special.gamma(np.asarray(n) + 1.0), binomial=special.binom
    )


def gauss_nodes(names: Iterable[str]) -> dict[str, np.ndarray]:
    """Nodes on [0, 1] and weights of every Gauss-Legendre rule among the names of arrays."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        for word, part in ((NODE_X, 0), (NODE_W, 1)):
            if name.startswith(word):
                rule = np.polynomial.legendre.leggauss(int(name.removeprefix(word)))
                found[name] = rule[part] / 2 + (0.5 if part == 0 else 0.0)
    return found


def evaluate(
    program: Program, numbers: Mapping[str, Any], state: Mapping[str, Any], library: Any = np, special: Any = None
) -> dict[str, Any]:
    """The rates of every component of the state, or the requested numbers of the program, from its constants and a
    state.

    `numbers` are the constants of the statement, with or without those of the set-up; `jax.jit` may trace them.
    """
    values = {**numbers, **with_unit_diagonals(program, state, library)}
    known = frozenset(numbers)
    missing = {} if all(item.writes <= known for item in program.setup) else _constants(program, numbers)
    arrays = Arrays(program.ranges, {**missing, **values}, library, special)
    with np.errstate(all="ignore"):
        for item in (*program.setup, *program.body):
            if not item.writes <= known:
                arrays.run(item)
    return collected(program, arrays.values, state, library)


def _constants(program: Program, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {**infinite_tables(program.statement, numbers), **gauss_nodes(program.reads)}


def with_unit_diagonals(program: Program, state: Mapping[str, Any], library: Any) -> dict[str, Any]:
    """The state with the diagonals that are 1 by definition."""
    found = dict(state)
    for v in program.statement.state:
        if v.unit:
            name = key_of(v.target)
            eye = np.eye(state[name].shape[0])
            found[name] = library.where(eye == 1.0, 1.0, state[name])
    return found


def collected(program: Program, values: Mapping[str, Any], state: Mapping[str, Any], library: Any) -> dict[str, Any]:
    """The rates by component from their arrays, or the requested numbers of the program."""
    numbers = {o.component: values[o.name] for o in program.outputs if o.component not in state}
    if numbers:
        return numbers
    found = {key_of(v.target): library.zeros(np.shape(state[key_of(v.target)])) for v in program.statement.state}
    for output in program.outputs:
        whole, value = found[output.component], values[output.name]
        if np.shape(value) == np.shape(whole) and all(i.lower == 0 for i in output.axes):
            found[output.component] = value
            continue
        at = np.ix_(*(np.array(program.ranges.values(i)) for i in output.axes))
        if library is np:
            whole[at] = value[at]
        else:
            found[output.component] = whole.at[at].set(value[at])
    return found


def libraries(backend: str) -> tuple[Any, Any]:
    """The array library of a back end, "numpy" or "jax", and its special functions."""
    if backend == "numpy":
        return np, scipy_special()
    import jax.numpy as jnp
    from jax.scipy import special

    factorial = functools.partial(_factorial, special.gammaln, jnp.exp)
    return jnp, types.SimpleNamespace(erf=special.erf, factorial=factorial)


def _factorial(gammaln: Callable[[Any], Any], exp: Callable[[Any], Any], n: Any) -> Any:
    return exp(gammaln(n + 1.0))


def unpacked(layout: Layout, y: Any, library: Any) -> dict[str, Any]:
    """The components of one flat state, which may be traced; entries that are not stored are the unit diagonal."""
    found = {}
    for part in layout.parts:
        places = layout.places(part.name, y.size)
        found[part.name] = library.where(places < 0, 1.0, y[np.maximum(places, 0)])
    return found


def packed(layout: Layout, components: Mapping[str, Any], library: Any) -> Any:
    """The flat vector of some components."""
    parts = [part.take(components[part.name]) for part in layout.parts]
    joined = library.concatenate(parts, axis=-1)
    return joined.reshape(-1)
