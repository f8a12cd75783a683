"""Expansions of step, sign, abs, gelu, silu, softplus and sine, the second half of `hermite.functions`."""

import math

import numpy as np

from hermite import logistic as _logistic
from hermite import normal as _normal
from hermite.errors import degree, finite, positive
from hermite.expansion import Expansion, orthonormal_polynomials
from hermite.polynomials import evaluate

EPS = float(np.finfo(np.float64).eps)


def _kink(order: int, b: float, lag: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (a_k, errors, zeros) of c_k = He_{k-lag}(-b) phi(b) for k >= lag; 0 below."""
    k = np.arange(lag, max(order, lag) + 1)
    h = np.array(orthonormal_polynomials(max(order - lag, 0), -b)).reshape(-1)[: k.size]
    root = np.ones(k.size)
    for i in range(lag):
        root *= np.sqrt(k - i)
    near = np.abs(np.concatenate([[0.0], h]))[: k.size] * np.sqrt(k) * (1 + abs(b)) + np.abs(h)
    a = np.concatenate([np.zeros(lag), _normal.density(b) * h / root])[: order + 1]
    error = np.concatenate([np.zeros(lag), _normal.density(b) * near / root * (k + 8 + b * b)])[: order + 1] * EPS
    zero = np.zeros(order + 1, dtype=bool)
    # He_k is monic with integer coefficients: its rational zeros are integers, tested exactly
    if b == int(b) and abs(b) <= 100:
        zero[lag:] = [evaluate(i, int(-b)) == 0 for i in range(max(order + 1 - lag, 0))]
    a[zero], error[zero] = 0.0, 0.0
    return a, error, zero


def step(order: int, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> 1 if x + shift > 0, else 0.

    c_0 = Phi(b), c_k = He_{k-1}(-b) phi(b), b = shift. Derivative moments diverge.

    Arguments: order K; shift. Raises: DegreeError, DomainError. Source: integration by parts.

    >>> step(3).derivative_means.round(12).tolist()
    [0.5, 0.398942280401, 0.0, -0.398942280401]
    """
    from scipy.special import ndtr

    order, (b,) = degree(order, "order"), finite(shift=shift)
    a, error, zero = _kink(order, b, 1)
    a[0] = float(ndtr(b))
    error[0] = EPS * (4 + b * b) * a[0] if b else 0.0

    def moments(j: int) -> float:
        return float(ndtr(b)) if j == 0 else math.inf

    return Expansion("step", a, error, moments(0), False, moments, zero, "odd+constant" if b == 0 else None)


def sign(order: int, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> sign(x + shift) = 2 step - 1.

    Arguments: order K; shift. Raises: DegreeError, DomainError. Source: `step`.

    >>> sign(1).derivative_means.round(12).tolist()
    [0.0, 0.797884560803]
    """
    order, (b,) = degree(order, "order"), finite(shift=shift)
    a, error, zero = _kink(order, b, 1)
    a, error = 2 * a, 2 * error
    a[0] = math.erf(b / math.sqrt(2))
    error[0] = 4 * EPS * abs(a[0])
    zero[0] = b == 0

    def moments(j: int) -> float:
        return 1.0 if j == 0 else math.inf

    return Expansion("sign", a, error, 1.0, False, moments, zero, "odd" if b == 0 else None)


def absolute(order: int, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> |x + shift|.

    c_0 = b erf(b / sqrt 2) + 2 phi(b), c_1 = erf(b / sqrt 2), c_k = 2 He_{k-2}(-b) phi(b), b = shift.

    Arguments: order K; shift. Derivative moments diverge from the second derivative on.
    Raises: DegreeError, DomainError. Source: integration by parts.

    >>> absolute(2).derivative_means.round(12).tolist()
    [0.797884560803, 0.0, 0.797884560803]
    """
    order, (b,) = degree(order, "order"), finite(shift=shift)
    a, error, zero = _kink(order, b, 2)
    a, error = 2 * a, 2 * error
    odd = math.erf(b / math.sqrt(2))
    first = np.array([b * odd + 2 * _normal.density(b), odd])[: order + 1]
    a[: first.size], error[: first.size] = first, EPS * (6 + b * b) * np.abs(first)
    if b == 0:
        zero[1:2] = True

    def moments(j: int) -> float:
        return (1 + b * b, 1.0)[j] if j < 2 else math.inf

    return Expansion("abs", a, error, moments(0), False, moments, zero, "even" if b == 0 else None)


def _square(name: str, j: int, scale: float, shift: float) -> float:
    """Return E[(d^j/dx^j f(scale (x + shift)))^2] from the Gaussian mean of f^(j) with itself."""
    from hermite.means import factor, mean

    one = factor(name, scale=scale, shift=scale * shift, order=j)
    return max(mean([one, one], [[1.0]], slots=[0, 0]).value, 0.0) * scale ** (2 * j)


def gelu(order: int, scale: float = 1.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> u Phi(u), u = scale (x + shift).

    The coefficients are the derivative means c_k = E[f(z) He_k(z)], z ~ N(0, 1). Phi and phi are the normal
    distribution function and density. With w^2 = 1 + scale^2 and t = scale shift / w:
    c_0 = w t Phi(t) + (w - 1/w) phi(t), c_1 = scale (Phi(t) + t phi(t) / w^2),
    c_k = scale^k w^(1-k) (He_{k-2}(-t) - He_k(-t) / w^2) phi(t).

    Arguments: order K; scale > 0; shift. Raises: DegreeError, DomainError.
    Source: Hendrycks & Gimpel 2016; Gaussian convolution.

    >>> gelu(2).derivative_means.round(12).tolist()
    [0.282094791774, 0.5, 0.423142187661]
    """
    from scipy.special import ndtr

    order, (s,), (shift,) = degree(order, "order"), positive(scale=scale), finite(shift=shift)
    w = math.hypot(1.0, s)
    t, ratio = s * shift / w, s / w
    phi = _normal.density(t)
    h = np.array(orthonormal_polynomials(max(order, 2), -t)).reshape(-1)
    k = np.arange(2, h.size)
    size = ratio**k * w * phi
    parts = np.array([h[:-2] / np.sqrt(k * (k - 1.0)), h[2:] / w**2])
    near = np.sqrt(k) * np.abs(h[1:-1]) * (1 + abs(t))
    low = [w * t * ndtr(t), (w - 1 / w) * phi, s * ndtr(t), s * t * phi / w**2]
    a = np.concatenate([[low[0] + low[1], low[2] + low[3]], size * (parts[0] - parts[1])])[: order + 1]
    sizes = [abs(low[0]) + abs(low[1]) + w * phi, abs(low[2]) + abs(low[3])]
    error = np.concatenate([sizes, size * (np.abs(parts).sum(axis=0) + near)])[: order + 1]
    error = error * EPS * (np.arange(order + 1) + 12 + 4 * t * t)
    zero = np.zeros(order + 1, dtype=bool)
    if shift == 0:
        zero[3::2] = True
        a[zero], error[zero] = 0.0, 0.0

    def moments(j: int) -> float:
        return _square("gelu", j, s, shift)

    return Expansion("gelu", a, error, moments(0), False, moments, zero)


def softplus(order: int, scale: float = 1.0) -> Expansion:
    """Return the expansion of x -> log(1 + exp(scale x)), the integral of the logistic function.

    c_0 = E[log(2 cosh(scale z / 2))], c_k = scale c_{k-1} of the logistic function.

    Arguments: order K; scale > 0. Raises: DegreeError, DomainError. Source: `hermite.logistic`.

    >>> softplus(2).derivative_means.round(12).tolist()
    [0.806059183347, 0.5, 0.206620964142]
    """
    from hermite.means import factor, mean

    order, (beta,) = degree(order, "order"), positive(scale=scale)
    a, error = _logistic.coefficients(max(order - 1, 0), beta)
    k = np.arange(1, order + 1)
    root = beta / np.sqrt(k)
    start = mean([factor("softplus", scale=beta)], [[1.0]])
    a = np.concatenate([[start.value], root * a[:order]])
    error = np.concatenate([[start.error], root * error[:order] + 2 * EPS * np.abs(a[1:])])
    zero = np.zeros(order + 1, dtype=bool)
    zero[3::2] = True

    def moments(j: int) -> float:
        return _square("softplus", j, beta, 0.0)

    def remainder(j: int) -> float:
        # terms k > K of f^(j) are beta times those of the logistic function's derivative j - 1 (for j = 0 over sqrt k)
        rest = _logistic.remainder(max(j - 1, 0), max(order - 1, 0), beta)
        return beta * rest / (math.sqrt(order + 1) if j == 0 else 1.0)

    return Expansion("softplus", a, error, moments(0), False, moments, zero, None, remainder)


def silu(order: int, scale: float = 1.0) -> Expansion:
    """Return the expansion of x -> u / (1 + exp(-u)), u = scale x.

    c_k = scale (c_{k+1} + k c_{k-1}) of the logistic function at that temperature.

    Arguments: order K; scale > 0. Raises: DegreeError, DomainError. Source: `hermite.logistic`; Elfwing et al. 2018.

    >>> silu(2).derivative_means.round(12).tolist()
    [0.206620964142, 0.5, 0.350845444325]
    """
    order, (beta,) = degree(order, "order"), positive(scale=scale)
    c, doubt = _logistic.coefficients(order + 1, beta)
    k = np.arange(order + 1)
    after, before = np.sqrt(k + 1.0), np.sqrt(k)
    lower = np.concatenate([[0.0], c])[: order + 1]
    a = beta * (after * c[1:] + before * lower)
    error = beta * (after * doubt[1:] + before * np.concatenate([[0.0], doubt])[: order + 1])
    error += 3 * EPS * beta * (after * np.abs(c[1:]) + before * np.abs(lower))
    zero = (k % 2 == 1) & (k > 1)
    a[zero], error[zero] = 0.0, 0.0

    def moments(j: int) -> float:
        return _square("silu", j, beta, 0.0)

    def remainder(j: int) -> float:
        if order <= j + 1:
            return math.inf
        # k (k)_j <= ((K+1) / (K-j))^2 (k-1)_{j+1} for k > K
        above = _logistic.remainder(j + 1, order + 1, beta)
        below = _logistic.remainder(j + 1, order - 1, beta)
        return beta * (above + below * (order + 1) / (order - j))

    return Expansion("silu", a, error, moments(0), False, moments, zero, None, remainder)


def sine(order: int, frequency: float = 1.0, phase: float = 0.0, *, shift: float = 0.0) -> Expansion:
    """Return the expansion of x -> sin(frequency (x + shift) + phase).

    c_k = w^k exp(-w^2 / 2) sin(p + k pi / 2), w = frequency, p = w shift + phase.

    Arguments: order K; frequency; phase; shift. Raises: DegreeError, DomainError.
    Source: characteristic function of the normal law.

    >>> sine(3).derivative_means.round(12).tolist()
    [0.0, 0.606530659713, 0.0, -0.606530659713]
    """
    order, (w, phase, shift) = degree(order, "order"), finite(frequency=frequency, phase=phase, shift=shift)
    p = w * shift + phase
    k = np.arange(order + 1)
    size = math.exp(-w * w / 2) * np.cumprod(np.concatenate([[1.0], w / np.sqrt(k[1:])]))
    # the four quarter turns written out, so that p = 0 gives exact zeros
    turn = np.array([math.sin(p), math.cos(p), -math.sin(p), -math.cos(p)])[k % 4]
    slack = 2 * (abs(w * shift) + abs(phase))
    a = size * turn
    error = EPS * np.abs(size) * ((2 * k + 4 + w * w) * np.abs(turn) + slack)
    zero = (k % 2 == 0) if p == 0 and slack == 0 else np.zeros(order + 1, dtype=bool)
    if w == 0:
        zero = (k > 0) | (p == 0)
    a[zero], error[zero] = 0.0, 0.0

    def moments(j: int) -> float:
        # (1 - e cos 2q) / 2 with q = p + j pi / 2, e = exp(-2 w^2), written without cancellation
        part = math.sin(p) if j % 2 == 0 else math.cos(p)
        return w ** (2 * j) * (-math.expm1(-2 * w * w) / 2 + math.exp(-2 * w * w) * part**2)

    symmetry = "odd" if p == 0 and slack == 0 else ("even" if w == 0 else None)
    return Expansion("sine", a, error, moments(0), w == 0, moments, zero, symmetry)
