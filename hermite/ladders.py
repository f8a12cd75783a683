"""Activations as terms of two ladders: that of the step (with Gaussian smoothing) and that of the logistic function.

A ladder is a function with its derivatives and its first integral: the *normal* one is G_1 = |y|/2, G_0 = sign(y)/2,
G_-1 = delta, ..., the *logistic* one T_1 = log(2 cosh(y/2)), T_0 = tanh(y/2)/2, T_-1 = T_0', ....  Every factor of
`hermite.means` is a sum of weight * polynomial(z) * exp(rate z) * ladder(scale z + shift + noise), where an independent
Gaussian noise turns the step into probit and erf: erf(u) = 2 E[G_0(u + n)], n of variance 1/2.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from hermite.errors import DomainError, ShapeError, degree
from hermite.polynomials import as_fraction, evaluate, to_power

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Ladder:
    """Argument scale z + shift + noise of a ladder function. `noise` is the variance of the noise.

    >>> Ladder("normal", Fraction(1), Fraction(0), HALF).noise
    Fraction(1, 2)
    """

    kind: str
    scale: Fraction
    shift: Fraction
    noise: Fraction = Fraction(0)


@dataclass(frozen=True)
class Term:
    """Term weight polynomial(z) exp(rate z + phase) times the ladder function of index `order` (None: without one).

    >>> Term((Fraction(1),)).order is None
    True
    """

    polynomial: tuple[Any, ...]  # Fractions; complex weights of waves
    order: int | None = None
    rate: Any = 0
    phase: Any = 0


@dataclass(frozen=True)
class Factor:
    """One factor f^(order)(scale z + shift) of a Gaussian mean, made by `hermite.means.factor`.

    >>> factor("erf").ladder.noise
    Fraction(1, 2)
    """

    name: str
    scale: float
    shift: float
    order: int
    terms: tuple[Term, ...]
    ladder: Ladder | None

    @property
    def smooth(self) -> bool:
        """Return True if the factor is analytic on the real line."""
        return self.ladder is None or self.ladder.kind == "logistic" or self.ladder.noise > 0

    @property
    def singular(self) -> bool:
        """Return True if the factor holds a delta function or a derivative of one."""
        return not self.smooth and any(term.order is not None and term.order < 0 for term in self.terms)

    def __call__(self, z):
        """Return f(z) for an array z of any shape; raises DomainError for a delta function.

        >>> factor("relu")(np.array([-1.0, 2.0])).tolist()
        [0.0, 2.0]
        """
        if self.singular:
            raise DomainError(f"{self.name}, derivative {self.order}: a delta function has no values; only means")
        z = np.asarray(z, dtype=np.float64)
        total: Any = 0.0
        for term in self.terms:
            value: Any = np.polynomial.polynomial.polyval(z, [_plain(c) for c in term.polynomial])
            if term.order is not None and self.ladder is not None:
                u = float(self.ladder.scale) * z + float(self.ladder.shift)
                value = value * rung(self.ladder.kind, term.order, u, math.sqrt(self.ladder.noise))
            if term.rate != 0 or term.phase != 0:
                value = value * np.exp(_plain(term.rate) * z + _plain(term.phase))
            total = total + value
        return np.real(total)


def _plain(value):
    """Return a Fraction as a float; complex numbers stay."""
    return value if isinstance(value, complex) else float(value)


@cache
def slopes(order: int) -> tuple[float, ...]:
    """Return d^order/du^order tanh(u/2) / 2 as ascending coefficients of a polynomial in tau = tanh(u/2).

    >>> slopes(1)
    (0.25, 0.0, -0.25)
    """
    coefficients = [Fraction(0), HALF]
    for _ in range(order):
        slope = [m * c for m, c in enumerate(coefficients)][1:]
        coefficients = [*slope, Fraction(0), Fraction(0)]
        for m, c in enumerate(slope):
            coefficients[m + 2] -= c
        coefficients = [c / 2 for c in coefficients]
    return tuple(float(c) for c in coefficients)


def rung(kind: str, order: int, u: Any, noise: float = 0.0) -> Any:
    """Return G_order or T_order at u, G smoothed by Gaussian noise of standard deviation `noise`.

    Arguments: kind, 'normal' or 'logistic'; order, at most 1; u, array; noise >= 0. Returns an array of u's shape.

    >>> rung("logistic", 0, np.array([0.0])).tolist(), rung("normal", 1, np.array([-3.0])).tolist()
    ([0.0], [1.5])
    """
    from scipy.special import erf

    u = np.asarray(u)
    if kind == "logistic":
        if order == 1:
            return np.abs(u) / 2 + np.log1p(np.exp(-np.abs(u)))
        return np.polynomial.polynomial.polyval(np.tanh(u / 2), slopes(-order))
    if noise == 0:
        return np.abs(u) / 2 if order == 1 else np.sign(u) / 2
    t = u / noise
    if order >= 0:
        odd = erf(t / math.sqrt(2)) / 2
        return odd if order == 0 else u * odd + noise * np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    k = -1 - order
    density = np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    return (-1) ** k * evaluate(k, t) * density / noise ** (k + 1)


# name -> (kind, noise, scale inside, [(weights of 1 and u, order of the ladder)]), u = scale z + shift
_TABLE: dict[str, tuple] = {
    "step": ("normal", 0, 1, [((HALF,), None), ((1,), 0)]),
    "sign": ("normal", 0, 1, [((2,), 0)]),
    "abs": ("normal", 0, 1, [((2,), 1)]),
    "relu": ("normal", 0, 1, [((0, HALF), None), ((1,), 1)]),
    "erf": ("normal", HALF, 1, [((2,), 0)]),
    "probit": ("normal", 1, 1, [((HALF,), None), ((1,), 0)]),
    # u Phi(u) = u/2 + E G_1(u + n) - phi(u)
    "gelu": ("normal", 1, 1, [((0, HALF), None), ((1,), 1), ((-1,), -1)]),
    "logistic": ("logistic", 0, 1, [((HALF,), None), ((1,), 0)]),
    "tanh": ("logistic", 0, 2, [((2,), 0)]),
    "softplus": ("logistic", 0, 1, [((0, HALF), None), ((1,), 1)]),
    "silu": ("logistic", 0, 1, [((0, HALF), None), ((0, 1), 0)]),
}
_WAVES = ("exp", "cos", "sin")
NAMES = (*_TABLE, *_WAVES, "power", "hermite")


def _moved(coefficients, scale: Fraction, shift: Fraction) -> tuple[Fraction, ...]:
    """Return p(scale z + shift) in ascending powers of z, exactly."""
    result = [Fraction(0)]
    for c in reversed([as_fraction(c) for c in coefficients]):
        lifted = [shift * r for r in result] + [Fraction(0)]
        for m, r in enumerate(result):
            lifted[m + 1] += scale * r
        lifted[0] += c
        result = lifted
    while len(result) > 1 and result[-1] == 0:
        result.pop()
    return tuple(result)


def _slope(coefficients) -> list:
    """Return the derivative of a polynomial given by its ascending coefficients."""
    return [m * c for m, c in enumerate(coefficients)][1:] or [0]


def _derived(parts: list, order: int, inner: int) -> list:
    """Differentiate sum polynomial(u) ladder_rank(inner u) `order` times in u; without a ladder the rank is None."""
    for _ in range(order):
        following: dict = {}
        for polynomial, rank in parts:
            pieces = [(rank, _slope(polynomial))]
            if rank is not None:
                pieces.append((rank - 1, [inner * c for c in polynomial]))
            for key, new in pieces:
                have = following.get(key, [0] * len(new))
                size = max(len(have), len(new))
                pad = [[*one, *[0] * (size - len(one))] for one in (have, new)]
                following[key] = [a + b for a, b in zip(*pad, strict=True)]
        parts = [(polynomial, rank) for rank, polynomial in following.items()]
    return [(polynomial, rank) for polynomial, rank in parts if any(c != 0 for c in polynomial)]


def _waves(name: str, order: int, scale: Fraction, shift: Fraction) -> tuple[Term, ...]:
    """Return exp, cos or sin of scale z + shift, or their derivative, as one or two exponentials."""
    one = (Fraction(1),)
    if name == "exp":
        return (Term(one, rate=scale, phase=shift),)
    # sin u = cos(u - pi/2); every derivative adds a quarter turn; i^k exact, so that no phase is rounded
    turn = (1, 1j, -1, -1j)[(order - (name == "sin")) % 4]
    angle = complex(0.0, float(shift))
    terms = []
    for sign, weight in ((1, complex(turn)), (-1, complex(turn).conjugate())):
        terms.append(Term((weight / 2,), rate=complex(0.0, sign * float(scale)), phase=sign * angle))
    return tuple(terms)


def factor(name: str, *, scale: Any = 1, shift: Any = 0, order: int = 0, coefficients: Any = None) -> Factor:
    """Return the factor f^(order)(scale z + shift), the order-th derivative of f at scale z + shift.

    f is 'step' (1/2 at 0), 'sign', 'abs', 'relu', 'erf', 'probit' (the normal distribution function), 'logistic',
    'tanh', 'gelu' (u Phi(u)), 'silu' (u logistic(u)), 'softplus', 'exp', 'cos', 'sin', or a polynomial: 'power' (sum_k
    p_k u^k) or 'hermite' (sum_k b_k He_k(u)) with the given `coefficients`. Derivatives of kinks are steps, delta
    functions and so on, which `hermite.means.mean` accepts if the mean is finite.

    Arguments: name; scale and shift, finite numbers; order >= 0; coefficients, of polynomials only, ascending. Raises:
    DomainError, DegreeError, ShapeError. Source: `hermite.ladders`; Hendrycks & Gimpel 2016 (gelu).

    >>> factor("tanh", scale=2)(0.5).round(12).tolist()
    0.761594155956
    """
    order = degree(order, "order")
    if name not in NAMES:
        raise DomainError(f"name: expected one of {', '.join(NAMES)}, got {name!r}; see hermite.means.factor")
    if not (math.isfinite(scale) and math.isfinite(shift)):
        raise DomainError(f"expected a finite scale and shift, got {scale!r} and {shift!r}; try 1 and 0")
    a, b = as_fraction(scale), as_fraction(shift)
    polynomial = name in ("power", "hermite")
    if polynomial == (coefficients is None):
        raise ShapeError(f"coefficients: expected them for 'power' and 'hermite' only, got {coefficients!r} for {name}")
    ladder = None
    if polynomial:
        given = [as_fraction(c) for c in coefficients or ()] or [Fraction(0)]
        given = to_power(given) if name == "hermite" else given
        for _ in range(order):
            given = _slope(given)
        terms: tuple[Term, ...] = (Term(_moved(given, a, b)),)
    elif name in _WAVES:
        terms = _waves(name, order, a, b)
    else:
        kind, noise, inner, parts = _TABLE[name]
        terms = tuple(Term(_moved(p, a, b), rank) for p, rank in _derived(parts, order, inner))
        ladder = Ladder(kind, inner * a, inner * b, Fraction(noise))
    return Factor(name, float(scale), float(shift), order, terms, ladder)
