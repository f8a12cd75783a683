"""The normal distribution function Phi(beta (x + shift)): Hermite coefficients, remainder and moments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from hermite.expansion import orthonormal_polynomials
from hermite.polynomials import evaluate

if TYPE_CHECKING:
    from jaxtyping import Float

EPS = float(np.finfo(np.float64).eps)


def density(x: float) -> float:
    """Return phi(x) = exp(-x^2 / 2) / sqrt(2 pi).

    >>> round(density(0.0), 12)
    0.398942280401
    """
    return math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)


def coefficients(
    order: int, beta: float, shift: float
) -> tuple[Float[np.ndarray, "{order+1}"], Float[np.ndarray, "{order+1}"]]:
    """Return (a_k, error bounds) of Phi(beta (x + shift)) for k >= 1, with a_0 left at 0.

    c_k = s^-k (-1)^(k-1) He_{k-1}(t) phi(t), t = shift / s, s^2 = 1 + beta^-2.

    Arguments: order >= 0; beta > 0; shift. Returns two arrays (order + 1,). Source: Gaussian convolution.

    >>> round(float(coefficients(1, 1.0, 0.0)[0][1]), 12)
    0.282094791774
    """
    ratio = beta / math.hypot(1.0, beta)  # 1 / s
    t = shift * ratio
    h = np.array(orthonormal_polynomials(max(order - 1, 0), t))
    k = np.arange(1, order + 1)
    size = ratio**k * density(t) / np.sqrt(k)
    a, error = np.zeros(order + 1), np.zeros(order + 1)
    a[1:] = (-1.0) ** (k - 1) * size * h[:order]
    # rounding of t moves h_{k-1} by its derivative sqrt(k-1) h_{k-2}; the recurrence and the power lose an
    # ulp a step
    near = np.abs(h[:order]) + np.sqrt(k) * (1 + abs(t)) * np.abs(
        np.concatenate([[0.0], h[: max(order - 1, 0)]])[:order]
    )
    error[1:] = EPS * size * ((k + 8 + 4 * t * t) * near)
    return a, error


def remainder(j: int, order: int, beta: float) -> float:
    """Return a bound of the norm of the terms after a_order in d^j/dz^j Phi(beta z), a geometric series in s^-4.

    Arguments: j >= 0; order >= 0; beta > 0. Source: the ratio of the coefficients in closed form.

    >>> remainder(0, 20, 1.0) < 1e-4
    True
    """
    k = order + 1 + order % 2
    if k < j:
        return math.inf
    # a_{k+2}^2 / a_k^2 <= s^-4, and the factor from k! / (k-j)! falls with k
    quotient = (beta * beta / (1 + beta * beta)) ** 2 * (k + 2) * (k + 1) / ((k + 2 - j) * (k + 1 - j))
    a, error = coefficients(k, beta, 0.0)
    size = abs(float(a[k])) + float(error[k])
    return math.inf if quotient >= 1 else size * math.sqrt(math.perm(k, j) / (1 - quotient))


def derivative_moment(j: int, beta: float, shift: float) -> float:
    """Return E[(d^j/dx^j Phi(beta (z + shift)))^2] for j >= 1, a Gaussian integral.

    beta^2j int He_{j-1}(beta y)^2 phi(beta y)^2 phi(x) dx, y = x + shift, exact by Gauss-Hermite.

    Arguments: j >= 1; beta > 0; shift. Source: completing the square; Golub & Welsch 1969.

    >>> round(derivative_moment(1, 1.0, 0.0) * 2 * math.pi * 3**0.5, 12)
    1.0
    """
    variance = 1 / (1 + 2 * beta * beta)
    mean = -2 * beta * beta * shift * variance
    # exact: He_{j-1}^2 has degree 2j - 2 < 2 (j + 1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(j + 1)
    he = evaluate(j - 1, beta * (mean + math.sqrt(variance) * nodes + shift))
    level = math.exp(-beta * beta * shift * shift * variance) * math.sqrt(variance) / (2 * math.pi)
    return beta ** (2 * j) * level * math.fsum(weights * he * he) / math.sqrt(2 * math.pi)


def erf_square(scale: float, shift: float) -> float:
    """Return E[erf(scale (z + shift))^2] by the trapezoidal rule, as 1 - 8 T(h, a) cancels for a small scale.

    Arguments: scale > 0; shift. Source: Trefethen & Weideman 2014.

    >>> abs(erf_square(0.5, 0.0) - 2 / math.pi * math.asin(1 / 3)) < 1e-15
    True
    """
    from scipy.special import erf as error_function

    # the transform of erf^2 phi decays like exp(-w^2 / 8 scale^2) exp(..): 2 pi / step > 60 max(1, scale)
    # leaves 1e-190
    step = 0.1 / max(1.0, scale)
    x = np.arange(-math.ceil(14 / step), math.ceil(14 / step) + 1) * step
    terms = error_function(scale * (x + shift)) ** 2 * np.exp(-0.5 * x * x)
    return math.fsum(terms) * step / math.sqrt(2 * math.pi)
