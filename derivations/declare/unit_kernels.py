"""The kernels of units for a statement: means of products of units and of their derivatives, as functions."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from derivations.declare import symbols
from derivations.declare.algebra import Algebra, below
from derivations.declare.gates import Part
from derivations.declare.moments import Program, Tables
from derivations.declare.orthants import Orthant
from derivations.declare.series import means_of, series_of
from derivations.statement import AtLeast, Base, Definition, Indicator, Kernel, Named, function, sp

DEGREE = sp.Idx("degree", (0, sp.oo))
"""The degree of a term of a series in a correlation."""
LEAST = sp.Float("1e-290")
"""Replacement for a determinant that vanishes."""


class Mean(NamedTuple):
    """A mean over units, one or a pair: the array that contains it, and the parts of the product."""

    name: str
    parts: tuple[Part, ...]


class Kernels:
    """The kernels of units for a statement, with the constants of their series and means.

    Kernels of units of the same shapes are shared, even between groups.
    """

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.made: list[Kernel] = []
        self.constants: dict[str, Any] = {}
        self.zero: set[str] = set()
        self._known: dict[Any, tuple[Kernel, list[str]]] = {}

    def kernel(
        self, kinds: Sequence[int], parts: Sequence[tuple[Part, ...]], same_unit: bool = False
    ) -> tuple[Kernel, list[str]]:
        """The kernel of the means of some products of parts, one part of each unit; `same_unit` is True for one
        unit twice.

        The functions are listed in the order of the parts, with "" for a mean that vanishes.
        """
        algebra = self.algebra
        shapes = [algebra.shapes[g] for g in kinds]
        key = (tuple(shapes), tuple(map(algebra.scalars, kinds)), tuple(parts), same_unit)
        if key not in self._known:
            tables = Tables()
            program = Program(
                shapes, list(map(algebra.scalars, kinds)), tables, same_unit, moved=algebra.mean is not None
            )
            values = [compilable(value) for value in program.expressions(parts)]
            number = len(self._known)
            places = self._looked_up(number, tables, program)
            names = [f"mean{below(number, k)}" for k in range(len(values))]
            names = [name if value != 0 else "" for name, value in zip(names, values, strict=True)]
            functions = {name: value.xreplace(places) for name, value in zip(names, values, strict=True) if name}
            # Polynomials in series are long and have no brackets that cancel.
            written = not tables.pairs
            kernel = Kernel(f"kernel{below(number)}", tuple(program.symbols()), functions, as_written=written)
            self._known[key] = kernel, names
            if functions:
                self.made.append(kernel)
        return self._known[key]

    def definitions(
        self, kinds: Sequence[int], indices: Sequence[Any], means: Sequence[Mean], meaning: str
    ) -> Iterator[Definition]:
        """The arrays of some means over units with these indices, one index twice for one unit; other means are in
        `zero`.
        """
        same_unit = len(indices) == 2 and indices[0] == indices[1]
        kernel, names = self.kernel(kinds, [mean.parts for mean in means], same_unit)
        axes = (*self.algebra.of_fields, *dict.fromkeys(indices))
        targets = tuple(Base(mean.name)[axes] for mean, name in zip(means, names, strict=True) if name)
        self.zero |= {mean.name for mean, name in zip(means, names, strict=True) if not name}
        if targets:
            yield Definition(targets, self.algebra.arguments(kinds, indices), meaning, kernel)

    def _looked_up(self, number: int, tables: Tables, program: Program) -> dict[Any, Any]:
        """The functions of a correlation and the constants for the series S[k] and the means m[k]."""
        places: dict[Any, Any] = {}
        values = means_of(tables, self.algebra.values)
        for k, value in enumerate(values):
            name = f"E{below(number, k)}"
            self.constants[name] = value
            places[sp.Symbol(f"m[{k}]", real=True)] = sp.Symbol(name)
        if not tables.pairs:
            return places
        first, _, second, _ = tables.pairs[0]
        rho = program.entry(program.field(0, first.slot), program.field(1, second.slot))
        for k, parities in enumerate(series_of(tables, self.algebra.values)):
            places[sp.Symbol(f"S[{k}]", real=True)] = sp.Add(
                *(self._series(f"{below(number, k)}{mark}", row, rho) for mark, row in parities.items())
            )
        return places

    def _series(self, place: str, coefficients: np.ndarray, rho: Any) -> Any:
        """A power series in a correlation, as a separate function."""
        name, x = f"series{place}", sp.Symbol("rho")
        self.constants[f"c{place}"] = coefficients
        total = sp.Sum(Base(f"c{place}")[DEGREE] * x**DEGREE, DEGREE)
        self.made.append(Kernel(name, (x,), {name: total}))
        return function(name)(rho)

    @property
    def named(self) -> tuple[Named, ...]:
        """The constants of the series and means."""
        return tuple(
            Named(Base(name)[DEGREE], "coefficients of a series in the correlation")
            if np.ndim(value)
            else Named(sp.Symbol(name), "mean of a function of a standard normal field")
            for name, value in self.constants.items()
        )

    @property
    def terms(self) -> dict[str, int]:
        """The number of terms of the series."""
        lengths = [np.size(value) for value in self.constants.values() if np.ndim(value)]
        return {DEGREE.name: max(lengths)} if lengths else {}

    def numbers(self) -> dict[str, Any]:
        """The values of the constants; shorter series end in zeros."""
        count = max(self.terms.values(), default=0)
        return {
            name: np.pad(value, (0, count - np.size(value))) if np.ndim(value) else value
            for name, value in self.constants.items()
        }


def compilable(value: Any) -> Any:
    """A mean in functions of every back end: roots of arguments that rounding may make negative, angles, orthants."""
    value = value.replace(sp.Function("orthant"), Orthant).replace(sp.Function("angle"), sp.atan2)
    value = value.replace(symbols.own()["step"], lambda x: Indicator(sp.Gt(x, 0)))
    return value.replace(lambda e: e.is_Pow and e.exp.is_Rational and e.exp.q == 2 and e.base.is_Add, _floored)


def _floored(root: Any) -> Any:
    """A root of x y - t^2, which rounding may make negative at t^2 = x y; as a denominator, it is replaced by a
    positive floor.
    """
    unit_values = {s: sp.Integer(1) for s in root.base.free_symbols if re.fullmatch(r"c\d+_\d+", s.name)}
    return AtLeast(root.base, LEAST) ** root.exp if root.base.xreplace(unit_values) == 0 else root
