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


def normalise(flat, norms, S):
    """Make the Gram matrix (n, n), flat, that of unit vectors in the place of the first S; norms get theirs."""
    n, inverse = norms.size, np.empty(norms.size)
    for a in range(S):
        norms[a] = math.sqrt(flat[(n + 1) * a])
    for a in range(n):
        inverse[a] = 1.0 / norms[a]
    for a in range(n):
        row = flat[n * a : n * a + n]  # in which no index can be negative
        for b in range(n):
            row[b] *= inverse[a] * inverse[b]


def seen(y, tables, moves, rates, flat, w, norms):
    """A flat state as `flat`: Gram matrix, then the units' own numbers; weights of all units in f - f*, and norms.

    tables = (constants, place, outs, biases).  Of normalised weights (kind 2) the Gram matrix is that of the unit
    vectors; norms are 1 otherwise.
    """
    constants, place, outs, biases = tables
    n, known = norms.size, np.empty(y.size + constants.size)
    for k in range(y.size):
        known[k] = y[k]
    for k in range(constants.size):
        known[y.size + k] = constants[k]
    for a in range(n):
        row = flat[n * a : n * a + n]
        for b in range(n):
            row[b] = known[place[a, b]]
    for u in range(outs.size):
        w[u] = known[outs[u]]
    at = n * n
    for r in range(biases.shape[0]):
        for u in range(biases.shape[1]):
            flat[at] = known[biases[r, u]]
            at += 1
    for a in range(n):
        norms[a] = 1.0
    if rates[3] == 2.0:
        normalise(flat, norms, moves.size)


def motion(G, D, E, norms, moves, rates):
    """D_ab = u_a' . u_b by the motion of student u_a alone (S, n), in place of C G, with half of E's part in dQ.

    D = -rate (C G + decay G), tangential on the sphere (kind 1) and for normalised weights (kind 2), whose G is that of
    the unit vectors and flat; rates = (rate, decay, second, kind, noise, both); E (S, S) is not read where `second` is
    zero.
    """
    S, n = D.shape
    rate, decay, kind = rates[0], rates[1], rates[3]
    for a in range(S):
        own, pull = D[a, a] / G[(n + 1) * a] if kind > 0.0 else -decay, -rate * moves[a]
        row = G[n * a : n * a + n]
        if kind == 2.0:
            inverse, shrink = pull / norms[a], pull * decay * norms[a]
            for b in range(n):
                D[a, b] = norms[b] * ((D[a, b] - own * row[b]) * inverse + shrink * row[b])
        else:
            for b in range(n):
                D[a, b] = pull * (D[a, b] - own * row[b])
        if rates[2] > 0.0:
            half = 0.5 * rates[2] * moves[a] / norms[a]
            for b in range(S):
                D[a, b] += half * moves[b] / norms[b] * E[a, b]
            if kind == 1.0:  # a step across the sphere lengthens the vector, which the constraint takes back
                longer = half * moves[a] / norms[a] * E[a, a] / G[(n + 1) * a]
                for b in range(n):
                    D[a, b] -= longer * row[b]


def packed(D, R, targets, rates, dy):
    """dy/dt of the flat state from the motion of the students and the derivatives of the loss in their numbers, flat.

    `targets` = (rows, columns, scalars, moving) say what of them the entries of the state are, and what moves.
    """
    rows, columns, scalars, moving = targets
    for k in range(rows.size):
        a, b = rows[k], columns[k]
        dy[k] = D[a, b] + D[b, a] if b < D.shape[0] else D[a, b]
    for r in range(scalars.shape[0]):
        for k in range(scalars.shape[1]):
            if scalars[r, k] >= 0:
                dy[scalars[r, k]] = -rates[0] * moving[r] * R[r * scalars.shape[1] + k]


def view(y, constants, place, outs, biases, moves, rates):
    """What `seen` gives, in arrays of its own, and the Gram matrix and the units' own numbers as matrices."""
    n = place.shape[0]
    flat, w, norms = np.empty(n * n + biases.size), np.empty(outs.size), np.empty(n)
    seen(y, (constants, place, outs, biases), moves, rates, flat, w, norms)
    return flat, flat[: n * n].reshape((n, n)), flat[n * n :].reshape(biases.shape), w, norms


def flow(t, y, *arguments):
    """dy/dt of the flat state."""
    (constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
     means, tilts, *_) = arguments  # fmt: skip
    flat, G, bias, w, norms = view(y, constants, place, outs, biases, moves, rates)
    S = moves.size
    C, R, E = np.empty((S, place.shape[0])), np.empty(scalars.shape), np.zeros((S, S))
    drift(G, w, bias, starts, counts, numbers, series, means, rates[5], C, R)
    if rates[2] > 0.0:
        second(G, w, bias, starts, counts, numbers, series, means, tilts, rates[5], rates[4], E)
    D, dy = C @ G, np.empty(y.size)
    motion(flat, D, E, norms, moves, rates)
    packed(D, R.reshape(-1), (rows, columns, scalars, moving), rates, dy)
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
    _, G, bias, w, _ = view(y, constants, place, outs, biases, moves, rates)
    out = np.zeros(3)
    loss_parts(G, w, bias, starts, counts, numbers, series, means, out)
    return out
