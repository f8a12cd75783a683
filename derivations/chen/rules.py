"""Array operations of the pages of system `chen` that are not sums; each needs only NumPy."""

from typing import Any

import numpy as np


def winning(h: Any) -> Any:
    """p (m, ..): the chance that h_m + r_m is the largest, r uniform on [0, 1]; exact by Gauss-Legendre on pieces."""
    x, w = np.polynomial.legendre.leggauss(len(h) // 2 + 1)
    top, p = h.max(axis=0), 0.0 * h
    ends = np.concatenate([top[None], np.sort(np.maximum(h + 1, top), axis=0)])
    for k in range(len(h)):
        low, high = ends[k], ends[k + 1]
        for node, weight in zip((x + 1) / 2, w / 2, strict=True):
            factors = np.minimum(1.0, low + (high - low) * node - h)
            rest = np.stack([np.prod(np.delete(factors, m, axis=0), axis=0) for m in range(len(h))])
            p = p + np.where((low + high) / 2 < h + 1, (high - low) * weight * rest, 0.0)
    return p


def pieces(g: Any, low: Any, high: Any) -> Any:
    """Nodes (.., n) and weights of a uniform distribution on [low, high], cut at beta |g_m - g_l| = 1 (kinks of p)."""
    x, w = np.polynomial.legendre.leggauss(12)
    gap = np.abs(g[:, None] - g[None])[np.triu_indices(len(g), 1)]
    cuts = np.sort(np.clip(1 / np.maximum(gap, 1e-300), low, high), axis=0)
    ends = np.moveaxis(np.concatenate([0 * g[:1] + low, cuts, 0 * g[:1] + high]), 0, -1)
    start, width = ends[..., :-1, None], np.diff(ends)[..., None]
    nodes, weights = start + width * (x + 1) / 2, width * w / (2 * (high - low))
    return nodes.reshape(*g.shape[1:], -1), weights.reshape(*g.shape[1:], -1)


def join_rest(filters: Any, routers: Any) -> Any:
    """Residual coordinates in one array, filters (m, j) first, then routers."""
    return np.concatenate([filters.reshape(filters.shape[0] * filters.shape[1], filters.shape[2]), routers])
