"""The exact population recursion of all experts as plain loops around one expert's slope, for numba."""

from collections.abc import Callable

import numpy as np

answer: Callable[..., tuple[float, float]]
expert_slope: Callable[..., None]


def activations(u, sig):
    """Fill sig (d,) with sum_r ReLU(u_rp)."""
    for p in range(sig.size):
        sig[p] = 0.0
    for r in range(u.shape[0]):
        for p in range(sig.size):
            sig[p] += max(u[r, p], 0.0)


def move(h, u, dh, g, router_step, neuron_step):
    """One step of one expert: routers along dh, neurons that are active (u >= 0) along g."""
    for p in range(h.size):
        h[p] += router_step * dh[p]
    for r in range(u.shape[0]):
        for p in range(h.size):
            u[r, p] += neuron_step * g[p] if u[r, p] >= 0.0 else 0.0


def masked(h, u, a, l, tokens, labels, plus):
    """Set to 0 the chance of every row of a table that the hinge masks: y f >= 1 of all experts together."""
    output = np.zeros(labels.size)
    sig, chosen, weight = np.empty(h.shape[1]), np.empty(l, dtype=np.int64), np.empty(l)
    for s in range(a.size):
        activations(u[s], sig)
        for i in range(labels.size):
            output[i] += a[s] * answer(h[s], sig, l, tokens[i], 0, chosen, weight)[0]
    for i in range(labels.size):
        if labels[i] * output[i] >= 1.0:
            plus[i] = 0.0


def masked_pairs(h, u, a, l, n, pi, plus, minus):
    """Set to 0 the chance of every input (y, q) that the hinge masks."""
    N = pi.size
    output = np.zeros((2, N))
    sig = np.empty(h.shape[1])
    for s in range(a.size):
        activations(u[s], sig)
        for task in range(2):
            for q in range(N):
                x = h[s, task] - h[s, q + 2]
                share = 0.0
                if x >= 0.0 or n == l:
                    share = 1.0 / (1.0 + (l - 1.0) * np.exp(-x))
                output[task, q] += a[s] * (share * sig[task] + (1.0 - share) * sig[q + 2])
    for q in range(N):
        if output[0, q] >= 1.0:
            plus[q] = 0.0
        if -output[1, q] >= 1.0:
            minus[q] = 0.0


def input_weights(h, u, a, loss, l, n, pi, tokens, labels, chance, plus, minus):
    """Fill the chance of every input, with 0 where the hinge masks it: y f >= 1 of all experts together.

    Without the mask pi/2 for (+1, q) and (-1, q), and `chance` for the rows of a table.
    """
    if labels.size > 0:
        for i in range(labels.size):
            plus[i] = chance[i]
            minus[i] = 0.0
        if loss != 0:
            masked(h, u, a, l, tokens, labels, plus)
        return
    N = pi.size
    for q in range(N):
        plus[q] = 0.5 * pi[q]
        minus[q] = 0.5 * pi[q]
    if loss != 0:
        masked_pairs(h, u, a, l, n, pi, plus, minus)


def record_hits(h, a, l, time, hits):
    """Note the first times at which the own task token leads every irrelevant one, and does so by log l."""
    for s in range(a.size):
        if hits[1, s] <= time:
            continue
        own = 0 if a[s] > 0 else 1
        gap = h[s, own] - h[s, 2:].max()
        if gap >= 0.0 and hits[0, s] > time:
            hits[0, s] = time
        if gap >= np.log(l):
            hits[1, s] = time


def march(
    y, t0, t1, hits, memory, tolerances, counts,
    k, m, d, loss, stride, eta_r, eta_e, a, l, n, copies, pi, nodes, tokens, labels, rows, answers, chance,
):  # fmt: skip
    """Whole steps of the recursion from t0 to t1, `stride` SGD steps each.

    Under the linear loss an expert whose slope vanishes rests for ever, and is left out from then on.
    """
    h = y[: k * d].reshape((k, d))
    u = y[k * d :].reshape((k, m, d))
    size = max(pi.size, labels.size)
    plus, minus = np.empty(size), np.empty(size)
    sig, dh, g, value = np.empty(d), np.empty((k, d)), np.empty((k, d)), np.empty(2)
    if t0 == 0.0:
        record_hits(h, a, l, 0.0, hits)
    first, last = int(np.rint(t0 / stride)), int(np.rint(t1 / stride))
    input_weights(h, u, a, loss, l, n, pi, tokens, labels, chance, plus, minus)
    for step in range(first, last):
        if loss != 0:
            input_weights(h, u, a, loss, l, n, pi, tokens, labels, chance, plus, minus)
        counts[0] += 1
        for s in range(k):
            if memory[s] > 0.0:
                continue
            activations(u[s], sig)
            expert_slope(h[s], sig, plus, minus, dh[s], g[s], value, l, n, copies, pi, nodes, tokens, labels)
            counts[2] += 1
            if loss == 0 and np.abs(dh[s]).max() == 0.0 and np.abs(g[s]).max() == 0.0:
                memory[s] = 1.0
        for s in range(k):
            if memory[s] == 0.0:
                move(h[s], u[s], dh[s], g[s], stride * eta_r * a[s], stride * eta_e * a[s])
        record_hits(h, a, l, (step + 1) * stride, hits)
    return 0


def recursion_flow_loss(
    t, y, k, m, d, loss, stride, eta_r, eta_e, a, l, n, copies, pi, nodes, tokens, labels, rows, answers, chance,
):  # fmt: skip
    """(dy/dt, E[1 - y f]): the slope whose Euler steps of length 1 are the recursion, and the loss in use."""
    h = y[: k * d].reshape((k, d))
    u = y[k * d :].reshape((k, m, d))
    size = max(pi.size, labels.size)
    plus, minus = np.empty(size), np.empty(size)
    input_weights(h, u, a, loss, l, n, pi, tokens, labels, chance, plus, minus)
    sig, dh, g, value = np.empty(d), np.empty(d), np.empty(d), np.empty(2)
    out = np.zeros(y.size)
    total = 1.0 if loss == 0 else plus.sum() + minus.sum()  # the chance of inputs the mask lets through
    for s in range(k):
        activations(u[s], sig)
        expert_slope(h[s], sig, plus, minus, dh, g, value, l, n, copies, pi, nodes, tokens, labels)
        move(out[s * d : (s + 1) * d], out[:0].reshape((0, d)), dh, g, eta_r * a[s], 0.0)
        for r in range(m):
            at = k * d + (s * m + r) * d
            for p in range(d):
                out[at + p] = eta_e * a[s] * g[p] if u[s, r, p] >= 0.0 else 0.0
        total -= a[s] * (value[0] - value[1])
    return out, total
