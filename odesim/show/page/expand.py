"""One entry of a right-hand side with explicit sums, inserted definitions and numbers for constants."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import sympy

from derivations.statement import Indicator, Largest, key_of
from hermite import polynomials
from odesim.errors import UsageError

sp: Any = sympy
REFUSED, INSTEAD = "an entry cannot be written out", "lambdify() evaluates these equations"
"""Beginning and end of the message on equations without such a form."""
Values = Mapping[Any, Any]


@dataclasses.dataclass
class Expansion:
    """Expansion of index notation at given sizes.

    `definitions` are the expressions of arrays and kernels by indexed symbol or applied function, `constants` numbers
    and arrays by name, `ones` the names of matrices whose diagonal is 1 by definition.
    """

    definitions: Mapping[Any, Any]
    constants: Mapping[str, Any]
    ones: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._named = {_named(target): (target, value) for target, value in self.definitions.items()}
        self._entries: dict[tuple[str, tuple[int, ...]], Any] = {}

    def expand(self, expression: Any, indices: Values) -> Any:
        """Return an expression with numbers for its free indices; `indices` maps every `Idx` to its number."""
        e = expression
        if e in indices:
            return indices[e]
        if isinstance(e, (sp.Sum, Largest)):
            return self._sum(e, indices) if isinstance(e, sp.Sum) else self._largest(e, indices)
        if isinstance(e, sp.Indexed):
            return self._entry(e.base, tuple(_whole(self.expand(index, indices)) for index in e.indices))
        if isinstance(e, sp.Piecewise):
            return self._piecewise(e, indices)
        if isinstance(e, sp.Symbol):
            return self._symbol(e)
        if not e.args:
            return e
        arguments = [self.expand(argument, indices) for argument in e.args]
        name = e.func.__name__
        if isinstance(e, sp.Function) and name in self._named:
            target, value = self._named[name]
            return self.expand(value, dict(zip(target.args, arguments, strict=True)))
        if isinstance(e, Indicator):
            return sp.Piecewise((1, arguments[0]), (0, True))
        if isinstance(e, sp.Function) and name == "He" and arguments[0].is_Integer and arguments[0] >= 0:
            return polynomials.symbolic(int(arguments[0]), arguments[1])
        if isinstance(e, sp.Function) and not hasattr(sp, e.func.__name__):
            raise UsageError(f"{REFUSED}: {e.func.__name__} is computed by NumPy; {INSTEAD}")
        try:
            return e.func(*arguments)
        except ValueError:  # the largest of values without an order, such as ranks of a state
            raise UsageError(f"{REFUSED}: {e.func.__name__} of a state is not a formula; {INSTEAD}") from None

    def _sum(self, e: Any, indices: Values) -> Any:
        """Return a sum with every term written out; later limits must not depend on earlier indices."""
        names = [limit[0] for limit in e.limits]
        ends = [[_whole(self.expand(end, indices)) for end in limit[1:]] for limit in e.limits]
        ranges = [range(low, high + 1) for low, high in ends]
        terms = (dict(zip(names, map(sp.Integer, places), strict=True)) for places in itertools.product(*ranges))
        return sp.Add(*(self.expand(e.function, {**indices, **term}) for term in terms))

    def _largest(self, e: Any, indices: Values) -> Any:
        """Return the largest value over an index."""
        value, index = e.args
        places = map(sp.Integer, range(_whole(self.expand(index.upper, {})) + 1))
        return sp.Max(*(self.expand(value, {**indices, index: place}) for place in places))

    def _entry(self, base: Any, places: tuple[int, ...]) -> Any:
        """Return an entry of an array: its definition, its number, or a symbol of the state."""
        name = str(base)
        if name in self._named:
            if (name, places) not in self._entries:
                target, value = self._named[name]
                substitution = dict(zip(target.indices, map(sp.Integer, places), strict=True))
                self._entries[name, places] = self.expand(value, substitution)
            return self._entries[name, places]
        if name in self.constants:
            return _number(np.asarray(self.constants[name])[places].item())
        return sp.Integer(1) if name in self.ones and len(set(places)) == 1 else base[places]

    def _symbol(self, e: Any) -> Any:
        """A symbol: its definition, its number, or itself."""
        if e.name in self._named:
            return self.expand(self._named[e.name][1], {})
        return _number(self.constants[e.name]) if e.name in self.constants else e

    def _piecewise(self, e: Any, indices: Values) -> Any:
        """Return the first branch whose condition holds; undecided branches are kept."""
        left = []
        for value, condition in e.args:
            holds = self.expand(condition, indices)
            if holds == sp.false:
                continue
            left.append((self.expand(value, indices), holds))
            if holds == sp.true:
                break
        return left[0][0] if left and left[0][1] == sp.true else sp.Piecewise(*left)


def _named(target: Any) -> str:
    """The name of an array, a scalar or a function."""
    return target.func.__name__ if isinstance(target, sp.Function) else key_of(target)


def _whole(value: Any) -> int:
    """Return a size or an index as a number. Raises `UsageError` for an infinite sum or a computed index."""
    if not sp.sympify(value).is_Integer:
        reason = "a kernel is an infinite series" if value == sp.oo else f"{value} has no number"
        raise UsageError(f"{REFUSED}: {reason}; {INSTEAD}")
    return int(value)


def _number(value: Any) -> Any:
    """Return a constant as a SymPy number: integers are exact, so that a factor 1.0 disappears; symbols are
    unchanged.
    """
    value = value.item() if isinstance(value, np.generic | np.ndarray) else value
    return sp.Integer(int(value)) if isinstance(value, float) and value.is_integer() else sp.sympify(value)
