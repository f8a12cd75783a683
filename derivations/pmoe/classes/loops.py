"""The population dynamics with an output per class as plain loops, for numba, around those of `derivations.pmoe.loops`.

`odesim.code.compile` copies these functions, unchanged, into one generated file; nothing here runs uncompiled.
"""

import numpy as np

from derivations.pmoe.loops import kernel_of, move_routers, route_row, times
from derivations.ranking import rank


def class_pushes(outputs, y, push):
    """Fill push_i = 1(i = y) - softmax_i; returns the loss log(sum_i e^(f_i - f_y)), by differences from f_y."""
    top = 0.0
    for i in range(outputs.size):
        if i != y:
            top = max(top, outputs[i] - outputs[y])
    rest = 0.0
    for i in range(outputs.size):
        if i != y:
            push[i] = np.exp(outputs[i] - outputs[y] - top)
            rest += push[i]
    total = rest + np.exp(-top)
    for i in range(outputs.size):
        push[i] = rest / total if i == y else -push[i] / total
    return top + np.log1p(rest + np.expm1(-top))


def class_drives(route, response, p, c, d):
    """Fill the experts' drive c (k, classes, P) and the routers' drive d (k, P); returns the loss.

    c_{s,i}(z) = E[e_i (1/l) n_s G_s], d_s(z) = E[sum_i e_i (1/l) n_s G_s (phi_{s,i}(z) - sum_z' n_s G_s phi_{s,i})],
    e_i = 1(y = i) - softmax_i.
    """
    l, gate, width, counts, label, weight = p.l, p.gate % 10, p.width, p.counts, p.label, p.weight  # noqa: E741
    k, classes, P = response.shape
    order = np.empty((k, P), dtype=np.int64)
    for s in range(k):
        rank(route[s], order[s])
    routed, gates = np.empty(P), np.empty(P)
    share, mean = np.empty((k, P)), np.empty((k, classes))
    outputs, push = np.empty(classes), np.empty(classes)
    c[:, :, :] = 0.0
    d[:, :] = 0.0
    loss = 0.0
    for row in range(label.size):
        outputs[:] = 0.0
        for s in range(k):
            route_row(route[s], order[s], counts[row], l, gate, width, routed, gates)
            mean[s] = 0.0
            for z in range(P):
                share[s, z] = routed[z] * gates[z]
                for i in range(classes):
                    mean[s, i] += share[s, z] * response[s, i, z]
            for i in range(classes):
                outputs[i] += mean[s, i] / l
        loss += weight[row] * class_pushes(outputs, int(label[row]) - 1, push)
        for s in range(k):
            for i in range(classes):
                scale = weight[row] * push[i] / l
                for z in range(P):
                    c[s, i, z] += scale * share[s, z]
                    d[s, z] += scale * share[s, z] * (response[s, i, z] - mean[s, i])
    return loss


def class_mean_drives(route, response, p, c, d):
    """The drives averaged over route values shifted by `jitter` (R, k, P); returns the mean loss."""
    jitter, copies = p.jitter, p.jitter.shape[0]
    one, other = np.empty(c.shape), np.empty(d.shape)
    c[:, :, :] = 0.0
    d[:, :] = 0.0
    loss = 0.0
    for r in range(copies):
        loss += class_drives(route + jitter[r], response, p, one, other) / copies
        c += one / copies
        d += other / copies
    return loss


def class_responses(pre, out):
    """phi_{s,i}(z) = sum_r a_{r,s,i} ReLU(h_{r,s}(z)), (k, classes, P)."""
    k, M, P = pre.shape
    classes = out.shape[2]
    response = np.zeros((k, classes, P))
    for s in range(k):
        for r in range(M):
            for z in range(P):
                if pre[s, r, z] > 0.0:
                    for i in range(classes):
                        response[s, i, z] += out[s, r, i] * pre[s, r, z]
    return response


def class_l0_flow_loss(t, y, p):
    """(dy/dt, L) for every neuron: dh/dt = (1/m) Gam (1(h >= 0) sum_i a_i c_i), dg/dt = lam Gam d."""
    k, M, classes, P, lam, gram, out = p.k, p.M, p.classes, p.P, p.lam, p.gram, p.held
    size = k * M * P
    pre = y[:size].reshape((k, M, P))
    route = y[size:].reshape((k, P))
    c, d = np.empty((k, classes, P)), np.empty((k, P))
    loss = class_mean_drives(route, class_responses(pre, out), p, c, d)
    dy = np.zeros(y.size)
    push = np.empty(P)
    for s in range(k):
        for r in range(M):
            for z in range(P):
                push[z] = 0.0
                if pre[s, r, z] >= 0.0:
                    for i in range(classes):
                        push[z] += out[s, r, i] * c[s, i, z] / (k * M)
            at = (s * M + r) * P
            times(gram, push, 1.0, dy[at : at + P])
    if lam > 0.0:
        move_routers(route, d, gram, lam, dy[size:])
    return dy, loss


def class_l1_flow_loss(t, y, p):
    """(dy/dt, L) of responses: dphi_{s,i}/dt = sum_j metric_{s,i,j} c_{s,j}, metric = Gam o A_{s,i,j}/m."""
    k, classes, P, lam, gram, metric = p.k, p.classes, p.P, p.lam, p.gram, p.held
    size = k * classes * P
    response = y[:size].reshape((k, classes, P))
    route = y[size:].reshape((k, P))
    c, d = np.empty((k, classes, P)), np.empty((k, P))
    loss = class_mean_drives(route, response, p, c, d)
    dy = np.zeros(y.size)
    for s in range(k):
        for i in range(classes):
            for z in range(P):
                total = 0.0
                for j in range(classes):
                    for w in range(P):
                        total += metric[s, i, j, z, w] * c[s, j, w]
                dy[(s * classes + i) * P + z] = total
    if lam > 0.0:
        move_routers(route, d, gram, lam, dy[size:])
    return dy, loss


def class_l2_flow_loss(t, y, p):
    """(dy/dt, L) at infinite width: dphi_{s,i}/dt = (1/k) K c_{s,i}, as different outputs' weights are independent."""
    k, classes, P, lam, gram = p.k, p.classes, p.P, p.lam, p.gram
    size = k * classes * P
    response = y[:size].reshape((k, classes, P))
    route = y[size:].reshape((k, P))
    c, d = np.empty((k, classes, P)), np.empty((k, P))
    loss = class_mean_drives(route, response, p, c, d)
    metric = np.empty((P, P))
    kernel_of(gram, metric)
    dy = np.zeros(y.size)
    for s in range(k):
        for i in range(classes):
            at = (s * classes + i) * P
            times(metric, c[s, i], 1.0, dy[at : at + P])
            dy[at : at + P] /= k
    if lam > 0.0:
        move_routers(route, d, gram, lam, dy[size:])
    return dy, loss


def class_look(g, order, phi, row, own, p, room):
    """One expert's look at a sample: fills `room` = (routed copies, gates, outputs), adding to the outputs.

    Returns whether the pattern of the sample's class is routed, and whether its gate is the largest.
    """
    routed, gates, outputs = room
    route_row(g, order, row, p.l, p.gate % 10, p.width, routed, gates)
    top = 0.0
    for z in range(g.size):
        for i in range(outputs.size):
            outputs[i] += routed[z] * gates[z] * phi[i, z] / p.l
        if routed[z] > 0.0:
            top = max(top, gates[z])
    found = routed[own] > 0.0
    return found, found and gates[own] >= top


def class_watch_rows(route, response, p):
    """error, assumption 4.4, v (classes), the routed copies (k, P), P(o_a routed by s | class a) (classes, k), flat."""
    counts, label, weight = p.counts, p.label, p.weight
    k, classes, P = response.shape
    order = np.empty((k, P), dtype=np.int64)
    for s in range(k):
        rank(route[s], order[s])
    head, mass = np.zeros(2), np.zeros(classes)
    v, copies, finds, best = np.zeros(classes), np.zeros((k, P)), np.zeros((classes, k)), np.ones((k, classes))
    routed, gates, outputs, push = np.empty(P), np.empty(P), np.empty(classes), np.empty(classes)
    for row in range(label.size):
        a = int(label[row]) - 1
        outputs[:] = 0.0
        for s in range(k):
            found, good = class_look(route[s], order[s], response[s], counts[row], a, p, (routed, gates, outputs))
            copies[s] += weight[row] * routed
            if counts[row, a] > 0.0:
                finds[a, s] += weight[row] * found
                if not found or (not good and weight[row] > 0.0):
                    best[s, a] = 0.0
        class_pushes(outputs, a, push)
        v[a] += weight[row] * push[a]
        mass[a] += weight[row]
        outputs -= outputs[a]
        outputs[a] = -np.inf
        head[0] += weight[row] * (outputs.max() >= 0.0)
    head[1] = 1.0
    for a in range(classes):
        scale = mass[a] if mass[a] > 0.0 else 1.0
        v[a] /= scale
        finds[a] /= scale
        head[1] *= best[:, a].max()
    return np.concatenate((head, v, copies.reshape(k * P), finds.reshape(classes * k)))


def class_l0_watch(y, p):
    """The observables of `class_watch_rows` from neurons."""
    size = p.k * p.M * p.P
    response = class_responses(y[:size].reshape((p.k, p.M, p.P)), p.held)
    return class_watch_rows(y[size:].reshape((p.k, p.P)), response, p)


def class_l1_watch(y, p):
    """The observables of `class_watch_rows` from responses."""
    size = p.k * p.classes * p.P
    response = y[:size].reshape((p.k, p.classes, p.P))
    return class_watch_rows(y[size:].reshape((p.k, p.P)), response, p)


def class_l2_watch(y, p):
    """The observables of `class_watch_rows` from responses."""
    size = p.k * p.classes * p.P
    response = y[:size].reshape((p.k, p.classes, p.P))
    return class_watch_rows(y[size:].reshape((p.k, p.P)), response, p)
