"""What numba runs before and after the pairs of a declared model in lanes: the same machine code for all of them."""

import functools
from collections.abc import Callable

import numpy as np

from derivations.addressed import WRAPPED
from derivations.declare.loops import motion, packed, seen

SEEN = "f8[::1], Tuple((f8[::1], i8[:,::1], i8[::1], i8[:,::1])), f8[::1], f8[::1], f8[::1], f8[::1], f8[::1]"
PAIRS = "f8[::1], f8[::1], f8[:,::1], u4[:,::1], i8[::1], f8[:,:,:,::1], f8[:,:,::1], f8[::1]"
SECOND = (
    "f8[:,::1], f8[::1], f8[:,::1], i8[::1], i8[::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8, f8, f8[:,::1]"
)
CLOSED = (
    "f8[::1], f8[::1], f8[::1], f8[:,::1], f8[::1], Tuple((u4[:,::1], u4[::1], u4[:,::1], u4[:,::1])), "
    "Tuple((Tuple((i8[::1], i8[::1], i8[:,::1], f8[::1])), f8[::1], f8[::1], UniTuple(i8, 2))), f8[::1]"
)
PRODUCT = "f8[::1], f8[::1], f8[:,::1]"
"""The types that `seen`, `pairs` and `second` of every model, `closed` and `large_product` take."""
SMALL = 12
"""Up to so many vectors of students their product with the Gram matrix is loops."""
KIND = (
    "Tuple((UniTuple(i8, 6), Tuple((f8[::1], i8[:,::1], i8[::1], i8[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], "
    "i8[:,::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], u4[:,::1], i8[::1], "
    "f8[:,:,:,::1], f8[:,:,::1], u4[:,::1], u4[::1], u4[:,::1], u4[:,::1], i8[::1]))))"
)
"""The type of what `given` makes: addresses and run-time arguments."""
FIXED = KIND.count("[")
"""How many arrays come first among the run-time arguments, before the sizes."""
COMMON = (
    *(f"derivations.declare.loops:{name}" for name in ("normalise", "seen", "motion", "packed")),
    *(f"{__name__}:{name}" for name in ("SEEN", "PAIRS", "SECOND", "CLOSED", "PRODUCT", "SMALL", "FIXED", "KIND")),
    *(f"{__name__}:{name}" for name in ("gradient", "product", "large_product", "closed", "slope")),
    *WRAPPED,
)
address: Callable[..., int]
dgemm: Callable[[], int]
multiplied: Callable[..., None]
by_address: Callable[..., None]
pairs: Callable[..., None]
second: Callable[..., None]


def gradient(means, w, tables, size, trained):
    """C = dL/dG, flat, and the derivatives of the loss in the units' own numbers, flat, from the means of pairs.

    `means` ends in a zero and becomes means times w_u w_v; tables = (units, first, more, into) of `lane_tables`.
    Most entries of C have one term, and a loop that only reads at random is twice as fast as one that writes so.
    """
    units, first, more, into = tables
    C, R, factor, weights = np.empty(size), np.empty(trained), np.empty(units.shape[1]), np.empty(w.size + 1)
    weights[w.size] = 1.0
    for u in range(w.size):
        weights[u] = w[u]
    for k in range(trained):
        R[k] = 0.0
    for k in range(into.shape[1]):
        R[into[0, k]] += means[into[1, k]] * weights[into[2, k]] * weights[into[3, k]]
    for p in range(factor.size):
        factor[p] = w[units[0, p]] * w[units[1, p]]
    for start in range(0, means.size - 1, factor.size):
        of_kind = means[start : start + factor.size]  # in which no index can be negative
        for p in range(factor.size):
            of_kind[p] *= factor[p]
    for k in range(size):
        C[k] = means[first[k]]
    for k in range(more.shape[1]):
        C[more[0, k]] += means[more[1, k]]
    return C, R


def product(C, G, D):
    """D = C G (S, n) of flat C and G, a row of G at a time: faster than a call of BLAS where they are few."""
    S, n = D.shape
    for a in range(S):
        for b in range(n):
            D[a, b] = 0.0
        for c in range(n):
            factor, row = C[a * n + c], G[c * n : c * n + n]
            for b in range(n):
                D[a, b] += factor * row[b]


def large_product(C, G, D):
    """The same by SciPy's BLAS, where NumPy's is not found: to import it takes a sixth of a second."""
    n = D.shape[1]
    np.dot(C.reshape(D.shape), G[: n * n].reshape((n, n)), D)


def closed(means, G, w, E, norms, tables, how, dy):
    """dy/dt from the means of pairs, the flat Gram matrix and E[c c^T].

    how = (targets of `packed`, moves, rates, addresses of `large_product` and of NumPy's dgemm).
    """
    (targets, moves, rates, (product_at, dgemm_at)), n = how, norms.size
    S = moves.size
    C, R = gradient(means, w, tables, S * n, targets[2].size)
    D = np.empty((S, n))
    if dgemm_at != 0:
        multiplied(dgemm_at, C, G, D, S, n, n)
    elif product_at != 0:
        by_address(PRODUCT, product_at, (C, G, D))
    else:
        product(C, G, D)
    motion(G, D, E, norms, moves, rates)
    packed(D, R, targets, rates, dy)


def slope(y, dy, p):
    """Fill dy/dt of the flat state, p = (addresses that `called` gives, run-time arguments); 0: no loss is met here.

    No array is reshaped here, which would take a process that compiles this a sixth of a second to learn.
    """
    (constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
     means, tilts, cells, spans, looks, reach, units, first, more, into, most) = p[1]  # fmt: skip
    at = p[0]
    n, S = place.shape[0], moves.size
    flat, w, norms = np.empty(n * n + biases.size), np.empty(outs.size), np.empty(n)
    by_address(SEEN, at[0], (y, (constants, place, outs, biases), moves, rates, flat, w, norms))
    found = np.empty(most[0] * cells.shape[1] + 1)
    found[most[0] * cells.shape[1]] = 0.0
    by_address(PAIRS, at[1], (flat, numbers, means, cells, spans, looks, reach, found))
    E = np.empty((S, S))
    if rates[2] > 0.0:
        G, bias = np.empty((n, n)), np.empty(biases.shape)
        for a in range(n):
            for b in range(n):
                G[a, b] = flat[n * a + b]
        for r in range(biases.shape[0]):
            for u in range(biases.shape[1]):
                bias[r, u] = flat[n * n + r * biases.shape[1] + u]
        by_address(SECOND, at[2], (G, w, bias, starts, counts, numbers, series, means, tilts, rates[5], rates[4], E))
    how = ((rows, columns, scalars, moving), moves, rates, (at[3], at[4]))
    by_address(CLOSED, at[5], (found, flat, w, E, norms, (units, first, more, into), how, dy))
    return 0.0


@functools.cache
def called(noisy, large):
    """The addresses of `seen`, `pairs`, `second`, `large_product`, dgemm and `closed`, or 0 where it is not called.

    What is compiled for each model is called by its address, which numba does not know.  Pairs come first, and then
    what a process beside comes to last: it compiles the rest meanwhile.
    """
    of_pairs, of_closed, of_seen = address(pairs, PAIRS), address(closed, CLOSED), address(seen, SEEN)
    added = address(second, SECOND) if noisy else 0
    by_numpy = dgemm() if large else 0
    multiplied = address(large_product, PRODUCT) if large and by_numpy == 0 else 0
    return of_seen, of_pairs, added, multiplied, by_numpy, of_closed


def given(*arguments):
    """The arguments of `slope`."""
    return called(arguments[11][2] > 0.0, arguments[9].size > SMALL), arguments[:FIXED]
