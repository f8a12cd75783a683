"""The rules of the chen statements as plain loops, which numba compiles into the right-hand side.

The innermost loops run over adjacent examples, and are vectorised.
"""

import numpy as np
from numba import njit

from derivations.equations.options import INNER, OPTIONS

BLOCK = 136
"""Number of examples processed together: their numbers fit in the first cache. Rows of a power of two would share cache
lines.
"""
MOST = 80
"""The largest number of Gauss-Legendre nodes on a piece.

They are exact for up to 160 experts. For 512, the maximum, the error is below 1e-20: the worst integrand is u^511 on
[0, 1].
"""
RULES = [np.polynomial.legendre.leggauss(n + 1) for n in range(MOST)]
NODES = np.array([np.pad((x + 1) / 2, (0, MOST - x.size)) for x, _ in RULES])
WEIGHTS = np.array([np.pad(w / 2, (0, MOST - w.size)) for _, w in RULES])
"""Row n holds the nodes on [0, 1] and the weights of the rule with n + 1 nodes."""
TINY = 1e-300
"""Replacement for a distance of 0, which only a piece of length 0 has."""


@njit(**INNER)
def make_room(M, width):
    """Work arrays of `winning_block`.

    Sorted logits, products and integrals (3, m, width); five rows of numbers, the last for the logits of one example;
    the order of experts for every example and, in a separate column, for the last one; the place of every example, and
    the number of examples with each piece.
    """
    orders = np.empty((M, width + 1), np.int64)
    for m in range(M):
        orders[m, width] = m
    return np.empty((3, M, width)), np.empty((5, max(M, width))), orders, np.empty((2, max(M, width)), np.int64)


@njit(**INNER)
def sort_logits(h, start, count, room):
    """Fill the sorted logits of some examples, and the expert of each logit.

    The order of an example is the first guess for the next one, which is similar. Examples in which many experts can
    win come first, so that those with a given piece are adjacent.
    """
    fields, lines, orders, wholes = room
    s, values, order, places, sizes = fields[0], lines[4], orders[:, -1], wholes[0], wholes[1]
    M = s.shape[0]
    for i in range(M):
        sizes[i] = 0
    for c in range(count):
        for i in range(M):
            m = order[i]
            value, at = h[m, start + c], i
            while at > 0 and values[at - 1] > value:
                values[at] = values[at - 1]
                order[at] = order[at - 1]
                at -= 1
            values[at] = value
            order[at] = m
        first = M - 1
        while first > 0 and values[first - 1] + 1.0 > values[M - 1]:
            first -= 1
        places[c] = first
        sizes[first] += 1
        for i in range(M):
            orders[i, c] = order[i]
    for i in range(1, M):
        sizes[i] += sizes[i - 1]
    for c in range(count - 1, -1, -1):
        first = places[c]
        sizes[first] -= 1
        places[c] = sizes[first]
        for i in range(M):
            s[i, places[c]] = h[orders[i, c], start + c]
    for i in range(M - 1):
        sizes[i] = sizes[i + 1]
    sizes[M - 1] = count


@njit(**INNER)
def add_node(i, x, weight, count, room):
    """Add the integrands at one node of piece i, on which the experts from i on have a factor u - h below 1.

    The product without one factor is that of the factors before it and of those after it. Experts are processed in
    pairs, which halves the memory traffic.
    """
    fields, lines, _, _ = room
    s, before, won = fields[0], fields[1], fields[2]
    low, width, u, product = lines[0], lines[1], lines[2], lines[3]
    M, odd = s.shape[0], (s.shape[0] - i) % 2
    for c in range(count):
        u[c] = low[c] + width[c] * x
        product[c] = width[c] * weight
    if odd:
        for c in range(count):
            before[i, c] = product[c]
            product[c] *= u[c] - s[i, c]
    for r in range(i + odd, M, 2):
        for c in range(count):
            before[r, c] = product[c]
            product[c] *= (u[c] - s[r, c]) * (u[c] - s[r + 1, c])
    for c in range(count):
        product[c] = 1.0
    for r in range(M - 2, i + odd - 1, -2):
        for c in range(count):
            first, second, others = u[c] - s[r, c], u[c] - s[r + 1, c], before[r, c] * product[c]
            won[r, c] += others * second
            won[r + 1, c] += others * first
            product[c] *= first * second
    if odd:
        for c in range(count):
            won[i, c] += before[i, c] * product[c]


@njit(**INNER)
def winning_block(h, start, count, room, p):
    """Fill p for `count` examples from `start` on; see `winning`."""
    sort_logits(h, start, count, room)
    fields, lines, orders, wholes = room
    s, won, places, sizes = fields[0], fields[2], wholes[0], wholes[1]
    M, low, width = s.shape[0], lines[0], lines[1]
    for c in range(count):
        low[c] = s[M - 1, c]
    for r in range(M):
        for c in range(count):
            won[r, c] = 0.0
    for i in range(M):
        if sizes[i] > 0:
            for c in range(sizes[i]):
                width[c] = s[i, c] + 1.0 - low[c]
            last = min((M - 1 - i) // 2, MOST - 1)  # the integrand has degree M - 1 - i
            for q in range(last + 1):
                add_node(i, NODES[last, q], WEIGHTS[last, q], sizes[i], room)
            for c in range(sizes[i]):
                low[c] = s[i, c] + 1.0
    for r in range(M):
        for c in range(count):
            p[orders[r, c], start + c] = won[r, places[c]]


@njit(**OPTIONS)
def winning(h, p):
    """Fill p (m, examples): the probability that h_m + r_m is the largest, r uniform on [0, 1].

    p_m = int prod_(l != m) min(1, u - h_l) du over [max h, h_m + 1]: a polynomial between the sorted ends h_l + 1, on
    which Gauss-Legendre is exact. There are no pieces below the largest logit, because no expert can win there.
    """
    M, n = h.shape
    room = make_room(M, min(BLOCK, n))
    for start in range(0, n, BLOCK):
        winning_block(h, start, min(BLOCK, n - start), room, p)


@njit(**OPTIONS)
def pieces(g, low, high, nodes, weights):
    """Fill nodes and weights (columns of g, n): a uniform distribution on [low, high], cut at beta |g_m - g_l| = 1."""
    M, columns = g.shape
    cuts = np.empty(M * (M - 1) // 2 + 2)
    for c in range(columns):
        count = 1
        cuts[0] = low
        for m in range(M):
            for other in range(m):
                cut = min(max(1.0 / max(abs(g[m, c] - g[other, c]), TINY), low), high)
                at = count
                while at > 0 and cuts[at - 1] > cut:
                    cuts[at] = cuts[at - 1]
                    at -= 1
                cuts[at] = cut
                count += 1
        cuts[count] = high
        for k in range(count):
            width = cuts[k + 1] - cuts[k]
            for q in range(12):
                nodes[c, 12 * k + q] = cuts[k] + width * NODES[11, q]
                weights[c, 12 * k + q] = width * WEIGHTS[11, q] / (high - low)


@njit(**OPTIONS)
def join_rest(filters, routers, rest):
    """Fill rest: the coordinates of filters (m, j x), one after the other, then those of routers (m, x)."""
    M, R = routers.shape
    for m in range(M):
        for j in range(filters.shape[1] // max(R, 1)):
            for x in range(R):
                rest[m * (filters.shape[1] // R) + j, x] = filters[m, j * R + x]
        for x in range(R):
            rest[rest.shape[0] - M + m, x] = routers[m, x]
