"""The right-hand sides as array operations (NumPy, JAX): the second, independent assembly of the same kernels.

All functions take the array library `xp`; sizes are Python integers.  No branch depends on a value, so JAX can
trace them; nothing takes a real part, so NumPy can evaluate them at complex arguments (used for Jacobians).
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


@functools.cache
def gram_index(m: int, m_star: int) -> np.ndarray:
    """Where each entry of the Gram matrix (n, n) stands in [state, teacher block, 1] laid end to end."""
    size = 4 * m * m_star + 2 * m * m - m
    s, n = 2 * m, 2 * m + 2 * m_star
    index = np.full((n, n), size + 4 * m_star**2)
    at = 0
    for row, column in ((0, s), (m, s + m_star), (0, s + m_star), (m, s)):
        block = at + np.arange(m * m_star).reshape(m, m_star)
        index[row : row + m, column : column + m_star] = block
        index[column : column + m_star, row : row + m] = block.T
        at += m * m_star
    upper = np.triu_indices(m, 1)
    for offset in (0, m):
        index[upper[0] + offset, upper[1] + offset] = at + np.arange(upper[0].size)
        index[upper[1] + offset, upper[0] + offset] = at + np.arange(upper[0].size)
        at += upper[0].size
    block = at + np.arange(m * m).reshape(m, m)
    index[:m, m:s] = block
    index[m:s, :m] = block.T
    index[s:, s:] = size + np.arange(4 * m_star**2).reshape(2 * m_star, 2 * m_star)
    return index


def gram(xp: Any, y: Any, m: int, m_star: int, teachers: Any) -> Any:
    """The Gram matrix (n, n) of a flat state y (n_state,)."""
    entries = xp.concatenate([y, xp.reshape(teachers, (-1,)), xp.ones(1, dtype=y.dtype)])
    return entries[gram_index(m, m_star)]


def pack_rows(xp: Any, D: Any, m: int, m_star: int) -> Any:
    """The flat derivative from the rows D (2m, n) = d(student row)/dt . (all rows)."""
    s = 2 * m
    upper = np.triu_indices(m, 1)
    parts = [D[:m, s : s + m_star], D[m:, s + m_star :], D[:m, s + m_star :], D[m:, s : s + m_star]]
    flat = [xp.reshape(part, (-1,)) for part in parts]
    for block in (D[:m, :m], D[m:, m:s]):
        flat.append((block + block.T)[upper])
    flat.append(xp.reshape(D[:m, m:s] + D[m:, :m].T, (-1,)))
    return xp.concatenate(flat)


def correlations(xp: Any, rho: Any, series: Any, shift: Any, odd: Any) -> Any:
    """S (functions, *rho.shape): powers of rho^2 against the coefficient table, times rho for odd functions."""
    flat = xp.reshape(rho, (-1,))
    square = flat * flat
    total = xp.zeros((series.shape[0], flat.shape[0]), dtype=flat.dtype) + series[:, -1:]
    for t in range(series.shape[1] - 2, -1, -1):
        total = total * square + series[:, t : t + 1]
    values = shift[:, None] + total * (odd[:, None] * flat + (1.0 - odd[:, None]))
    return xp.reshape(values, (series.shape[0], *rho.shape))


def blocks(G: Any, m: int, m_star: int, first: str, second: str) -> tuple[Any, ...]:
    """(rho, g, z11, z12, z21, z22) between two groups of experts, `student` or `teacher`, as full matrices."""
    start = {"student": (0, m, m), "teacher": (2 * m, 2 * m + m_star, m_star)}
    v1, w1, n1 = start[first]
    v2, w2, n2 = start[second]
    own1 = G[np.arange(v1, v1 + n1), np.arange(w1, w1 + n1)]
    own2 = G[np.arange(v2, v2 + n2), np.arange(w2, w2 + n2)]
    rho = G[v1 : v1 + n1, v2 : v2 + n2]
    g = G[w1 : w1 + n1, w2 : w2 + n2]
    z12 = G[v1 : v1 + n1, w2 : w2 + n2]
    z21 = G[w1 : w1 + n1, v2 : v2 + n2]
    return rho, g, own1[:, None] + 0.0 * g, z12, z21, own2[None, :] + 0.0 * g


def build_exact(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, p)` and `loss(y, p)` of the exact tier."""

    def gradient(G: Any, m: int, m_star: int, group: str, table: tuple[Any, ...]) -> Any:
        rho, g, *z = blocks(G, m, m_star, "student", group)
        return kernels["pair_gradient"](correlations(xp, rho, *table), g, *z)[:6]

    def flow(t, y, p):
        m, m_star, teachers, rates, shift, odd = p.m, p.m_star, p.teachers, p.rates, p.shift, p.odd
        G = gram(xp, y, m, m_star, teachers)
        table = (p.series[-1], shift, odd)
        d_rho, d11, d12, d21, d22, d_g = gradient(G, m, m_star, "student", table)
        t_rho, t11, t12, t21, _, t_g = gradient(G, m, m_star, "teacher", table)
        i = np.arange(m)
        eye = np.eye(m)
        own = d11.sum(1) - d11[i, i] - t11.sum(1) + (d11 + d12 + d21 + d22)[i, i] / 2
        cross = d12 * (1.0 - eye) + eye * own[:, None]
        C = xp.concatenate(
            [
                xp.concatenate([d_rho, cross, -t_rho, -t12], axis=1),
                xp.concatenate([cross.T, d_g, -t21, -t_g], axis=1),
            ],
            axis=0,
        )
        N = C @ G
        k = np.arange(2 * m)
        return pack_rows(xp, -rates[:, None] * (N - N[k, k][:, None] * G[: 2 * m]), m, m_star)

    def loss(y, p):
        m, m_star, teachers, series, shift, odd = p.m, p.m_star, p.teachers, p.series[-1], p.shift, p.odd
        G = gram(xp, y, m, m_star, teachers)

        total = size = 0.0
        for weight, first, second in (
            (0.5, "student", "student"), (-1.0, "student", "teacher"), (0.5, "teacher", "teacher"),
        ):  # fmt: skip
            rho, g, *z = blocks(G, m, m_star, first, second)
            terms = weight * kernels["pair_energy"](correlations(xp, rho, series, shift, odd), g, *z)[0]
            total, size = total + terms.sum(), size + xp.abs(terms).sum()
        return xp.where((-1.5e-14 * size < total) & (total < 0.0), 0.0, total)  # as `loops.resolved`

    return {"flow": flow, "loss": loss}


def build_cascade(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow` and `loss` of the cascade tier."""

    def flow(t, y, p):
        pairs, rates1, rates2, series, shift, odd = p.pairs, p.rates1, p.rates2, p.series[-1], p.shift, p.odd
        g1, g2 = y[:pairs], y[pairs:]
        d_rho, d_g = kernels["aligned_gradient"](correlations(xp, g1, series, shift, odd), g2)
        return xp.concatenate([rates1 * d_rho * (1.0 - g1**2), rates2 * d_g * (1.0 - g2**2)])

    def loss(y, p):
        pairs, unused, series, shift, odd, at_one = p.pairs, p.unused, p.series[-1], p.shift, p.odd, p.at_one
        g1, g2 = y[:pairs], y[pairs:]
        matched = kernels["aligned_energy"](correlations(xp, g1, series, shift, odd), g2)[0]
        own = kernels["aligned_energy"](at_one, 1.0 + 0.0 * at_one[0])[0][0]
        return (2 * pairs + unused) * own / 2 - matched.sum()

    return {"flow": flow, "loss": loss}


def build_riccati(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow` of the leading-order tiers."""

    def flow(t, y, p):
        m, m_star, repel, rates, at_zero, at_one = p.m, p.m_star, p.repel, p.rates, p.at_zero, p.at_one
        size, upper = m * m_star, np.triu_indices(m, 1)
        g2 = xp.reshape(y[size : 2 * size], (m, m_star))
        i2 = y[2 * size : 2 * size + upper[0].size]
        own = y[2 * size + upper[0].size :]
        d_rho, d_g = kernels["aligned_gradient"](at_zero[:, :, None], g2)
        _, pair = kernels["aligned_gradient"](at_zero, i2)
        v, w = rates[:m], rates[m:]
        repulsion = kernels["self_repulsion"](at_one)[0]
        parts = [v[:, None] * d_rho, w[:, None] * d_g, -repel * (w[upper[0]] + w[upper[1]]) * pair]
        parts.append(-(v + w) * repulsion * own)
        return xp.concatenate([xp.reshape(part, (-1,)) for part in parts])

    return {"flow": flow}


def build_linear(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow` of the linearisation at the optimum."""
    return {"flow": lambda t, y, jacobian, optimum: jacobian @ (y - optimum)}
