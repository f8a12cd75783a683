"""The reduced tiers as plain loops for numba: the race at uniform routing, and the specialised manifold."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Manifold(NamedTuple):
    """The run-time arguments on the specialised manifold: sizes, rates, the cluster of every expert, nodes and weights
    of the laws, where beta is cut with a rule on [0, 1], the rule of the routing noise, samples of the noise patches.
    """

    M: int
    K: int
    rho: float
    layer: float
    kstar: Any
    xa: Any
    wa: Any
    xc: Any
    wc: Any
    xb: Any
    wb: Any
    low: float
    high: float
    x: Any
    w: Any
    u: Any
    weight: Any
    zeta: Any


class Groups(NamedTuple):
    """Those of K equal groups: as in `Manifold`, without what tells experts apart."""

    M: int
    K: int
    rho: float
    layer: float
    xa: Any
    wa: Any
    xc: Any
    wc: Any
    xb: Any
    wb: Any
    low: float
    high: float
    x: Any
    w: Any
    u: Any
    weight: Any


activation: Callable[..., tuple[float, ...]]
own: Callable[..., tuple[float, ...]]
other: Callable[..., tuple[float, ...]]
winning: Callable[..., None]
speed: Callable[..., float]


def explore_flow(t, y, M, J, K, power, xa, wa):
    """dfeat/dt = psi(feat)/|psi(feat)| expert by expert, psi(x) = E[alpha (sigma'(alpha x) + sigma'(-alpha x))/2]."""
    dy = np.empty(y.size)
    S = np.empty((1, 1))
    count = J * K
    for m in range(M):
        norm = 0.0
        for i in range(m * count, (m + 1) * count):
            drive = 0.0
            for n in range(xa.size):
                up = activation(S, 0, xa[n] * y[i], power)[1]
                down = activation(S, 0, -xa[n] * y[i], power)[1]
                drive += wa[n] * xa[n] * 0.5 * (up + down)
            dy[i] = drive
            norm += drive * drive
        scale = speed(np.sqrt(norm), 0.0)
        for i in range(m * count, (m + 1) * count):
            dy[i] *= scale
    return dy


def split_nodes(g, low, high, x, w):
    """Nodes and weights of a uniform law on [low, high], cut where a gap beta |g_m - g_l| is 1 (a kink of p)."""
    M = g.size
    cuts = np.empty(M * (M - 1) // 2 + 2)
    cuts[0] = low
    count = 1
    for m in range(M):
        for n in range(m):
            gap = abs(g[m] - g[n])
            if gap * low < 1.0 and gap * high > 1.0:
                at = count
                cut = 1.0 / gap
                while cuts[at - 1] > cut:
                    cuts[at] = cuts[at - 1]
                    at -= 1
                cuts[at] = cut
                count += 1
    cuts[count] = high
    nodes = np.empty(count * x.size)
    weights = np.empty(count * x.size)
    for i in range(count):
        width = cuts[i + 1] - cuts[i]
        for k in range(x.size):
            nodes[i * x.size + k] = cuts[i] + width * x[k]
            weights[i * x.size + k] = width * w[k] / (high - low)
    return nodes, weights


def gate_values(h, pi):
    """Fill pi = softmax(h)."""
    top = h[0]
    for m in range(1, h.size):
        top = max(top, h[m])
    total = 0.0
    for m in range(h.size):
        pi[m] = np.exp(h[m] - top)
        total += pi[m]
    for m in range(h.size):
        pi[m] /= total


def mean_weight(mine, strength, gate, x, w, S):
    """E over a law of `own` (mine) or `other` at strength s and gate pi."""
    total = 0.0
    for n in range(x.size):
        total += w[n] * (own(S, 0, x[n], strength, gate)[0] if mine else other(S, 0, x[n], strength, gate)[0])
    return total


def spec_flow(t, y, given):
    """(ds, dgcen)/dt on the specialised manifold; `zeta` (Z, K) are the noise patches' products with the centres."""
    M, K, rho, layer, kstar, u, weight = given.M, given.K, given.rho, given.layer, given.kstar, given.u, given.weight
    xa, wa, xc, wc, xb, wb = given.xa, given.wa, given.xc, given.wc, given.xb, given.wb
    low, high, x, w, zeta = given.low, given.high, given.x, given.w, given.zeta
    dy = np.zeros(y.size)
    dg = dy[M:].reshape((M, K))
    g = y[M:].reshape((M, K))
    S = np.empty((1, 1))
    net, size = np.zeros(M), np.zeros(M)
    h, p, pi, push = np.empty(M), np.empty(M), np.empty(M), np.empty(M)
    order, work = np.arange(M), np.empty((3, M, 4))
    for k in range(K):
        nodes, weights = xb, wb
        if high > low:
            nodes, weights = split_nodes(g[:, k].copy(), low, high, x, w)
        for n in range(nodes.size):
            for z in range(zeta.shape[0]):
                chance = weights[n] / zeta.shape[0]
                for m in range(M):
                    h[m] = nodes[n] * g[m, k] + (zeta[z] * g[m]).sum()
                winning(h, order, work, u, weight, p)
                gate_values(h, pi)
                total = 0.0
                for m in range(M):
                    push[m] = 0.0
                    if p[m] > 0.0:
                        weigh = p[m] * pi[m]
                        if kstar[m] == k:
                            weigh *= mean_weight(True, y[m], pi[m], xa, wa, S)
                        else:
                            weigh *= -mean_weight(False, y[m], pi[m], xc, wc, S) / (K - 1)
                        net[m] += chance * weigh
                        size[m] += chance * abs(weigh)
                        push[m] = weigh * y[m] * y[m] * y[m]
                        total += push[m]
                for m in range(M):
                    drift = rho / K * chance * (push[m] - pi[m] * total)
                    dg[m, k] += drift * nodes[n]
                    dg[m] += drift * zeta[z]
    for m in range(M):
        dy[m] = net[m] * speed(abs(net[m]), layer * size[m])
    return dy


def group2_flow(t, y, given):
    """(ds, dD)/dt of K equal groups: dD = rho/K E[beta (a_in - a_out - (pi_in - pi_out) sum a)], ds = sign(N)."""
    M, K, rho, layer, u, weight = given.M, given.K, given.rho, given.layer, given.u, given.weight
    xa, wa, xc, wc, xb, wb = given.xa, given.wa, given.xc, given.wc, given.xb, given.wb
    low, high, x, w = given.low, given.high, given.x, given.w
    mu = M // K
    S = np.empty((1, 1))
    h, p, pi = np.empty(M), np.empty(M), np.empty(M)
    order, work = np.arange(M), np.empty((3, M, 4))
    net, size, contrast = 0.0, 0.0, 0.0
    nodes, weights = xb, wb
    if high > low:
        nodes, weights = split_nodes(np.array([y[1], 0.0]), low, high, x, w)
    for n in range(nodes.size):
        for m in range(M):
            h[m] = nodes[n] * y[1] if m < mu else 0.0
        winning(h, order, work, u, weight, p)
        gate_values(h, pi)
        inside = p[0] * pi[0] * mean_weight(True, y[0], pi[0], xa, wa, S)
        outside = p[M - 1] * pi[M - 1] * mean_weight(False, y[0], pi[M - 1], xc, wc, S)
        net += weights[n] * (inside - outside)
        size += weights[n] * (inside + outside)
        cube = y[0] * y[0] * y[0]
        a_in, a_out = inside * cube, -outside * cube / (K - 1)
        total = mu * a_in + (M - mu) * a_out
        contrast += weights[n] * nodes[n] * (a_in - a_out - (pi[0] - pi[M - 1]) * total)
    dy = np.empty(2)
    dy[0] = net * speed(abs(net), layer * size)
    dy[1] = rho / K * contrast
    return dy
