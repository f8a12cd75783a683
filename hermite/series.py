"""Multivariate Hermite series of a product of up to four functions, with a bound of the truncation error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hermite.errors import NotReached
from hermite.expansion import orthonormal_polynomials
from hermite.laws import EPS
from hermite.panels import beyond, points

if TYPE_CHECKING:
    from jaxtyping import Float

ORDER = 24


def _special(f, mean: float, spread: float) -> list[tuple[float, float]]:
    """Return (position, width) of the steep part or the kink of x -> f(mean + spread x)."""
    if f.ladder is None or f.ladder.scale == 0 or spread == 0:
        return []
    steep = float(f.ladder.scale) * spread
    sharp = 1.0 if f.ladder.kind == "logistic" else math.sqrt(f.ladder.noise)
    at = -(float(f.ladder.scale) * mean + float(f.ladder.shift)) / steep
    return [(at, sharp / abs(steep) if sharp > 0 else math.inf)]


def coefficients(
    f, mean: float, spread: float, order: int
) -> tuple[Float[np.ndarray, "{order+1}"], Float[np.ndarray, "{order+1}"], float]:
    """Return (a_0..a_order, errors, norm) of x -> f(mean + spread x), by panels graded towards the factor's zero.

    >>> from hermite.ladders import factor
    >>> a, error, norm = coefficients(factor("abs"), 0.0, 2.0, 2)
    >>> round(norm, 12), round(float(a[0]) * math.sqrt(math.pi / 2), 12)
    (2.0, 2.0)
    """
    special = _special(f, mean, spread)
    results = []
    norm = 0.0
    for x, w in points(special):
        h = np.array(orthonormal_polynomials(order, x))
        values = f(mean + spread * x)
        results.append((h @ (w * values), np.abs(h) @ (w * np.abs(values))))
        norm = math.sqrt(math.fsum(w * values * values))
    (fine, size), (coarse, _) = results
    x, w = beyond()
    values = np.abs(f(mean + spread * x))
    left = np.abs(np.array(orthonormal_polynomials(order, x))) @ (w * values)
    norm = math.hypot(norm, math.sqrt(float(w @ values**2)))
    return fine, np.abs(fine - coarse) + EPS * (order + 16) * size + left, norm


def largest(factors, slots, mean: Float[np.ndarray, "n"], covariance: Float[np.ndarray, "n n"]) -> float:
    """Return a bound of |E[prod f_k(z_k)]| by Hoelder's inequality, prod_k E[|f_k|^n]^(1/n) for n factors.

    >>> from hermite.ladders import factor
    >>> 0.5 < largest([factor("sign"), factor("abs")], (0, 0), np.zeros(1), np.eye(1)) < 1.1
    True
    """
    bound, n = 1.0, len(factors)
    for f, slot in zip(factors, slots, strict=True):
        m, s = float(mean[slot]), math.sqrt(max(float(covariance[slot, slot]), 0.0))
        sizes = [float(w @ np.abs(f(m + s * x)) ** n) for x, w in points(_special(f, m, s))]
        x, w = beyond()
        bound *= (max(sizes) + float(w @ np.abs(f(m + s * x)) ** n)) ** (1 / n)
    return bound * (1 + 1e-9)


def _bound(correlation: np.ndarray, edges: int) -> float:
    """Return a bound of the norm of e_k over all degrees of more than `edges` edges, k the degrees of a multigraph.

    e_k(s R) = s^(|k|/2) e_k(R), so sum_{|k|/2 > L} e_k^2 <= s^(-2(L+1)) det(1 - s^2 R^2)^(-1/2) for every s > 1
    with s times the spectral radius of R below 1: nothing cancels.
    """
    values = np.linalg.eigvalsh(correlation - np.eye(len(correlation)))
    radius = max(float(np.abs(values).max()), 1e-12)
    best = math.inf
    for share in np.linspace(0.02, 0.98, 49):
        s = 1 + share * (1 / radius - 1)
        if s <= 1:
            return math.inf
        log = -2 * (edges + 1) * math.log(s) - 0.5 * float(np.log1p(-((s * values) ** 2)).sum())
        best = min(best, log)
    return math.exp(best / 2) if best < 1400 else math.inf


def evaluate(
    factors, mean: Float[np.ndarray, "n"], covariance: Float[np.ndarray, "n n"], tolerance: float
) -> tuple[float, float]:
    """Return (E[prod_k f_k(z_k)], bound) for two to four factors on variables of positive variance.

    sum_k e_k prod_i a^i_{k_i} over degrees k_i <= L, e_k = E[prod_i h_{k_i}(x_i)] at the correlations,
    a^i the coefficients of f_i(m_i + s_i x). Error: (sum_{|k| > 2L} e_k^2)^(1/2) prod ||f_i||, and those of the a^i.

    Arguments: factors, one a variable; mean (n,); covariance (n, n); tolerance.
    Raises: NotReached where the bound is above 1 (spectral radius of R at or above 1, or near).
    Source: Liao & Kyrillidis 2026, Lemma 1; Cauchy-Schwarz and Mehler's determinant.

    >>> from hermite.ladders import factor
    >>> value, error = evaluate([factor("erf")] * 2, np.zeros(2), np.array([[1, 0.1], [0.1, 1]]), 1e-10)
    >>> abs(value - 2 / math.pi * math.asin(0.2 / 3)) <= error < 1e-10
    True
    """
    from hermite.table import table

    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    np.fill_diagonal(correlation, 1.0)
    order = next((m for m in range(4, ORDER, 4) if _bound(correlation, m) < tolerance / 16), ORDER)
    parts = [coefficients(f, float(m), float(s), order) for f, m, s in zip(factors, mean, spread, strict=True)]
    bound = _bound(correlation, order) * math.prod(norm for *_, norm in parts)
    if not bound < 1:
        raise NotReached(f"expected correlations within reach of the series, got a bound of {bound:.3g}")
    # without self-loops no degree exceeds the number of edges: the box k_i <= order holds all of `order` edges
    e = table(correlation, order)
    root = np.array([math.sqrt(math.factorial(k)) for k in range(order + 1)])
    for axis in range(len(parts)):
        e = e / root.reshape([-1 if i == axis else 1 for i in range(len(parts))])
    value, size, doubt = e, np.abs(e), np.abs(e)
    for a, error, _ in parts[::-1]:
        value, size = value @ a, size @ np.abs(a)
        doubt = doubt @ (np.abs(a) + error)
    return float(value), bound + float(doubt - size) + 4 * EPS * (order + 8) * float(size)
