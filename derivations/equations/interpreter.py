"""The numbers of a statement: every index is an axis, a sum adds an axis in front and removes it.

An index at depth p of the scope is arange(n) followed by p axes. X[i, r] is thus X indexed by two arrays that
broadcast: terms are never rearranged, and an expression that is independent of an index has no axis for it. The
evaluation is therefore slow (each statement in milliseconds), and an independent check of the printed and of the
compiled equations.
"""

import dataclasses
import functools
import operator
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.statement import Definition, Special, Statement, function, indices_of, key_of, sp

NUMPY = {
    "asin": np.arcsin,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "factorial": lambda n: _special().gamma(n + 1.0),
    "binomial": lambda n, k: _special().binom(n, k),
    "loggamma": lambda x: _special().gammaln(x),
    "erf": lambda x: _special().erf(x),
    "Abs": np.abs,
    "AtLeast": np.maximum,
    "Indicator": lambda holds: np.asarray(holds, float),
}
COMPARED = {
    sp.Eq: np.equal,
    sp.Ne: np.not_equal,
    sp.Gt: np.greater,
    sp.Ge: np.greater_equal,
    sp.Lt: np.less,
    sp.Le: np.less_equal,
    sp.And: np.logical_and,
    sp.Or: np.logical_or,
}
FOLDED = {sp.Add: operator.add, sp.Mul: operator.mul, sp.Max: np.maximum, sp.Min: np.minimum}
STEP, REACH = 1 / 32, 40.0
"""The midpoint rule of integrals over (0, oo), exponentially accurate for even analytic integrands that decay."""


@functools.cache
def _special() -> Any:
    """SciPy's special functions. Their import takes .3 s, and most runs evaluate none by the interpreter."""
    from scipy import special

    return special


class Evaluator:
    """The statement at given sizes, constants and a state, by their names."""

    def __init__(self, statement: Statement, values: Mapping[str, Any]) -> None:
        self.statement, self.values = statement, {k: np.asarray(v) for k, v in values.items()}
        self.memory: dict[Any, Any] = {}
        self.frames: list[dict[Any, Any]] = [{}]
        self.numbers: dict[Any, int] = {(): 0}
        for variable in statement.state:
            if variable.unit:
                name = key_of(variable.target)
                self.values[name] = self.values[name] + np.diag(1.0 - np.diag(self.values[name]))
        for definition in statement.arrays:
            self._define(definition)

    def _define(self, d: Definition) -> None:
        if d.rule is not None:
            found = d.rule.code(*(self.values[key_of(v)] for v in d.value))
            for target, value in zip(d.targets, found if len(d.targets) > 1 else (found,), strict=True):
                self.values[key_of(target)] = np.asarray(value)
            return
        for position, target in enumerate(d.targets):
            value = d.value
            if d.kernel is not None:
                value = function(list(d.kernel.values)[position])(*d.value)
            self.values[key_of(target)] = self._placed({}, target, self.at(target, value))

    def rates(self) -> dict[str, np.ndarray]:
        """The right-hand side of every equation, by the name of its variable; 0 where no equation moves an entry."""
        found: dict[str, Any] = {key_of(v.target): np.zeros(self._shape(v.target)) for v in self.statement.state}
        for e in self.statement.equations:
            found[key_of(e.target)] = self._placed(found, e.target, self.at(e.target, e.rate))
        return found

    def loss(self) -> float:
        """The loss of the statement."""
        return float(self.value(self.statement.loss))

    def watched(self) -> dict[str, np.ndarray]:
        """The observables that are saved with the state, by their names."""
        return {key_of(w.target): self.at(w.target, w.value) for w in self.statement.watched}

    def at(self, target: Any, expression: Any) -> np.ndarray:
        """The array of an expression over the ranges of the indices of its target."""
        indices = indices_of(target)
        shape = tuple(self.span(i).size for i in indices)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # in branches that are not used
            values = self.value(expression, tuple(reversed(indices)))
        return np.array(np.broadcast_to(values, shape), float)

    def _shape(self, target: Any) -> tuple[int, ...]:
        """The shape of an array whose indices start at 0."""
        return tuple(int(self.span(i)[-1]) + 1 if self.span(i).size else 0 for i in indices_of(target))

    def _placed(self, known: Mapping[str, np.ndarray], target: Any, values: np.ndarray) -> np.ndarray:
        """`values` at the ranges of the target's indices in the known array, or in zeros."""
        if all(i.lower == 0 for i in indices_of(target)) and key_of(target) not in known:
            return values
        old = known.get(key_of(target))
        whole = np.zeros(self._shape(target)) if old is None else old
        whole[np.ix_(*(self.span(i) for i in indices_of(target)))] = values
        return whole

    def span(self, index: Any) -> np.ndarray:
        """The values of an index."""
        low, high = (sp.sympify(edge) for edge in (index.lower, index.upper))
        if high == sp.oo:
            return np.arange(int(low), self.statement.terms[index.name])
        return np.arange(self._whole(low), self._whole(high) + 1)

    def _whole(self, edge: Any) -> int:
        return int(edge.subs({s: int(self.values[s.name]) for s in edge.free_symbols}))

    def rule(self, variable: Any) -> tuple[np.ndarray, np.ndarray]:
        """The points and weights of an index, of the number of a `Mean`, or of an integral over (0, oo)."""
        if isinstance(variable, sp.Idx):
            points = self.span(variable)
            return points, np.ones(points.size)
        if variable.name in self.statement.laws:
            low, high, nodes = self.statement.laws[variable.name]
            low, high = (self.value(sp.sympify(edge)) for edge in (low, high))
            x, w = np.polynomial.legendre.leggauss(nodes)
            return low + (high - low) * (x + 1) / 2, w / 2
        points = np.arange(STEP / 2, REACH, STEP)
        return points, np.full(points.size, STEP)

    def total(self, body: Any, variable: Any, depth: int) -> Any:
        """The weighted sum over the first axis, or a multiple of a body without this axis."""
        weights = self.rule(variable)[1]
        body = np.asarray(body, float)
        return np.tensordot(weights, body, 1) if body.ndim > depth else weights.sum() * body

    def value(self, e: Any, scope: tuple[Any, ...] = (), frame: int = 0) -> Any:
        """The number or array of an expression; `frame` numbers the arguments of the surrounding kernel."""
        key = (e, scope, frame)
        if key not in self.memory:
            self.memory[key] = self._value(e, scope, frame)
        return self.memory[key]

    def _value(self, e: Any, scope: tuple[Any, ...], frame: int) -> Any:
        of = functools.partial(self.value, scope=scope, frame=frame)
        if e.is_number and not e.args:
            return float(e)
        if e in scope:  # an index, or an integration variable
            return self.rule(e)[0].reshape(-1, *[1] * scope.index(e))
        if isinstance(e, sp.Symbol):
            bound = self.frames[frame]
            return self.value(*bound[e]) if e in bound else self.values[e.name].astype(float)
        if isinstance(e, sp.Indexed):
            return self.values[key_of(e)][tuple(np.asarray(of(i)).astype(int) for i in e.indices)]
        if isinstance(e, (sp.Sum, sp.Integral)):
            index = e.limits[-1][0]
            inner = type(e)(e.function, *e.limits[:-1]) if len(e.limits) > 1 else e.function  # nested sums are merged
            if index in scope:
                raise ValueError(f"{index} is summed over inside its own scope: give the sum another index")
            return self.total(self.value(inner, (*scope, index), frame), index, len(scope))
        if type(e).__name__ == "Mean":
            return self.total(self.value(e.args[0], (*scope, e.args[1]), frame), e.args[1], len(scope))
        if type(e).__name__ == "Largest":
            body = np.asarray(self.value(e.args[0], (*scope, e.args[1]), frame), float)
            return body.max(axis=0) if body.ndim > len(scope) else body
        kernel = self.statement.kernel_of(type(e).__name__)
        if kernel is not None:
            inner = tuple((symbol, (a, scope, frame)) for symbol, a in zip(kernel.arguments, e.args, strict=True))
            return self.value(kernel.values[type(e).__name__], scope, self._number(inner))
        return _elementary(e, of)

    def _number(self, inner: tuple[Any, ...]) -> int:
        """The number of the arguments of a kernel; nested tuples would be hashed again for everything inside."""
        if inner not in self.numbers:
            self.numbers[inner] = len(self.frames)
            self.frames.append(dict(inner))
        return self.numbers[inner]


def _elementary(e: Any, of: Any) -> Any:
    """An elementary operation on values."""
    for kind, operation in FOLDED.items():
        if isinstance(e, kind):
            return functools.reduce(operation, map(of, e.args))
    for kind, operation in COMPARED.items():
        if isinstance(e, kind):
            return functools.reduce(operation, map(of, e.args))
    if isinstance(e, sp.Pow):
        return np.power(np.asarray(of(e.base), float), of(e.exp))
    if isinstance(e, sp.KroneckerDelta):
        return (of(e.args[0]) == of(e.args[1])) * 1.0
    if isinstance(e, sp.Piecewise):
        return np.select([np.asarray(of(c), bool) for _, c in e.args], [of(v) for v, _ in e.args])
    if isinstance(e, sp.logic.boolalg.BooleanAtom):
        return bool(e)
    if isinstance(e, sp.Mod):
        return np.mod(of(e.args[0]), of(e.args[1]))
    name = type(e).__name__
    if name == "He":
        return _special().eval_hermitenorm(np.asarray(of(e.args[0])).astype(int), np.asarray(of(e.args[1]), float))
    operation = _special_function(type(e)) if isinstance(e, Special) else NUMPY.get(name) or getattr(np, name)
    return operation(*map(of, e.args))


@functools.cache
def _special_function(kind: Any) -> Any:
    """The code of a special function for arrays of NumPy."""
    return types.FunctionType(kind.code.__code__, {**kind.code.__globals__, "erf": _special().erf}, kind.__name__)


def evaluate(statement: Statement, values: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The right-hand side of a statement at sizes, constants and a state, by the names of its variables."""
    return Evaluator(statement, values).rates()


def infinite_tables(statement: Statement, numbers: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The values of definitions over an infinite index, truncated as the statement says, by their names."""
    tables = _tables(statement)
    if not tables:
        return {}
    alone = dataclasses.replace(
        statement, definitions=(*statement.kernels, *tables), state=(), equations=(), loss=None, conserved=()
    )
    needed = symbols_of_tables(statement)
    values = Evaluator(alone, {name: value for name, value in numbers.items() if name in needed}).values
    return {key_of(t): values[key_of(t)] for d in tables for t in d.targets}


def symbols_of_tables(statement: Statement) -> frozenset[str]:
    """The names of all symbols in definitions over an infinite index."""
    return frozenset(s.name for d in _tables(statement) for s in sp.sympify(d.value).free_symbols)


def _tables(statement: Statement) -> list[Definition]:
    return [d for d in statement.arrays if any(i.upper == sp.oo for t in d.targets for i in indices_of(t))]
