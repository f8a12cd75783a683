"""One pass over a batch of pattern data as plain loops around a model's functions, for numba.

Examples are grouped by their expert, so that only the chosen expert's filters are evaluated, in blocks whose dense
patches go through one matrix product each way; signals cost an indexed read of the filters' overlaps.
"""

from collections.abc import Callable

import numpy as np

dispatch: Callable[..., np.ndarray]
coefficients: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
losses: Callable[..., np.ndarray]

BLOCK = 64
"""Examples in a block: their fields and coefficients stay in a core's cache."""


def router_fields(table, atoms, amplitudes, logits):
    """Add sum_s amplitude_s table[m, atom_s] to logits (M, B)."""
    for s in range(atoms.shape[0]):
        for i in range(atoms.shape[1]):
            for m in range(table.shape[0]):
                logits[m, i] += amplitudes[s, i] * table[m, atoms[s, i]]


def filter_fields(table, filters, bias, atoms, amplitudes, dense, index, fields):
    """fields[j, p, i]: the products of filter j of one expert with the patches of example index[i], plus the bias.

    Returns the dense patches of the block (b D, d).
    """
    J, S, b = bias.size, atoms.shape[0], index.size
    D, d = dense.shape[1], dense.shape[2]
    block = np.empty((b * D, d))
    atom, amplitude = np.empty(b, dtype=np.int64), np.empty(b)
    for s in range(S):
        for i in range(b):
            atom[i], amplitude[i] = atoms[s, index[i]], amplitudes[s, index[i]]
        for j in range(J):
            for i in range(b):
                fields[j, s, i] = amplitude[i] * table[j, atom[i]] + bias[j]
    for p in range(D):
        for i in range(b):
            block[p * b + i] = dense[index[i], p]
    if D > 0:
        product = filters @ block.T
        for j in range(J):
            for p in range(D):
                for i in range(b):
                    fields[j, S + p, i] = product[j, p * b + i] + bias[j]
    return block


def collect(atoms, amplitudes, index, change, router_change, on_atoms, router_on_atoms, bias_change):
    """Add the coefficients of a block, along its atoms, for the filters of one expert and for all routers."""
    J, b = change.shape[0], index.size
    atom, amplitude = np.empty(b, dtype=np.int64), np.empty(b)
    for s in range(atoms.shape[0]):
        for i in range(b):
            atom[i], amplitude[i] = atoms[s, index[i]], amplitudes[s, index[i]]
        for j in range(J):
            for i in range(b):
                on_atoms[j, atom[i]] += amplitude[i] * change[j, s, i]
        for m in range(router_change.shape[0]):
            for i in range(b):
                router_on_atoms[m, atom[i]] += amplitude[i] * router_change[m, i]
    for j in range(J):
        bias_change[j] += change[j].sum()


def descend(
    filters, bias, routers, frame, atoms, amplitudes, dense, total, labels, noise, expert, margin, BLOCK, numbers
):  # fmt: skip
    """Minus the mean gradients of filters, biases and routers over a batch, and its mean loss.

    Fills `expert` and `margin` (B,) with the routing and the margin of every example.  `total` (B, d) is the sum of the
    dense patches of each.
    """
    M, J, d = filters.shape
    S, B, D = atoms.shape[0], labels.size, dense.shape[1]
    flat = filters.reshape((M * J, d))
    table = (flat @ frame.T).reshape((M, J, frame.shape[0]))
    logits = np.zeros((M, B))
    if D > 0:
        logits = routers @ total.T
    router_fields(routers @ frame.T, atoms, amplitudes, logits)
    expert[:] = dispatch(logits, noise, *numbers)
    count = np.zeros(M)
    for i in range(B):
        count[expert[i]] += 1.0
    share = count / B
    members = np.argsort(expert, kind="mergesort")
    G, g, R = np.zeros((M, J, d)), np.zeros((M, J)), np.zeros((M, d))
    router_on_atoms = np.zeros((M, frame.shape[0]))
    loss = 0.0
    at = 0
    for m in range(M):
        on_atoms = np.zeros((J, frame.shape[0]))
        end = at + int(count[m])
        while at < end:
            index = members[at : min(end, at + BLOCK)]
            b = index.size
            fields = np.empty((J, S + D, b))
            block = filter_fields(table[m], filters[m], bias[m], atoms, amplitudes, dense, index, fields)
            h, r = np.empty((M, b)), np.empty((M, b))
            y, sums = np.empty(b), np.empty((b, total.shape[1]))
            for i in range(b):
                h[:, i] = logits[:, index[i]]
                r[:, i] = noise[:, index[i]]
                y[i] = labels[index[i]]
            change, router_change, u = coefficients(m, fields, h, r, y, share, *numbers)
            loss += losses(u, *numbers).sum()
            for i in range(b):
                margin[index[i]] = u[i]
            collect(atoms, amplitudes, index, change, router_change, on_atoms, router_on_atoms, g[m])
            if D > 0:
                for i in range(b):
                    sums[i] = total[index[i]]
                G[m] += np.ascontiguousarray(change[:, S:, :]).reshape((J, D * b)) @ block
                R += router_change @ sums
            at += b
        G[m] += on_atoms @ frame
    R += router_on_atoms @ frame
    return G / B, g / B, R / B, loss / B
