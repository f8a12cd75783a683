"""The logistic function 1 / (1 + exp(-beta x)): Hermite coefficients and derivative moments."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hermite.errors import DomainError

if TYPE_CHECKING:
    from jaxtyping import Float

EPS = float(np.finfo(np.float64).eps)
# pi to 40 decimals, so that pi / beta is rounded once only
PI = Fraction(31415926535897932384626433832795028841972, 10**40)
# ln 2 as a part of 32 bits, whose product with an exponent is exact, and the rest
LN2_HIGH = math.floor(math.log(2) * 2**32) / 2**32
LN2_LOW = float(Fraction(6931471805599453094172321214581765680755, 10**40) - Fraction(LN2_HIGH))
DIGITS = 50
"""Decimal digits with which derivative moments are summed."""


def _grid(order: int, beta: float, slope: float) -> tuple[float, np.ndarray]:
    """Return the step (a power of 2, so that w^2 is exact) and the nodes w > 0 of the trapezoidal rule.

    u / sinh u has poles at w = i beta, so the rule errs by exp(-2 pi beta / step) <= exp(-100); the
    Gaussian factor aliases at frequency 2 pi / step >= 201, far beyond the 2 sqrt(order) where the
    integrand lives. The log of the integrand curves at least like -w^2 / 2 beyond its peak and falls like
    a Gamma law of shape order + 1 and rate slope: the cut-off leaves less than exp(-70).
    """
    step = min(1 / 32, 2.0 ** math.floor(math.log2(beta / 16)))
    peak = _peak(order, slope)
    reach = peak + min(12.0, (12 * math.sqrt(order + 1) + 144) / slope)
    count = math.ceil(reach / step)
    if count > 2_000_000 or (order + 1) > (math.pi / step) ** 2 / 4:
        raise DomainError(f"expected order <= 2500 and 2e-5 <= temperature, got {order} and {beta}; rescale the input")
    return step, np.arange(1, count + 1) * step


def _peak(order, slope: float):
    """Return an upper bound of the peak of w^order u / sinh u exp(-w^2 / 2), the root of order + 1 = w^2 + slope w."""
    # 2 n / (s + r), the form of the root that does not cancel for a steep slope
    return 2 * (order + 1) / (slope + np.sqrt(slope**2 + 4 * (order + 1)))


def _start(w: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """Return u / sinh u exp(-w^2 / 2), u = slope w, as mantissa and binary exponent, immune to underflow."""
    u = slope * w
    exponent = np.rint(-(0.5 * w * w + u) / math.log(2))
    rest = (-0.5 * w * w - exponent * LN2_HIGH) - u - exponent * LN2_LOW
    return np.exp(rest) * (2 * u) / -np.expm1(-2 * u), exponent.astype(np.int64)


@lru_cache(maxsize=64)
def _solve(order: int, beta: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return (a_k, error bounds, mean of w under the integrand of the last order), order odd."""
    slope = float(PI / Fraction(beta))
    step, w = _grid(order, beta, slope)
    mantissa, exponent = _start(w, slope)
    a, error = np.zeros(order + 1), np.zeros(order + 1)
    a[0] = 0.5
    terms, total = w, 1.0
    for k in range(1, order + 1, 2):
        if k > 1:
            mantissa, shift = np.frexp(mantissa * (w * w / math.sqrt(k * (k - 1))))
            exponent = exponent + shift
        top = int(exponent.max())
        # np.sum adds pairwise; terms 2^-1100 below the largest may vanish
        terms = np.ldexp(mantissa, np.maximum(exponent - top, -1100))
        total = float(np.sum(terms))
        if k == 1:  # the node w = 0, where u / sinh u = 1, at half weight
            total += math.ldexp(0.5, -top)
        a[k] = (-1) ** (k // 2) * math.ldexp(total * step / math.pi, top)
        # three roundings every two orders, the rounding of u at the peak of the integrand, and 10 for the start and the
        # pairwise sum; one subnormal for underflow
        error[k] = abs(a[k]) * EPS * (0.75 * k + 2 * slope * float(_peak(k, slope)) + 10) + 5e-324
    return a, error, float(np.sum(terms * w)) / total


def coefficients(order: int, beta: float) -> tuple[Float[np.ndarray, "{order+1}"], Float[np.ndarray, "{order+1}"]]:
    """Return (a_0..a_order, their error bounds), orthonormal coefficients of 1 / (1 + exp(-beta x)).

    c_{2n+1} = (-1)^n (1/pi) int_0^inf w^(2n) (pi w / beta) / sinh(pi w / beta) exp(-w^2 / 2) dw, a_k = c_k / sqrt(k!),
    by the trapezoidal rule.

    The factor w^(2n) / sqrt((2n+1)!) is carried as mantissa and exponent, with one multiplication per order. All terms
    of a sum are positive, so the relative error stays near one ulp per order.

    Arguments: order, int >= 0; beta > 0. Returns two arrays (order + 1,). Raises: DomainError. Source: Liao &
    Kyrillidis 2026; Trefethen & Weideman 2014 (trapezoidal rule).

    >>> round(float(coefficients(1, 1.0)[0][1]), 14)
    0.20662096414191
    """
    a, error, _ = _solve(order + 1 + order % 2, beta)
    return a[: order + 1].copy(), error[: order + 1].copy()


def remainder(j: int, order: int, beta: float) -> float:
    """Return a bound of the norm of sum_{k > order} of the series of d^j/dz^j 1 / (1 + exp(-beta z)).

    With k the first odd order left out, s = pi / beta and m the mean of w under the integrand of c_k,
    integration by parts gives |a_{l+2} / a_l| <= (l + 1 - s m) / sqrt((l+1)(l+2)) for l >= k (the mean grows
    with l), hence sum_{l >= k} a_l^2 l! / (l-j)! <= a_k^2 k! / (k-j)! (1 + (k+1) / (2 (s m - j - 1))),
    infinite if s m <= j + 1.

    Arguments: j >= 0; order >= 0; beta > 0. Raises: DomainError. Source: derived here from the integral for
    c_k.

    >>> remainder(0, 65, 1.0) < 2e-10
    True
    """
    k = order + 1 + order % 2
    a, error, mean = _solve(k, beta)
    # 1e-9 is far above what rounding does to the mean
    excess = float(PI / Fraction(beta)) * mean * (1 - 1e-9) - j - 1
    if k < j or excess <= 0:
        return math.inf
    return float(abs(a[k]) + error[k]) * math.sqrt(math.perm(k, j) * (1 + (k + 1) / (2 * excess)))


@cache
def _tau_polynomial(j: int) -> tuple[int, ...]:
    """Return P_j, ascending in tau, P_j(tanh u) = d^j/du^j tanh u, from P_{j+1} = (1 - tau^2) P_j'."""
    if j == 0:
        return (0, 1)
    slope = [m * c for m, c in enumerate(_tau_polynomial(j - 1))][1:]
    result = [*slope, 0, 0]
    for m, c in enumerate(slope):
        result[m + 2] -= c
    return tuple(result)


@lru_cache(maxsize=4096)
def tanh_moment(j: int, scale: float) -> float:
    """Return E[(d^j/dz^j tanh(scale z))^2] for standard normal z, correct to within the last bit.

    scale^(2j) int P_j(tanh(scale x))^2 phi(x) dx by the trapezoidal rule with 50 digits; the integrand is analytic up
    to x = i pi / (2 scale).

    Arguments: j >= 0; scale > 0. Raises: DomainError when more than 200000 nodes are needed. Source: Trefethen &
    Weideman 2014.

    >>> round(tanh_moment(1, 0.5) / 4, 12)
    0.04483624135
    """
    import mpmath

    width, nodes = _nodes(scale)
    polynomial = _tau_polynomial(j)[::-1]
    with mpmath.workdps(DIGITS):
        terms = [mpmath.polyval(polynomial, tau) ** 2 * weight for tau, weight in nodes]
        moment = (terms[0] + 2 * mpmath.fsum(terms[1:])) * width / mpmath.sqrt(2 * mpmath.pi)
        return float(moment * mpmath.mpf(scale) ** (2 * j))


@lru_cache(maxsize=4)  # callers need the moments of all orders one after another
def _nodes(scale: float) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return the spacing of the nodes of `tanh_moment`, and tanh(scale x) and exp(-x^2 / 2) at the nodes x >= 0."""
    import mpmath

    # exp(-2 pi (pi / 2 scale) / step) <= exp(-98) and exp(-2 pi^2 / step^2) < exp(-1900)
    step = min(Fraction(1, 10), Fraction(1, 10) / Fraction(scale))
    count = math.ceil(14 / step)  # phi(14) = 1e-43, and |P_j| <= j! 2^j
    if count > 200_000:
        raise DomainError(f"scale: expected at most 1400, got {scale}; the function is a step at this resolution")
    with mpmath.workdps(DIGITS):
        width = mpmath.mpf(step.numerator) / step.denominator
        inner = width * mpmath.mpf(scale)
        return width, [(mpmath.tanh(i * inner), mpmath.exp(-((i * width) ** 2) / 2)) for i in range(count + 1)]


def moment(j: int, beta: float) -> float:
    """Return E[(d^j/dz^j 1 / (1 + exp(-beta z)))^2], from logistic(x) = (1 + tanh(x / 2)) / 2.

    Arguments: j >= 0; beta > 0. Raises: DomainError. Source: `tanh_moment`.

    >>> round(moment(0, 1.0), 12)
    0.293379035858
    """
    return (1.0 if j == 0 else 0.0) / 4 + tanh_moment(j, beta / 2) / 4
