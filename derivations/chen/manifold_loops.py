"""The mean gradients on the specialised manifold of `chen` as plain loops over pieces of positive length.

The routing probabilities have M (M - 1)/2 kinks per cluster, of which few lie inside the distribution of beta. The
formulas of the statement are evaluated at the nodes of all pieces, even those of length 0: this takes 20 times as long
for 8 experts, 800 times for 32.
"""

import numpy as np
from numba import njit

from derivations.chen.routing_loops import NODES, WEIGHTS, winning
from derivations.equations.options import OPTIONS

RULE = 12
"""Nodes on every piece."""


@njit(**OPTIONS)
def cut_points(g, k, low, high, cuts):
    """Fill cuts with `low`, the points inside with beta |g_mk - g_lk| = 1, ascending, and `high`; return the number of
    pieces.
    """
    cuts[0], count = low, 1
    for m in range(g.shape[0]):
        for other in range(m):
            gap = abs(g[m, k] - g[other, k])
            if gap * low < 1.0 and gap * high > 1.0:
                at = count
                while cuts[at - 1] > 1.0 / gap:
                    cuts[at] = cuts[at - 1]
                    at -= 1
                cuts[at] = 1.0 / gap
                count += 1
    cuts[count] = high
    return count


@njit(**OPTIONS)
def softmax(h, pi):
    """Fill pi (experts, nodes) with the softmax of the logits over the experts."""
    for q in range(h.shape[1]):
        top, total = h[0, q], 0.0
        for m in range(h.shape[0]):
            top = max(top, h[m, q])
        for m in range(h.shape[0]):
            pi[m, q] = np.exp(h[m, q] - top)
            total += pi[m, q]
        for m in range(h.shape[0]):
            pi[m, q] /= total


@njit(**OPTIONS)
def own_weight(gate, cube, x, w):
    """E alpha^3 q(gate alpha^3 cube) on the own cluster, q(u) = 1/(1 + exp u)."""
    total = 0.0
    for i in range(x.shape[0]):
        a = x[i, 0] ** 3
        total += w[i, 0] * a / (1.0 + np.exp(gate * a * cube))
    return total


@njit(**OPTIONS)
def other_weight(gate, cube, x, w):
    """E gamma^3 tanh(gate gamma^3 cube / 2) / 2 on another cluster."""
    total = 0.0
    for i in range(x.shape[0]):
        c = x[i, 0] ** 3
        total += w[i, 0] * c * np.tanh(0.5 * gate * c * cube)
    return 0.5 * total


@njit(**OPTIONS)
def mean_gradients(g, strength, member, low, high, xa, wa, xc, wc, net, size, drift):
    """Fill the mean gradients of the experts (m, 1), their mean sizes (m, 1), and the drifts of the routers (m, k)."""
    M, K = g.shape
    cuts, push = np.empty(M * (M - 1) // 2 + 2), np.empty(M)
    h, p, pi = np.empty((M, RULE)), np.empty((M, RULE)), np.empty((M, RULE))
    net[:], size[:], drift[:] = 0.0, 0.0, 0.0
    for k in range(K):
        for piece in range(cut_points(g, k, low, high, cuts)):
            width = cuts[piece + 1] - cuts[piece]
            for m in range(M):
                for q in range(RULE):
                    h[m, q] = (cuts[piece] + width * NODES[RULE - 1, q]) * g[m, k]
            winning(h, p)
            softmax(h, pi)
            for q in range(RULE):
                beta, share = cuts[piece] + width * NODES[RULE - 1, q], width * WEIGHTS[RULE - 1, q] / (high - low)
                total = 0.0
                for m in range(M):
                    push[m], cube = 0.0, strength[m, 0] ** 3
                    if p[m, q] > 0.0:
                        if member[m, k] > 0.0:
                            weight = own_weight(pi[m, q], cube, xa, wa)
                        else:
                            weight = -other_weight(pi[m, q], cube, xc, wc) / (K - 1)
                        weight *= p[m, q] * pi[m, q] * share
                        net[m, 0] += weight
                        size[m, 0] += abs(weight)
                        push[m] = weight * cube
                        total += push[m]
                for m in range(M):
                    drift[m, k] += beta * (push[m] - pi[m, q] * total)
