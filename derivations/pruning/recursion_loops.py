"""The exact population recursion of all experts as plain loops around one expert's slope, for numba."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from derivations.ranking import largest


class Arguments(NamedTuple):
    """The run-time arguments: sizes, True for the hinge loss, SGD steps in a step, rates, head signs (k,), l of n
    tokens, the distribution of the tokens (probabilities, copies, quadrature nodes, or a table with labels), and the
    test inputs.
    """

    k: int
    m: int
    d: int
    loss: int
    stride: float
    eta_r: float
    eta_e: float
    a: Any
    l: int
    n: int
    copies: int
    pi: Any
    nodes: int
    tokens: Any
    labels: Any
    rows: Any
    answers: Any
    chance: Any


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
    """Set to 0 the probability of every row of a table that the hinge masks: y f >= 1 of all experts together."""
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
    """Set to 0 the probability of every input (y, q) that the hinge masks."""
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


def input_weights(h, u, given, plus, minus):
    """Fill the chance of every input, with 0 where the hinge masks it: y f >= 1 of all experts together.

    Without the mask pi/2 for (+1, q) and (-1, q), and `chance` for the rows of a table.
    """
    a, loss, l, pi, labels, chance = given.a, given.loss, given.l, given.pi, given.labels, given.chance
    if labels.size > 0:
        for i in range(labels.size):
            plus[i] = chance[i]
            minus[i] = 0.0
        if loss != 0:
            masked(h, u, a, l, given.tokens, labels, plus)
        return
    N = pi.size
    for q in range(N):
        plus[q] = 0.5 * pi[q]
        minus[q] = 0.5 * pi[q]
    if loss != 0:
        masked_pairs(h, u, a, l, given.n, pi, plus, minus)


def vanishes(values):
    """Return True if every entry is 0."""
    for value in values:
        if value != 0.0:
            return False
    return True


def record_hits(h, a, l, time, hits):
    """Record the first times at which the expert's task token leads every irrelevant one, and leads it by log l."""
    for s in range(a.size):
        if hits[1, s] <= time:
            continue
        own = 0 if a[s] > 0 else 1
        gap = h[s, own] - largest(h[s, 2:])
        if gap >= 0.0 and hits[0, s] > time:
            hits[0, s] = time
        if gap >= np.log(l):
            hits[1, s] = time


def march(y, t0, t1, hits, memory, tolerances, counts, given):
    """Whole steps of the recursion from t0 to t1, `stride` SGD steps each.

    Under the linear loss an expert with zero slope never moves again, and is skipped from then on.
    """
    k, m, d, loss, stride, a, l = given.k, given.m, given.d, given.loss, given.stride, given.a, given.l
    eta_r, eta_e, size = given.eta_r, given.eta_e, max(given.pi.size, given.labels.size)
    h = y[: k * d].reshape((k, d))
    u = y[k * d :].reshape((k, m, d))
    plus, minus = np.empty(size), np.empty(size)
    sig, dh, g, value = np.empty(d), np.empty((k, d)), np.empty((k, d)), np.empty(2)
    if t0 == 0.0:
        record_hits(h, a, l, 0.0, hits)
    first, last = int(np.rint(t0 / stride)), int(np.rint(t1 / stride))
    input_weights(h, u, given, plus, minus)
    for step in range(first, last):
        if loss != 0:
            input_weights(h, u, given, plus, minus)
        counts[0] += 1
        for s in range(k):
            if memory[s] > 0.0:
                continue
            activations(u[s], sig)
            expert_slope(h[s], sig, plus, minus, dh[s], g[s], value, given)
            counts[2] += 1
            if loss == 0 and vanishes(dh[s]) and vanishes(g[s]):
                memory[s] = 1.0
        for s in range(k):
            if memory[s] == 0.0:
                move(h[s], u[s], dh[s], g[s], stride * eta_r * a[s], stride * eta_e * a[s])
        record_hits(h, a, l, (step + 1) * stride, hits)
    return 0


def recursion_flow_loss(t, y, given):
    """(dy/dt, E[1 - y f]): the slope whose Euler steps of length 1 are the recursion, and the loss in use."""
    k, m, d, loss, a, eta_r, eta_e = given.k, given.m, given.d, given.loss, given.a, given.eta_r, given.eta_e
    h = y[: k * d].reshape((k, d))
    u = y[k * d :].reshape((k, m, d))
    size = max(given.pi.size, given.labels.size)
    plus, minus = np.empty(size), np.empty(size)
    input_weights(h, u, given, plus, minus)
    sig, dh, g, value = np.empty(d), np.empty(d), np.empty(d), np.empty(2)
    out = np.zeros(y.size)
    total = 1.0 if loss == 0 else 0.0
    if loss != 0:  # the probability of inputs that are not masked
        for i in range(given.labels.size if given.labels.size > 0 else given.pi.size):
            total += plus[i] + minus[i]
    for s in range(k):
        activations(u[s], sig)
        expert_slope(h[s], sig, plus, minus, dh, g, value, given)
        move(out[s * d : (s + 1) * d], out[:0].reshape((0, d)), dh, g, eta_r * a[s], 0.0)
        for r in range(m):
            at = k * d + (s * m + r) * d
            for p in range(d):
                out[at + p] = eta_e * a[s] * g[p] if u[s, r, p] >= 0.0 else 0.0
        total -= a[s] * (value[0] - value[1])
    return out, total
