"""A mean square that is a sum of terms which cancel: what is left of it by rounding is 0."""

from typing import Any

from derivations.statement import sp

ROUNDING = 1.5e-14
"""So much of the sum of sizes may be left of terms that cancel."""


def size_of(e: Any) -> Any:
    """The sum of the sizes of all terms of an expression, those inside its sums taken one by one.

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


def mean_square(total: Any, size: Any, where: Any) -> Any:
    """A mean square from the sum of its terms and that of their sizes; `where` is that of an array library.

    Beyond the rounding a negative one is left as it is: then the state is that of no vectors, which must be seen.

    >>> import numpy as np
    >>> [float(mean_square(x, 1.0, np.where)) for x in (-1e-15, -1e-3, 0.5)]
    [0.0, -0.001, 0.5]
    """
    return where((-ROUNDING * size < total) & (total < 0.0), 0.0, total)
