"""The homogeneous reduction as a plain loop around its kernel, for numba."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Arguments(NamedTuple):
    """The run-time arguments: experts, l, rates, kappa = 1 + 1/N, and delta_0, m_eff (k,) of every expert."""

    k: int
    l: int
    eta_r: float
    eta_e: float
    kappa: float
    delta: Any
    m_eff: Any


gap_rate: Callable[..., tuple[float, float]]


def homogeneous_flow(t, y, p):
    """dy/dt of gaps x (k,) and displacements D (k,)."""
    k, delta, m_eff = p.k, p.delta, p.m_eff
    out, S = np.empty(2 * k), np.empty((1, 1))
    for s in range(k):
        out[s], out[k + s] = gap_rate(S, 0, y[s], y[k + s], p.l, p.eta_r, p.eta_e, p.kappa, delta[s], m_eff[s])
    return out
