"""The population dynamics as plain loops around the kernels, for numba.

`odesim.code.compile` copies these functions, unchanged, into one generated file; nothing here runs uncompiled.  Gates
are numbered 0: one, 1: softmax on the routed patches, 2: 1/l, 3: all weight on the largest route value; 10 is
added for a soft top-l, which array code must know before it runs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from derivations.ranking import largest, rank


class Arguments(NamedTuple):
    """The run-time arguments of a level: sizes (experts k, M neurons each, classes, P patterns, l that are routed), the
    gate (and 10 for a soft top-l of the given `width`), lam, shifts of the route values (R, k, P), the Gram matrix;
    `held` of the neurons are the output weights (L0) or the metric (L1); then the rows of the population.
    """

    k: int
    M: int
    classes: int
    P: int
    l: int  # noqa: E741
    gate: int
    lam: float
    width: float
    jitter: Any
    gram: Any
    held: Any
    counts: Any
    label: Any
    weight: Any


logistic: Callable[..., tuple[float, ...]]
overlap: Callable[..., tuple[float, ...]]


def soft_share(g, copies, l, width, routed):  # noqa: E741
    """Fill routed = copies sigmoid((g - c)/width) with c such that they sum to l; Newton kept inside a bracket."""
    total = 0.0
    low = np.inf
    high = -np.inf
    for z in range(g.size):
        total += copies[z]
        if copies[z] > 0.0:
            low = min(low, g[z])
            high = max(high, g[z])
    if total <= l:
        for z in range(g.size):
            routed[z] = copies[z]
        return
    low -= width * (np.log(total) + 40.0)
    high += width * (np.log(total) + 40.0)
    c = 0.5 * (low + high)
    for _ in range(200):
        found = -l
        slope = 0.0
        for z in range(g.size):
            if copies[z] > 0.0:
                u = (g[z] - c) / width
                share = 1.0 / (1.0 + np.exp(-u)) if u > 0.0 else np.exp(u) / (1.0 + np.exp(u))
                routed[z] = copies[z] * share
                found += routed[z]
                slope -= routed[z] * (1.0 - share) / width
            else:
                routed[z] = 0.0
        if found > 0.0:
            low = c
        else:
            high = c
        if abs(found) < 1e-14 * l or high - low < 1e-16 * (abs(low) + abs(high)):
            return
        step = c - found / slope if slope < 0.0 else low
        c = step if low < step < high else 0.5 * (low + high)


def take(g, order, copies, l, width, routed):  # noqa: E741
    """Fill the routed copies n_s(z; x) of one composition: the l of largest route value, or softly."""
    if width > 0.0:
        soft_share(g, copies, l, width, routed)
        return
    left = l
    for i in range(g.size):
        z = order[i]
        routed[z] = min(left, copies[z])
        left -= routed[z]


def route_row(g, order, copies, l, gate, width, routed, gates):  # noqa: E741
    """Fill the routed copies and gates G_s(z; x) of one composition and one expert (0 where none is routed)."""
    take(g, order, copies, l, width, routed)
    top = -np.inf
    for z in range(g.size):
        gates[z] = 0.0
        if routed[z] > 0.0:
            top = max(top, g[z])
    total = 0.0
    for i in range(g.size):
        z = order[i]
        if routed[z] > 0.0:
            if gate == 0:
                gates[z] = 1.0
            elif gate == 2:
                gates[z] = 1.0 / l
            elif gate == 1:
                gates[z] = np.exp(g[z] - top)
                total += routed[z] * gates[z]
            elif total == 0.0:
                gates[z] = 1.0 / routed[z]
                total = 1.0
    if gate == 1:
        for z in range(g.size):
            gates[z] /= total


def drives(route, response, p, c, d):
    """Fill the experts' drive c and the routers' drive d (k, P); returns the loss.

    c_s(z) = E[y v (1/l) n_s G_s], d_s(z) = E[y v (1/l) n_s G_s (phi_s(z) - sum_z' n_s G_s phi_s)], v = 1/(1 + e^(y f)).
    """
    l, gate, width, counts, label, weight = p.l, p.gate % 10, p.width, p.counts, p.label, p.weight  # noqa: E741
    k, P = route.shape
    S = np.empty((1, 1))
    order = np.empty((k, P), dtype=np.int64)
    for s in range(k):
        rank(route[s], order[s])
    routed, gates = np.empty(P), np.empty(P)
    share = np.empty((k, P))
    c[:, :] = 0.0
    d[:, :] = 0.0
    loss = 0.0
    for row in range(label.size):
        f = 0.0
        for s in range(k):
            route_row(route[s], order[s], counts[row], l, gate, width, routed, gates)
            for z in range(P):
                share[s, z] = routed[z] * gates[z]
                f += share[s, z] * response[s, z]
        cost, v = logistic(S, 0, label[row] * f / l)
        loss += weight[row] * cost
        push = weight[row] * label[row] * v / l
        for s in range(k):
            mean = 0.0
            for z in range(P):
                mean += share[s, z] * response[s, z]
            for z in range(P):
                c[s, z] += push * share[s, z]
                d[s, z] += push * share[s, z] * (response[s, z] - mean)
    return loss


def mean_drives(route, response, p, c, d):
    """The drives averaged over route values shifted by `jitter` (R, k, P); returns the mean loss."""
    jitter, copies = p.jitter, p.jitter.shape[0]
    if copies == 1:
        return drives(route + jitter[0], response, p, c, d)
    one, other = np.empty(c.shape), np.empty(d.shape)
    c[:, :] = 0.0
    d[:, :] = 0.0
    loss = 0.0
    for r in range(copies):
        loss += drives(route + jitter[r], response, p, one, other) / copies
        c += one / copies
        d += other / copies
    return loss


def times(matrix, vector, scale, out):
    """out = scale matrix vector."""
    for z in range(vector.size):
        total = 0.0
        for w in range(vector.size):
            total += matrix[z, w] * vector[w]
        out[z] = scale * total


def move_routers(route, d, gram, lam, out):
    """out = lam Gam d for every expert; nothing where routers are frozen."""
    k, P = route.shape
    for s in range(k):
        times(gram, d[s], lam, out[s * P : (s + 1) * P])


def l0_flow_loss(t, y, p):
    """(dy/dt, L) for every neuron: dh/dt = (a/m) Gam (1(h >= 0) c), dg/dt = lam Gam d."""
    k, M, P, lam, gram, out = p.k, p.M, p.P, p.lam, p.gram, p.held
    size = k * M * P
    pre = y[:size].reshape((k, M, P))
    route = y[size:].reshape((k, P))
    response = np.zeros((k, P))
    for s in range(k):
        for r in range(M):
            for z in range(P):
                if pre[s, r, z] > 0.0:
                    response[s, z] += out[s, r] * pre[s, r, z]
    c, d = np.empty((k, P)), np.empty((k, P))
    loss = mean_drives(route, response, p, c, d)
    dy = np.zeros(y.size)
    push = np.empty(P)
    for s in range(k):
        for r in range(M):
            scale = out[s, r] / (k * M)
            for z in range(P):
                push[z] = scale * c[s, z] if pre[s, r, z] >= 0.0 else 0.0
            at = (s * M + r) * P
            times(gram, push, 1.0, dy[at : at + P])
    if lam > 0.0:
        move_routers(route, d, gram, lam, dy[size:])
    return dy, loss


def follow_responses(y, p, metric):
    """(dy/dt, L) of the responses: dphi_s/dt = metric_s c_s, dg/dt = lam Gam d."""
    k, P, lam, gram = p.k, p.P, p.lam, p.gram
    response = y[: k * P].reshape((k, P))
    route = y[k * P :].reshape((k, P))
    c, d = np.empty((k, P)), np.empty((k, P))
    loss = mean_drives(route, response, p, c, d)
    dy = np.zeros(y.size)
    for s in range(k):
        times(metric[s], c[s], 1.0, dy[s * P : (s + 1) * P])
    if lam > 0.0:
        move_routers(route, d, gram, lam, dy[k * P :])
    return dy, loss


def l1_flow_loss(t, y, p):
    """(dy/dt, L) of the responses with metric_s = (Gam o A_s)/m."""
    return follow_responses(y, p, p.held)


def kernel_of(gram, K):
    """Fill K(z, z') = <z, z'> kappa0(cosine): the metric of an expert of infinite width, times k."""
    S = np.empty((1, 1))
    P = gram.shape[0]
    for z in range(P):
        K[z, z] = 0.5 * gram[z, z]
        for w in range(z):
            cosine = gram[z, w] / np.sqrt(gram[z, z] * gram[w, w])
            K[z, w] = gram[z, w] * overlap(S, 0, cosine)[0]
            K[w, z] = K[z, w]


def l2_flow_loss(t, y, p):
    """(dy/dt, L) at infinite width: dphi_s/dt = (1/k) K c_s."""
    k = p.k
    metric = np.empty((k, p.P, p.P))
    kernel_of(p.gram, metric[0])
    metric[0] /= k
    for s in range(1, k):
        metric[s] = metric[0]
    return follow_responses(y, p, metric)


def watch_rows(route, response, p):
    """error, v1, v2, assumption 4.4, the routed copies (k, P), and P(o_a routed by s | class a) (2, k), flat."""
    l, gate, width, counts, label, weight = p.l, p.gate % 10, p.width, p.counts, p.label, p.weight  # noqa: E741
    k, P = route.shape
    S = np.empty((1, 1))
    order = np.empty((k, P), dtype=np.int64)
    for s in range(k):
        rank(route[s], order[s])
    found = np.zeros(6 + k * P + 2 * k)
    routed, gates = np.empty(P), np.empty(P)
    best = np.ones((k, 2))
    for row in range(label.size):
        a = 0 if label[row] > 0 else 1
        f = 0.0
        for s in range(k):
            route_row(route[s], order[s], counts[row], l, gate, width, routed, gates)
            top = 0.0
            for z in range(P):
                f += routed[z] * gates[z] * response[s, z]
                found[6 + s * P + z] += weight[row] * routed[z]
                if routed[z] > 0.0:
                    top = max(top, gates[z])
            if counts[row, a] > 0.0:
                found[6 + k * P + a * k + s] += weight[row] * (1.0 if routed[a] > 0.0 else 0.0)
                if routed[a] <= 0.0 or (gates[a] < top and weight[row] > 0.0):
                    best[s, a] = 0.0
        v = logistic(S, 0, label[row] * f / l)[1]
        found[0] += weight[row] * (1.0 if label[row] * f <= 0.0 else 0.0)
        found[1 + a] += weight[row] * v
        found[4 + a] += weight[row]
    for a in range(2):
        if found[4 + a] > 0.0:
            found[1 + a] /= found[4 + a]
            for s in range(k):
                found[6 + k * P + a * k + s] /= found[4 + a]
    found[3] = 1.0 if largest(best[:, 0]) > 0.0 and largest(best[:, 1]) > 0.0 else 0.0
    return np.concatenate((found[:4], found[6:]))


def l0_watch(y, p):
    """The observables of `watch_rows` from neurons."""
    k, M, P, out = p.k, p.M, p.P, p.held
    size = k * M * P
    pre = y[:size].reshape((k, M, P))
    response = np.zeros((k, P))
    for s in range(k):
        for r in range(M):
            for z in range(P):
                if pre[s, r, z] > 0.0:
                    response[s, z] += out[s, r] * pre[s, r, z]
    return watch_rows(y[size:].reshape((k, P)), response, p)


def l1_watch(y, p):
    """The observables of `watch_rows` from responses."""
    size = p.k * p.P
    return watch_rows(y[size:].reshape((p.k, p.P)), y[:size].reshape((p.k, p.P)), p)


def l2_watch(y, p):
    """The observables of `watch_rows` from responses."""
    return l1_watch(y, p)
