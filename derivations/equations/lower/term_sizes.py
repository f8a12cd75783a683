"""The size of a sum whose terms cancel, which determines its rounding error (`derivations.equations.rounding`)."""

from typing import Any

from derivations.statement import sp


def size_of(e: Any) -> Any:
    """The sum of the absolute values of all terms of an expression, including the terms of its sums one by one.

    >>> n, x, y = sp.Symbol("n", integer=True), sp.IndexedBase("x"), sp.Symbol("y")
    >>> size_of(sp.Sum(x[sp.Idx("i", n)], sp.Idx("i", n)) - 2 * y)
    2*Abs(y) + Sum(Abs(x[i]), (i, 0, n - 1))
    """
    if isinstance(e, sp.Sum):
        return sp.Sum(size_of(e.function), *e.limits)
    if isinstance(e, sp.Add):
        return sp.Add(*map(size_of, e.args))
    if isinstance(e, sp.Mul):
        return sp.Mul(*map(size_of, e.args))
    return sp.Abs(e)
