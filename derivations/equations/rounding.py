"""A mean square that is a sum of cancelling terms: a result of the order of the rounding error is set to 0.

Every run imports this file, so it does not import SymPy.
"""

from typing import Any

ROUNDING = 1.5e-14
"""Largest rounding error of cancelling terms, relative to the sum of their sizes."""


def mean_square(total: Any, size: Any, where: Any) -> Any:
    """A mean square from the sum of its terms and the sum of their sizes; `where` is that of an array library.

    A negative value beyond the rounding error is unchanged: no vectors have such a state, and the error must be
    visible.

    >>> import numpy as np
    >>> [float(mean_square(x, 1.0, np.where)) for x in (-1e-15, -1e-3, 0.5)]
    [0.0, -0.001, 0.5]
    """
    return where((-ROUNDING * size < total) & (total < 0.0), 0.0, total)
