"""E[prod_j sign(y_j) / 2] of up to four jointly Gaussian y_j: arcs, Owen's T, Plackett's identity."""

import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np

from hermite.errors import TooLarge
from hermite.laws import EPS, Law

# goal for each smooth integral of Plackett's identity; the answer has the error that was reached
GOAL = 1e-13


def signs(law: Law) -> tuple[float, float]:
    """Return (E[prod_j sign(y_j) / 2], a bound of its error), sign(0) = 0.

    One: erf(m / sqrt(2 v)) / 2. Two: asin(rho) / (2 pi) when centred, else 1/4 less two values of Owen's T.
    Three: 0 when centred. Otherwise Plackett's identity: with the covariances between two blocks scaled by t,
    dE/dt = sum_{i,k across} C_ik E[delta(y_i) delta(y_k) prod_{others} sign / 2], in the angle asin(t rho_ik), where
    every integrand is bounded.

    Arguments: law of n <= 4 variables (Fractions are kept exact). Raises: TooLarge for more.
    Source: Plackett 1954; Owen 1956.

    >>> signs(Law((0, 0), ((Fraction(1), Fraction(1, 2)), (Fraction(1, 2), Fraction(1)))))[0] * 12
    1.0
    """
    fixed = [j for j in range(len(law.mean)) if law.rows[j][j] <= 0]
    if fixed:
        known = math.prod([0.5 * ((law.mean[j] > 0) - (law.mean[j] < 0)) for j in fixed])
        if known == 0:
            return 0.0, 0.0
        value, error = signs(law.part(j for j in range(len(law.mean)) if j not in fixed))
        return known * value, abs(known) * error
    n = len(law.mean)
    if n > 4:
        raise TooLarge(f"expected at most 4 signs, got {n}; sample instead")
    if n % 2 and law.centred:
        return 0.0, 0.0
    if n > 2:
        return _plackett(law)
    return [_none, _one, _two][n](law)


def needs_integral(law: Law) -> bool:
    """Return True if `signs` has no closed form for this law and computes an integral.

    >>> needs_integral(Law((0,), ((1,),)))
    False
    """
    free = [j for j in range(len(law.mean)) if law.rows[j][j] > 0]
    if len(free) < len(law.mean) and any(law.mean[j] == 0 for j in range(len(law.mean)) if j not in free):
        return False
    return len(free) > 2 and not (len(free) % 2 and all(law.mean[j] == 0 for j in free))


def _none(law: Law) -> tuple[float, float]:
    return 1.0, 0.0


def _ratio(mean, variance) -> float:
    """Return mean / sqrt(variance), clipped at 40 in size, where erf is 1."""
    size = _float(mean * mean / variance)
    return math.copysign(min(math.sqrt(size), 40.0), mean) if mean != 0 else 0.0


def _float(value) -> float:
    """Return a number >= 0 as a float, infinite if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _one(law: Law) -> tuple[float, float]:
    value = math.erf(_ratio(law.mean[0], law.rows[0][0]) / math.sqrt(2)) / 2
    return value, 2 * EPS * abs(value)


def _two(law: Law) -> tuple[float, float]:
    """Return E[sign sign] / 4 from the arc, or from Owen's T, with C11 C22 - C12^2 as exact as the law is."""
    (v1, c), (_, v2) = law.rows
    m1, m2 = law.mean
    determinant = v1 * v2 - c * c
    rest = math.sqrt(max(float(determinant / (v1 * v2)), 0.0))  # sqrt(1 - rho^2)
    rho = float(c) / math.sqrt(float(v1)) / math.sqrt(float(v2))
    if m1 == 0 and m2 == 0:
        # near the end of the arc, asin is computed from the complement
        value = math.atan2(rho, rest) / (2 * math.pi)
        return value, 6 * EPS * abs(value)
    from scipy.special import owens_t

    h, k = _ratio(m1, v1), _ratio(m2, v2)

    def slope(m_here, v_here, m_other, v_other) -> float:
        # of T: (m_other - C m_here / v_here) / m_here sqrt(v_here / v_other) / sqrt(1 - rho^2)
        conditional = (m_other - c * m_here / v_here) / m_here
        size = _float(conditional * conditional * v_here / v_other)
        if size == 0:
            return 0.0
        return math.copysign(math.sqrt(size) / rest if rest > 0 else math.inf, conditional)

    if h == 0 or k == 0:
        # T(0, inf) and the half of Owen's formula leave one value; rho of that sign
        other, sign = (k, m2) if h == 0 else (h, m1)
        tilt = math.copysign(math.inf, rho) if rest == 0 else rho / rest
        value = float(owens_t(abs(other), tilt)) if sign != 0 else math.atan2(rho, rest) / (2 * math.pi)
    else:
        a, b = slope(m1, v1, m2, v2), slope(m2, v2, m1, v1)
        value = 0.25 - float(owens_t(h, a)) - float(owens_t(k, b)) - (0.5 if h * k < 0 else 0.0)
    # Owen's T to 2e-16 absolute (measured), its slope in h and a times their rounding
    return value, 8 * EPS * (0.25 + min(abs(h), 1.0) + min(abs(k), 1.0))


def _plackett(law: Law) -> tuple[float, float]:
    """Return the mean of three or four signs by Plackett's identity, one angle for each pair across two blocks."""
    law, slack = _light(law)
    first = (0,) if len(law.mean) == 3 else (0, 1)
    second = tuple(j for j in range(len(law.mean)) if j not in first)
    left, right = signs(law.part(first)), signs(law.part(second))
    total, error = left[0] * right[0], abs(left[0]) * right[1] + abs(right[0]) * left[1]
    for i in first:
        for k in second:
            if law.rows[i][k] == 0:
                continue
            end, integrand = _angle(law, first, i, k)
            value, doubt = _adaptive(integrand, end, isinstance(law.rows[0][0], Fraction))
            total += value
            error += doubt + 16 * EPS
    return total, error + 4 * EPS + slack


# largest number of panels of one integral, and the ends of the first panels at a steep start
PANELS = 200
STEEP = (1e-12, 1e-9, 1e-6, 1e-3)


@cache
def _legendre(nodes: int) -> list[tuple[float, float]]:
    return [(float(x), float(w)) for x, w in zip(*np.polynomial.legendre.leggauss(nodes), strict=True)]


def _adaptive(f: Callable[[float], float], end: float, steep: bool) -> tuple[float, float]:
    """Return (int_0^end f, error) by Gauss-Legendre with 13 nodes. The worst panel is halved until the error is below
    GOAL.

    The error is twice the difference from the rule with 9 nodes. QUADPACK's power 3/2 of the difference is too small at
    steep ends (measured). `steep`: the integrand may change within 1e-11 of its start, where all of four variables come
    near a plane.
    """

    def panel(a: float, b: float) -> tuple[float, float, float, float]:
        middle, half = (a + b) / 2, (b - a) / 2
        fine, coarse = (half * math.fsum(w * f(middle + half * x) for x, w in _legendre(n)) for n in (13, 9))
        return -abs(fine - coarse), a, b, fine

    starts = [0.0, *(end * share for share in STEEP if steep), end]
    heap = [panel(a, b) for a, b in pairwise(starts)]
    heapq.heapify(heap)
    while -math.fsum(p[0] for p in heap) > GOAL and len(heap) < PANELS:
        _, a, b, _ = heapq.heappop(heap)
        middle = math.sqrt(a * b) if 0 < 4 * a < b else (a + b) / 2
        for part in (panel(a, middle), panel(middle, b)):
            heapq.heappush(heap, part)
    return math.fsum(p[3] for p in heap), -2 * math.fsum(p[0] for p in heap) + 4 * EPS * end


# below this value the integrand is evaluated in Fractions, because in floats conditional variances lose 1/value of
# their digits
REGULAR = 0.02


def _light(law: Law) -> tuple[Law, float]:
    """Return the law in floats and the error of the conversion, if its correlation matrix is far from singular."""
    n = len(law.mean)
    if not isinstance(law.rows[0][0], Fraction):
        return law, 0.0
    rows = np.array([[float(c) for c in row] for row in law.rows])
    spread = np.sqrt(np.diag(rows))
    least = float(np.linalg.eigvalsh(rows / np.outer(spread, spread))[0])
    return (law.plain(), 4 * n * EPS / least) if least >= REGULAR else (law, 0.0)


def _angle(law: Law, first: tuple, i: int, k: int) -> tuple[float, Callable[[float], float]]:
    """Return (largest angle, integrand) of the pair (i, k): the angle is asin(t |rho|), measured from its end.

    Measured from the end, 1 - t = (sin(end) - sin(angle)) / |rho| does not cancel if the pair is nearly parallel.
    """
    vi, vk, c = law.rows[i][i], law.rows[k][k], law.rows[i][k]
    rho = min(abs(float(c)) / math.sqrt(float(vi)) / math.sqrt(float(vk)), 1.0)
    rest = math.sqrt(max(float((vi * vk - c * c) / (vi * vk)), 0.0))
    end = math.atan2(rho, rest)
    exact = isinstance(c, Fraction)
    others = [j for j in range(len(law.mean)) if j not in (i, k)]
    sign = 1.0 if c > 0 else -1.0

    def integrand(back: float) -> float:
        # sin(end) - sin(end - back) = 2 cos(end - back/2) sin(back/2); cos(end) = rest
        cosine = rest * math.cos(back / 2) + rho * math.sin(back / 2)
        missing = 2 * cosine * math.sin(back / 2) / rho
        t = 1 - Fraction(missing) if exact else 1 - missing
        scaled = tuple(
            tuple(entry if (a in first) == (b in first) else t * entry for b, entry in enumerate(row))
            for a, row in enumerate(law.rows)
        )
        moved = Law(law.mean, scaled)
        weight = _weight(moved, i, k)
        if weight == 0:
            return 0.0
        conditioned = moved.given(i)
        if conditioned.rows[k][k] <= 0:
            return 0.0
        return sign * weight * signs(conditioned.given(k).part(others))[0] / (2 * math.pi)

    return end, integrand


def _weight(law: Law, i: int, k: int) -> float:
    """Return exp(-q / 2), q the Mahalanobis length of the means of i and k."""
    mi, mk = law.mean[i], law.mean[k]
    if mi == 0 and mk == 0:
        return 1.0
    conditioned = law.given(i)
    variance = conditioned.rows[k][k]
    if variance <= 0:
        return 0.0
    power = mi * mi / law.rows[i][i] + conditioned.mean[k] * conditioned.mean[k] / variance
    return math.exp(-0.5 * float(power)) if power < 1400 else 0.0
