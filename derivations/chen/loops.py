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
raised: Callable[..., Any]
log_above_one: Callable[..., Any]
alike: Callable[..., Any]
four: Callable[..., Any]
larger: Callable[..., Any]
where_positive: Callable[..., Any]
put_four: Callable[..., None]
root_of_four: Callable[..., Any]
sum_of_four: Callable[..., float]


def by_logit(h, order):
    """Sort `order`, a permutation of the experts, by their logits: little is left to do where it was so for a type that
    resembles this one.
    """
    for i in range(1, h.size):
        m = order[i]
        at = i
        while at > 0 and h[order[at - 1]] > h[m]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = m


def winning(h, order, work, u, weight, p):
    """Fill p with the law of argmax(h + uniform noise) (R1), by Gauss-Legendre on every polynomial piece.

    `order` is a permutation of the experts, and `work` (3, M, 4) space; row n of `u` and `weight` is the rule with
    n + 1 nodes, filled up with zeros to a multiple of four.  On the piece below the i-th smallest end only the later
    experts have a factor u - h below 1, the product without one of them is a product of those before and those after
    it, and its degree tells how many nodes are exact.
    """
    M, nodes = h.size, u.shape[1]
    left, won = 4 * M, 8 * M  # where they begin in `work`, behind the logits in their order, each four times
    by_logit(h, order)
    for r in range(M):
        put_four(work, 4 * r, alike(h[order[r]]))
        put_four(work, won + 4 * r, alike(0.0))
    low = h[order[M - 1]]
    first = 0
    while first < M - 1 and h[order[first]] + 1.0 <= low:
        first += 1
    for i in range(first, M):
        high = h[order[i]] + 1.0
        width = high - low
        if width > 0.0:
            last = (M - 1 - i) // 2
            for at in range(last * nodes, last * nodes + last + 1, 4):
                x = low + width * four(u, at)
                product = width * four(weight, at)
                for r in range(i, M):
                    put_four(work, left + 4 * r, product)
                    product = product * (x - four(work, 4 * r))
                after = alike(1.0)
                for r in range(M - 1, i - 1, -1):
                    put_four(work, won + 4 * r, four(work, won + 4 * r) + four(work, left + 4 * r) * after)
                    after = after * (x - four(work, 4 * r))
            low = high
    for r in range(M):
        p[order[r]] = sum_of_four(four(work, won + 4 * r))


def places(M):
    """How many places M experts have: they are taken four at a time, and the last ones may be none."""
    return -(-M // 4) * 4


def tabulate(rows, routers, x, S, power, table):
    """Fill table (K, nodes, 3 W) with what a signal of cluster k and strength x_i adds to an example's logits, outputs
    and squared gradients: x_i routers[m, k], sum_j sigma(x_i rows[m, j, k]), sum_j (x_i sigma'(x_i rows[m, j, k]))^2.

    W = `places(M)`; the places of experts that are none are left as they are, which is 0.
    """
    M, J, K = rows.shape
    W = places(M)
    for m in range(M):
        for k in range(K):
            for i in range(x.size):
                value = 0.0
                size = 0.0
                for j in range(J):
                    sigma, slope = activation(S, 0, x[i] * rows[m, j, k], power)
                    value += sigma
                    size += (x[i] * slope) * (x[i] * slope)
                table[k, i, m] = x[i] * routers[m, k]
                table[k, i, W + m] = value
                table[k, i, 2 * W + m] = size


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


def example_terms(chance, label, top, example, priced, found, coherent):
    """Fill found[0, m] = G_m = chance p_m q pi_m y and found[1, m] = G_m f_m - pi_m sum_n G_n f_n, the router's drift,
    of one example type.

    `example` (4, W) holds logits h, outputs f, |x sigma'|^2 and probabilities p, `top` is the largest logit.  Adds
    chance p_m q pi_m |x sigma'| to `coherent` and returns the type's part of the loss, 0 unless `priced`.
    """
    W = example.shape[1]
    total = alike(0.0)
    for m in range(0, W, 4):
        pi = raised(four(example, m) - top)
        put_four(found, W + m, pi)
        total = total + pi
    scale = 1.0 / sum_of_four(total)
    pushes, loss = alike(0.0), alike(0.0)
    for m in range(0, W, 4):  # an expert with p = 0 adds zeros
        pi, f, share = four(found, W + m) * scale, four(example, W + m), chance * four(example, 3 * W + m)
        margin = label * pi * f
        small = raised(0.0 - larger(margin, 0.0 - margin))
        if priced:
            loss = loss + share * (log_above_one(small) + larger(0.0 - margin, 0.0))
        size = share * pi * where_positive(margin, small, 1.0) / (1.0 + small)
        G = size * label
        pushes = pushes + G * f
        put_four(found, m, G)
        put_four(coherent, m, four(coherent, m) + size * root_of_four(four(example, 2 * W + m)))
    push = scale * sum_of_four(pushes)
    for m in range(0, W, 4):
        put_four(found, W + m, four(found, m) * four(example, W + m) - push * four(found, W + m))
    return sum_of_four(loss)


def resting(M):
    """What no further patches add to logits, outputs and squared gradients (3 W): logits of -inf for experts that are
    none.
    """
    W = places(M)
    rest = np.zeros(3 * W)
    for m in range(M, W):
        rest[m] = -np.inf
    return rest


def sum_types(M, weights, routing, tables, rest, priced, sums, coherent):
    """Add G_m and the router's drift of all example types to `sums` along a, b and c, each (K, nodes, 2 W).

    Returns the loss, which takes a fifth of the time, where it is to be `priced`, and 0 elsewhere.

    `weights` are those of the nodes of a, b and c, `routing` the rule of the routing noise, `tables` those of
    `tabulate` along a, b and c; `rest` (3 W) is what further patches add to logits, outputs and squared gradients of
    every type, see `resting`.
    """
    (a_weight, b_weight, c_weight), (u, weight), (A, B, C), (along_a, along_b, along_c) = weights, routing, tables, sums
    K, W, n_a, n_b, n_c = A.shape[0], coherent.size, a_weight.size, b_weight.size, c_weight.size
    example, found, before, work = np.zeros((4, W)), np.empty((2, W)), np.empty(3 * W), np.empty((3, M, 4))
    h, p, row, order = example[0, :M], example[3, :M], np.empty(2 * W), np.arange(M)
    L = 0.0
    pair = 1.0 / (K * (K - 1))
    for k in range(K):
        for other in range(K):
            if other == k:
                continue
            for i in range(n_a):
                label = 1.0 if i < n_a // 2 else -1.0
                for n in range(n_b):
                    in_a, in_b = k * n_a + i, k * n_b + n
                    for q in range(0, 3 * W, 4):
                        fields = four(A, 3 * W * in_a + q) + four(B, 3 * W * in_b + q)
                        put_four(before, q, fields + four(rest, q))
                    for q in range(0, 2 * W, 4):
                        put_four(row, q, alike(0.0))
                    for r in range(n_c):
                        chance, in_c = pair * a_weight[i] * b_weight[n] * c_weight[r], other * n_c + r
                        for q in range(0, 3 * W, 4):
                            put_four(example, q, four(before, q) + four(C, 3 * W * in_c + q))
                        winning(h, order, work, u, weight, p)
                        L += example_terms(chance, label, h[order[M - 1]], example, priced, found, coherent)
                        for q in range(0, 2 * W, 4):
                            terms = four(found, q)
                            put_four(row, q, four(row, q) + terms)
                            put_four(along_c, 2 * W * in_c + q, four(along_c, 2 * W * in_c + q) + terms)
                    for q in range(0, 2 * W, 4):
                        put_four(along_a, 2 * W * in_a + q, four(along_a, 2 * W * in_a + q) + four(row, q))
                        put_four(along_b, 2 * W * in_b + q, four(along_b, 2 * W * in_b + q) + four(row, q))
    return L


def p3_drift(t, y, priced, given):
    """(dy/dt, L): normalised descent of the experts, rho times descent of the router, on the population loss.

    L is 0 unless it is to be `priced`.

    y = feat, cen (M, J, K), gcen, gfeat (M, K).  For cluster k, noise feature k', feature strength a = y alpha,
    centre strength b and noise strength c = eps gamma: f_m = sum_j sigma(a feat) + sigma(b cen) + sigma(c feat'),
    h_m = a gfeat + b gcen + c gfeat', and G_m, the router's drift and the loss as in `example_terms`.
    """
    M, J, K, rho, layer, power, b = given.M, given.J, given.K, given.rho, given.layer, given.power, given.xb
    size = M * J * K
    feat = y[:size].reshape((M, J, K))
    cen = y[size : 2 * size].reshape((M, J, K))
    gcen = y[2 * size : 2 * size + M * K].reshape((M, K))
    gfeat = y[2 * size + M * K :].reshape((M, K))
    a, a_weight = signed_nodes(given.xa, given.wa)
    c, c_weight = signed_nodes(given.xc, given.wc)
    S = np.empty((1, 1))
    W = places(M)
    A, B, C = np.zeros((K, a.size, 3 * W)), np.zeros((K, b.size, 3 * W)), np.zeros((K, c.size, 3 * W))
    tabulate(feat, gfeat, a, S, power, A)
    tabulate(cen, gcen, b, S, power, B)
    tabulate(feat, gfeat, c, S, power, C)
    along_a, along_b, along_c = np.zeros((K, a.size, 2 * W)), np.zeros((K, b.size, 2 * W)), np.zeros((K, c.size, 2 * W))
    sums, coherent, routing = (along_a, along_b, along_c), np.zeros(W), (given.u, given.weight)
    L = sum_types(M, (a_weight, given.wb, c_weight), routing, (A, B, C), resting(M), priced, sums, coherent)
    dy = np.zeros(y.size)
    dfeat = dy[:size].reshape((M, J, K))
    dcen = dy[size : 2 * size].reshape((M, J, K))
    dgcen = dy[2 * size : 2 * size + M * K].reshape((M, K))
    dgfeat = dy[2 * size + M * K :].reshape((M, K))
    collect(feat, a, along_a, S, power, rho, dfeat, dgfeat)
    collect(feat, c, along_c, S, power, rho, dfeat, dgfeat)
    collect(cen, b, along_b, S, power, rho, dcen, dgcen)
    normalise(dfeat, dcen, layer, coherent)
    return dy, L


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


def collect(rows, x, along, S, power, rho, out, router):
    """Add the drift along signals of strengths x: out[m, j, k] += sum_i G_m x_i sigma'(x_i rows[m, j, k]) of filters,
    G_m summed over the examples that have the signal, and router[m, k] += rho sum_i x_i times theirs of routers.
    """
    M, J, K = rows.shape
    for m in range(M):
        for k in range(K):
            for i in range(x.size):
                router[m, k] += rho * along[k, i, places(M) + m] * x[i]
                share = along[k, i, m] * x[i]
                if share != 0.0:
                    for j in range(J):
                        out[m, j, k] += share * activation(S, 0, x[i] * rows[m, j, k], power)[1]
