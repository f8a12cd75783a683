"""Frames of vectors by their Gram matrix, in which fields are independent: Cholesky's factor, teachers first."""

from typing import Any

import numpy as np


def frame(xp: Any, G: Any, S: int) -> Any:
    """Rows U (n, n) with U U^T = G: Cholesky's factor, teachers first; the column of a vanishing pivot is 0."""
    n = G.shape[0]
    order = xp.concatenate([xp.arange(S, n), xp.arange(S)])
    ordered = G[order][:, order]
    tolerance = 1e-14 * xp.diagonal(ordered)

    def eliminated(k: Any, remainder: Any) -> tuple[Any, Any]:
        good = remainder[k, k] > tolerance[k]
        column = xp.where(good & (xp.arange(n) >= k), remainder[:, k], 0.0) / xp.sqrt(
            xp.where(good, remainder[k, k], 1.0)
        )
        return remainder - column[:, None] * column, column

    if "jax" in xp.__name__:
        import jax

        factor = jax.lax.scan(lambda remainder, k: eliminated(k, remainder), ordered, xp.arange(n))[1].T
    else:
        factor = _definite(ordered, tolerance)
        if factor is None:
            columns, remainder = [], ordered
            for k in range(n):
                remainder, column = eliminated(k, remainder)
                columns.append(column)
            factor = xp.stack(columns, axis=1)
    return factor[xp.argsort(order)]


def divided(xp: Any, A: Any, U: Any, S: int) -> Any:
    """Return A U^-1 for A (S, n) and a frame U: E[dc/dz] from E[c xi^T], by Stein's lemma.

    Columns of vectors that depend on earlier ones (with a vanishing pivot) are left out.
    """
    n = U.shape[0]
    order = xp.concatenate([xp.arange(S, n), xp.arange(S)])
    lower = U[order]
    good = xp.diagonal(lower) > 0
    lower = xp.where(good[:, None], lower, xp.eye(n))
    return xp.linalg.solve(lower.T, xp.where(good, A, 0.0).T).T[:, xp.argsort(order)]


def _definite(G: np.ndarray, tolerance: np.ndarray) -> np.ndarray | None:
    """Return the library's Cholesky factor if no squared pivot is at most `tolerance`; it takes a sixth of the time of
    the steps.
    """
    try:
        factor = np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        return None
    return factor if (np.diagonal(factor) ** 2 > tolerance).all() else None
