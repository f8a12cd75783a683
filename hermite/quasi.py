"""Gaussian means of anything by randomised quasi-Monte Carlo, with the scatter of independent randomisations."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from hermite.errors import DegreeError, ShapeError, degree
from hermite.quadrature import factor as root

# independent randomisations; Student's t of 15 degrees of freedom exceeds WIDEN once in 10^6
COPIES = 16
WIDEN = 8.0


@lru_cache(maxsize=8)
def _normals(dimension: int, log2_points: int, seed: int) -> np.ndarray:
    """Return (dimension, COPIES, points) standard normals: Sobol points, scrambled anew for every copy."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = []
    for copy in range(COPIES):
        generator = np.random.default_rng([seed, copy])
        sobol = qmc.Sobol(dimension, scramble=True, rng=generator)
        # within (0, 1): a scrambled point may be 0
        points.append(np.clip(sobol.random_base2(log2_points), 2.0**-60, 1 - 2.0**-53))
    out = np.ascontiguousarray(ndtri(np.array(points)).transpose(2, 0, 1))
    out.flags.writeable = False
    return out


def evaluate(
    integrand: Callable, covariance, mean=None, *, log2_points: int = 13, seed: int = 0, tolerance: float = 0.0
) -> tuple[float, float]:
    """Return (E[integrand(z)], error) by scrambled Sobol points in the eigenbasis, the widest axis first.

    The mean of 16 independent randomisations of 2^log2_points points; error = 8 standard errors of that mean, as few
    randomisations and heavy tails make the scatter too small (Student's t of 15 degrees of freedom passes 8 once in
    a million). The points depend on dimension, count and seed only: along a path of covariances the error is smooth.

    Arguments: integrand, maps (n, points) to (points,); covariance (n, n), any rank; mean (n,) or None; log2_points,
    5 to 20; seed; tolerance, relative to max(1, |value|), stops at fewer points where the error is below.
    Raises: ShapeError, DegreeError, DomainError.
    Source: Owen 1997; L'Ecuyer & Lemieux 2002.

    >>> value, error = evaluate(lambda z: np.maximum(z[0], z[1]), np.eye(2))
    >>> abs(value - math.pi**-0.5) < error < 1e-2
    True
    """
    arms = root(covariance)
    order = np.argsort(-np.abs(arms).sum(axis=0))
    arms = arms[:, order]
    arms = arms[:, np.abs(arms).max(axis=0, initial=0.0) > 0]
    n, rank = len(arms), arms.shape[1]
    at = np.zeros(n) if mean is None else np.asarray(mean, dtype=np.float64)
    if at.shape != (n,):
        raise ShapeError(f"mean: expected {n} numbers, got shape {at.shape}; one a variable")
    if not 5 <= degree(log2_points, "log2_points") <= 20:
        raise DegreeError(f"log2_points: expected 5 to 20, got {log2_points}; 13 is the default")
    if rank == 0:
        value = float(np.asarray(integrand(at[:, None]))[0])
        return value, 4 * float(np.finfo(float).eps) * abs(value)
    value = error = 0.0
    for log2 in sorted({min(10, log2_points), log2_points} if tolerance > 0 else {log2_points}):
        means = np.empty(COPIES)
        x = _normals(rank, log2, seed)
        for copy in range(COPIES):
            values = np.asarray(integrand(at[:, None] + arms @ x[:, copy]), dtype=np.float64)
            if values.shape != (x.shape[2],):
                raise ShapeError(f"integrand: expected shape {(x.shape[2],)}, got {values.shape}; map (n, N) to (N,)")
            means[copy] = values.mean()
        value = float(means.mean())
        error = WIDEN * float(means.std(ddof=1)) / math.sqrt(COPIES) + 1e-15 * float(np.abs(means).max())
        if error <= tolerance * max(1.0, abs(value)):
            break
    return value, error
