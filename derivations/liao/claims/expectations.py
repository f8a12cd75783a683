"""Gaussian expectations by quadrature and by pairing, independent of the Hermite expansions of the program.

The gate is analytic within pi of the real line. The trapezoidal rule therefore converges exponentially under the normal
density: small steps up to |x| = 9 leave errors near round-off. The polynomial factors need four Gauss-Hermite nodes per
axis.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

Powers = tuple[int, ...]
REACH = 9.0
FINE, COARSE = 0.25, 0.4
"""Steps in one or two dimensions, and beside two inner axes: errors below 1e-15 and 1e-12 (high derivatives)."""
INNER = 4
"""Gauss-Hermite nodes of an inner axis: exact up to degree seven, and He_3 He_3 has degree six."""


@functools.cache
def outer(step: float = FINE) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the trapezoidal rule for the standard normal density."""
    nodes = step * np.arange(-round(REACH / step), round(REACH / step) + 1)
    return nodes, step * np.exp(-(nodes**2) / 2) / math.sqrt(2 * math.pi)


@functools.cache
def derivative_polynomial(order: int) -> np.polynomial.Polynomial:
    """Return P with pi^(order) = P(pi) for the logistic function: P_0 = y, P_{k+1} = P_k' (y - y^2)."""
    polynomial = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        polynomial = polynomial.deriv() * np.polynomial.Polynomial([0.0, 1.0, -1.0])
    return polynomial


def gate(order: int, z: np.ndarray) -> np.ndarray:
    """Derivative pi^(order)(z) of the logistic function."""
    return derivative_polynomial(order)(1 / (1 + np.exp(-z)))


def softplus(order: int, z: np.ndarray) -> np.ndarray:
    """Derivatives of log(1 + e^z), another gate for controls."""
    return np.logaddexp(0, z) if order == 0 else gate(order - 1, z)


def steep(beta: float) -> Callable[[int, np.ndarray], np.ndarray]:
    """Derivatives of pi(beta z), a gate of another temperature for controls."""
    return lambda order, z: beta**order * gate(order, beta * z)


def mean(function: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return E[function(z)] for a standard normal z."""
    nodes, weights = outer()
    return float(weights @ function(nodes))


def coefficient(k: int, function: Callable[[int, np.ndarray], np.ndarray] = gate) -> float:
    """Return c_k = E[pi^(k)(z)]."""
    return mean(lambda z: function(k, z))


def correlation(a: int, b: int, rho: float, function: Callable[[int, np.ndarray], np.ndarray] = gate) -> float:
    """Return S_ab(rho) = E[pi^(a)(z1) pi^(b)(z2)] by the trapezoidal rule in two dimensions."""
    nodes, weights = outer()
    second = rho * nodes[:, None] + math.sqrt(max(0.0, 1 - rho**2)) * nodes
    return float(weights @ (function(a, nodes)[:, None] * function(b, second)) @ weights)


def triangular(gram: np.ndarray) -> np.ndarray:
    """Return the lower triangular factor of a Gram matrix that may be singular.

    The matrix is singular for a student paired with itself.
    """
    n = len(gram)
    factor = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            if factor[j, j] > 0:
                factor[i, j] = (gram[i, j] - factor[i, :j] @ factor[j, :j]) / factor[j, j]
        rest = gram[i, i] - factor[i, :i] @ factor[i, :i]
        factor[i, i] = math.sqrt(rest) if rest > 1e-13 else 0.0  # below: round-off of a repeated direction
    return factor


HERMITE: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    np.ones_like,
    lambda z: z,
    lambda z: z**2 - 1,
    lambda z: z**3 - 3 * z,
)
"""He_0 to He_3, the last of which is the expert's nonlinearity."""


@functools.cache
def grid() -> tuple[np.ndarray, np.ndarray]:
    """Return points (4, N) and weights (N,): trapezoidal rule on two axes, Gauss-Hermite on the other two."""
    nodes, weights = outer(COARSE)
    kept = weights > 1e-19  # the rest adds less than round-off
    nodes, weights = nodes[kept], weights[kept]
    inner, inner_weights = np.polynomial.hermite_e.hermegauss(INNER)
    inner_weights = inner_weights / math.sqrt(2 * math.pi)
    axes = np.meshgrid(nodes, nodes, inner, inner, indexing="ij")
    product = np.einsum("i,j,k,l->ijkl", weights, weights, inner_weights, inner_weights)
    return np.array([axis.ravel() for axis in axes]), product.ravel()


def moments(
    gram: np.ndarray,
    wanted: Sequence[tuple[int, int, int, int]],
    function: Callable[[int, np.ndarray], np.ndarray] = gate,
) -> list[float]:
    """Return E[pi^(a)(v1.x) pi^(b)(v2.x) He_p(w1.x) He_q(w2.x)] for each (a, b, p, q).

    `gram` (4, 4) is the Gram matrix of v1, v2, w1, w2.
    """
    points, weights = grid()
    v1, v2, w1, w2 = triangular(gram) @ points
    orders = list(dict.fromkeys((a, b) for a, b, _, _ in wanted))
    degrees = list(dict.fromkeys((p, q) for _, _, p, q in wanted))
    gates = np.array([weights * function(a, v1) * function(b, v2) for a, b in orders])
    experts = np.array([HERMITE[p](w1) * HERMITE[q](w2) for p, q in degrees])
    table = gates @ experts.T
    return [float(table[orders.index((a, b)), degrees.index((p, q))]) for a, b, p, q in wanted]


LAMBDAS = ((1, 1, 3, 3), (1, 0, 2, 3), (0, 1, 2, 3), (1, 0, 3, 2), (0, 0, 2, 2))
"""The orders (a, b, p, q) behind lambda_1 to lambda_5 of Appendix A.3."""


def tensor(gram: np.ndarray, m: int, m_star: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lambda (5, m, m) and lambda hat (5, m, m_star) of unit vectors with Gram matrix [v, w, v*, w*]."""
    lam, hat = np.zeros((5, m, m)), np.zeros((5, m, m_star))
    for i in range(m):
        for r in range(m):
            index = [i, r, m + i, m + r]
            lam[:, i, r] = moments(gram[np.ix_(index, index)], LAMBDAS)
        for r in range(m_star):
            index = [i, 2 * m + r, m + i, 2 * m + m_star + r]
            hat[:, i, r] = moments(gram[np.ix_(index, index)], LAMBDAS)
    return lam, hat


def loss(gram: np.ndarray, m: int, m_star: int) -> float:
    """Return the population loss (1/2) E[(f - f*)^2] from quadrature of every pair of experts."""
    gates, experts = [*range(m), *range(2 * m, 2 * m + m_star)], [*range(m, 2 * m), *range(2 * m + m_star, len(gram))]
    sign = [1.0] * m + [-1.0] * m_star
    total = 0.0
    for i, (v1, w1) in enumerate(zip(gates, experts, strict=True)):
        for j, (v2, w2) in enumerate(zip(gates, experts, strict=True)):
            index = [v1, v2, w1, w2]
            total += sign[i] * sign[j] * moments(gram[np.ix_(index, index)], [(0, 0, 3, 3)])[0] / 2
    return total


def monomial(powers: Powers, covariance: Sequence[Sequence[Fraction]], known: dict[Powers, Fraction]) -> Fraction:
    """Return E[prod x_i^powers_i] of a centred Gaussian by the pairing of Isserlis.

    One factor is paired with every other one, recursively.
    """
    if powers not in known:
        first = next(i for i, n in enumerate(powers) if n)
        rest = [n - (i == first) for i, n in enumerate(powers)]
        total = Fraction(0)
        for j, count in enumerate(rest):
            if count:
                after = tuple(n - (i == j) for i, n in enumerate(rest))
                total += count * covariance[first][j] * monomial(after, covariance, known)
        known[powers] = total
    return known[powers]


@functools.cache
def hermite_powers(k: int) -> dict[int, int]:
    """Return He_k as {power: coefficient}, by He_{k+1} = x He_k - k He_{k-1}."""
    if k < 2:
        return {k: 1}
    found: dict[int, int] = {}
    for power, value in hermite_powers(k - 1).items():
        found[power + 1] = found.get(power + 1, 0) + value
    for power, value in hermite_powers(k - 2).items():
        found[power] = found.get(power, 0) - (k - 1) * value
    return found


def pairing(degrees: Sequence[int], covariance: Sequence[Sequence[Fraction]]) -> Fraction:
    """Return E[prod He_{k_i}(x_i)] exactly: each He_k in powers, each monomial by the theorem of Isserlis."""
    terms: list[tuple[Powers, int]] = [((), 1)]
    for k in degrees:
        terms = [((*powers, n), c * value) for powers, c in terms for n, value in hermite_powers(k).items()]
    known = {(0,) * len(degrees): Fraction(1)}
    return sum((c * monomial(powers, covariance, known) for powers, c in terms), Fraction(0))
