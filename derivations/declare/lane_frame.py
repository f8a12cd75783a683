"""What numba runs before and after the pairs of a declared model in lanes: the same machine code for all of them."""

import collections
from collections.abc import Callable

import numpy as np

from derivations.contract import Shared
from derivations.declare.loops import motion, packed, seen

InnerArguments = collections.namedtuple(
    "InnerArguments",
    "constants place outs biases rows columns scalars moves moving rates numbers means cells spans looks reach units "
    "first more into most",
)
"""The arguments of the flow that `inner_flow` reads."""
PAIRS = "f8[::1], f8[::1], f8[:,::1], u4[:,::1], i8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1]"
SECOND = (
    "f8[:,::1], f8[::1], f8[:,::1], i8[::1], i8[::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], f8, f8, f8[:,::1]"
)
"""The types that `pairs` and `second` of every model take."""
WHOLE = (
    "f8[::1], i8, i8, Tuple((f8[::1], i8[:,::1], i8[::1], i8[:,::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[:,::1], "
    "f8[::1], f8[::1], f8[::1], f8[::1], f8[:,:,::1], f8[:,::1], f8[:,::1], u4[:,::1], i8[::1], f8[:,:,::1], "
    "f8[:,::1], u4[:,::1], u4[::1], u4[:,::1], u4[:,::1], i8[::1]))"
)
"""The types that `whole` takes."""
FIXED = WHOLE.count("[") - 1
"""How many arrays come first among the run-time arguments, before the sizes."""
COMMON = (
    *(f"derivations.declare.loops:{name}" for name in ("seen", "motion", "packed")),
    *(f"{__name__}:{name}" for name in ("gradient", "room", "closed", "whole", "PAIRS", "SECOND", "FIXED")),
)
SHARED = (Shared(COMMON, "whole", WHOLE),)
"""What a process beside can compile while the pairs of a model are derived."""
address: Callable[..., int]
by_address: Callable[..., None]
pairs: Callable[..., None]
second: Callable[..., None]


def gradient(means, w, tables, scalars, size):
    """C = dL/dG, flat, and the derivatives of the loss in the units' own numbers, from the means of pairs.

    `means` ends in a zero and becomes means times w_u w_v; tables = (units, first, more, into) of `lane_tables`.
    Most entries of C have one term, and a loop that only reads at random is twice as fast as one that writes so.
    """
    units, first, more, into = tables
    C, flat, factor, weights = np.empty(size), np.empty(scalars.size), np.empty(units.shape[1]), np.empty(w.size + 1)
    weights[w.size] = 1.0
    for u in range(w.size):
        weights[u] = w[u]
    for k in range(scalars.size):
        flat[k] = 0.0
    for k in range(into.shape[1]):
        flat[into[0, k]] += means[into[1, k]] * weights[into[2, k]] * weights[into[3, k]]
    for p in range(factor.size):
        factor[p] = w[units[0, p]] * w[units[1, p]]
    for start in range(0, means.size - 1, factor.size):
        for p in range(factor.size):
            means[start + p] *= factor[p]
    for k in range(size):
        C[k] = means[first[k]]
    for k in range(more.shape[1]):
        C[more[0, k]] += means[more[1, k]]
    return C, flat.reshape(scalars.shape)


def room(most, width):
    """Where the means of all pairs are put, and the same with a zero behind, flat."""
    means = np.empty(most * width + 1)
    means[most * width] = 0.0
    return means[: most * width].reshape((most, width)), means


def closed(size, means, G, w, E, norms, tables, how):
    """dy/dt (size,) from the means of pairs and E[c c^T]; how = (targets of `packed`, moves, rates)."""
    (targets, moves, rates), dy = how, np.empty(size)
    S, n = moves.size, G.shape[0]
    C, R = gradient(means, w, tables, targets[2], S * n)
    D = np.empty(S * n).reshape((S, n))
    np.dot(C.reshape((S, n)), G, D)
    motion(G, D, E, norms, moves, rates)
    packed(D, R, targets, rates, dy)
    return dy


def whole(y, pairs, second, arguments):
    """dy/dt of the flat state; `pairs` and `second` are addresses, and the second is not looked at for a flow."""
    (constants, place, outs, biases, starts, counts, rows, columns, scalars, moves, moving, rates, numbers, series,
     means, tilts, cells, spans, looks, reach, units, first, more, into, most) = arguments  # fmt: skip
    G, w, bias, norms, flat = seen(y, constants, place, outs, biases, moves, rates)
    S = moves.size
    Y, found = room(most[0], cells.shape[1])
    by_address(PAIRS, pairs, (flat, numbers, means, cells, spans, looks, reach, Y))
    E = np.empty(S * S).reshape((S, S))
    if rates[2] > 0.0:
        by_address(SECOND, second, (G, w, bias, starts, counts, numbers, series, means, tilts, rates[5], rates[4], E))
    how = ((rows, columns, scalars, moving), moves, rates)
    return closed(y.size, found, G, w, E, norms, (units, first, more, into), how)


def flow(t, y, *arguments):
    """dy/dt of the flat state.

    Interpreted: what is compiled for each model is called by its address, which numba does not know.
    """
    added = address(second, SECOND) if arguments[11][2] > 0.0 else 0
    return whole(y, address(pairs, PAIRS), added, arguments[:FIXED])


def inner_flow(y, p):
    """`flow` of a gradient flow compiled as a whole, for loops that are themselves compiled."""
    G, w, _, norms, flat = seen(y, p.constants, p.place, p.outs, p.biases, p.moves, p.rates)
    Y, found = room(p.most[0], p.cells.shape[1])
    pairs(flat, p.numbers, p.means, p.cells, p.spans, p.looks, p.reach, Y)
    how = ((p.rows, p.columns, p.scalars, p.moving), p.moves, p.rates)
    return closed(y.size, found, G, w, G, norms, (p.units, p.first, p.more, p.into), how)  # a flow reads no E
