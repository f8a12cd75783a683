"""Calculus of sums over indices, for the derivation of equations in statements."""

from collections.abc import Callable, Mapping
from typing import Any

from derivations.statement import sp


def contract(expression: Any) -> Any:
    """Sum_r delta_ri f(r) = f(i): SymPy's `doit` would return a Piecewise on the range of i.

    A sum over several indices is one `Sum` with several limits (SymPy merges nested ones), so each term drops its
    limits.

    >>> n, (x, y) = sp.Symbol("n", integer=True), map(sp.IndexedBase, "xy")
    >>> i, r = sp.Idx("i", n), sp.Idx("r", n)
    >>> contract(sp.Sum(sp.KroneckerDelta(r, i) * x[r], r))
    x[i]
    """
    return expression.replace(lambda e: isinstance(e, sp.Sum), _contract_sum)


def _contract_sum(total: Any) -> Any:
    kept: dict[Any, list[Any]] = {}
    for term in sp.Add.make_args(sp.expand(total.function, deep=False)):
        limits, outside = list(total.limits), sp.Integer(1)
        for delta in [x for x in sp.Mul.make_args(term) if isinstance(x, sp.KroneckerDelta)]:
            index = next((x for x in delta.args if any(x == limit[0] for limit in limits)), None)
            if index is not None:
                (other,) = [x for x in delta.args if x != index]
                term = (term / delta).xreplace({index: other})
                limits = [limit for limit in limits if limit[0] != index]
            else:  # it belongs to an outer sum
                term, outside = term / delta, outside * delta
        kept.setdefault((outside, *limits), []).append(term)
    bodies = ((outside, limits, sp.Add(*terms)) for (outside, *limits), terms in kept.items())
    return sp.Add(*(outside * (sp.Sum(x, *limits) if limits else x) for outside, limits, x in bodies if x != 0))


def gradient(potential: Any, by: Any) -> Any:
    """d potential/d X[i, ..], sums over deltas carried out; x^n/x becomes x^(n-1), which is finite at 0.

    The indices of `by` must not be summed over in the potential.
    """
    found = contract(sp.diff(potential, by))
    return found.replace(
        lambda e: isinstance(e, sp.Sum), lambda e: sp.Sum(sp.factor_terms(sp.powsimp(e.function)), *e.limits)
    )


def dot(combination: Any, vector: Any, products: Mapping[tuple[str, str], Callable[[Any, Any], Any]]) -> Any:
    """The inner product of a combination of vectors with a vector, by a table of the vectors' overlaps."""

    def inner(x: Any, y: Any) -> Any:
        a, b = x.base.name, y.base.name
        return products[a, b](x.indices[0], y.indices[0]) if (a, b) in products else inner(y, x)

    names = {name for pair in products for name in pair}
    found = {x: inner(x, vector) for x in combination.atoms(sp.Indexed) if x.base.name in names}
    return contract(combination.xreplace(found))


def nested(body: Any, *indices: Any) -> Any:
    """Sum over several indices, the last one innermost."""
    for index in reversed(indices):
        body = sp.Sum(body, index)
    return body
