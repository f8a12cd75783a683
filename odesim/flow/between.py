"""Many states inside one step, from few evaluations of its dense output."""

from collections.abc import Callable

import numpy as np

FEW = 64
"""Largest number of states that are evaluated one by one. Each costs one dense output, which may be a shorter step."""
DEGREE = 15
"""Degree of the polynomials that replace the dense output."""
NODES = np.polynomial.chebyshev.chebpts1(DEGREE + 1)
CHECKED = np.array([-0.97, -0.51, 0.28, 0.81])
"""Points of [-1, 1] at which a polynomial is compared with the dense output. None of them is near a node."""
ACCURATE = 1e-12
"""Accepted error at these points, relative to the largest value of every entry: below the tolerance of any run."""

Dense = Callable[[float], np.ndarray]


def states_between(dense: Dense, t0: float, t1: float, times: np.ndarray) -> np.ndarray:
    """Return the states (times, entries) of a step from t0 to t1 at increasing times inside it, at least one.

    Up to `FEW` of them are `dense(t)` itself. More states come from a Chebyshev polynomial through `dense` at `DEGREE`
    + 1 nodes, if it agrees with `dense` at other points to `ACCURATE`. Otherwise the step is divided into halves.

    Example:
        >>> times = np.linspace(0.0, 1.0, 1001)
        >>> states = states_between(lambda t: np.array([np.exp(t), np.exp(-t)]), 0.0, 1.0, times)
        >>> bool(np.abs(states - np.exp(np.outer(times, [1, -1]))).max() < 1e-13)
        True
    """
    if times.size <= FEW or not t0 < (t0 + t1) / 2 < t1:
        return np.array([dense(float(t)) for t in times])
    middle, half = (t0 + t1) / 2, (t1 - t0) / 2

    def sampled(x: np.ndarray) -> np.ndarray:
        return np.array([dense(float(middle + half * u)) for u in x])

    found = np.polynomial.chebyshev.chebfit(NODES, sampled(NODES), DEGREE)
    known, made = sampled(CHECKED), _values(found, CHECKED)
    if (np.abs(known - made) <= ACCURATE * np.abs(known).max(axis=0)).all():
        return _values(found, np.clip((times - middle) / half, -1.0, 1.0))
    split = int(np.searchsorted(times, middle))
    halves = ((t0, middle, times[:split]), (middle, t1, times[split:]))
    return np.concatenate([states_between(dense, a, b, some) for a, b, some in halves if some.size])


def _values(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Evaluate polynomials with coefficients (degree + 1, entries) at the points x. Returns (points, entries)."""
    return np.polynomial.chebyshev.chebval(x, coefficients).T
