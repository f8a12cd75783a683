"""The rules of the chen statements as plain loops, which numba compiles into the right-hand side.

Nothing is allocated inside the loops.  The innermost loops run over examples that lie side by side, and are vectorised.
"""

import numpy as np
from numba import njit

from derivations.equations.options import OPTIONS

BLOCK = 256
"""Examples that are treated together: their numbers stay in the first cache."""
MOST = 64
"""The largest number of Gauss-Legendre nodes on a piece: enough for 128 experts."""
RULES = [np.polynomial.legendre.leggauss(n + 1) for n in range(MOST)]
NODES = np.array([np.pad((x + 1) / 2, (0, MOST - x.size)) for x, _ in RULES])
WEIGHTS = np.array([np.pad(w / 2, (0, MOST - w.size)) for _, w in RULES])
"""Row n holds the nodes on [0, 1] and the weights of the rule with n + 1 nodes."""
TINY = 1e-300
"""In place of a distance of 0, which only a piece of no length has."""


@njit(**OPTIONS)
def exchange(low, high):
    """Put the smaller of two rows of numbers into the first, entry by entry."""
    for c in range(low.size):
        a, b = low[c], high[c]
        low[c] = min(a, b)
        high[c] = max(a, b)


@njit(**OPTIONS)
def sort_ends(h, start, stop, ends):
    """Fill ends (m + 1, ..): the largest logit, then the ends h_l + 1 from there on, ascending."""
    M, top = h.shape[0], ends[0]
    for m in range(M):
        row = h[m][start:stop]
        for c in range(row.size):
            top[c] = row[c] if m == 0 else max(top[c], row[c])
    for m in range(M):
        row, end = h[m][start:stop], ends[m + 1]
        for c in range(row.size):
            end[c] = max(row[c] + 1.0, top[c])
    for m in range(1, M):  # a network of comparisons has no branch, so that it is vectorised
        for k in range(m, 0, -1):
            exchange(ends[k][: stop - start], ends[k + 1][: stop - start])


@njit(**OPTIONS)
def place_node(low, high, x, w, u, product):
    """Fill the places of a node on the pieces [low, high], and its weights."""
    for c in range(u.size):
        width = high[c] - low[c]
        u[c] = low[c] + width * x
        product[c] = width * w


@njit(**OPTIONS)
def multiply_factor(u, h, product):
    """Multiply by min(1, u - h)."""
    for c in range(u.size):
        product[c] *= min(1.0, u[c] - h[c])


@njit(**OPTIONS)
def add_without(u, h, product, p):
    """Add the product without the factor u - h where that is one, to p."""
    for c in range(u.size):
        gap = max(u[c] - h[c], TINY)
        p[c] += product[c] / gap if gap < 1.0 else 0.0


@njit(**OPTIONS)
def winning(h, p):
    """Fill p (m, examples): the probability that h_m + r_m is the largest, r uniform on [0, 1].

    p_m = int prod_(l != m) min(1, u - h_l) du over [max h, h_m + 1]: a polynomial between the sorted ends h_l + 1, on
    which Gauss-Legendre is exact.  The product over the others is the whole product divided by u - h_m.
    """
    M, n = h.shape
    ends, u, product = np.empty((M + 1, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    for m in range(M):
        for c in range(n):
            p[m, c] = 0.0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        count = stop - start
        sort_ends(h, start, stop, ends)
        at, weights = u[:count], product[:count]
        for i in range(M):
            last = (M - 1 - i) // 2  # M - i factors are below 1 here, so that the integrand has degree M - 1 - i
            for q in range(last + 1):
                place_node(ends[i][:count], ends[i + 1][:count], NODES[last, q], WEIGHTS[last, q], at, weights)
                for m in range(M):
                    multiply_factor(at, h[m][start:stop], weights)
                for m in range(M):
                    add_without(at, h[m][start:stop], weights, p[m][start:stop])


@njit(**OPTIONS)
def pieces(g, low, high, nodes, weights):
    """Fill nodes and weights (columns of g, n): a uniform law on [low, high], cut where beta |g_m - g_l| = 1."""
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
