"""A mean square that is a sum of terms which cancel: what is left of it by rounding is 0.

Every run imports this file, so that it leaves SymPy alone.
"""

from typing import Any

ROUNDING = 1.5e-14
"""So much of the sum of sizes may be left of terms that cancel."""


def mean_square(total: Any, size: Any, where: Any) -> Any:
    """A mean square from the sum of its terms and that of their sizes; `where` is that of an array library.

    Beyond the rounding a negative one is left as it is: then the state is that of no vectors, which must be seen.

    >>> import numpy as np
    >>> [float(mean_square(x, 1.0, np.where)) for x in (-1e-15, -1e-3, 0.5)]
    [0.0, -0.001, 0.5]
    """
    return where((-ROUNDING * size < total) & (total < 0.0), 0.0, total)
