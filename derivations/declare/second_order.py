"""E[c_a c_b] of the online limit: sums over quadruples of units, or arcsines if all units are erf.

E[c_i c_j] = w_i w_j (sum over units k, l of w_k w_l E[phi'_i phi'_j phi_k phi_l] + noise^2 E[phi'_i phi'_j])

With several heads h and g the weights are w_hi w_gj w_hk w_gl, and each head has a noise (`quadruples_of_heads`). A
rule has its psi and factor in place of phi' and w (`ruled`). A cluster's label y in place of a teacher adds y^2 to
noise^2, and -2 y sum over k of w_k E[phi'_i phi'_j phi_k].
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from derivations.declare import arcsines, episode_motion, ruled
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.gates import Part, erf_factors
from derivations.declare.kernels import met_by
from derivations.declare.unit_kernels import Kernels
from derivations.statement import Base, Definition, function, sp

if TYPE_CHECKING:
    from derivations.declare.motion import Motion

NOISE = sp.Symbol("noise")


def entry(symbols: Algebra, first: Vector, i: Any, second: Vector, j: Any) -> Any:
    """E[c_i c_j] of two vectors; each unordered pair is stored once."""
    if symbols.vectors.index(first) > symbols.vectors.index(second):
        first, i, second, j = second, j, first, i
    return Base(f"E_{symbols.label(first, second)}")[(*symbols.cluster, i, j)]


def definitions(motion: "Motion") -> Iterator[Definition]:
    """E[c_i c_j] of all pairs of trained vectors, and the definitions in it."""
    symbols, kernels, squared = motion.algebra, motion.kernels, motion.squared
    factors = erf_factors(symbols.shapes, met_by(symbols.declared))
    if factors:
        yield from arcsines.definitions(symbols, factors, squared)
    for n, first in enumerate(symbols.vectors):
        for second in symbols.vectors[n:]:
            if symbols.moves(first) and symbols.moves(second):
                i, j = symbols.index("i", first.group), symbols.index("j", second.group)
                places = (first, i, second, j)
                if first == second and (parts := episode_motion.reward(symbols, first)) is not None:
                    value = episode_motion.square(motion, first, parts)
                    yield Definition((entry(symbols, first, i, second, j),), value, "E[c_i c_j]")
                    continue
                if symbols.declared.several:
                    value = (
                        arcsines.total(symbols, factors, places, squared)
                        if factors
                        else quadruples_of_heads(symbols, kernels, places, squared)
                    )
                    yield Definition((entry(symbols, first, i, second, j),), value, "E[c_i c_j]")
                    continue
                if factors:
                    value = arcsines.total(symbols, factors, places, squared)
                else:
                    value = quadruples(symbols, kernels, places, squared)
                weights = ruled.front(symbols, first, i) * ruled.front(symbols, second, j)
                yield Definition((entry(symbols, first, i, second, j),), weights * value, "E[c_i c_j]")


def quadruples(symbols: Algebra, kernels: Kernels, places: tuple[Vector, Any, Vector, Any], squared: bool) -> Any:
    """E[psi_i psi_j X_i X_j] of polynomial units, with X = sum_k w_k phi_k + noise, or X = 1 for a rule without the
    loss.
    """
    left, i, right, j = places
    slopes = [ruled.slope(symbols, v) for v in (left, right)]
    first, second = (ruled.met(symbols, v, squared) for v in (left, right))
    label = 0 if symbols.labels is None else symbols.labels
    pair = mean(symbols, kernels, (left.group, right.group), slopes, (i, j))
    if not first or not second:  # X is 1 in one of them, or in both
        return _triples(symbols, kernels, places, slopes, [*first, *second]) if first or second else pair
    total = (NOISE**2 + label**2) * pair
    for k in first:
        for m in second:
            if first == second and k > m:  # twice the other
                continue
            c, e = symbols.index("k", k), symbols.index("l", m)
            kinds = (left.group, right.group, k, m)
            parts = (*slopes, symbols.shapes[k].value, symbols.shapes[m].value)
            value = mean(symbols, kernels, kinds, parts, (i, j, c, e))
            weights = symbols.weight(k, c) * symbols.weight(m, e)
            total += (1 if k == m or first != second else 2) * sp.Sum(weights * value, c, e)
    if label != 0:
        total -= 2 * label * _triples(symbols, kernels, places, slopes, first)
    return total


def quadruples_of_heads(
    symbols: Algebra, kernels: Kernels, places: tuple[Vector, Any, Vector, Any], squared: bool
) -> Any:  # fmt: skip
    """E[c_i c_j] of several heads and polynomial units, c_i = phi'_i sum_h w_hi (sum_k w_hk phi_k + noise_h).

    With w_ik = sum_h w_hi w_hk over the heads in use it is the sum over units k and l of w_ik w_jl E[phi'_i phi'_j
    phi_k phi_l], plus noise^2 w_ij E[phi'_i phi'_j].
    """
    left, i, right, j = places
    slopes = [ruled.slope(symbols, v) for v in (left, right)]
    pair = mean(symbols, kernels, (left.group, right.group), slopes, (i, j))
    total = NOISE**2 * symbols.weights(left.group, i, right.group, j) * pair
    partners = [g for g in symbols.groups if squared or not symbols.is_student(g)]
    for k in partners:
        for m in partners:
            if not (symbols.meet(left.group, k) and symbols.meet(right.group, m)):
                continue
            c, e = symbols.index("k", k), symbols.index("l", m)
            parts = (*slopes, symbols.shapes[k].value, symbols.shapes[m].value)
            value = mean(symbols, kernels, (left.group, right.group, k, m), parts, (i, j, c, e))
            weights = symbols.weights(left.group, i, k, c) * symbols.weights(right.group, j, m, e)
            total += sp.Sum(weights * value, c, e)
    return total


def _triples(
    symbols: Algebra, kernels: Kernels, places: tuple[Vector, Any, Vector, Any], slopes: Sequence[Part],
    partners: Sequence[int],
) -> Any:  # fmt: skip
    """The sum over units k of w_k E[psi_i psi_j phi_k]."""
    (left, i, right, j), total = places, sp.Integer(0)
    for k in partners:
        parts, c = (*slopes, symbols.shapes[k].value), symbols.index("k", k)
        value = mean(symbols, kernels, (left.group, right.group, k), parts, (i, j, c))
        total += sp.Sum(symbols.weight(k, c) * value, c)
    return total


def mean(
    symbols: Algebra, kernels: Kernels, kinds: Sequence[int], parts: Sequence[Part], indices: Sequence[Any]
) -> Any:
    """The mean of a product of parts, one part of each unit."""
    _, (name,) = kernels.kernel(kinds, [tuple(parts)])
    return function(name)(*symbols.arguments(kinds, indices)) if name else sp.Integer(0)
