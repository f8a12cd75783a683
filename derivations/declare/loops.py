"""The declared flow around its generated functions: what numba compiles, and the frame that stays interpreted.

`drift`, `second` and `loss_parts` are generated for every declaration (`kernels`).  Around them a handful of array
operations would take numba seconds to compile and save microseconds: they stay Python.  Rows are ordered as in
`rows.Rows`; `population` describes the arguments.
"""

import numpy as np


def _generated(*arguments):
    """What `kernels` writes for every declaration, under the names below."""
    raise NotImplementedError("the loops of a declaration are compiled around its generated functions")


drift = second = loss_parts = _generated


def look_up(table, rho, out):
    """The series of all columns (columns, terms) at a correlation, by Horner's rule."""
    rho = min(max(rho, -1.0), 1.0)
    for k in range(table.shape[0]):
        total = 0.0
        for power in range(table.shape[1] - 1, -1, -1):
            total = total * rho + table[k, power]
        out[k] = total


def seen(y, constants, place, outs, biases, moves, rates):
    """A flat state as Gram matrix, weights of all units in f - f*, their own numbers, and norms.

    Of normalised weights (kind 2) the Gram matrix is that of the unit vectors; norms are 1 otherwise.
    """
    known = np.concatenate((y, constants))
    G, w = known[place], known[outs[:, 0]] * (1.0 - 2.0 * outs[:, 1])
    norms = np.ones(len(G))
    if rates[3] == 2.0:
        S = len(moves)
        norms[:S] = np.sqrt(np.diagonal(G)[:S])
        G = G / (norms[:, None] * norms)
    return G, w, known[biases], norms


def motion(G, C, E, norms, moves, rates):
    """(D, E): D_ab = u_a' . u_b by the motion of student u_a alone (S, n), and what is added to Q (S, S).

    D = -rate (C G + decay G), tangential on the sphere (kind 1) and for normalised weights (kind 2), whose G is that of
    the unit vectors; rates = (rate, decay, second, kind, noise, both).
    """
    S = len(moves)
    D, rate, decay, kind = C @ G, rates[0], rates[1], rates[3]
    if kind > 0.0:
        D = D - (np.diagonal(D) / np.diagonal(G)[:S])[:, None] * G[:S]
    if kind == 2.0:
        pair = norms[:S, None] * norms
        D = D * (norms / norms[:S, None]) + decay * pair * G[:S]
    if kind == 0.0:
        D = D + decay * G[:S]
    D = -rate * moves[:, None] * D
    if rates[2] > 0.0:
        E = E * (rates[2] * moves[:, None] * moves / (norms[:S, None] * norms[:S]))
        if kind == 1.0:
            D = D - (0.5 * np.diagonal(E) / np.diagonal(G)[:S])[:, None] * G[:S]
    return D, E


def flow(
    t, y, constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
    means, *sizes,
):  # fmt: skip
    """dy/dt of the flat state."""
    G, w, bias, norms = seen(y, constants, place, outs, biases, moves, rates)
    S = len(moves)
    C, R, E = np.empty((S, len(G))), np.empty(scalars.shape), np.zeros((S, S))
    drift(G, w, bias, starts, counts, numbers, series, means, rates[5], C, R)
    if rates[2] > 0.0:
        second(G, w, bias, starts, counts, numbers, series, means, rates[5], rates[4], E)
    D, E = motion(G, C, E, norms, moves, rates)
    D[:, :S] += D[:, :S].T + E
    dy = np.empty(len(y))
    dy[: len(rows)] = D[rows, columns]
    if len(y) > len(rows):
        own = scalars >= 0
        dy[scalars[own]] = (-rates[0] * moving[:, None] * R)[own]
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


def parts(
    y, constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
    means, *sizes,
):  # fmt: skip
    """E[f^2], -E[f f*], E[f*^2] of the flat state."""
    G, w, bias, _ = seen(y, constants, place, outs, biases, moves, rates)
    out = np.zeros(3)
    loss_parts(G, w, bias, starts, counts, numbers, series, means, out)
    return out
