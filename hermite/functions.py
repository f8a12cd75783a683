"""Closed-form catalogue: each function returns the Expansion of one activation to the given order.

`NAMES` holds all of them; step, sign, abs, gelu, silu, softplus and sine come from `hermite.activations`, logistic and
tanh from `hermite.sigmoids`.
"""

import math
from fractions import Fraction

import numpy as np

from hermite import normal as _normal
from hermite.activations import absolute, gelu, sign, silu, sine, softplus, step
from hermite.errors import ShapeError, TooLarge, degree, finite, positive
from hermite.expansion import Expansion, orthonormal_polynomials
from hermite.polynomials import as_fraction, evaluate, from_power
from hermite.sigmoids import logistic, odd_zeros, tanh

EPS = float(np.finfo(np.float64).eps)


def probit(order: int, temperature: float = 1.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> Phi(temperature (x + shift)), Phi the normal distribution function.

    c_k = s^-k (-1)^(k-1) He_{k-1}(shift / s) phi(shift / s), c_0 = Phi(shift / s), s^2 = 1 + temperature^-2;
    at shift 0, c_{2n+1} = (-1)^n (2n-1)!! s^-2n / sqrt(2 pi s^2).

    Arguments: order K; temperature > 0; shift. Raises: DegreeError, DomainError.
    Source: Gaussian convolution; Owen 1956 for E[f^2].

    >>> probit(3).derivative_means.round(12).tolist()
    [0.5, 0.282094791774, 0.0, -0.141047395887]
    """
    from scipy.special import ndtr, owens_t

    order, (beta,), (shift,) = (
        degree(order, "order"),
        positive(temperature=temperature),
        finite(shift=shift),
    )
    a, error = _normal.coefficients(order, beta, shift)
    t = shift * beta / math.hypot(1.0, beta)
    a[0] = float(ndtr(t))
    error[0] = 4 * EPS * (a[0] + abs(t) * _normal.density(t)) if shift else 0.0
    root = 1 / math.sqrt(1 + 2 * beta * beta)  # sqrt((1 - r) / (1 + r)), r = beta^2 / (1 + beta^2)
    square = float(ndtr(t) - 2 * owens_t(t, root))

    def moments(j: int) -> float:
        return square if j == 0 else _normal.derivative_moment(j, beta, shift)

    zero = odd_zeros(order, constant=True) if shift == 0 else np.zeros(order + 1, dtype=bool)
    a[zero], error[zero] = 0.0, 0.0
    if shift:
        return Expansion("probit", a, error, square, False, moments, zero)

    def remainder(j: int) -> float:
        return _normal.remainder(j, order, beta)

    return Expansion("probit", a, error, square, False, moments, zero, "odd+constant", remainder)


def erf(order: int, scale: float = 1.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> erf(scale (x + shift)) = 2 Phi(sqrt(2) scale (x + shift)) - 1.

    Arguments: order K; scale > 0; shift. Raises: DegreeError, DomainError. Source: `probit`.

    >>> round(float(erf(1).orthonormal[1]), 12)
    0.651470015871
    """
    order, (scale,), (shift,) = degree(order, "order"), positive(scale=scale), finite(shift=shift)
    beta = math.sqrt(2) * scale
    a, error = _normal.coefficients(order, beta, shift)
    a, error = 2 * a, 2 * error
    t = shift * scale / math.hypot(1.0, beta)
    a[0] = math.erf(t)
    error[0] = 4 * EPS * (abs(a[0]) + abs(t) * _normal.density(t))
    # E[erf^2] = (2/pi) arcsin(2 scale^2 / (1 + 2 scale^2)) at shift 0
    square = 2 / math.pi * math.asin(beta**2 / (1 + beta**2)) if shift == 0 else _normal.erf_square(scale, shift)

    def moments(j: int) -> float:
        return square if j == 0 else 4 * _normal.derivative_moment(j, beta, shift)

    zero = odd_zeros(order, constant=False) if shift == 0 else np.zeros(order + 1, dtype=bool)
    a[zero], error[zero] = 0.0, 0.0
    if shift:
        return Expansion("erf", a, error, square, False, moments, zero)

    def remainder(j: int) -> float:
        return 2 * _normal.remainder(j, order, beta)

    return Expansion("erf", a, error, square, False, moments, zero, "odd", remainder)


def _half_line(b: float, power: int) -> float:
    """Return E[max(0, z + b)^power], power 1 or 2, without the cancellation of the closed form at b < -1."""
    from scipy.integrate import quad
    from scipy.special import ndtr

    if b >= -1:
        below = float(ndtr(b))
        return b * below + _normal.density(b) if power == 1 else (1 + b * b) * below + b * _normal.density(b)
    # int_0^inf y^power exp(-y^2/2 + b y) dy: beyond y = 12 the weight is below 1e-31 of the integral
    value, _ = quad(lambda y: y**power * math.exp(-0.5 * y * y + b * y), 0, 12, epsabs=0, epsrel=1e-13, limit=200)
    return value * _normal.density(b)


def relu(order: int, bias: float = 0.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> max(0, x + bias + shift).

    c_0 = b Phi(b) + phi(b), c_1 = Phi(b), c_k = He_{k-2}(-b) phi(b) for k >= 2, b = bias + shift.

    Arguments: order K; bias; shift. Derivative moments diverge from the second derivative on.
    Raises: DegreeError, DomainError. Source: Cho & Saul 2009 (b = 0); integration by parts.

    >>> relu(4).derivative_means.round(12).tolist()
    [0.398942280401, 0.5, 0.398942280401, 0.0, -0.398942280401]
    """
    from scipy.special import ndtr

    order, (bias, shift) = degree(order, "order"), finite(bias=bias, shift=shift)
    b = bias + shift
    k = np.arange(2, max(order, 1) + 1)
    h = np.array(orthonormal_polynomials(max(order - 2, 0), -b))[: k.size]
    scale = _normal.density(b) / np.sqrt(k * (k - 1.0))
    a = np.concatenate([[_half_line(b, 1), float(ndtr(b))], scale * h])[: order + 1]
    slack = np.concatenate([[0.0], np.abs(h)])[: k.size] * np.sqrt(k) * (1 + abs(b)) + np.abs(h)
    error = np.concatenate([a[:2] * (8 + b * b), scale * slack * (k + 8 + b * b)])[: order + 1] * EPS
    error[0] += 1e-13 * a[0] if b < -1 else 0.0  # the tolerance that is passed to quad
    zero = np.zeros(order + 1, dtype=bool)
    # He_k is monic with integer coefficients, so its rational zeros are integers, tested exactly
    if b == int(b) and abs(b) <= 100:
        zero[2:] = [evaluate(i, int(-b)) == 0 for i in range(order - 1)]
    a[zero], error[zero] = 0.0, 0.0

    def moments(j: int) -> float:
        return (_half_line(b, 2), float(ndtr(b)))[j] if j < 2 else math.inf

    return Expansion("relu", a, error, moments(0), False, moments, zero)


def exponential(order: int, rate: float = 1.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> exp(rate (x + shift)).

    c_k = rate^k exp(rate^2 / 2 + rate shift),  E[(f^(j))^2] = rate^2j exp(2 rate^2 + 2 rate shift).

    Arguments: order K; rate; shift. Raises: DegreeError, DomainError, TooLarge.
    Source: moment generating function of the normal law.

    >>> exponential(2, 0.5).derivative_means.round(12).tolist()
    [1.133148453067, 0.566574226533, 0.283287113267]
    """
    order, (rate, shift) = degree(order, "order"), finite(rate=rate, shift=shift)
    power = rate * rate / 2 + rate * shift
    if 2 * rate * rate + 2 * rate * shift > 700:
        raise TooLarge(f"exponential: expected E[f^2] below 1e304, got exp({2 * (power + rate * rate / 2):.4g})")
    k = np.arange(order + 1)
    a = math.exp(power) * np.cumprod(np.concatenate([[1.0], rate / np.sqrt(k[1:])]))
    error = EPS * np.abs(a) * (2 * k + 4 + 2 * rate * rate + 2 * abs(rate * shift))

    def moments(j: int) -> float:
        return rate ** (2 * j) * math.exp(2 * rate * rate + 2 * rate * shift)

    constant = rate == 0
    return Expansion("exponential", a, error * (k == 0 if constant else 1), moments(0), constant, moments)


def cosine(order: int, frequency: float = 1.0, phase: float = 0.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> cos(frequency (x + shift) + phase).

    c_k = w^k exp(-w^2 / 2) cos(p + k pi / 2), w = frequency, p = w shift + phase.

    Arguments: order K; frequency; phase; shift. Raises: DegreeError, DomainError.
    Source: characteristic function of the normal law.

    >>> cosine(2).derivative_means.round(12).tolist()
    [0.606530659713, 0.0, -0.606530659713]
    """
    order, (w, phase, shift) = degree(order, "order"), finite(frequency=frequency, phase=phase, shift=shift)
    p = w * shift + phase
    k = np.arange(order + 1)
    size = math.exp(-w * w / 2) * np.cumprod(np.concatenate([[1.0], w / np.sqrt(k[1:])]))
    # the four quarter turns written out, so that p = 0 gives exact zeros
    turn = np.array([math.cos(p), -math.sin(p), -math.cos(p), math.sin(p)])[k % 4]
    a = size * turn
    # p is rounded, which moves the cosine by an ulp of |w shift| + |phase|
    slack = 2 * (abs(w * shift) + abs(phase))
    error = EPS * np.abs(size) * ((2 * k + 4 + w * w) * np.abs(turn) + slack)
    zero = (k % 2 == 1) if p == 0 and slack == 0 else np.zeros(order + 1, dtype=bool)
    if w == 0:
        zero = k > 0
    a[zero], error[zero] = 0.0, 0.0

    def moments(j: int) -> float:
        # (1 + e cos 2q) / 2 with q = p + j pi / 2, e = exp(-2 w^2), written without cancellation
        part = math.cos(p) if j % 2 == 0 else math.sin(p)
        return w ** (2 * j) * (-math.expm1(-2 * w * w) / 2 + math.exp(-2 * w * w) * part**2)

    symmetry = "even" if (p == 0 and slack == 0) or w == 0 else None
    return Expansion("cosine", a, error, moments(0), w == 0, moments, zero, symmetry)


def _normal_power_moment(power_coefficients: list[Fraction]) -> Fraction:
    """Return E[p(z)^2] from E[z^2m] = (2m-1)!!."""
    total = Fraction(0)
    for i, left in enumerate(power_coefficients):
        for m, right in enumerate(power_coefficients):
            if (i + m) % 2 == 0:
                total += left * right * math.prod(range(1, i + m, 2))
    return total


def polynomial(power_coefficients, order: int | None = None, *, shift=0) -> Expansion:
    """Return the expansion of x -> sum_n p_n (x + shift)^n, exact but for one rounding of each a_k.

    Arguments: power_coefficients p_0..p_n, ascending (int, Fraction, SymPy Rational or float); order K >= n
    (zeros follow) or less (the rest becomes the tail), the degree n when None; shift, of the same kinds.
    Raises: DegreeError, ShapeError. Source: Abramowitz & Stegun 1964, chapter 22.

    >>> polynomial([0, 0, 0, 1]).derivative_means.round(12).tolist()
    [0.0, 3.0, 0.0, 6.0]
    """
    given = [as_fraction(p) for p in power_coefficients]
    if not given:
        raise ShapeError("power_coefficients: expected at least one number, got none; pass [0] for the zero function")
    order = len(given) - 1 if order is None else degree(order, "order")
    moved, by = [Fraction(0)] * len(given), as_fraction(shift)
    for n, p in enumerate(given):
        for m in range(n + 1):
            moved[m] += p * math.comb(n, m) * by ** (n - m)
    hermite = (from_power(moved) + [Fraction(0)] * (order + 1))[: max(order + 1, len(given))]
    a = np.array([float(b) * math.sqrt(math.factorial(k)) for k, b in enumerate(hermite)])
    zero = np.array([b == 0 for b in hermite])

    def moments(j: int) -> float:
        slope = moved
        for _ in range(j):
            slope = [m * c for m, c in enumerate(slope)][1:]
        return float(_normal_power_moment(slope))

    kept, exact = slice(order + 1), all(b == 0 for b in hermite[order + 1 :])
    # roundings: the Fraction, the root and the product
    return Expansion("polynomial", a[kept], 2 * EPS * np.abs(a[kept]), moments(0), exact, moments, zero[kept])


def hermite_series(orthonormal_coefficients) -> Expansion:
    """Return the expansion of x -> sum_k a_k h_k(x), the finite series itself.

    E[(f^(j))^2] = sum_k a_k^2 k! / (k-j)!.

    Arguments: orthonormal_coefficients (K+1,). Raises: ShapeError, TooLarge. Source: Parseval's identity.

    >>> hermite_series([0.0, 0.0, 1.0]).information_exponent()
    2
    """
    a = np.array(orthonormal_coefficients, dtype=np.float64)

    def moments(j: int) -> float:
        return math.fsum(x * x * math.perm(k, j) for k, x in enumerate(a))

    if a.ndim != 1 or not np.all(np.isfinite(a)):
        raise ShapeError(f"orthonormal_coefficients: expected a vector of finite numbers, got shape {a.shape}")
    return Expansion("hermite_series", a, np.zeros_like(a), moments(0), True, moments)


NAMES = {
    "logistic": logistic,
    "probit": probit,
    "erf": erf,
    "tanh": tanh,
    "relu": relu,
    "exponential": exponential,
    "cosine": cosine,
    "sine": sine,
    "step": step,
    "sign": sign,
    "abs": absolute,
    "gelu": gelu,
    "silu": silu,
    "softplus": softplus,
    "polynomial": polynomial,
    "hermite_series": hermite_series,
}
