"""The correlation functions of the gate as run-time arrays: series in rho^2 with a bound of the truncation error."""

import functools
from typing import TYPE_CHECKING

import numpy as np

from derivations.contract import UsageError
from derivations.lanes import Series, folded
from derivations.liao.pairs import correlation_pairs
from derivations.liao.parameters import Parameters

if TYPE_CHECKING:
    from hermite.correlation import CorrelationTable

TOLERANCE = 1e-14
"""Absolute error allowed in any S_ab on [-1, 1]: the loss near its minimum is a difference of numbers near 1."""
STEEPEST = 3
"""The largest temperature for which the series of every gate and degree reaches the tolerance."""


@functools.cache
def gate_table(gate: str, temperature: float, degree: int) -> Series:
    """The table for a gate; raises `UsageError` for one so steep that its series cannot reach the tolerance."""
    from hermite.errors import NotReached

    pairs = correlation_pairs(degree)
    try:
        dense = _series(gate, temperature, degree).coefficients
    except NotReached as error:
        raise UsageError(
            f"temperature = {temperature:g}: the {gate} gate is too steep for its Hermite series, which reaches up to "
            f"about {STEEPEST} ({str(error).partition('; ')[0]})"
        ) from None
    # Both gates are 1/2 plus an odd function, so c_k = 0 for even k >= 2 and rho^q c_{q+a} c_{q+b} needs q + a odd.
    return folded(dense, [a % 2 == 0 for a, _ in pairs], TOLERANCE)


@functools.cache
def _series(gate: str, temperature: float, degree: int) -> "CorrelationTable":
    """The series in rho of all correlation functions, with the length that the tolerance requires."""
    from hermite.correlation import for_gate

    return for_gate(gate, temperature, correlation_pairs(degree), TOLERANCE)


def correlations_at(parameters: Parameters, rho: float) -> np.ndarray:
    """All S_k at one rho, shape (functions, 1)."""
    table = gate_table(parameters.gate, parameters.temperature, parameters.degree)
    x = rho**2 * np.ones(1)
    total = np.polynomial.polynomial.polyval(x, table.series.T)
    return table.shift[:, None] + total * (rho**table.odd)[:, None]
