"""Expansions of the logistic function and of tanh, which Gaussian means of these functions need too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hermite import logistic as _logistic
from hermite.errors import degree, positive
from hermite.expansion import Expansion

if TYPE_CHECKING:
    from jaxtyping import Bool


def odd_zeros(order: int, constant: bool) -> Bool[np.ndarray, "{order}+1"]:
    """Return booleans that mark the even coefficients as zero; a_0 is marked too unless there is a constant."""
    zero = np.arange(order + 1) % 2 == 0
    zero[0] = not constant
    return zero


def logistic(order: int, temperature: float = 1.0) -> Expansion:
    """Return the expansion of x -> 1 / (1 + exp(-temperature x)).

    c_0 = 1/2, c_2n = 0, c_{2n+1} = (-1)^n (1/pi) int_0^inf w^(2n) u / sinh(u) exp(-w^2/2) dw,
    u = pi w / temperature.

    Arguments: order K; temperature > 0. Raises: DegreeError, DomainError.
    Source: Liao & Kyrillidis 2026.

    >>> logistic(3).derivative_means.round(12).tolist()
    [0.5, 0.206620964142, 0.0, -0.062396483959]
    """
    order, (beta,) = degree(order, "order"), positive(temperature=temperature)
    a, error = _logistic.coefficients(order, beta)

    def moments(j: int) -> float:
        return _logistic.moment(j, beta)

    def remainder(j: int) -> float:
        return _logistic.remainder(j, order, beta)

    zero = odd_zeros(order, constant=True)
    return Expansion("logistic", a, error, moments(0), False, moments, zero, "odd+constant", remainder)


def tanh(order: int, scale: float = 1.0) -> Expansion:
    """Return the expansion of x -> tanh(scale x) = 2 logistic(2 scale x) - 1.

    Arguments: order K; scale > 0. Raises: DegreeError, DomainError. Source: `logistic`.

    >>> round(float(tanh(1).orthonormal[1]), 12)
    0.605705509602
    """
    order, (scale,) = degree(order, "order"), positive(scale=scale)
    a, error = _logistic.coefficients(order, 2 * scale)
    a[0] = 0.0

    def moments(j: int) -> float:
        return _logistic.tanh_moment(j, scale)

    def remainder(j: int) -> float:
        return 2 * _logistic.remainder(j, order, 2 * scale)

    zero = odd_zeros(order, constant=False)
    return Expansion("tanh", 2 * a, 2 * error, moments(0), False, moments, zero, "odd", remainder)
