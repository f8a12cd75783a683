"""The correlation functions of the gate as run-time arrays: series in rho^2 with a bound on what is cut off."""

import functools
from typing import NamedTuple

import numpy as np

from derivations.liao.pairs import correlation_pairs
from derivations.liao.parameters import Parameters

TOLERANCE = 1e-14
"""Absolute error allowed in any S_ab on [-1, 1]: the loss near its minimum is a difference of numbers near 1."""


class GateTable(NamedTuple):
    """S_k(rho) = shift_k + rho^odd_k * sum_t series[k, t] rho^(2t), for the pairs of `correlation_pairs`.

    `reach[t]` is the largest rho^2 for which the terms 0..t reach `TOLERANCE`; the number of terms is one more
    than a multiple of four, as the compiled loops want it.
    """

    series: np.ndarray
    shift: np.ndarray
    odd: np.ndarray
    reach: np.ndarray


@functools.cache
def gate_table(gate: str, temperature: float, degree: int) -> GateTable:
    """The table for a gate; raises `hermite.errors.NotReached` where the series cannot reach the tolerance."""
    from hermite.correlation import for_gate

    pairs = correlation_pairs(degree)
    dense = for_gate(gate, temperature, pairs, TOLERANCE).coefficients.copy()
    shift = np.zeros(len(pairs))
    origin = pairs.index((0, 0))
    shift[origin], dense[origin, 0] = dense[origin, 0], 0.0
    # Both gates are 1/2 plus an odd function, so c_k = 0 for even k >= 2 and rho^q c_{q+a} c_{q+b} needs q + a odd.
    odd = np.array([float(a % 2 == 0) for a, _ in pairs])
    terms = (dense.shape[1] + 1) // 2
    terms += (1 - terms) % 4
    padded = np.zeros((len(pairs), 2 * terms))
    padded[:, : dense.shape[1]] = dense
    series = np.where(odd[:, None] == 1, padded[:, 1::2], padded[:, 0::2])
    return GateTable(np.ascontiguousarray(series), shift, odd, _reach(series))


def _reach(series: np.ndarray) -> np.ndarray:
    """The largest x = rho^2 at which cutting the series after term t leaves at most `TOLERANCE` in every row."""
    grid = np.concatenate([[0.0], np.geomspace(1e-16, 1.0, 400)])
    terms = series.shape[1]
    power = grid[None, :] ** np.arange(terms)[:, None]
    size = np.abs(series).max(axis=0)[:, None] * power
    tail = np.concatenate([np.cumsum(size[::-1], axis=0)[::-1][1:], np.zeros((1, grid.size))])
    return np.array([grid[np.flatnonzero(row <= TOLERANCE)[-1]] for row in tail])


def correlations_at(parameters: Parameters, rho: float) -> np.ndarray:
    """All S_k at one rho, shape (functions, 1)."""
    table = gate_table(parameters.gate, parameters.temperature, parameters.degree)
    x = rho**2 * np.ones(1)
    total = np.polynomial.polynomial.polyval(x, table.series.T)
    return table.shift[:, None] + total * (rho**table.odd)[:, None]
