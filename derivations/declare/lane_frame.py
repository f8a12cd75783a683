"""What numba runs before and after the pairs of a declared model in lanes: the same machine code for all of them."""

import collections
from collections.abc import Callable

import numpy as np

from derivations.declare.loops import motion, packed, seen

InnerArguments = collections.namedtuple(
    "InnerArguments",
    "constants place outs biases rows columns scalars moves moving rates numbers means cells spans looks reach into "
    "parts",
)
"""The arguments of the flow that `inner_flow` reads."""
pairs: Callable[..., None]
second: Callable[..., None]


def added(Y, w, into, first, last, target):
    """target = sum of Y w_u w_v over the columns (place in target, place in Y, u, v) of `into`; matrices are flat."""
    flat, means = target.reshape(-1), Y.reshape(-1)
    flat[:] = 0.0
    for k in range(first, last):
        flat[into[0, k]] += means[into[1, k]] * w[into[2, k]] * w[into[3, k]]


def gradient(Y, w, into, parts, scalars, moves, n):
    """C = dL/dG (students, n), and the derivatives of the loss in the units' own numbers, from the means of pairs.

    In `into` a unit's number one past the last stands for the factor 1.
    """
    C, R, weights = np.empty((moves.size, n)), np.empty(scalars.shape), np.empty(w.size + 1)
    weights[-1] = 1.0
    for u in range(w.size):
        weights[u] = w[u]
    added(Y, weights, into, parts[0], parts[1], C)
    added(Y, weights, into, parts[1], parts[2], R)
    return C, R


def closed(size, D, R, G, E, norms, targets, how):
    """dy/dt (size,) from D = C G, which is overwritten, and E[c c^T]; how = (moves, rates), targets as in `packed`."""
    (moves, rates), dy = how, np.empty(size)
    motion(G, D, E, norms, moves, rates)
    packed(D, R, E, targets, rates, dy)
    return dy


def flow(t, y, *arguments):
    """dy/dt of the flat state.

    Interpreted: compiled as a whole it would take microseconds less to run and seconds more to compile, for each model,
    a library's product most of them.  Arguments one by one, as a named tuple would take a tenth of the time.
    """
    (constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
     means, cells, spans, looks, reach, into, parts, *_) = arguments  # fmt: skip
    G, w, bias, norms, flat = seen(y, constants, place, outs, biases, moves, rates)
    Y, E = np.empty((parts[3], cells.shape[1])), np.zeros((moves.size, moves.size))
    pairs(flat, numbers, means, cells, spans, looks, reach, Y)
    if rates[2] > 0.0:
        second(G, w, bias, starts, counts, numbers, series, means, rates[5], rates[4], E)
    C, R = gradient(Y, w, into, parts, scalars, moves, place.shape[0])
    return closed(y.size, C @ G, R, G, E, norms, (rows, columns, scalars, moving), (moves, rates))


def inner_flow(y, p):
    """`flow` of a gradient flow compiled as a whole, for loops that are themselves compiled."""
    G, w, _, norms, flat = seen(y, p.constants, p.place, p.outs, p.biases, p.moves, p.rates)
    Y, E = np.empty((p.parts[3], p.cells.shape[1])), np.zeros((p.moves.size, p.moves.size))
    pairs(flat, p.numbers, p.means, p.cells, p.spans, p.looks, p.reach, Y)
    C, R = gradient(Y, w, p.into, p.parts, p.scalars, p.moves, p.place.shape[0])
    return closed(
        y.size, np.dot(C, G), R, G, E, norms, (p.rows, p.columns, p.scalars, p.moving), (p.moves, p.rates)
    )  # fmt: skip
