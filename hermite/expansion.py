"""Hermite coefficients of a function, with error bounds and a remainder bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hermite.errors import DegreeError, NotReached, ShapeError, TooLarge, Undecided, degree

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Expansion", "NotReached", "Undecided", "expand", "orthonormal_polynomials"]

EPS = float(np.finfo(np.float64).eps)
SYMMETRIES = ("odd", "even", "odd+constant")
# Gaussian weight below 1e-313 beyond this point, the end of the doubles
CUTOFF = 38.0


@cache
def _root_factorial(k: int) -> tuple[float, int]:
    """Return (m, e) with sqrt(k!) = m 2^e and m in [1/2, 1], rounded once (128 guard bits under the root)."""
    root = math.isqrt(math.factorial(k) << 256)
    bits = root.bit_length()
    return root / (1 << bits), bits - 128


def _falling(k: np.ndarray, j: int) -> np.ndarray:
    """Return k! / (k-j)! as floats."""
    product = np.ones(k.size)
    for i in range(j):
        product *= k - i
    return product


@dataclass(frozen=True, eq=False)
class Expansion:
    """Hermite coefficients a_0..a_K of one function, with error bounds.

    f = sum_k a_k He_k / sqrt(k!) = sum_k c_k / k! He_k, c_k = a_k sqrt(k!).

    Arguments: name; orthonormal (K+1,) a_k; error (K+1,) absolute bound on the error of each a_k; second_moment E[f^2];
    exact, True when f is a polynomial of degree at most K (all later coefficients vanish); derivative_moments, a
    callable j -> E[(f^(j))^2] computed without the a_k (math.inf where it diverges), or None; zero (K+1,) booleans
    marking coefficients that are exactly zero; symmetry, 'odd', 'even' or 'odd+constant' where known for every k;
    remainder, a callable j -> bound of the norm of the terms after a_K in f^(j), without the cancellation of Parseval's
    identity, or None. Raises: ShapeError, TooLarge (a value that is not finite). Source: Liao & Kyrillidis 2026; Szego
    1975, chapter 5.

    >>> square = Expansion("x^2", np.array([1.0, 0.0, 2**0.5]), np.zeros(3), 3.0, True, None)
    >>> [float(round(c, 12)) for c in square.derivative_means]
    [1.0, 0.0, 2.0]
    """

    name: str
    orthonormal: np.ndarray
    error: np.ndarray
    second_moment: float
    exact: bool = False
    derivative_moments: Callable[[int], float] | None = None
    zero: Any = None  # an array, after the first access
    symmetry: str | None = None
    remainder: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        a = np.array(self.orthonormal, dtype=np.float64)
        if a.ndim != 1 or a.size == 0:
            raise ShapeError(f"orthonormal: expected a vector a_0..a_K, got shape {a.shape}; pass at least a_0")
        if self.symmetry is not None and self.symmetry not in SYMMETRIES:
            raise ShapeError(f"symmetry: expected one of {SYMMETRIES} or None, got {self.symmetry!r}")
        zero = (a == 0) & bool(self.exact) if self.zero is None else np.array(self.zero, dtype=bool)
        parts = {"orthonormal": a, "error": np.array(self.error, dtype=np.float64), "zero": zero}
        for field, array in parts.items():
            if array.shape != a.shape:
                raise ShapeError(f"{field}: expected shape {a.shape}, got {array.shape}; one entry per coefficient")
            if not np.all(np.isfinite(array)):
                raise TooLarge(f"{self.name}: {field} is not finite; lower the order or the scale of the function")
            array.flags.writeable = False
            object.__setattr__(self, field, array)
        if np.any(a[zero] != 0):
            raise ShapeError(f"{self.name}: zero marks a coefficient that is not 0.0; set it to 0.0 or unmark it")
        if not math.isfinite(self.second_moment) or self.second_moment < 0:
            raise TooLarge(f"{self.name}: expected a finite E[f^2] >= 0, got {self.second_moment}")

    @property
    def order(self) -> int:
        """The index K of the last coefficient."""
        return self.orthonormal.size - 1

    @property
    def derivative_means(self) -> Float[np.ndarray, "terms"]:
        """c_k = a_k sqrt(k!), shape (K+1,); raises TooLarge when one exceeds the doubles."""
        means = np.empty_like(self.orthonormal)
        for k, a in enumerate(self.orthonormal):
            mantissa, exponent = _root_factorial(k)
            try:
                means[k] = math.ldexp(a * mantissa, exponent)
            except OverflowError:
                raise TooLarge(f"{self.name}: c_{k} exceeds the doubles; use the orthonormal a_{k} = {a}") from None
        return means

    @property
    def parity(self) -> str | None:
        """'even', 'odd', 'odd+constant' or None; for a truncated expansion, the declared `symmetry`."""
        if self.symmetry is not None or not self.exact:
            return self.symmetry
        if self.zero[1::2].all():
            return "even"
        if self.zero[2::2].all():
            return "odd" if self.zero[0] else "odd+constant"
        return None

    def moment(self, j: int = 0) -> float:
        """Return E[(f^(j))^2]; raises NotReached when the expansion does not have it."""
        j = degree(j, "j")
        if j == 0:
            return float(self.second_moment)
        if self.derivative_moments is None:
            raise NotReached(f"{self.name}: expected E[(f^({j}))^2], got none; give Expansion a derivative_moments")
        return float(self.derivative_moments(j))

    def tail(self, j: int = 0, order: int | None = None) -> float:
        """Return a bound of the norm of the terms after a_order in the series of f^(j).

        sqrt(max(E[(f^(j))^2] - sum_{j<=k<=order} c_k^2 / (k-j)!, 0) + round-off) (Parseval).

        Arguments: j, derivative order; order, last index kept, K when None. Returns a float, math.inf where the moment
        diverges, 0.0 if all terms of a polynomial are kept; the smaller of this and the expansion's own remainder.
        Raises: DegreeError, NotReached. Source: Parseval's identity; Liao & Kyrillidis 2026.
        """
        order = self.order if order is None else min(degree(order, "order"), self.order)
        if self.exact and order == self.order:
            return 0.0
        direct = math.inf
        if self.remainder is not None or self.exact:
            k = np.arange(max(order + 1, j), self.order + 1)
            left = (np.abs(self.orthonormal[k]) + self.error[k]) * np.sqrt(_falling(k, j))
            direct = math.hypot(*left, 0.0 if self.remainder is None or self.exact else self.remainder(j))
        return direct if self.exact else min(direct, self._parseval(j, order))

    def _parseval(self, j: int, order: int) -> float:
        """Return the bound of `tail` from the moment, including the round-off of the moment."""
        moment = self.moment(j)
        if math.isinf(moment):
            return math.inf
        k = np.arange(min(j, order + 1), order + 1)
        falling, a, error = _falling(k, j), self.orthonormal[k], self.error[k]
        caught = math.fsum(a * a * falling)
        # errors of the a_k, and 4 ulp for the two roundings of each square and that of the moment
        doubt = math.fsum((2 * np.abs(a) + error) * error * falling) + 4 * EPS * max(moment, caught)
        return math.sqrt(max(moment - caught, 0.0) + doubt)

    def information_exponent(self, tolerance: float = 0.0) -> int:
        """Return the smallest k >= 1 with c_k != 0.

        A coefficient counts as non-zero when |a_k| exceeds both its error bound and the tolerance, as zero when it is
        marked exactly zero.

        Arguments: tolerance >= 0, on the orthonormal a_k. Raises: Undecided when a coefficient before the first
        non-zero one is neither marked as zero nor above its error bound, or when all of a_1..a_K are zero. Source: Ben
        Arous, Gheissari & Jagannath 2021.

        >>> from hermite.functions import polynomial
        >>> polynomial([0, -3, 0, 1]).information_exponent()
        3
        """
        for k in range(1, self.order + 1):
            if self.zero[k]:
                continue
            bound = max(float(self.error[k]), tolerance)
            if abs(self.orthonormal[k]) > bound:
                return k
            raise Undecided(
                f"{self.name}: expected |a_{k}| above its bound {bound:.3g} or known to be zero, got "
                f"{self.orthonormal[k]:.3g}; use a closed form, or lower the tolerance"
            )
        follow = "the function is constant" if self.exact else "expand to a higher order"
        raise Undecided(f"{self.name}: expected a non-zero c_k with 1 <= k <= {self.order}, got none; {follow}")


def orthonormal_polynomials(order: int, x) -> list:
    """Return [h_0(x), ..., h_order(x)], h_k = He_k / sqrt(k!).

    sqrt(k+1) h_{k+1} = x h_k - sqrt(k) h_{k-1}.

    Arguments: order, integer >= 0; x, float or array. Raises: DegreeError. Source: Szego 1975, chapter 5.

    >>> orthonormal_polynomials(2, 1.0)
    [1.0, 1.0, 0.0]
    """
    order = degree(order, "order")
    values = [x * 0.0 + 1.0, x]
    for k in range(1, order):
        values.append((x * values[k] - math.sqrt(k) * values[k - 1]) / math.sqrt(k + 1))
    return values[: order + 1]


def _weighted(f: Callable, x: float) -> float:
    """Return f(x) phi(x)^(1/2), or raise an error if f(x) is not finite."""
    value = float(f(x)) * math.exp(-0.25 * x * x) * (2 * math.pi) ** -0.25
    if not math.isfinite(value):
        raise NotReached(f"expected a finite f({x:.6g}), got {float(f(x))}; expand needs f finite on [-38, 38]")
    return value


def _integrand(f: Callable, order: int) -> Callable[[float], np.ndarray]:
    """Return x -> (f h_0 phi, ..., f h_order phi, f^2 phi), each kept small by the root of the weight."""

    def values(x: float) -> np.ndarray:
        weighted = _weighted(f, x)
        start = math.exp(-0.25 * x * x) * (2 * math.pi) ** -0.25
        older, newer = 0.0, start
        column = [start]
        for k in range(order):
            older, newer = newer, (x * newer - math.sqrt(k) * older) / math.sqrt(k + 1)
            column.append(newer)
        return np.array([*column, weighted]) * weighted

    return values


def expand(f: Callable[[float], float], order: int, *, tolerance: float = 1e-12, name: str | None = None) -> Expansion:
    """Return the Hermite expansion of any function by adaptive quadrature.

    a_k = int f(x) h_k(x) phi(x) dx over [-38, 38], all k at once, panels bisected where the error is largest.

    Arguments: f, a function of one float, finite on [-38, 38], square integrable under the normal law and
    resolved by panels of width 1/2 at first; order K; tolerance, absolute bound on each a_k relative to
    max(1, E[f^2]^(1/2)).
    Returns an Expansion without marked zeros or derivative moments. Raises: DegreeError, NotReached.
    Source: Piessens et al. 1983 (QUADPACK), Gauss-Kronrod 21 points.

    >>> a = expand(lambda x: x**3, 3).orthonormal
    >>> [abs(round(float(x), 10)) for x in a]
    [0.0, 3.0, 0.0, 2.4494897428]
    """
    from scipy.integrate import quad_vec

    order = degree(order, "order")
    if not tolerance > 0:
        raise DegreeError(f"tolerance: expected a number > 0, got {tolerance!r}; try 1e-12")
    name = name or str(getattr(f, "__name__", "function"))
    panels = np.linspace(-CUTOFF, CUTOFF, 153)[1:-1]
    square, _ = quad_vec(lambda x: _weighted(f, x) ** 2, -CUTOFF, CUTOFF, epsabs=0, epsrel=1e-8, points=panels)
    size = max(1.0, math.sqrt(square))
    edge = max(abs(_weighted(f, x)) for x in (-CUTOFF, CUTOFF))
    goal = tolerance * size
    # half of the goal for the quadrature, the rest for what rounding adds below
    options = {"epsabs": goal / 2, "epsrel": 0, "norm": "max", "points": panels, "limit": 5000}
    integral, error = quad_vec(_integrand(f, order), -CUTOFF, CUTOFF, **options)
    # the recurrence for h_k loses about an ulp a step; 10 for the sum over panels
    bound = error + EPS * (order + 10) * math.sqrt(max(float(integral[-1]), 0.0)) + edge
    if not bound <= goal:
        raise NotReached(f"{name}: expected every a_k within {goal:.3g}, got {bound:.3g}; raise the tolerance")
    return Expansion(name, integral[:-1], np.full(order + 1, bound), max(float(integral[-1]), 0.0))
