"""Load, accuracy and dispatch entropy of the population, in the same quadrature as the flow, for numba."""

from collections.abc import Callable

import numpy as np

places: Callable[[int], int]
resting: Callable[[int], np.ndarray]
winning: Callable[..., None]
tabulate: Callable[..., None]
signed_nodes: Callable[..., tuple[np.ndarray, np.ndarray]]


def dispatch_entropy(counts):
    """Entropy of the dispatch n_(k,m) (K, M): sum over experts of load times the entropy of its clusters."""
    K, M = counts.shape
    total = 0.0
    for m in range(M):
        load = 0.0
        for k in range(K):
            load += counts[k, m]
        for k in range(K):
            if counts[k, m] > 0.0:
                total -= counts[k, m] * np.log(counts[k, m] / load)
    return total


def sweep_types(filters, routers, noisy, power, nodes, routing, rest, counts):
    """Add the probability of cluster k at expert m to counts[k, m]; returns the accuracy.

    `filters` = (feat, cen), `routers` = (gcen, gfeat), `nodes` = (xa, wa, xb, wb, xc, wc) those of the laws, `routing`
    = those of the routing noise.  With `noisy` that is averaged over; without it the largest logit wins.  A margin of
    zero is an error.  `rest` (3 W) is what further patches add to logits and outputs.
    """
    (feat, cen), (gcen, gfeat), (xa, wa, xb, wb, xc, wc), (u, weight) = filters, routers, nodes, routing
    M, K = gcen.shape
    a, va = signed_nodes(xa, wa)
    c, vc = signed_nodes(xc, wc)
    S = np.empty((1, 1))
    W = places(M)
    A, B, C = np.zeros((K, a.size, 3 * W)), np.zeros((K, xb.size, 3 * W)), np.zeros((K, c.size, 3 * W))
    tabulate(feat, gfeat, a, S, power, A)
    tabulate(cen, gcen, xb, S, power, B)
    tabulate(feat, gfeat, c, S, power, C)
    h, p, order, work = np.empty(M), np.empty(M), np.arange(M), np.empty((3, M, 4))
    right = 0.0
    for k in range(K):
        for other in range(K):
            if other == k:
                continue
            for i in range(a.size):
                label = 1.0 if i < xa.size else -1.0
                for n in range(xb.size):
                    for r in range(c.size):
                        chance = va[i] * wb[n] * vc[r] / (K * (K - 1))
                        for m in range(M):
                            h[m] = A[k, i, m] + B[k, n, m] + C[other, r, m] + rest[m]
                            p[m] = 0.0
                        if noisy:
                            winning(h, order, work, u, weight, p)
                        else:
                            p[np.argmax(h)] = 1.0
                        for m in range(M):
                            if p[m] > 0.0:
                                counts[k, m] += chance * p[m]
                                f = A[k, i, W + m] + B[k, n, W + m] + C[other, r, W + m] + rest[W + m]
                                if label * f > 0.0:
                                    right += chance * p[m]
    return right


def p3_watch(y, given):
    """load (M), entropy, accuracy (largest logit, fine nodes), both under the routing noise; its dispatch (K, M)."""
    M, J, K, power = given.M, given.J, given.K, given.power
    size = M * J * K
    feat = y[:size].reshape((M, J, K))
    cen = y[size : 2 * size].reshape((M, J, K))
    gcen = y[2 * size : 2 * size + M * K].reshape((M, K))
    gfeat = y[2 * size + M * K :].reshape((M, K))
    found = np.empty(M + 4 + K * M)
    counts = np.zeros((K, M))
    sure = np.zeros((K, M))
    none = resting(M)
    filters, routers, routing = (feat, cen), (gcen, gfeat), (given.u, given.weight)
    fine = (given.fa, given.va, given.fb, given.vb, given.fc, given.vc)
    coarse = (given.xa, given.wa, given.xb, given.wb, given.xc, given.wc)
    found[M + 1] = sweep_types(filters, routers, False, power, fine, routing, none, sure)
    found[M + 3] = sweep_types(filters, routers, True, power, coarse, routing, none, counts)
    found[M] = dispatch_entropy(sure)
    found[M + 2] = dispatch_entropy(counts)
    for m in range(M):
        found[m] = 0.0
    for k in range(K):
        for m in range(M):
            found[m] += counts[k, m]
            found[M + 4 + k * M + m] = counts[k, m]
    return found
