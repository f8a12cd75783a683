"""The reduced tiers as plain loops for numba: the cascade, the leading order (Riccati), the linearisation."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Cascade(NamedTuple):
    """The run-time arguments of the cascade: how many experts are matched and how many not, their rates, and the gate's
    table, with its correlations at 1.
    """

    pairs: int
    unused: int
    rates1: Any
    rates2: Any
    series: Any
    shift: Any
    odd: Any
    reach: Any
    at_one: Any


class Leading(NamedTuple):
    """The run-time arguments of the leading order: sizes, the repulsion's weight, rates, correlations at 0 and at 1."""

    m: int
    m_star: int
    repel: float
    rates: Any
    at_zero: Any
    at_one: Any


aligned_gradient: Callable[..., tuple[float, ...]]
aligned_energy: Callable[..., tuple[float, ...]]
self_repulsion: Callable[..., tuple[float, ...]]
correlations: Callable[..., None]


def cascade_flow(t, y, p):
    """gamma1' = rate1 dK/drho (1 - gamma1^2), gamma2' = rate2 dK/dg (1 - gamma2^2), pair by pair."""
    pairs, rates1, rates2, series, shift, odd, reach = p.pairs, p.rates1, p.rates2, p.series, p.shift, p.odd, p.reach
    dy = np.empty(2 * pairs)
    rho, square = np.zeros(16), np.empty(16)
    S = np.empty((series.shape[1], 16))
    for j in range(pairs):
        rho[0] = y[j]
        correlations(rho, series, shift, odd, reach, square, S)
        d_rho, d_g = aligned_gradient(S, 0, y[pairs + j])
        dy[j] = rates1[j] * d_rho * (1.0 - y[j] * y[j])
        dy[pairs + j] = rates2[j] * d_g * (1.0 - y[pairs + j] * y[pairs + j])
    return dy


def cascade_loss(y, p):
    """L = (m + m*) K_ii(0) / 2 - sum over pairs of K(gamma1, gamma2), every other overlap being zero."""
    pairs, unused, series, shift, odd, reach, at_one = p.pairs, p.unused, p.series, p.shift, p.odd, p.reach, p.at_one
    rho, square = np.zeros(16), np.empty(16)
    S = np.empty((series.shape[1], 16))
    total = 0.5 * (2 * pairs + unused) * aligned_energy(at_one, 0, 1.0)[0]
    for j in range(pairs):
        rho[0] = y[j]
        correlations(rho, series, shift, odd, reach, square, S)
        total -= aligned_energy(S, 0, y[pairs + j])[0]
    return total


def riccati_flow(t, y, p):
    """Leading order in small overlaps; `repel` = 0 drops the student-student term, as the paper's proof does."""
    m, m_star, repel, rates, at_zero, at_one = p.m, p.m_star, p.repel, p.rates, p.at_zero, p.at_one
    dy = np.empty(y.size)
    size = m * m_star
    for i in range(m):
        for j in range(m_star):
            k = i * m_star + j
            d_rho, d_g = aligned_gradient(at_zero, 0, y[size + k])
            dy[k] = rates[i] * d_rho
            dy[size + k] = rates[m + i] * d_g
    k = 2 * size
    for i in range(m):
        for r in range(i + 1, m):
            d_rho, d_g = aligned_gradient(at_zero, 0, y[k])
            dy[k] = -repel * (rates[m + i] + rates[m + r]) * d_g
            k += 1
    repulsion = self_repulsion(at_one, 0)[0]
    for i in range(m):
        dy[k] = -(rates[i] + rates[m + i]) * repulsion * y[k]
        k += 1
    return dy


def linear_flow(t, y, jacobian, optimum):
    """dy/dt = J (y - y*): the exact Gram flow linearised at the optimum."""
    return jacobian @ (y - optimum)
