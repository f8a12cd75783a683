"""The declared flow as plain loops around its generated functions: what a printed script runs.

`drift`, `second` and `loss_parts` are generated for every declaration (`kernels`).  Numba compiles `seen`, `motion`
and `packed`, with the pairs in lanes between them (`lanes`).  Rows are ordered as in `rows.Rows`; `population`
describes the arguments.
"""

import math
from collections.abc import Callable

import numpy as np

drift: Callable[..., None]
second: Callable[..., None]
loss_parts: Callable[..., None]


def look_up(table, rho, out):
    """The series of all columns (columns, terms) at a correlation, by Horner's rule."""
    rho = min(max(rho, -1.0), 1.0)
    for k in range(table.shape[0]):
        total = 0.0
        for power in range(table.shape[1] - 1, -1, -1):
            total = total * rho + table[k, power]
        out[k] = total


def seen(y, constants, place, outs, biases, moves, rates):
    """A flat state as Gram matrix, weights of all units in f - f*, their own numbers, norms, and `flat`.

    Of normalised weights (kind 2) the Gram matrix is that of the unit vectors; norms are 1 otherwise.  `flat` holds the
    Gram matrix, then the units' own numbers: the two are views of it.
    """
    n, S, known = place.shape[0], moves.size, np.empty(y.size + constants.size)
    flat, w, norms = np.empty(n * n + biases.size), np.empty(outs.size), np.empty(n)
    G, bias, cells = flat[: n * n].reshape((n, n)), flat[n * n :].reshape(biases.shape), place.reshape(-1)
    for k in range(y.size):
        known[k] = y[k]
    for k in range(constants.size):
        known[y.size + k] = constants[k]
    for k in range(n * n):
        flat[k] = known[cells[k]]
    for u in range(outs.size):
        w[u] = known[outs[u]]
    for r in range(biases.shape[0]):
        for u in range(biases.shape[1]):
            bias[r, u] = known[biases[r, u]]
    for a in range(n):
        norms[a] = math.sqrt(G[a, a]) if rates[3] == 2.0 and a < S else 1.0
    if rates[3] == 2.0:
        inverse = np.empty(n)
        for a in range(n):
            inverse[a] = 1.0 / norms[a]
        for a in range(n):
            own = inverse[a]
            for b in range(n):
                G[a, b] *= own * inverse[b]
    return G, w, bias, norms, flat


def motion(G, D, E, norms, moves, rates):
    """D_ab = u_a' . u_b by the motion of student u_a alone (S, n), in place of C G, with half of E's part in dQ.

    D = -rate (C G + decay G), tangential on the sphere (kind 1) and for normalised weights (kind 2), whose G is that of
    the unit vectors; rates = (rate, decay, second, kind, noise, both); E (S, S) is not read where `second` is zero.
    """
    S, n = D.shape
    rate, decay, kind = rates[0], rates[1], rates[3]
    for a in range(S):
        own, pull = D[a, a] / G[a, a] if kind > 0.0 else -decay, -rate * moves[a]
        if kind == 2.0:
            inverse, shrink = pull / norms[a], pull * decay * norms[a]
            for b in range(n):
                D[a, b] = norms[b] * ((D[a, b] - own * G[a, b]) * inverse + shrink * G[a, b])
        else:
            for b in range(n):
                D[a, b] = pull * (D[a, b] - own * G[a, b])
        if rates[2] > 0.0:
            half = 0.5 * rates[2] * moves[a] / norms[a]
            for b in range(S):
                D[a, b] += half * moves[b] / norms[b] * E[a, b]
            if kind == 1.0:  # a step across the sphere lengthens the vector, which the constraint takes back
                longer = half * moves[a] / norms[a] * E[a, a] / G[a, a]
                for b in range(n):
                    D[a, b] -= longer * G[a, b]


def packed(D, R, targets, rates, dy):
    """dy/dt of the flat state from the motion of the students and the derivatives of the loss in their numbers.

    `targets` = (rows, columns, scalars, moving) say what of them the entries of the state are, and what moves.
    """
    rows, columns, scalars, moving = targets
    (S, n), flat = D.shape, D.reshape(-1)
    for k in range(rows.size):
        a, b = rows[k], columns[k]
        dy[k] = flat[a * n + b] + flat[b * n + a] if b < S else flat[a * n + b]
    for r in range(scalars.shape[0]):
        for k in range(scalars.shape[1]):
            if scalars[r, k] >= 0:
                dy[scalars[r, k]] = -rates[0] * moving[r] * R[r, k]


def flow(t, y, *arguments):
    """dy/dt of the flat state."""
    (constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
     means, tilts, *_) = arguments  # fmt: skip
    G, w, bias, norms, _ = seen(y, constants, place, outs, biases, moves, rates)
    S = moves.size
    C, R, E = np.empty((S, place.shape[0])), np.empty(scalars.shape), np.zeros((S, S))
    drift(G, w, bias, starts, counts, numbers, series, means, rates[5], C, R)
    if rates[2] > 0.0:
        second(G, w, bias, starts, counts, numbers, series, means, tilts, rates[5], rates[4], E)
    D, dy = C @ G, np.empty(y.size)
    motion(G, D, E, norms, moves, rates)
    packed(D, R, (rows, columns, scalars, moving), rates, dy)
    return dy


def watch(y, *arguments):
    """(E[(f - f*)^2],) of the flat state."""
    out = parts(y, *arguments)
    return np.array([out[0] + 2.0 * out[1] + out[2]])


def loss(y, *arguments):
    """The population loss: E[(f - y)^2]/2 with the label noise, or -E[f y]."""
    out, rates = parts(y, *arguments), arguments[11]
    if rates[5] == 0.0:
        return float(out[1])
    return float(0.5 * (out[0] + 2.0 * out[1] + out[2] + rates[4] ** 2))


def parts(y, *arguments):
    """E[f^2], -E[f f*], E[f*^2] of the flat state."""
    constants, place, outs, biases, starts, counts, _, _, _, moves, _, rates, numbers, series, means, *_ = arguments
    G, w, bias, _, _ = seen(y, constants, place, outs, biases, moves, rates)
    out = np.zeros(3)
    loss_parts(G, w, bias, starts, counts, numbers, series, means, out)
    return out
