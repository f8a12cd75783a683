"""The exact flow for three patches as plain loops around the activation kernel, for numba.

`odesim.code.compile` copies these functions, unchanged, into one generated file; nothing here runs uncompiled.  A sum
over J filters is taken once for every strength and cluster (`tabulate`): an example type costs O(M), whatever J.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Arguments(NamedTuple):
    """The run-time arguments of tier p3: sizes, rates, the power; nodes and weights of the three laws, those of the
    routing noise, and the finer ones of the laws for `p3_watch`.
    """

    M: int
    J: int
    K: int
    rho: float
    layer: float
    power: float
    xa: Any
    wa: Any
    xb: Any
    wb: Any
    xc: Any
    wc: Any
    u: Any
    weight: Any
    fa: Any
    va: Any
    fb: Any
    vb: Any
    fc: Any
    vc: Any


activation: Callable[..., tuple[float, ...]]
raised: Callable[[float], float]
log_above_one: Callable[[float], float]


def winning(h, b, order, u, weight, left, p):
    """Fill p with the law of argmax(h + uniform noise) (R1), by Gauss-Legendre on every polynomial piece.

    `b`, `order` and `left` are work space; row n of `u` and `weight` is the rule with n + 1 nodes.  On the piece below
    the i-th smallest end only the later experts have a factor u - h below 1, the product without one of them is a
    product of those before and those after it, and its degree tells how many nodes are exact.
    """
    M = h.size
    top = h[0]
    for m in range(1, M):
        top = max(top, h[m])
    alive = 0
    for m in range(M):
        p[m] = 0.0
        end = h[m] + 1.0
        if end > top:
            at = alive
            while at > 0 and b[at - 1] > end:
                b[at] = b[at - 1]
                order[at] = order[at - 1]
                at -= 1
            b[at] = end
            order[at] = m
            alive += 1
    low = top
    for i in range(alive):
        high = b[i]
        width = high - low
        if width > 0.0:
            last = (alive - 1 - i) // 2
            for k in range(last + 1):
                x = low + width * u[last, k]
                w = width * weight[last, k]
                left[i] = w
                for r in range(i, alive - 1):
                    left[r + 1] = left[r] * (x - h[order[r]])
                after = 1.0
                for r in range(alive - 1, i - 1, -1):
                    m = order[r]
                    p[m] += left[r] * after
                    after *= x - h[m]
        low = high


def tabulate(rows, x, S, power, total, square):
    """total[m, k, i] = sum_j sigma(x_i rows[m, j, k]), square[m, k, i] = sum_j (x_i sigma'(x_i rows[m, j, k]))^2."""
    M, J, K = rows.shape
    for m in range(M):
        for k in range(K):
            for i in range(x.size):
                value = 0.0
                size = 0.0
                for j in range(J):
                    sigma, slope = activation(S, 0, x[i] * rows[m, j, k], power)
                    value += sigma
                    size += (x[i] * slope) * (x[i] * slope)
                total[m, k, i] = value
                square[m, k, i] = size


def signed_nodes(x, w):
    """The nodes of a symmetric law: +-x, each with half the weight."""
    n = x.size
    both = np.empty(2 * n)
    weight = np.empty(2 * n)
    for i in range(n):
        both[i] = x[i]
        both[n + i] = -x[i]
        weight[i] = 0.5 * w[i]
        weight[n + i] = 0.5 * w[i]
    return both, weight


def example_terms(chance, label, example, pi, G, drift, coherent):
    """Fill G_m = chance p_m q pi_m y and the router's drift G_m f_m - pi_m sum_n G_n f_n of one example type.

    `example` (4, M) holds |x sigma'|^2, logits h, outputs f and probabilities p, in one array as taking a tuple apart
    counts references in the innermost loop.  Adds chance p_m q pi_m |x sigma'| to `coherent` and returns the type's
    part of the loss.
    """
    M = example.shape[1]
    top = example[1, 0]
    for m in range(1, M):
        top = max(top, example[1, m])
    total = 0.0
    for m in range(M):
        pi[m] = raised(example[1, m] - top)
        total += pi[m]
    push = 0.0
    loss = 0.0
    for m in range(M):  # without branches, which would keep it from being vectorised: an expert with p = 0 adds zeros
        pi[m] /= total
        f, share = example[2, m], chance * example[3, m]
        margin = label * pi[m] * f
        small = raised(-abs(margin))
        loss += share * (log_above_one(small) + max(-margin, 0.0))
        size = share * pi[m] * (small if margin > 0.0 else 1.0) / (1.0 + small)
        coherent[m] += size * np.sqrt(example[0, m])
        G[m] = size * label
        push += G[m] * f
    for m in range(M):
        drift[m] = G[m] * example[2, m] - pi[m] * push
    return loss


def sum_types(routers, nodes, routing, tables, rest, G, R, coherent):
    """Sum over all example types; G and R (3, M, K, nodes) collect G_m and the router's drift along a, b and c.

    `routers` = (gcen, gfeat), `nodes` = (a, its weights, b, .., c, ..), `routing` = the rule of the routing noise,
    `tables` = (outputs, squared gradients along a, b, c); `rest` (3, M) is what further patches add to logits, outputs
    and squared gradients of every type.
    """
    (gcen, gfeat), (a, a_weight, b, b_weight, c, c_weight), (u, weight) = routers, nodes, routing
    FA, NA, FB, NB, FC, NC = tables
    M, K = gcen.shape
    example, pi = np.empty((4, M)), np.empty(M)
    norm, h, f, p = example[0], example[1], example[2], example[3]
    ends, order, left = np.empty(M), np.empty(M, dtype=np.int64), np.empty(M + 1)
    one, drift = np.empty(M), np.empty(M)
    L = 0.0
    pair = 1.0 / (K * (K - 1))
    for k in range(K):
        for other in range(K):
            if other == k:
                continue
            for i in range(a.size):
                label = 1.0 if i < a.size // 2 else -1.0
                for n in range(b.size):
                    for r in range(c.size):
                        chance = pair * a_weight[i] * b_weight[n] * c_weight[r]
                        for m in range(M):
                            h[m] = a[i] * gfeat[m, k] + b[n] * gcen[m, k] + c[r] * gfeat[m, other] + rest[0, m]
                            f[m] = FA[m, k, i] + FB[m, k, n] + FC[m, other, r] + rest[1, m]
                            norm[m] = NA[m, k, i] + NB[m, k, n] + NC[m, other, r] + rest[2, m]
                        winning(h, ends, order, u, weight, left, p)
                        L += example_terms(chance, label, example, pi, one, drift, coherent)
                        for m in range(M):
                            G[0, m, k, i] += one[m]
                            G[1, m, k, n] += one[m]
                            G[2, m, other, r] += one[m]
                            R[0, m, k, i] += drift[m]
                            R[1, m, k, n] += drift[m]
                            R[2, m, other, r] += drift[m]
    return L


def p3_flow_loss(t, y, given):
    """(dy/dt, L): normalised descent of the experts, rho times descent of the router, on the population loss.

    y = feat, cen (M, J, K), gcen, gfeat (M, K).  For cluster k, noise feature k', feature strength a = y alpha,
    centre strength b and noise strength c = eps gamma: f_m = sum_j sigma(a feat) + sigma(b cen) + sigma(c feat'),
    h_m = a gfeat + b gcen + c gfeat', and G_m, the router's drift and the loss as in `example_terms`.
    """
    M, J, K, rho, layer, power, xa = given.M, given.J, given.K, given.rho, given.layer, given.power, given.xa
    wa, xb, wb, xc, wc, u, weight = given.wa, given.xb, given.wb, given.xc, given.wc, given.u, given.weight
    size = M * J * K
    feat = y[:size].reshape((M, J, K))
    cen = y[size : 2 * size].reshape((M, J, K))
    gcen = y[2 * size : 2 * size + M * K].reshape((M, K))
    gfeat = y[2 * size + M * K :].reshape((M, K))
    a, a_weight = signed_nodes(xa, wa)
    c, c_weight = signed_nodes(xc, wc)
    S = np.empty((1, 1))
    FA, NA = np.empty((M, K, a.size)), np.empty((M, K, a.size))
    FB, NB = np.empty((M, K, xb.size)), np.empty((M, K, xb.size))
    FC, NC = np.empty((M, K, c.size)), np.empty((M, K, c.size))
    tabulate(feat, a, S, power, FA, NA)
    tabulate(cen, xb, S, power, FB, NB)
    tabulate(feat, c, S, power, FC, NC)
    longest = max(a.size, xb.size, c.size)
    G, R = np.zeros((3, M, K, longest)), np.zeros((3, M, K, longest))
    coherent = np.zeros(M)
    none = np.zeros((3, M))
    nodes, tables = (a, a_weight, xb, wb, c, c_weight), (FA, NA, FB, NB, FC, NC)
    L = sum_types((gcen, gfeat), nodes, (u, weight), tables, none, G, R, coherent)
    dy = np.zeros(y.size)
    dfeat = dy[:size].reshape((M, J, K))
    dcen = dy[size : 2 * size].reshape((M, J, K))
    collect(feat, a, G[0], S, power, dfeat)
    collect(feat, c, G[2], S, power, dfeat)
    collect(cen, xb, G[1], S, power, dcen)
    normalise(dfeat, dcen, layer, coherent)
    dgcen = dy[2 * size : 2 * size + M * K].reshape((M, K))
    dgfeat = dy[2 * size + M * K :].reshape((M, K))
    collect_router(R, a, xb, c, rho, dgcen, dgfeat)
    return dy, L


def collect_router(R, a, b, c, rho, dgcen, dgfeat):
    """Add rho times the router's drift along features (strengths a and c) and centres (b)."""
    M, K = dgcen.shape
    for m in range(M):
        for k in range(K):
            for i in range(a.size):
                dgfeat[m, k] += rho * R[0, m, k, i] * a[i]
            for r in range(c.size):
                dgfeat[m, k] += rho * R[2, m, k, r] * c[r]
            for n in range(b.size):
                dgcen[m, k] += rho * R[1, m, k, n] * b[n]


def normalise(dfeat, dcen, layer, coherent):
    """Divide each expert's gradient (M, J, K) by its Frobenius norm, or by layer E|g| where that is larger."""
    M, J, K = dfeat.shape
    for m in range(M):
        scale = speed(np.sqrt(squared_size(dfeat[m]) + squared_size(dcen[m])), layer * coherent[m])
        for j in range(J):  # an assignment of slices takes two seconds to compile
            for k in range(K):
                dfeat[m, j, k] *= scale
                dcen[m, j, k] *= scale


def squared_size(rows):
    """The sum of the squares of a matrix."""
    return (rows * rows).sum()


def speed(norm, width):
    """1/max(norm, width): normalised descent, its speed falling linearly inside the layer; 0 for no gradient."""
    largest = max(norm, width)
    return 1.0 / largest if largest > 0.0 else 0.0


def collect(rows, x, G, S, power, out):
    """out[m, j, k] += sum_i G[m, k, i] x_i sigma'(x_i rows[m, j, k])."""
    M, J, K = rows.shape
    for m in range(M):
        for k in range(K):
            for i in range(x.size):
                share = G[m, k, i] * x[i]
                if share != 0.0:
                    for j in range(J):
                        out[m, j, k] += share * activation(S, 0, x[i] * rows[m, j, k], power)[1]
