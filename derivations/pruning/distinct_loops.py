"""The exact slope of one expert for tokens of different patterns (data=distinct) as plain loops, for numba."""

from collections.abc import Callable

import numpy as np

from derivations.ranking import rank

finish: Callable[..., None]
grid: Callable[..., tuple[np.ndarray, np.ndarray]]


def distinct_weights(M, l, N, weight):
    """Fill weight (N,): C(N - r, M - l)/C(N, M), the probability that a given set of l has its last member at rank
    r.
    """
    scale = 1.0  # C(N - r, M - l)/C(N, M) by ratios from r = l on, where it is C(N - l, M - l)/C(N, M)
    for i in range(l):
        scale *= (M - i) / (N - i)
    for r in range(1, N + 1):
        if r < l or N - r < M - l:
            weight[r - 1] = 0.0
            continue
        weight[r - 1] = scale
        scale *= (N - r - (M - l)) / (N - r) if N > r else 0.0
    return N


def distinct_class(expert, side, ranks, l, grid, out):
    """E[sbar | y] for distinct patterns, and its derivatives, added with `sign` to dh and g.

    `expert` = (h, sigma), `side` = (task token, sign), `ranks` = (order, weight), `grid` = (u, du), `out` = (dh, g).
    e_b and its first-order perturbation d_b are elementary symmetric polynomials of phi = exp(-u z) above rank r; rank
    r adds weight phi_r (d_(l-1) + s_r e_(l-1)) if the task token is not selected, and weight F (d_(l-1) + s_o e_(l-1))
    if it is. Derivatives follow from the same recursion in reverse.
    """
    (h, sig), (task, _), (order, weight), (u, du) = expert, side, ranks, grid
    N = order.size
    ref = max(h[order[0] + 2], h[task])
    z, s, phi = np.empty(N), np.empty(N), np.empty(N)
    for i in range(N):
        z[i] = np.exp(h[order[i] + 2] - ref)
        s[i] = sig[order[i] + 2] * z[i]
    zo = np.exp(h[task] - ref)
    so = sig[task] * zo
    s_bar, z_bar = np.zeros(N), np.zeros(N)
    so_bar, zo_bar, value = 0.0, 0.0, 0.0
    e, d = np.zeros((N + 1, l)), np.zeros((N + 1, l))
    e_bar, d_bar = np.empty(l), np.empty(l)
    for node in range(u.size):
        F = np.exp(-u[node] * zo)
        e[0, 0] = 1.0
        for i in range(N):
            phi[i] = np.exp(-u[node] * z[i])
            e[i + 1, 0] = 1.0
            for b in range(1, l):
                e[i + 1, b] = e[i, b] + phi[i] * e[i, b - 1]
                d[i + 1, b] = d[i, b] + phi[i] * (d[i, b - 1] + s[i] * e[i, b - 1])
        e_bar[:] = 0.0
        d_bar[:] = 0.0
        F_bar = 0.0
        for i in range(N - 1, -1, -1):
            phi_bar = 0.0
            for b in range(1, l):
                phi_bar += e_bar[b] * e[i, b - 1] + d_bar[b] * (d[i, b - 1] + s[i] * e[i, b - 1])
                s_bar[i] += d_bar[b] * phi[i] * e[i, b - 1]
                e_bar[b - 1] += phi[i] * (e_bar[b] + s[i] * d_bar[b])
                d_bar[b - 1] += phi[i] * d_bar[b]
            w = weight[i] * du[node]
            if w > 0.0:
                last, last_d = e[i, l - 1], d[i, l - 1]
                if h[order[i] + 2] > h[task]:
                    value += w * phi[i] * (last_d + s[i] * last)
                    phi_bar += w * (last_d + s[i] * last)
                    s_bar[i] += w * phi[i] * last
                    e_bar[l - 1] += w * phi[i] * s[i]
                    d_bar[l - 1] += w * phi[i]
                else:
                    value += w * F * (last_d + so * last)
                    F_bar += w * (last_d + so * last)
                    so_bar += w * F * last
                    e_bar[l - 1] += w * F * so
                    d_bar[l - 1] += w * F
            z_bar[i] -= u[node] * phi[i] * phi_bar
        zo_bar -= u[node] * F * F_bar
    finish(sig, side, order, (z, zo), (s_bar, z_bar, so_bar, zo_bar), out)
    return value


def expert_slope(h, sig, plus, minus, dh, g, value, given):
    """Fill dh = dPhi/dh and g = dPhi/dsigma for n - 1 different patterns; value[y] = E[sbar | y]/2."""
    l, order = given.l, np.empty(h.size - 2, np.int64)
    rank(h[2:], order)
    weight = np.empty(order.size)
    distinct_weights(given.n - 1, l, order.size, weight)
    dh[:] = 0.0
    g[:] = 0.0
    for task in range(2):
        ref = max(h[order[0] + 2], h[task])
        points = grid(given.nodes, l, np.exp(min(h[order[order.size - 1] + 2], h[task]) - ref))
        half = 0.5 if task == 0 else -0.5
        value[task] = 0.5 * distinct_class((h, sig), (task, half), (order, weight), l, points, (dh, g))
