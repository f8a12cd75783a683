"""One pass over a batch of pattern data as plain loops for numba, with a model's functions.

Examples are grouped by their expert and evaluated in blocks, so that only the chosen expert's filters are computed. A
signal costs one indexed read of the filters' overlaps.
"""

from collections.abc import Callable

import numpy as np

dispatch: Callable[..., np.ndarray]
coefficients: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]
losses: Callable[..., np.ndarray]

BLOCK = 64
"""Examples in a block, so that their fields and coefficients stay in the cache of a core."""


def flipped(rows):
    """Return the transpose of a matrix as a new array."""
    columns = np.empty((rows.shape[1], rows.shape[0]))
    for j in range(rows.shape[0]):
        for c in range(rows.shape[1]):
            columns[c, j] = rows[j, c]
    return columns


def products(columns, x, sums):
    """Compute sums[j] += sum_c columns[c, j] x[c], in the order of c, for all j together. A sum for a single j would
    wait for each of its terms. Four terms are added for every time that the sums are read and written.
    """
    whole = x.size - x.size % 4
    for c in range(0, whole, 4):
        one, two, three, four = columns[c], columns[c + 1], columns[c + 2], columns[c + 3]
        for j in range(sums.size):
            sums[j] = (((sums[j] + one[j] * x[c]) + two[j] * x[c + 1]) + three[j] * x[c + 2]) + four[j] * x[c + 3]
    for c in range(whole, x.size):
        for j in range(sums.size):
            sums[j] += columns[c, j] * x[c]


def router_fields(routers, total, table, atoms, amplitudes, first, logits):
    """Fill logits (M, b) of the examples from `first` on: routers . total_i + sum_s amplitude_s table[m, atom_s].

    A block of examples is computed example by example and then written expert by expert. For many batch sizes the rows
    of `logits` lie a multiple of 4096 bytes apart, and columns written directly would evict each other from the cache.
    """
    columns, along = flipped(routers), flipped(table)
    fields = np.empty((min(64, logits.shape[1]), routers.shape[0]))
    for at in range(0, logits.shape[1], 64):
        b = min(64, logits.shape[1] - at)
        for i in range(b):
            field, example = fields[i], first + at + i
            for m in range(field.size):
                field[m] = 0.0
            products(columns, total[example], field)
            for s in range(atoms.shape[0]):
                row, amplitude = along[atoms[s, example]], amplitudes[s, example]
                for m in range(field.size):
                    field[m] += amplitude * row[m]
        for m in range(fields.shape[1]):
            for i in range(b):
                logits[m, at + i] = fields[i, m]


def filter_fields(table, filters, bias, atoms, amplitudes, dense, index, fields):
    """Compute fields[j, p, i]: the products of filter j of one expert with the patches of example index[i], plus the
    bias.

    Plain loops are used, because the products are too small for the threads of a BLAS, which would take four times as
    long.
    """
    S = atoms.shape[0]
    columns, along, sums = flipped(filters), flipped(table), np.empty((index.size, bias.size))
    for p in range(S + dense.shape[1]):
        for i in range(index.size):
            row = sums[i]
            for j in range(row.size):
                row[j] = bias[j]
            if p < S:
                values, amplitude = along[atoms[p, index[i]]], amplitudes[p, index[i]]
                for j in range(row.size):
                    row[j] += amplitude * values[j]
            else:
                products(columns, dense[index[i], p - S], row)
        for j in range(bias.size):
            for i in range(index.size):
                fields[j, p, i] = sums[i, j]


def collect_dense(dense, index, change, S, G):
    """Compute G[j, c] += sum over the block's dense patches of change[j, S + p, i] x_c, example by example.

    Four patches are added for every time that a row of G is read and written.
    """
    D = dense.shape[1]
    count = index.size * D
    whole = count - count % 4
    for q in range(0, whole, 4):
        g, h, i, k = q // D, (q + 1) // D, (q + 2) // D, (q + 3) // D
        a, b, e, f = q - g * D, q + 1 - h * D, q + 2 - i * D, q + 3 - k * D
        one, two, three, four = dense[index[g], a], dense[index[h], b], dense[index[i], e], dense[index[k], f]
        for j in range(G.shape[0]):
            row, weight = G[j], change[j]
            u, v, w, x = weight[S + a, g], weight[S + b, h], weight[S + e, i], weight[S + f, k]
            for c in range(row.size):
                row[c] = (((row[c] + u * one[c]) + v * two[c]) + w * three[c]) + x * four[c]
    for q in range(whole, count):
        i, p = q // D, q % D
        for j in range(G.shape[0]):
            for c in range(G.shape[1]):
                G[j, c] += change[j, S + p, i] * dense[index[i], p, c]


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


def add(more, G):
    """Compute G += more, entry by entry, because an assignment to a slice takes two seconds to compile."""
    for j in range(G.shape[0]):
        for c in range(G.shape[1]):
            G[j, c] += more[j, c]


def route(routers, table, examples, part, logits, expert, numbers):
    """Fill the routers' fields `logits` (M, B) and the routing `expert` (B,) of a part of a batch.

    `examples` = (atoms, amplitudes, dense, total, labels, noise), where `total` (B, d) is the sum of the dense patches
    of each example, without columns if there are none; `table` (M, F) are the routers' products with the frame; `part`
    = (the first example, the one after the last).
    """
    atoms, amplitudes, _, total, _, noise = examples
    first = part[0]
    fields = np.empty((routers.shape[0], part[1] - first))
    draws = np.empty(fields.shape)
    router_fields(routers, total, table, atoms, amplitudes, first, fields)
    for m in range(fields.shape[0]):
        for i in range(fields.shape[1]):
            draws[m, i] = noise[m, first + i]
            logits[m, first + i] = fields[m, i]
    chosen = dispatch(fields, draws, *numbers)
    for i in range(chosen.size):
        expert[first + i] = chosen[i]


def descend(weights, examples, routing, part, BLOCK, numbers):
    """Compute minus the gradients of filters, biases and routers, and the losses, summed over a part of a batch.

    `weights` = (filters, bias, table), the last (M, J, F) the products of filters and frame; `part` = (place of the
    first example in `members`, of the one after the last); `routing` = (logits, members, first, share, margin): the
    fields of `route`, the examples by expert, the first place of every expert (M + 1,), its share (M,) of the batch,
    and the margins (B,), filled for the part. The gradients are those of filters along dense patches (M, J, d), of
    biases (M, J), of filters along atoms (M, J, F), and of routers along both, (M, d) and (M, F).
    """
    (filters, bias, table), (atoms, amplitudes, dense, total, labels, noise) = weights, examples
    logits, members, first, share, margin = routing
    M, J, d = filters.shape
    S, B, D, F = atoms.shape[0], labels.size, dense.shape[1], table.shape[2]
    G, g, along = np.zeros((M, J, d)), np.zeros((M, J)), np.zeros((M, J, F))
    R, router_along = np.zeros((M, d)), np.zeros((M, F))
    loss = 0.0
    for m in range(M):
        at, end = max(first[m], part[0]), min(first[m + 1], part[1])
        while at < end:
            index = members[at : min(end, at + BLOCK)]
            b = index.size
            fields = np.empty((J, S + D, b))
            filter_fields(table[m], filters[m], bias[m], atoms, amplitudes, dense, index, fields)
            h, r, y = np.empty((M, b)), np.empty((M, b)), np.empty(b)
            for i in range(b):  # entry by entry: an assignment of slices takes two seconds to compile
                for n in range(M):
                    h[n, i] = logits[n, index[i]]
                    r[n, i] = noise[n, index[i]]
                y[i] = labels[index[i]]
            change, router_change, u = coefficients(m, fields, h, r, y, share, *numbers)
            loss += losses(u, *numbers).sum()
            for i in range(b):
                margin[index[i]] = u[i]
            collect(atoms, amplitudes, index, change, router_change, along[m], router_along, g[m])
            if D > 0:
                collect_dense(total.reshape((B, 1, d)), index, router_change.reshape((M, 1, b)), 0, R)
                collect_dense(dense, index, change, S, G[m])
            at += b
    return G, g, along, R, router_along, loss


def descend_counted(weights, configurations, logits, counts, numbers):
    """Compute the means of the sums of `descend` if counts[m, c] examples of configuration c go to expert m.

    `configurations` = (atoms (S, C), amplitudes (S, C), labels (C,)), `logits` (M, C).
    """
    (filters, bias, _, frame), (atoms, amplitudes, labels) = weights, configurations
    M, J, d = filters.shape
    S, D = atoms.shape[0], 0
    B = counts.sum()
    flat = filters.reshape((M * J, d))
    table = (flat @ frame.T).reshape((M, J, frame.shape[0]))
    none = np.empty((labels.size, D, d))
    share = counts.sum(axis=1) / B
    G, g = np.zeros((M, J, d)), np.zeros((M, J))
    router_on_atoms = np.zeros((M, frame.shape[0]))
    loss = 0.0
    for m in range(M):
        index = np.nonzero(counts[m])[0]
        b = index.size
        if b == 0:
            continue
        on_atoms = np.zeros((J, frame.shape[0]))
        fields = np.empty((J, S + D, b))
        filter_fields(table[m], filters[m], bias[m], atoms, amplitudes, none, index, fields)
        h, r, y, weight = np.empty((M, b)), np.zeros((M, b)), np.empty(b), np.empty(b)
        for i in range(b):
            for n in range(M):
                h[n, i] = logits[n, index[i]]
            y[i] = labels[index[i]]
            weight[i] = counts[m, index[i]]
        change, router_change, u = coefficients(m, fields, h, r, y, share, *numbers)
        loss += (weight * losses(u, *numbers)).sum()
        collect(atoms, amplitudes, index, weight * change, weight * router_change, on_atoms, router_on_atoms, g[m])
        add(on_atoms @ frame, G[m])
    return G / B, g / B, router_on_atoms @ frame / B, loss / B
