"""Gaussian expectations without Hermite algebra: tensor quadrature, sampling, mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hermite.errors import DegreeError, DomainError, NotReached, ShapeError, degree

if TYPE_CHECKING:
    from jaxtyping import Float


def factor(covariance) -> Float[np.ndarray, "n n"]:
    """Return A with A A^T = C, from the eigenvectors of C, which may be singular.

    Arguments: covariance (n, n), symmetric positive semidefinite. Returns (n, n).
    Raises: ShapeError, DomainError. Source: Golub & Van Loan 2013.

    >>> factor([[4.0]]).tolist()
    [[2.0]]
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"covariance: expected a square matrix, got shape {matrix.shape}; pass (n, n)")
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-12 * np.abs(matrix).max(initial=0)):  # rounding of A A^T
        raise ShapeError("covariance: expected a symmetric matrix, got an unsymmetric one; pass (C + C.T) / 2 if meant")
    values, vectors = np.linalg.eigh(matrix)
    # eigh is backward stable: an eigenvalue that should be 0 comes out within n ulp of the largest
    floor = 16 * len(values) * np.finfo(float).eps * max(float(np.abs(values).max(initial=0)), 1e-300)
    if np.any(values < -floor):
        raise DomainError(
            f"covariance: expected no negative eigenvalue, got {values.min():.3g}; it is not a covariance"
        )
    return vectors * np.sqrt(np.where(values < 0, 0.0, values))


GRID = 4_000_000
"""Largest number of points of a tensor rule that is compared with a rule of twice the nodes. A larger rule is compared
with a rule of half the nodes.
"""


def expectation(
    integrand: Callable[[Float[np.ndarray, "n points"]], Float[np.ndarray, "points"]],
    covariance,
    nodes: int = 48,
    tolerance: float = 1e-6,
) -> float:
    """Return E[integrand(x)] for centred Gaussian x of covariance C by a tensor Gauss-Hermite rule.

    sum over the grid of prod_i w_i integrand(A t), A A^T = C; exact for polynomials of degree < 2 nodes. For an
    integrand with steps or kinks the rule converges like 1/nodes. It raises NotReached, because its error estimate is
    above the tolerance.

    Arguments: integrand, maps an (n, points) array to (points,); covariance (n, n), n <= 4; nodes per axis; tolerance,
    of the estimated error, relative to the mean size of the integrand. Raises: DegreeError, ShapeError, DomainError,
    NotReached. Source: Golub & Welsch 1969.

    >>> round(expectation(lambda x: x[0] ** 2 * x[1] ** 2, [[1.0, 0.5], [0.5, 1.0]], nodes=8), 12)
    1.5
    """
    value, error, size = _estimated(integrand, covariance, nodes)
    if not error <= tolerance * size:
        raise NotReached(
            f"expected an error of at most {tolerance:g} of the mean size {size:.3g}, got about {error:.2g};"
            " an integrand with steps or kinks needs monte_carlo, or a closed form of hermite.functions"
        )
    return value


def estimate(
    integrand: Callable[[Float[np.ndarray, "n points"]], Float[np.ndarray, "points"]], covariance, nodes: int = 48
) -> tuple[float, float]:
    """Return (E[integrand(x)], estimate of its error), for integrands of any smoothness.

    The value is computed with twice `nodes` per axis. Its error is estimated from two rules with about half as many
    nodes. One uses the axes of C, the other rotated axes, because for |rho| near 1 a step can lie between all nodes of
    the first. The number of nodes is odd in one rule and even in the other, so that no symmetry makes them agree. The
    estimate is three times the largest difference. The slowest case is a step, whose error falls like the spacing of
    the nodes, nodes^(-1/2); there the error is 2.4 times the difference. Above 4 million points the rule with `nodes`
    is the finer one.

    The arguments and errors are those of `expectation`, without NotReached. Source: Golub & Welsch 1969.

    >>> value, error = estimate(lambda x: (x[0] > 0) * x[1] * np.maximum(x[2], 0), 0.7 * np.eye(3) + 0.3)
    >>> abs(value - 0.135095) < error < 0.02
    True
    """
    value, error, _ = _estimated(integrand, covariance, nodes)
    return value, error


def _estimated(integrand: Callable, covariance, nodes: int) -> tuple[float, float, float]:
    """Return (value, estimate of its error, mean size of the integrand)."""
    nodes = degree(nodes, "nodes")
    root = factor(covariance)
    n = len(root)
    if nodes < 1 or not 1 <= n <= 4:
        raise DegreeError(f"expected nodes >= 1 and 1 to 4 variables, got {nodes} and {n}; sample for larger n")
    fine = 2 * nodes if (2 * nodes) ** n <= GRID else nodes
    coarse = (fine // 2) | 1
    value, size = _tensor(integrand, root, fine)
    others = [_tensor(integrand, turned, coarse)[0] for turned in (root, root @ _rotation(n))]
    rounding = 16 * float(np.finfo(float).eps) * size
    return value, 3 * max(abs(value - other) for other in others) + rounding, size


def _rotation(n: int) -> np.ndarray:
    """Return a rotation of n axes by generic angles without symmetry: the axes of a fixed matrix of cosines."""
    place = np.arange(1, n + 1)
    return np.linalg.qr(np.cos(np.outer(place, place) + place))[0]


def _tensor(integrand: Callable, root: np.ndarray, nodes: int) -> tuple[float, float]:
    """Return (mean, mean size) of the integrand by one tensor rule, a slab of the first axis at a time."""
    n = len(root)
    t, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / math.sqrt(2 * math.pi)
    grids = np.meshgrid(*[t] * (n - 1), indexing="ij")
    rest = np.array([g.ravel() for g in grids]).reshape(n - 1, -1)
    weights = np.ones(1)
    for _ in range(n - 1):
        weights = np.multiply.outer(weights, w).ravel()
    total, size = [], []
    for first, weight in zip(t, w, strict=True):  # 64^4 points would not fit in memory at once
        values = weights * integrand(root @ np.vstack([np.full(rest.shape[1], first), rest]))
        total.append(weight * float(np.sum(values)))
        size.append(weight * float(np.sum(np.abs(values))))
    return math.fsum(total), math.fsum(size)


def monte_carlo(integrand: Callable, covariance, samples: int = 100_000, seed: int = 0) -> tuple[float, float]:
    """Return (mean, standard error) of integrand(x) over independent samples of centred Gaussian x.

    mean = (1/N) sum integrand(x_i),  standard error = s / sqrt(N).

    Arguments: integrand, maps (n, N) to (N,); covariance (n, n); samples N >= 2; seed of NumPy's generator.
    Raises: DegreeError, ShapeError, DomainError. Source: Hammersley & Handscomb 1964.

    >>> mean, standard_error = monte_carlo(lambda x: x[0] * x[1], [[1.0, 0.5], [0.5, 1.0]])
    >>> abs(mean - 0.5) < 5 * standard_error < 0.02
    True
    """
    if degree(samples, "samples") < 2:
        raise DegreeError(f"samples: expected at least 2, got {samples}; a standard error needs a spread")
    root = factor(covariance)
    values = np.asarray(integrand(root @ np.random.default_rng(seed).standard_normal((len(root), samples))))
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(samples))


def _trapezoid(mp, terms: Callable, radius: int, digits: int):
    """Return (integral, sum of sizes) by halving the step of the trapezoidal rule until digits agree."""
    step = mp.mpf(1) / 4
    points = [terms(step * i) for i in range(-4 * radius, 4 * radius + 1)]
    total, size = mp.fsum(points) * step, mp.fsum(abs(v) for v in points) * step
    change = abs(total)
    for _ in range(7):
        step /= 2
        count = int(radius / step)
        odd = [terms(step * i) for i in range(-count + 1, count, 2)]
        finer = total / 2 + mp.fsum(odd) * step
        size = size / 2 + mp.fsum(abs(v) for v in odd) * step
        if abs(finer - total) <= max(abs(finer) * mp.mpf(10) ** -digits, size * mp.mpf(10) ** (5 - mp.dps)):
            return finer, size
        change, total = abs(finer - total), finer
    hint = "give the breakpoints of f"
    raise NotReached(f"expected {digits} digits by step 1/512, got a last change of {mp.nstr(change, 3)}; {hint}")


def _pieces(mp, terms: Callable, radius: int, breakpoints):
    """Return (integral, sum of sizes) by Gauss-Legendre on unit panels cut at the breakpoints."""
    inner = [mp.mpf(b) for b in breakpoints if abs(b) < radius]
    cuts = sorted({mp.mpf(i) for i in range(-radius, radius + 1)} | set(inner))
    parts = [mp.quad(terms, [a, b], method="gauss-legendre") for a, b in pairwise(cuts)]
    return mp.fsum(parts), mp.fsum(abs(v) for v in parts)


def coefficient_mpmath(f: Callable, k: int, digits: int = 30, breakpoints=None, *, depth: int = 200):
    """Return the derivative mean c_k = E[f(z) He_k(z)] to the given number of digits, as an mpmath number.

    The integral of f(x) He_k(x) phi(x) is computed by the trapezoidal rule if f is analytic near the real line.
    Otherwise give `breakpoints`; Gauss-Legendre panels between them are then used. The working precision is raised
    until `digits` digits survive cancellation. If cancellation costs more than `depth` digits, the value is
    returned with fewer correct digits.

    Arguments: f, function of an mpf; k, degree; digits, number of correct digits; breakpoints, the points where f is
    not smooth, or None; depth, largest number of digits that may cancel.
    Raises: DegreeError, NotReached. Source: Trefethen & Weideman 2014.

    >>> import mpmath
    >>> print(mpmath.nstr(coefficient_mpmath(lambda x: x**3, 1), 12))
    3.0
    """
    import mpmath

    from hermite.polynomials import evaluate

    k, digits = degree(k, "k"), degree(digits, "digits")
    precision = digits + 30
    while True:
        # the weight at the end is below the working precision: exp(-r^2 / 2) = 10^-precision, beyond the last
        # zero of He_k
        radius = math.ceil(2 * math.sqrt(k + 1) + math.sqrt(2 * math.log(10) * precision) + 4)
        with mpmath.workdps(precision):
            scale = mpmath.sqrt(2 * mpmath.pi)

            def terms(x, scale=scale):
                return f(x) * evaluate(k, x) * mpmath.exp(-x * x / 2) / scale

            mp = mpmath.mp
            if breakpoints is None:
                value, size = _trapezoid(mp, terms, radius, digits)
            else:
                value, size = _pieces(mp, terms, radius, breakpoints)
            if size == 0:
                return value
            lost = int(mpmath.log10(size / abs(value))) if value else precision
            if digits + lost + 5 <= precision or precision >= digits + depth + 40:
                return +value
        precision = digits + min(lost, depth) + 40
