"""Sums of arcsines over pairs of units as loops, for every pair of tilted units (`derivations.declare.arcsines`).

The innermost loops run over tilted pairs, so that they are vectorised. The number of pairs is a multiple of eight,
because a remainder would not be vectorised. Up to |argument| = 1/2 the arcsine needs no branch; if no variance exceeds
1, no argument is larger.
"""

import math

import numpy as np
from numba import njit

from derivations.equations.options import OPTIONS


@njit(**OPTIONS)
def half_arcsine(x, y):
    """asin(x) for |x| <= 1/2, y = x^2, by one polynomial: no branch and no quotient, so that loops are vectorised.

    x + x y P(y), P of degree 12 the Chebyshev fit of (asin(x)/x - 1)/x^2 on y <= 1/4 by `mpmath.chebyfit`, whose error
    is 1.5e-17. The result is accurate to one unit in the last place.
    """
    p = 0.010322814350185799 + y * (0.0054575067186402817 + y * (0.017400879442694216 + y * (
        -0.014851887071247485 + y * 0.028757851367421745)))  # fmt: skip
    p = 0.030381944138531247 + y * (0.022372172942149888 + y * (0.017352392720869973 + y * (
        0.013971212973552934 + y * (0.011479177415184903 + y * p))))  # fmt: skip
    return x + x * y * (0.16666666666666668 + y * (0.074999999999984329 + y * (0.04464285714635543 + y * p)))


@njit(**OPTIONS)
def add_all(gh, gg, hh, gk, hk, gm, hm, km, kk, mm, vk, vm, out):
    """Compute out_ij = sum of v_k v_l arcsin(r_kl), i of group g, j of h, k of group k, l of m, S between groups given.

    Pairs within one group are symmetric and are computed once; their covariances are then the same array.
    """
    symmetric = (gh.ctypes.data == gg.ctypes.data, km.ctypes.data == kk.ctypes.data)
    first, second, between = (gk, hk, kk, vk), (gm, hm, mm, vm), km
    K, L = gh.shape
    P = ((K * (K + 1) // 2 if symmetric[0] else K * L) + 7) // 8 * 8
    pairs, value = np.zeros((4, P)), np.zeros(P)  # both variances plus 1, covariance, one over the determinant
    pairs[3] = 1.0
    p = 0
    for i in range(K):
        for j in range(i + 1 if symmetric[0] else L):
            pairs[0, p], pairs[1, p], pairs[2, p] = 1 + gg[i, i], 1 + hh[j, j], gh[i, j]
            pairs[3, p] = 1 / (pairs[0, p] * pairs[1, p] - gh[i, j] * gh[i, j])
            p += 1
    first_tilts, small = tilted(pairs, first, symmetric[0])
    second_tilts, other_small = (first_tilts, small) if symmetric[1] else tilted(pairs, second, symmetric[0])
    for c in range(between.shape[0]):
        for d in range(c + 1 if symmetric[1] else between.shape[1]):
            f = first[3][c, 0] * second[3][d, 0] * (2.0 if symmetric[1] and c != d else 1.0)
            if f != 0.0:
                add_arcsines(first_tilts[c], second_tilts[d], between[c, d], f, small and other_small, value)
    p = 0
    for i in range(K):
        for j in range(i + 1 if symmetric[0] else L):
            out[i, j] = value[p]
            if symmetric[0]:
                out[j, i] = value[p]
            p += 1


@njit(**OPTIONS)
def tilted(pairs, units, symmetric):
    """Return for every unit (5, pairs) both coefficients, both covariances, 1/size; and True if no variance exceeds 1.

    Each loop writes one array, because LLVM could not know that several arrays do not overlap.
    """
    left, right, square, _ = units
    count, P, small = square.shape[0], pairs.shape[1], True
    work = np.zeros((count, 5, P))
    right_variance, left_variance, cross, inverse = pairs[0], pairs[1], pairs[2], pairs[3]
    for c in range(count):
        left_factor, right_factor, first, last, size = work[c, 0], work[c, 1], work[c, 2], work[c, 3], work[c, 4]
        variance = square[c, c]
        small = small and variance <= 1.0
        p = 0
        for i in range(left.shape[0]):
            for j in range(i + 1 if symmetric else right.shape[0]):
                first[p], last[p] = left[i, c], right[j, c]
                p += 1
        for p in range(P):
            left_factor[p] = (left_variance[p] * first[p] - cross[p] * last[p]) * inverse[p]
        for p in range(P):
            right_factor[p] = (right_variance[p] * last[p] - cross[p] * first[p]) * inverse[p]
        for p in range(P):
            size[p] = 1 / math.sqrt(1 + variance - left_factor[p] * first[p] - right_factor[p] * last[p])
    return work, small


@njit(**OPTIONS)
def add_arcsines(unit, further, r, f, small, value):
    """value += f arcsin(correlation of two tilted units), r without tilt, for all pairs."""
    left_factor, right_factor, size = unit[0], unit[1], unit[4]
    first, last, further_size = further[2], further[3], further[4]
    if small:
        for p in range(value.size):
            x = (r - left_factor[p] * first[p] - right_factor[p] * last[p]) * (size[p] * further_size[p])
            value[p] += f * half_arcsine(x, x * x)
        return
    for p in range(value.size):
        x = (r - left_factor[p] * first[p] - right_factor[p] * last[p]) * (size[p] * further_size[p])
        a = min(abs(x), 1.0)
        large = a > 0.5
        y = (1 - a) * 0.5 if large else a * a
        h = half_arcsine(math.sqrt(y), y)
        h = 1.5707963267948966 - 2 * h if large else h
        value[p] += f * (h if x > 0 else -h)
