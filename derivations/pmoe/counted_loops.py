"""Draws and sums of `model` over a batch, for training on counts of patterns, as plain loops for numba.

Samples are counts (P, B), and all of them have the same route values (k, P) and responses (k, P). The innermost loops
are over the samples of a batch; assignments of slices would each take half a second to compile.
"""

from collections.abc import Callable

import numpy as np

rank: Callable[..., None]

FAR = 600.0
"""If route values differ by more than this, exponentials are computed sample by sample, because they might
underflow.
"""


def count_patterns(uniform, cumulative, copies, labels):
    """Fill copies (P, B) and labels (B,) with the samples of `model.draw` at the uniform numbers (n, B)."""
    for b in range(labels.size):
        first = uniform[0, b] < 0.5
        labels[b] = 1.0 if first else -1.0
        copies[0, b] = 1.0 if first else 0.0
        copies[1, b] = 0.0 if first else 1.0
        for z in range(2, copies.shape[0]):
            copies[z, b] = 0.0
    for i in range(cumulative.shape[0]):
        row, low = uniform[i + 1], 0.0
        for z in range(cumulative.shape[1]):
            high, count = cumulative[i, z], copies[z + 2]
            for b in range(row.size):
                count[b] += 1.0 if low <= row[b] < high else 0.0
            low = high


def take_copies(copies, left, taken):
    """Route the remaining places `left` (B,) of l to a pattern, limited by its copies in the samples."""
    for b in range(left.size):
        taken[b] = min(left[b], copies[b])
        left[b] -= taken[b]


def apart(route, order, gate, taken):
    """Multiply routed copies (P, B) by e^(route - largest of those of the sample), or by 1 at the largest, else 0."""
    for b in range(taken.shape[1]):
        top = -np.inf
        for i in range(order.size):
            z = order[i]
            if taken[z, b] > 0.0:
                top = max(top, route[z])
                lifted = np.exp(route[z] - top) if gate == 1 else (1.0 if route[z] == top else 0.0)
                taken[z, b] *= lifted


def shares(route, copies, order, l, gate, taken, lifted, total):  # noqa: E741
    """Fill taken (P, B), lifted (P,), total (B,) of an expert with n_s(z; x) G_s(z; x) = lifted[z] taken[z] / total.

    `order` are its patterns from the largest route value (P,) to the smallest.
    """
    P, B = copies.shape
    left = np.empty(B)
    for b in range(B):
        left[b] = l
    for i in range(P):
        take_copies(copies[order[i]], left, taken[order[i]])
    top = route[order[0]]
    far = gate == 3 or (gate == 1 and top - route[order[P - 1]] > FAR)
    if far:
        apart(route, order, gate, taken)
    for z in range(P):
        lifted[z] = 1.0 / l if gate == 2 else (np.exp(route[z] - top) if gate == 1 and not far else 1.0)
    normalised = gate == 1 or gate == 3
    for b in range(B):
        total[b] = 0.0 if normalised else 1.0
    if normalised:
        for z in range(P):
            row, factor = taken[z], lifted[z]
            for b in range(B):
                total[b] += factor * row[b]


def sums_joint(route, response, copies, labels, weight, l, gate, experts, pull):  # noqa: E741
    """Fill experts and pull (k, P) with the sums over a batch of weight (B,) times the results of
    `model.weigh_joint`.
    """
    (k, P), B = route.shape, labels.size
    taken, lifted, total = np.empty((k, P, B)), np.empty((k, P)), np.empty((k, B))
    order, mean, margin = np.empty(P, dtype=np.int64), np.empty((k, B)), np.empty(B)
    for b in range(B):
        margin[b] = 0.0
    for s in range(k):
        rank(route[s], order)
        shares(route[s], copies, order, l, gate, taken[s], lifted[s], total[s])
        sums, divisor = mean[s], total[s]
        for b in range(B):
            sums[b] = 0.0
        for z in range(P):
            row, factor = taken[s, z], lifted[s, z] * response[s, z]
            for b in range(B):
                sums[b] += factor * row[b]
        for b in range(B):
            sums[b] /= divisor[b]
            margin[b] += labels[b] * sums[b] / l
    for b in range(B):
        small = np.exp(-abs(margin[b]))
        margin[b] = weight[b] * labels[b] * (small if margin[b] > 0.0 else 1.0) / ((1.0 + small) * l)
    for s in range(k):
        sums, divisor = mean[s], total[s]
        for b in range(B):
            divisor[b] = margin[b] / divisor[b]
            sums[b] *= divisor[b]
        for z in range(P):
            row, one, other = taken[s, z], 0.0, 0.0
            for b in range(B):
                one += row[b] * divisor[b]
                other += row[b] * sums[b]
            experts[s, z] = lifted[s, z] * one
            pull[s, z] = lifted[s, z] * (one * response[s, z] - other) if gate == 1 else 0.0


def sums_experts(route, response, copies, labels, weight, l, gate, experts, pull):  # noqa: E741
    """Fill experts and pull with the sums for constant routers."""
    sums_joint(route, response, copies, labels, weight, l, gate, experts, pull)
    for s in range(pull.shape[0]):
        for z in range(pull.shape[1]):
            pull[s, z] = 0.0
