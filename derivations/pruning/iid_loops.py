"""The exact slope of one expert for independently drawn tokens (data=iid) as plain loops, for numba."""

from collections.abc import Callable

import numpy as np

from derivations.ranking import rank

choose: Callable[..., float]
finish: Callable[..., None]
grid: Callable[..., tuple[np.ndarray, np.ndarray]]


def iid_weights(M, l, pi, order, weight):
    """Fill weight (N, l): the probability that the l-th best of M draws is of rank tau, with b draws strictly above,
    times the number of ways, without the probabilities of the draws above. Return the number of relevant ranks.

    weight = C(M, b) (pi_tau + below)^(M - b) P(Bin(M - b, pi_tau/(pi_tau + below)) >= l - b).
    """
    left = 1.0
    depth = 0
    for i in range(order.size):
        own = pi[order[i]]
        above = 1.0 - left
        most = 0.0
        for b in range(l):
            weight[i, b] = 0.0
            if own > 0.0:
                # P(at least l - b of the M - b others are of rank tau, the rest below), summed from its small end
                share = min(1.0, own / left)
                term = choose(M - b, l - b) * share ** (l - b) * (1.0 - share) ** (M - l)
                total = term
                for c in range(l - b + 1, M - b + 1):
                    if share >= 1.0:
                        term = 1.0 if c == M - b else 0.0
                    else:
                        term *= (M - b - c + 1) / c * share / (1.0 - share)
                    total += term
                if share >= 1.0:
                    total = 1.0
                weight[i, b] = choose(M, b) * left ** (M - b) * total
            most += weight[i, b] * above**b
        left = max(0.0, left - own)
        depth = i + 1
        # the remainder is the probability that at most l - 1 of the M draws are of rank tau or above
        tail = 0.0
        for b in range(l):
            tail += choose(M, b) * (1.0 - left) ** b * left ** (M - b)
        if tail < 1e-18:
            break
    return depth


def iid_class(expert, side, ranks, given, grid, out):
    """E[sbar | y] for M independent draws, and its derivatives, added with `sign` to dh and g.

    `expert` = (h, sigma), `side` = (task token, sign), `ranks` = (order, weight, depth), `grid` = (u, du) and `out` =
    (dh, g).
    With s = sigma z, phi = exp(-u z), A and A_s the sums of pi phi and pi phi s above tau, nt = l - sel - b its copies:
    E = int du sum_tau sum_b weight phi_tau^nt F^sel [b A^(b-1) A_s + A^b (nt s_tau + sel s_o)], F = exp(-u z_o).
    """
    (h, sig), (task, _), (order, weight, depth), (u, du) = expert, side, ranks, grid
    ref = max(h[order[0] + 2], h[task])
    z, s, phi, phi_bar = np.empty(depth), np.empty(depth), np.empty(depth), np.empty(depth)
    select = np.empty(depth, dtype=np.int64)
    for i in range(depth):
        z[i] = np.exp(h[order[i] + 2] - ref)
        s[i] = sig[order[i] + 2] * z[i]
        select[i] = 1 if h[order[i] + 2] <= h[task] else 0
    zo = np.exp(h[task] - ref)
    so = sig[task] * zo
    s_bar, z_bar, A_bar, As_bar = np.zeros(depth), np.zeros(depth), np.empty(depth), np.empty(depth)
    power = np.empty(given.l + 1)
    so_bar, zo_bar, value = 0.0, 0.0, 0.0
    for node in range(u.size):
        F = np.exp(-u[node] * zo)
        A, As, F_bar = 0.0, 0.0, 0.0
        for i in range(depth):
            phi[i] = np.exp(-u[node] * z[i])
            power[0] = 1.0
            for b in range(1, given.l + 1):
                power[b] = power[b - 1] * A
            phi_bar[i], A_bar[i], As_bar[i] = 0.0, 0.0, 0.0
            kept = given.l - select[i]
            front = F if select[i] == 1 else 1.0
            for b in range(min(kept + 1, given.l)):
                nt = kept - b
                if nt == 0 and select[i] == 0:
                    continue
                w = weight[i, b] * du[node]
                copies = phi[i] ** nt
                extra = nt * s[i] + select[i] * so
                first = b * power[b - 1] if b > 0 else 0.0
                second = b * (b - 1) * power[b - 2] if b > 1 else 0.0
                inner = first * As + power[b] * extra
                value += w * copies * front * inner
                s_bar[i] += w * copies * front * power[b] * nt
                if nt > 0:
                    phi_bar[i] += w * nt * phi[i] ** (nt - 1) * front * inner
                A_bar[i] += w * copies * front * (second * As + first * extra)
                As_bar[i] += w * copies * front * first
                if select[i] == 1:
                    so_bar += w * copies * front * power[b]
                    F_bar += w * copies * inner
            A += given.pi[order[i]] * phi[i]
            As += given.pi[order[i]] * phi[i] * s[i]
        zo_bar -= u[node] * F * F_bar
        above = above_s = 0.0
        for i in range(depth - 1, -1, -1):
            chance = given.pi[order[i]]
            total = phi_bar[i] + chance * (above + s[i] * above_s)
            s_bar[i] += chance * phi[i] * above_s
            z_bar[i] -= u[node] * phi[i] * total
            above += A_bar[i]
            above_s += As_bar[i]
    finish(sig, side, order, (z, zo), (s_bar, z_bar, so_bar, zo_bar), out)
    return value


def expert_slope(h, sig, plus, minus, dh, g, value, given):
    """Fill dh = dPhi/dh and g = dPhi/dsigma for n - 1 independent draws from pi; value[y] = E[sbar | y]/2."""
    l, order = given.l, np.empty(h.size - 2, np.int64)
    rank(h[2:], order)
    weight = np.empty((order.size, l))
    depth = iid_weights(given.n - 1, l, given.pi, order, weight)
    dh[:] = 0.0
    g[:] = 0.0
    for task in range(2):
        ref = max(h[order[0] + 2], h[task])
        points = grid(given.nodes, l, np.exp(min(h[order[depth - 1] + 2], h[task]) - ref))
        half = 0.5 if task == 0 else -0.5
        ranks = (order, weight, depth)
        value[task] = 0.5 * iid_class((h, sig), (task, half), ranks, given, points, (dh, g))
