"""Virtual steps on fields: the coefficients after looks at samples, in arrays of NumPy or JAX (tier `sampled`).

    z^(k+1)_a = z^(k)_a - rho_a c_a(z^(k)),   c~ = c(z^(times)), or the sum of all c(z^(k))

The length |x|^2/d of a sample is 1 in the limits of the tiers.
"""

from collections.abc import Callable
from typing import Any

from derivations.declare.looks import Look

Moves = tuple[Any, Any, list[Any]]
"""Coefficients c (S, N) of vectors, E[e] (S,) along these, and the mean slopes of numbers."""


def looked(look: Look | None, first: Moves, of: Callable[[Any], Moves], z: Any, steps: Any) -> Moves:
    """Return the motion of vectors and numbers after all looks.

    `first` is the motion at the students' fields z (S, N), `of` computes it at other fields, and `steps` (S,) are
    rho_a.

    >>> import numpy as np
    >>> def of(z):  # the loss z^2/2
    ...     return z, np.zeros(1), []
    >>> z = np.array([[2.0]])
    >>> [float(looked(Look(0.5, use), of(z), of, z, np.array([0.5]))[0][0, 0]) for use in ("last", "sum")]
    [1.0, 3.0]
    """
    motion = total = first
    for _ in range(0 if look is None else look.times):
        z = z - steps[:, None] * motion[0]
        motion = of(z)
        total = (
            total[0] + motion[0],
            total[1] + motion[1],
            [array + other_array for array, other_array in zip(total[2], motion[2], strict=True)],
        )
    return total if look is not None and look.use == "sum" else motion


def norm(xp: Any, squares: list[Any]) -> Any:
    """gnorm (N,) of the squared coefficients grad^2 (units, N) of all trained vectors.

    >>> import numpy as np
    >>> norm(np, [np.array([[9.0]]), np.array([[7.0], [9.0]])])
    array([5.])
    """
    return xp.sqrt(sum(square.sum(0) for square in squares))
