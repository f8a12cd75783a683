"""E[c_a c_b] of the online limit: sums over quadruples of units, or arcsines where all units are erf.

E[c_i c_j] = w_i w_j (sum over units k, l of w_k w_l E[phi'_i phi'_j phi_k phi_l] + noise^2 E[phi'_i phi'_j])

A label y of a cluster in the place of a teacher adds y^2 to noise^2 and -2 y sum over k of w_k E[phi'_i phi'_j phi_k].
"""

from collections.abc import Iterator, Sequence
from typing import Any

from derivations.declare import arcsines
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.gates import Part, erf_factors
from derivations.declare.unit_kernels import Kernels
from derivations.statement import Base, Definition, function, sp

NOISE = sp.Symbol("noise")


def entry(symbols: Algebra, one: Vector, i: Any, two: Vector, j: Any) -> Any:
    """E[c_i c_j] of two vectors; each pair of them is held once."""
    if symbols.vectors.index(one) > symbols.vectors.index(two):
        one, i, two, j = two, j, one, i
    return Base(f"E_{symbols.label(one, two)}")[(*symbols.cluster, i, j)]


def definitions(symbols: Algebra, kernels: Kernels, squared: bool) -> Iterator[Definition]:
    """E[c_i c_j] of all pairs of vectors that are trained, and what they are made of."""
    factors = erf_factors(symbols.shapes)
    if factors:
        yield from arcsines.definitions(symbols, factors, squared)
    for n, one in enumerate(symbols.vectors):
        for two in symbols.vectors[n:]:
            if symbols.moves(one) and symbols.moves(two):
                i, j = symbols.index("i", one.group), symbols.index("j", two.group)
                places = (one, i, two, j)
                if factors:
                    value = arcsines.total(symbols, factors, places, squared)
                else:
                    value = quadruples(symbols, kernels, places, squared)
                weights = symbols.weight(one.group, i) * symbols.weight(two.group, j)
                yield Definition((entry(symbols, one, i, two, j),), weights * value, "E[c_i c_j]")


def quadruples(symbols: Algebra, kernels: Kernels, places: tuple[Vector, Any, Vector, Any], squared: bool) -> Any:
    """E[phi'_i phi'_j (sum_k w_k phi_k + noise)^2] of units that are polynomials."""
    one, i, two, j = places
    slopes = [symbols.shapes[v.group].slopes[symbols.group(v).slots.index(v.slot)] for v in (one, two)]
    given = 0 if symbols.labels is None else symbols.labels
    found = (NOISE**2 + given**2) * mean(symbols, kernels, (one.group, two.group), slopes, (i, j))
    met = [g for g in symbols.groups if squared or not symbols.is_student(g)]
    for n, k in enumerate(met):
        for m in met[n:]:
            c, e = symbols.index("k", k), symbols.index("l", m)
            kinds = (one.group, two.group, k, m)
            parts = (*slopes, symbols.shapes[k].value, symbols.shapes[m].value)
            value = mean(symbols, kernels, kinds, parts, (i, j, c, e))
            weights = symbols.weight(k, c) * symbols.weight(m, e)
            found += (1 if k == m else 2) * sp.Sum(weights * value, c, e)
        if given != 0:
            parts, c = (*slopes, symbols.shapes[k].value), symbols.index("k", k)
            value = mean(symbols, kernels, (one.group, two.group, k), parts, (i, j, c))
            found -= 2 * given * sp.Sum(symbols.weight(k, c) * value, c)
    return found


def mean(
    symbols: Algebra, kernels: Kernels, kinds: Sequence[int], parts: Sequence[Part], indices: Sequence[Any]
) -> Any:
    """The mean of a product of parts, one of each unit."""
    _, (name,) = kernels.kernel(kinds, [tuple(parts)])
    return function(name)(*symbols.arguments(kinds, indices)) if name else sp.Integer(0)
