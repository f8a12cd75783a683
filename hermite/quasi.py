"""Gaussian means of arbitrary functions by randomised quasi-Monte Carlo; the error comes from independent
randomisations.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from hermite.errors import DegreeError, ShapeError, degree
from hermite.quadrature import factor as root

# independent randomisations; Student's t of 15 degrees of freedom exceeds WIDEN once in 10^6
COPIES = 16
WIDEN = 8.0
RARE = 200.0
"""Effective number of points below which a mean is treated as that of a rare event, and points farther out are
tried.
"""
WIDER = (1.5, 2.0, 3.0)


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

    The value is the mean of 16 independent randomisations of 2^log2_points points. The error is 8 standard errors of
    this mean, because the scatter of few randomisations with heavy tails can be too small (Student's t with 15 degrees
    of freedom exceeds 8 once in a million). The points depend only on dimension, count and seed, so the error is a
    smooth function along a path of covariances. If few points dominate the mean, their scatter does not show regions
    that no point has met. The same points are then also tried farther out, with their likelihood ratio as weight. They
    are used if more of them contribute to the mean, and the error is increased by 8 times the contribution of the
    largest point.

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
        raise ShapeError(f"mean: expected {n} numbers, got shape {at.shape}; one for each variable")
    if not 5 <= degree(log2_points, "log2_points") <= 20:
        raise DegreeError(f"log2_points: expected 5 to 20, got {log2_points}; 13 is the default")
    if rank == 0:
        value = float(np.asarray(integrand(at[:, None]))[0])
        return value, 4 * float(np.finfo(float).eps) * abs(value)
    value = error = 0.0
    for log2 in sorted({min(10, log2_points), log2_points} if tolerance > 0 else {log2_points}):
        x = _normals(rank, log2, seed)
        means, carried, heaviest = _means(integrand, at, arms, x, 1.0)
        rare = 0 < carried < RARE
        for scale in WIDER if rare else ():
            other, more, heavy = _means(integrand, at, arms, x, scale)
            heaviest = max(heaviest, heavy)
            if more > carried:
                means, carried = other, more
        value = float(means.mean())
        error = WIDEN * float(means.std(ddof=1)) / math.sqrt(COPIES) + 1e-15 * float(np.abs(means).max())
        error += WIDEN * heaviest if rare else 0.0
        if error <= tolerance * max(1.0, abs(value)) and not rare:
            break
    return value, error


def _means(
    integrand: Callable, at: np.ndarray, arms: np.ndarray, x: np.ndarray, scale: float
) -> tuple[np.ndarray, float, float]:
    """Return (means of the copies, effective number of points, contribution of the largest point), points scaled
    outwards.

    E[g(x)] = E[g(s x) s^rank exp(-(s^2 - 1) |x|^2 / 2)]; effective number = (sum |g|)^2 / sum g^2.
    """
    means, total, squares, heaviest = np.empty(COPIES), 0.0, 0.0, 0.0
    for copy in range(COPIES):
        values = np.asarray(integrand(at[:, None] + arms @ (scale * x[:, copy])), dtype=np.float64)
        if values.shape != (x.shape[2],):
            raise ShapeError(f"integrand: expected shape {(x.shape[2],)}, got {values.shape}; map (n, N) to (N,)")
        if scale != 1.0:
            values = values * scale ** len(x) * np.exp(-0.5 * (scale**2 - 1) * (x[:, copy] ** 2).sum(axis=0))
        means[copy] = values.mean()
        largest = float(np.abs(values).max())
        heaviest = max(heaviest, largest / values.size / COPIES)
        if largest > 0:
            total += float(np.abs(values).sum())
            squares += float(((values / largest) ** 2).sum()) * largest**2
    return means, total**2 / squares if squares > 0 else 0.0, heaviest
