"""The sums over the example types of tiers p3 and full as plain loops, for numba.

The statement has sums over seven indices. These loops process a block of types together, one expert after the other:
the innermost loops run along the block and are vectorised. Arrays are matrices, experts first. Tables by cluster and
strength of one signal contain its terms in logits, in outputs, and in the squared size of a gradient.
"""

import math

import numpy as np
from numba import njit

from derivations.chen.routing_loops import BLOCK, make_room, winning_block
from derivations.equations.options import INNER

EXACT = {**INNER, "fastmath": {"contract", "nsz"}}
"""Wrapper for differences that must not be rearranged, because they cancel in exact arithmetic."""
HIGH, LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
"""ln 2 in two parts: a whole number times the first one is exact."""
C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(k) for k in range(3, 14))
"""Coefficients of e^r."""
A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17 = (1 / (2 * k + 1) for k in range(18))
"""Coefficients of artanh(z)/z in powers of z^2."""
LEAST = -708.0
"""The logarithm of the least normal number."""


@njit(**EXACT)
def exponentials(x, bits, powers):
    """Replace every x <= 0 by e^x; `bits` is space for whole numbers, and `powers` the same space as numbers.

    x = k ln 2 + r with |r| < .35; e^r is a polynomial, and 2^k a number with the exponent k. Calls of the library
    function would take a quarter of the right-hand side: three times as long as this vectorised loop.
    """
    for c in range(x.size):
        z = LEAST if x[c] < LEAST else x[c]
        exponent = np.int32(z * (1.0 / math.log(2.0)) + 1023.5)
        k = np.float64(exponent) - 1023.0
        r = (z - k * HIGH) - k * LOW
        s = r * r
        head = (1.0 + r) + s * ((0.5 + r * C3) + s * (C4 + r * C5))
        tail = (C6 + r * C7) + s * (C8 + r * C9) + s * s * ((C10 + r * C11) + s * (C12 + r * C13))
        x[c] = head + s * s * s * tail
        bits[c] = np.int64(exponent) << 52
    for c in range(x.size):
        x[c] *= powers[c]


@njit(**INNER)
def make_block(M, width):
    """Arrays for `width` examples side by side.

    Logits, outputs, squared sizes, probabilities (4, m, width); strengths, probabilities of types and labels (5,
    width); three rows of numbers, and one of whole ones.
    """
    return np.empty((4, M, width)), np.empty((5, width)), np.empty((3, width)), np.empty(width, np.int64)


@njit(**INNER)
def fill_softmax(block, count):
    """Replace the logits by the softmax over the experts."""
    fields, _, rows, bits = block
    h, top, total = fields[0], rows[0], rows[1]
    for c in range(count):
        top[c], total[c] = h[0, c], 0.0
    for m in range(1, h.shape[0]):
        for c in range(count):
            top[c] = max(top[c], h[m, c])
    for m in range(h.shape[0]):
        for c in range(count):
            h[m, c] -= top[c]
        exponentials(h[m, :count], bits, bits.view(np.float64))
        for c in range(count):
            total[c] += h[m, c]
    for m in range(h.shape[0]):
        for c in range(count):
            h[m, c] /= total[c]


@njit(**INNER)
def weigh_block(block, count, means):
    """Add the mean sizes, losses and correct answers of the experts in a block to `means`, each (m, 1).

    The router's drift G_m f_m - pi_m sum_l G_l f_l replaces the softmax, and G_m = chance p_m q pi_m y the squared
    sizes; probabilities are multiplied by those of the types.
    """
    fields, examples, rows, bits = block
    h, f, squares, p = fields[0], fields[1], fields[2], fields[3]
    chance, label = examples[3], examples[4]
    push, margin, small = rows[0], rows[1], rows[2]
    push[:] = 0.0
    # Several loops: one over more than five arrays is not vectorised, as LLVM would have to test whether they overlap.
    for m in range(h.shape[0]):
        coherent, loss, right = 0.0, 0.0, 0.0
        for c in range(count):
            p[m, c] *= chance[c]
        for c in range(count):
            margin[c] = label[c] * h[m, c] * f[m, c]
        for c in range(count):
            small[c] = -abs(margin[c])
        exponentials(small[:count], bits, bits.view(np.float64))
        for c in range(count):
            loss += p[m, c] * (log_above_one(small[c]) + max(-margin[c], 0.0))
            right += p[m, c] if margin[c] > 0.0 else 0.0
            small[c] = p[m, c] * h[m, c] * (small[c] if margin[c] > 0.0 else 1.0) / (1.0 + small[c])
        for c in range(count):
            coherent += small[c] * math.sqrt(squares[m, c])
            squares[m, c] = small[c] * label[c]
            push[c] += squares[m, c] * f[m, c]
        means[0][m, 0] += coherent
        means[1][m, 0] += loss
        means[2][m, 0] += right
    for m in range(h.shape[0]):
        for c in range(count):
            h[m, c] = squares[m, c] * f[m, c] - push[c] * h[m, c]


@njit(**INNER)
def log_above_one(x):
    """log(1 + x) for 0 <= x <= 1: twice the area tangent of z = x/(2 + x), by powers up to z^35."""
    z = x / (2.0 + x)
    s = z * z
    s4 = s * s * s * s
    first = (A0 + s * A1) + s * s * (A2 + s * A3)
    second = (A4 + s * A5) + s * s * (A6 + s * A7)
    third = (A8 + s * A9) + s * s * (A10 + s * A11)
    fourth = (A12 + s * A13) + s * s * (A14 + s * A15)
    return 2.0 * z * (first + s4 * (second + s4 * (third + s4 * (fourth + s4 * (A16 + s * A17)))))


@njit(**INNER)
def clear(arrays):
    """Fill arrays with zeros."""
    for array in arrays:
        array[:] = 0.0


@njit(**INNER)
def fill_logits(block, k, e, count, routers):
    """Fill the logits h_m = a gfeat_mk + b gcen_mk + c gfeat_me of examples with strengths a, b, c."""
    fields, x, _, _ = block
    h, gfeat, gcen = fields[0], routers[0], routers[1]
    for m in range(h.shape[0]):
        first, second, third = gfeat[m, k], gcen[m, k], gfeat[m, e]
        for c in range(count):
            h[m, c] = x[0, c] * first + x[1, c] * second + x[2, c] * third


@njit(**INNER)
def add_totals(block, k, e, count, totals):
    """Add the dispatch (k, m) of weighed examples, and the routers' drifts (m, k) along features and centres."""
    fields, x, _, _ = block
    drift, p = fields[0], fields[3]
    dispatch, along_features, along_centres = totals
    for m in range(p.shape[0]):
        share, first, second, third = 0.0, 0.0, 0.0, 0.0
        for c in range(count):
            share += p[m, c]
            first += x[0, c] * drift[m, c]
            second += x[1, c] * drift[m, c]
            third += x[2, c] * drift[m, c]
        dispatch[k, m] += share
        along_features[m, k] += first
        along_features[m, e] += third
        along_centres[m, k] += second


@njit(**INNER)
def fill_lines(tables, places, sums, counts):
    """Fill `sums` (m, count) with the terms of examples with one table row each for feature and centre.

    The tables are along the feature (m, k i), the centre (m, k n), and the feature noise (m, e r).
    """
    (along_a, along_b, along_c), (k, e, first, last), (na, nb, nc) = tables, places, counts
    for line in range(first, last):
        a, b, at = k * na + line // nb, k * nb + line % nb, (line - first) * nc
        for m in range(sums.shape[0]):
            both = along_a[m, a] + along_b[m, b]
            for r in range(nc):
                sums[m, at + r] = both + along_c[m, e * nc + r]


@njit(**INNER)
def add_lines(terms, places, tables, counts):
    """Add the terms (m, count) of examples to their sums along the feature, the centre and the feature noise."""
    (along_a, along_b, along_c), (k, e, first, last), (na, nb, nc) = tables, places, counts
    for line in range(first, last):
        a, b, at = k * na + line // nb, k * nb + line % nb, (line - first) * nc
        for m in range(terms.shape[0]):
            total = 0.0
            for r in range(nc):
                along_c[m, e * nc + r] += terms[m, at + r]
                total += terms[m, at + r]
            along_a[m, a] += total
            along_b[m, b] += total


@njit(**INNER)
def sum_over_nodes(routers, outputs, squares, strengths, laws, means, totals, pushes):
    """Fill the sums of tier p3 over all example types (k, e, i, n, r), r innermost.

    `routers` are gfeat and gcen; `outputs` and `squares` tables along the feature, the centre and the noise, with their
    nodes `strengths`; `laws` the weights of the nodes, and the label at those along the feature. `weigh_block` fills
    `means`, `add_totals` fills `totals`, and `pushes` gets the sums of G along each signal.
    """
    clear(means)
    clear(totals)
    clear(pushes)
    (xa, xb, xc), (wa, wb, wc, label) = strengths, laws
    counts = na, nb, nc = xa.size, xb.size, xc.size
    M, K = routers[0].shape
    many = min(max(1, BLOCK // nc), na * nb)
    block, room = make_block(M, many * nc), make_room(M, many * nc)
    fields, x, _, _ = block
    for k in range(K):
        for e in range(K):
            for first in range(0, na * nb if e != k else 0, many):
                places = k, e, first, min(first + many, na * nb)
                count = (places[3] - first) * nc
                for line in range(first, places[3]):
                    i, n, at = line // nb, line % nb, (line - first) * nc
                    share = wa[i, 0] * wb[n, 0] / (K * (K - 1))
                    for r in range(nc):
                        x[0, at + r], x[1, at + r], x[2, at + r] = xa[i, 0], xb[n, 0], xc[r, 0]
                        x[3, at + r], x[4, at + r] = share * wc[r, 0], label[i, 0]
                fill_logits(block, k, e, count, routers)
                fill_lines(outputs, places, fields[1], counts)
                fill_lines(squares, places, fields[2], counts)
                winning_block(fields[0], 0, count, room, fields[3])
                fill_softmax(block, count)
                weigh_block(block, count, means)
                add_totals(block, k, e, count, totals)
                add_lines(fields[2], places, pushes, counts)


@njit(**INNER)
def sum_over_points(routers, outputs, squares, strengths, means, totals, pushes, along_patches):
    """Fill the sums of tier full over all example types (k, e, y, r, b, n), the points n innermost.

    `routers` are gfeat, gcen and the logits zeta (m, n) of the patches; `strengths` (n, 3); the tables are along the
    feature (m, k y n), the centre (m, k n), the noise (m, e r n), and the patches (m, b n). All types are equally
    likely. The filled arrays are those of `sum_over_nodes`, and the routers' drift along the patches (m, b n).
    """
    clear(means)
    clear(totals)
    clear(pushes)
    along_patches[:] = 0.0
    M, K = routers[0].shape
    N = strengths.shape[0]
    block, room = make_block(M, min(BLOCK, N)), make_room(M, min(BLOCK, N))
    fields, x, _, _ = block
    x[3] = 1.0 / (8 * N * K * (K - 1))
    for start in range(0, N, BLOCK):
        count = min(BLOCK, N - start)
        for kind in range(8 * K * K):
            k, e, y, r, b = kind // (8 * K), kind // 8 % K, kind // 4 % 2, kind // 2 % 2, kind % 2
            if e != k:
                places = (2 * k + y) * N + start, k * N + start, (2 * e + r) * N + start, b * N + start
                for c in range(count):
                    x[0, c] = (1.0 - 2.0 * y) * strengths[start + c, 0]
                    x[1, c] = strengths[start + c, 1]
                    x[2, c] = (1.0 - 2.0 * r) * strengths[start + c, 2]
                    x[4, c] = 1.0 - 2.0 * y
                fill_logits(block, k, e, count, routers)
                for m in range(M):
                    for c in range(count):
                        fields[0, m, c] += (1.0 - 2.0 * b) * routers[2][m, start + c]
                fill_points(outputs, places, fields[1], count)
                fill_points(squares, places, fields[2], count)
                winning_block(fields[0], 0, count, room, fields[3])
                fill_softmax(block, count)
                weigh_block(block, count, means)
                add_totals(block, k, e, count, totals)
                for signal in range(4):
                    add_points(fields[2], count, pushes[signal], places[signal])
                add_points(fields[0], count, along_patches, places[3])


@njit(**INNER)
def fill_points(tables, places, sums, count):
    """Fill `sums` (m, count) with the terms of one kind of type at points that lie side by side."""
    (along_a, along_b, along_c, along_n), (a, b, e, n) = tables, places
    for m in range(sums.shape[0]):
        for c in range(count):
            sums[m, c] = along_a[m, a + c] + along_b[m, b + c] + along_c[m, e + c] + along_n[m, n + c]


@njit(**INNER)
def add_points(terms, count, along, at):
    """Add the terms (m, count) of one kind of type to their sums along a signal or the patches."""
    for m in range(terms.shape[0]):
        for c in range(count):
            along[m, at + c] += terms[m, c]


@njit(**INNER)
def largest_over_nodes(routers, outputs, strengths, laws, right, dispatch):
    """Fill `right` (m, 1) and `dispatch` (k, m) for routing to the first expert with the largest logit."""
    right[:], dispatch[:] = 0.0, 0.0
    (gfeat, gcen), (xa, xb, xc), (wa, wb, wc, label) = routers, strengths, laws
    (M, K), na, nb, nc = gfeat.shape, xa.size, xb.size, xc.size
    for kind in range(K * K * na * nb):
        k, e, i, n = kind // (K * na * nb), kind // (na * nb) % K, kind // nb % na, kind % nb
        for r in range(nc if e != k else 0):
            chosen, top = 0, -np.inf
            for m in range(M):
                h = xa[i, 0] * gfeat[m, k] + xb[n, 0] * gcen[m, k] + xc[r, 0] * gfeat[m, e]
                if h > top:
                    chosen, top = m, h
            f = outputs[0][chosen, k * na + i] + outputs[1][chosen, k * nb + n] + outputs[2][chosen, e * nc + r]
            chance = wa[i, 0] * wb[n, 0] * wc[r, 0] / (K * (K - 1))
            dispatch[k, chosen] += chance
            if label[i, 0] * f > 0.0:
                right[chosen, 0] += chance


@njit(**INNER)
def largest_over_points(routers, outputs, strengths, right, dispatch):
    """Fill `right` and `dispatch` over the types of tier full."""
    right[:], dispatch[:] = 0.0, 0.0
    (gfeat, gcen, zeta), (M, K), N = routers, routers[0].shape, strengths.shape[0]
    chance = 1.0 / (8 * N * K * (K - 1))
    for kind in range(8 * K * K):
        k, e, y, r, b = kind // (8 * K), kind // 8 % K, kind // 4 % 2, kind // 2 % 2, kind % 2
        for n in range(N if e != k else 0):
            first, second, third = (1.0 - 2.0 * y) * strengths[n, 0], strengths[n, 1], (1.0 - 2.0 * r) * strengths[n, 2]
            chosen, top = 0, -np.inf
            for m in range(M):
                h = first * gfeat[m, k] + second * gcen[m, k] + third * gfeat[m, e] + (1.0 - 2.0 * b) * zeta[m, n]
                if h > top:
                    chosen, top = m, h
            f = outputs[0][chosen, (2 * k + y) * N + n] + outputs[1][chosen, k * N + n]
            f += outputs[2][chosen, (2 * e + r) * N + n] + outputs[3][chosen, b * N + n]
            dispatch[k, chosen] += chance
            if (1.0 - 2.0 * y) * f > 0.0:
                right[chosen, 0] += chance
