"""Means over irrelevant tokens for the pages: sums over ranks under an integral, differentiated by a complex step."""

from typing import Any

import numpy as np
from scipy.special import binom


def iid(h: Any, sigma: Any, task: int, pi: Any, n: int, l: int, nodes: int) -> Any:
    """E[pooled activation | y] for n - 1 independent draws: by the rank tau of the l-th best and the b draws above."""
    order = 2 + np.argsort(-h[2:].real)
    top, low = max(h[order[0]].real, h[task].real), min(h[order[-1]].real, h[task].real)
    v = np.linspace(-38.0 - np.log(l), 4.0 - np.log(l * np.exp(low - top)), nodes)
    u, du = np.exp(v)[:, None], np.exp(v)[:, None] * (v[1] - v[0])
    z, own = np.exp(h[order] - top), np.exp(h[task] - top)
    s, below = sigma[order] * z, np.maximum(1 - np.cumsum(pi[order]), 0.0)
    phi, F, chosen = np.exp(-u * z), np.exp(-u * own), (h[order].real <= h[task].real) * 1
    A, A_s = (np.cumsum(pi[order] * phi * x, 1) - pi[order] * phi * x for x in (1, s))
    total = 0.0
    for b in range(l):
        rest = sum(binom(n - 1 - b, c) * pi[order] ** c * below ** (n - 1 - b - c) for c in range(l - b, n - b))
        same = l - chosen - b
        above = b * A ** max(b - 1, 0) * A_s + A**b * (same * s + chosen * sigma[task] * own)
        term = binom(n - 1, b) * rest * du * phi ** np.maximum(same, 0) * F**chosen * above
        total = total + term[:, same + chosen > 0].sum()
    return total


def distinct(h: Any, sigma: Any, task: int, pi: Any, n: int, l: int, nodes: int) -> Any:
    """E[pooled activation | y] for n - 1 different patterns: by the rank of the l-th best."""
    order = 2 + np.argsort(-h[2:].real)
    top, low, size = max(h[order[0]].real, h[task].real), min(h[order[-1]].real, h[task].real), len(order)
    v = np.linspace(-38.0 - np.log(l), 4.0 - np.log(l * np.exp(low - top)), nodes)
    u, du = np.exp(v), np.exp(v) * (v[1] - v[0])
    z, own = np.exp(h[order] - top), np.exp(h[task] - top)
    s, F, total = sigma[order] * z, np.exp(-u * own), 0.0
    e, d = np.zeros((l, nodes), complex), np.zeros((l, nodes), complex)  # symmetric polynomials of those above
    e[0] = 1.0
    for r in range(1, size + 1):
        phi, weight = np.exp(-u * z[r - 1]), binom(size - r, n - 1 - l) / binom(size, n - 1) * (r >= l)
        if h[order[r - 1]].real > h[task].real:
            total = total + weight * (du * phi * (d[l - 1] + s[r - 1] * e[l - 1])).sum()
        else:
            total = total + weight * (du * F * (d[l - 1] + sigma[task] * own * e[l - 1])).sum()
        d[1:] += phi * (d[:-1] + s[r - 1] * e[:-1])
        e[1:] += phi * e[:-1]
    return total


def potential(mean: Any, h: Any, sigma: Any, *law: Any) -> Any:
    """Phi = (E[. | +1] - E[. | -1])/2 of every expert (s), its derivatives with respect to h and to sigma (s, p)."""
    value, by_h, by_sigma = np.zeros(len(h)), np.zeros(h.shape), np.zeros(h.shape)
    for s in range(len(h)):
        for task, half in ((0, 0.5), (1, -0.5)):
            value[s] += half * np.real(mean(h[s] + 0j, sigma[s] + 0j, task, *law))
            for p in range(h.shape[1]):
                step = 1e-30j * (np.arange(h.shape[1]) == p)
                by_h[s, p] += half * np.imag(mean(h[s] + step, sigma[s] + 0j, task, *law)) / 1e-30
                by_sigma[s, p] += half * np.imag(mean(h[s] + 0j, sigma[s] + step, task, *law)) / 1e-30
    return value, by_h, by_sigma


def potential_iid(h: Any, sigma: Any, pi: Any, n: Any, l: Any, nodes: Any) -> Any:
    """The potential of n - 1 independent draws."""
    return potential(iid, h, sigma, pi, int(n), int(l), int(nodes))


def potential_distinct(h: Any, sigma: Any, pi: Any, n: Any, l: Any, nodes: Any) -> Any:
    """The potential of n - 1 different patterns."""
    return potential(distinct, h, sigma, pi, int(n), int(l), int(nodes))
