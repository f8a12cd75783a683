"""E[c c^T] of erf units in closed form: two derivatives are Gaussian factors, which tilt the covariance of the rest.

    E[g'(z_i) g'(z_j) g(z_c) g(z_e)] = (factor) E~[g(z_c) g(z_e)],   C~^-1 = C^-1 + the two Gaussian exponents

which is an arcsine again: no table of fourth-order integrals.  Source: Saad & Solla 1995 (I4), by another way.
"""

import math
from collections.abc import Sequence

import numpy as np

from derivations.declare import symbols
from derivations.declare.gates import Shape


def factors(shapes: Sequence[Shape]) -> tuple[tuple[str, str], ...]:
    """(factor, slope) of every group of units, factor erf(slope w), as expressions; empty where one is none."""
    if not all(
        len(shape.slots) == 1
        and not shape.scalars
        and len(shape.value) == 1
        and shape.value[0].gate == 0
        and shape.value[0].powers == (0,)
        and shape.gates[0].kind == "erf"
        and shape.gates[0].bias == 0
        for shape in shapes
    ):
        return ()
    return tuple((symbols.plain(shape.value[0].coefficient), symbols.plain(shape.gates[0].slope)) for shape in shapes)


LOOPS = tuple(f"{__name__}:{name}" for name in ("half_arcsine", "add_arcsines", "conditioned", "tilted", "second"))
"""The second-order term of all models of erf units."""
"""As that of `lane_frame`: the longest first, and last what who derives has begun by then."""


def second(G, w, bias, starts, counts, numbers, series, means, tilts, both, noise, E):
    """E = E[c c^T] over the students' units, whose factors and slopes are `tilts`."""
    tilted(G, w, tilts[0], tilts[1], both, noise, E)


def half_arcsine(x, y):
    """asin(x) for |x| <= 1/2, y = x^2, by one polynomial: no branch and no quotient, so that loops are vectorised.

    x + x y P(y), P of degree 12 the Chebyshev fit of (asin(x)/x - 1)/x^2 on y <= 1/4 by `mpmath.chebyfit`, whose error
    is 1.5e-17: what is returned is within one unit in the last place.
    """
    p = 0.010322814350185799 + y * (0.0054575067186402817 + y * (0.017400879442694216 + y * (
        -0.014851887071247485 + y * 0.028757851367421745)))  # fmt: skip
    p = 0.030381944138531247 + y * (0.022372172942149888 + y * (0.017352392720869973 + y * (
        0.013971212973552934 + y * (0.011479177415184903 + y * p))))  # fmt: skip
    return x + x * y * (0.16666666666666668 + y * (0.074999999999984329 + y * (0.04464285714635543 + y * p)))


def tilted(G, w, factor, slope, both, noise, E):
    """E_ij = u_i u_j E[g'_i g'_j (sum_c u_c g_c + noise)^2], g_c = erf(slope_c z_c), u = w factor, for the first rows.

    With `both` = 0 students do not count in the sum.  Pairs (i, j) run innermost, so that every loop over them is
    vectorised, and are a multiple of eight, as what is left over would not be; up to |argument| = 1/2 the arcsine
    needs no branch, and no argument is larger while no variance exceeds 1.
    """
    n, K = G.shape[0], E.shape[0]
    C, P = np.empty((n, n)), (K * (K + 1) // 2 + 7) // 8 * 8
    for r in range(n):
        for s in range(n):
            C[r, s] = 2.0 * slope[r] * slope[s] * G[r, s]
    work, det, value = np.zeros((5, n, P)), np.ones(P), np.full(P, noise * noise)
    small = conditioned(C, K, work, det)
    for c in range(n):
        for d in range(c + 1):
            f = w[c] * factor[c] * w[d] * factor[d] * (1.0 if c == d else 2.0) * 2 / math.pi
            if d < K:
                f *= both
            if f != 0.0:
                add_arcsines(work, c, d, C[c, d], f, small, value)
    p = 0
    for i in range(K):
        for j in range(i + 1):
            f = w[i] * factor[i] * w[j] * factor[j] * (4 / math.pi) * slope[i] * slope[j]
            E[i, j] = value[p] * f / math.sqrt(det[p])
            E[j, i] = E[i, j]
            p += 1


def conditioned(C, K, work, det):
    """The covariance of every field with the tilted pairs: work[0..4] = both coefficients, both entries of C, 1/size.

    Returns whether no variance exceeds 1.  One loop writes one array: of more, LLVM would not know that they lie apart.
    """
    n, P, p, small = C.shape[0], det.size, 0, True
    pairs = np.zeros((4, P))  # both variances, covariance, one over the determinant
    for i in range(K):
        for j in range(i + 1):
            pairs[0, p], pairs[1, p], pairs[2, p] = 1 + C[i, i], 1 + C[j, j], C[i, j]
            det[p] = pairs[0, p] * pairs[1, p] - C[i, j] * C[i, j]
            pairs[3, p] = 1 / det[p]
            p += 1
    own, other, cross, inverse = pairs[0], pairs[1], pairs[2], pairs[3]
    for c in range(n):
        one, two, first, last, size = work[0, c], work[1, c], work[2, c], work[3, c], work[4, c]
        variance = C[c, c]
        small = small and variance <= 1.0
        p = 0
        for i in range(K):
            for j in range(i + 1):
                first[p], last[p] = C[c, i], C[c, j]
                p += 1
        for p in range(P):
            one[p] = (other[p] * first[p] - cross[p] * last[p]) * inverse[p]
        for p in range(P):
            two[p] = (own[p] * last[p] - cross[p] * first[p]) * inverse[p]
        for p in range(P):
            size[p] = 1 / math.sqrt(1 + variance - one[p] * first[p] - two[p] * last[p])
    return small


def add_arcsines(work, c, d, r, f, small, value):
    """value += f arcsin(correlation of the tilted fields c and d), r without tilt, for all pairs.

    The rows are taken out of `work` here: numba counts references to every array that is passed on.
    """
    one, two, first, last, size, other = work[0, c], work[1, c], work[2, d], work[3, d], work[4, c], work[4, d]
    if small:
        for p in range(value.size):
            x = (r - one[p] * first[p] - two[p] * last[p]) * (size[p] * other[p])
            value[p] += f * half_arcsine(x, x * x)
        return
    for p in range(value.size):
        x = (r - one[p] * first[p] - two[p] * last[p]) * (size[p] * other[p])
        a = min(abs(x), 1.0)
        far = a > 0.5
        y = (1 - a) * 0.5 if far else a * a
        h = half_arcsine(math.sqrt(y), y)
        h = 1.5707963267948966 - 2 * h if far else h
        value[p] += f * (h if x > 0 else -h)
