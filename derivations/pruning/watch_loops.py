"""Proficiency, error and margin on the test inputs at a saved state, as plain loops for numba."""

from collections.abc import Callable

import numpy as np

select_top: Callable[..., None]
activations: Callable[..., None]
displaced: Callable[..., None]


def answer(h, sig, l, row, task, chosen, weight):
    """(sbar, gate of the task token, 0 if it is not selected) of one expert on one input."""
    kept = min(l, row.size)
    select_top(h, row, kept, chosen)
    total = 0.0
    for j in range(kept):
        weight[j] = np.exp(h[row[chosen[j]]] - h[row[chosen[0]]])
        total += weight[j]
    pooled, own = 0.0, 0.0
    for j in range(kept):
        gate = weight[j] / total
        pooled += gate * sig[row[chosen[j]]]
        if row[chosen[j]] == task:
            own = gate
    return pooled, own


def inputs_watch(h, sig, a, l, tokens, labels, chance, out):
    """Fill out with p_1 (k,), p_2 (k,), the error P(y f <= 0), the least margin y f, selection and gates (2, k each).

    p_1 = P(o_1 selected with a gate of at least 1/l | y = +1), p_2 likewise; f = 0 counts as an error. Selection is
    P(o_1 selected | y = +1) for any gate. The gate is its mean, with 0 if o_1 is not selected. Those of o_2 follow.
    """
    k = a.size
    output = np.zeros(labels.size)
    chosen, weight = np.empty(l, dtype=np.int64), np.empty(l)
    missed, passed = np.zeros((2, k)), np.zeros((2, k))
    at = 2 * k + 2
    for i in range(out.size):
        out[i] = 0.0
    for s in range(k):
        for i in range(labels.size):
            task = 0 if labels[i] > 0 else 1
            pooled, gate = answer(h[s], sig[s], l, tokens[i], task, chosen, weight)
            output[i] += a[s] * pooled
            seen = 1.0 if gate >= (1.0 - 1e-12) / l else 0.0
            out[at + 2 * k + task * k + s] += chance[i] * gate
            if gate > 0.0:
                out[at + task * k + s] += chance[i]
            else:
                passed[task, s] += chance[i]
            out[task * k + s] += chance[i] * seen
            missed[task, s] += chance[i] * (1.0 - seen)
    for task in range(2):
        for s in range(k):
            seen = out[task * k + s]
            out[task * k + s] = seen / (seen + missed[task, s])  # exactly 0 or 1 if all inputs agree
            seen = out[at + task * k + s]
            out[at + task * k + s] = seen / (seen + passed[task, s])
            out[at + 2 * k + task * k + s] /= seen + passed[task, s]
    least, right = np.inf, 0.0
    for i in range(labels.size):
        signed = labels[i] * output[i]
        if chance[i] > 0.0:
            least = min(least, signed)
        if signed <= 0.0:
            out[2 * k] += chance[i]
        else:
            right += chance[i]
    out[2 * k] /= out[2 * k] + right
    out[2 * k + 1] = least


def recursion_watch(y, given):
    """p_1, p_2, f_error and margin of a state h (k, d), u (k, m, d)."""
    k, m, d = given.k, given.m, given.d
    h = y[: k * d].reshape((k, d))
    u = y[k * d :].reshape((k, m, d))
    sig = np.empty((k, d))
    for s in range(k):
        activations(u[s], sig[s])
    out = np.empty(6 * k + 2)
    inputs_watch(h, sig, given.a, given.l, given.rows, given.answers, given.chance, out)
    return out


def hybrid_watch(y, given):
    """p_1, p_2, f_error and margin of a state h, D, D_min (k, d)."""
    k, d = given.k, given.d
    h = y[: k * d].reshape((k, d))
    sig = np.empty((k, d))
    for s in range(k):
        D, low = y[(k + s) * d : (k + s + 1) * d], y[(2 * k + s) * d : (2 * k + s + 1) * d]
        displaced(D, low, given.top[s], given.cum[s], sig[s])
    out = np.empty(6 * k + 2)
    inputs_watch(h, sig, given.a, given.l, given.rows, given.answers, given.chance, out)
    return out
