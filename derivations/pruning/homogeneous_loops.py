"""The homogeneous reduction as a plain loop around its kernel, for numba."""

from collections.abc import Callable

import numpy as np

gap_rate: Callable[..., tuple[float, float]]


def homogeneous_flow(t, y, k, l, eta_r, eta_e, kappa, delta, m_eff):
    """dy/dt of gaps x (k,) and displacements D (k,)."""
    out, S = np.empty(2 * k), np.empty((1, 1))
    for s in range(k):
        out[s], out[k + s] = gap_rate(S, 0, y[s], y[k + s], l, eta_r, eta_e, kappa, delta[s], m_eff[s])
    return out
