"""The exact flow of one neuron, and of all, as plain loops around the cluster kernels, for numba.

The flat state is (neurons, 2C + 1): kappa_1..kappa_C, xi, nu_1..nu_C of each neuron.  Nothing here runs uncompiled.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Arguments(NamedTuple):
    """The run-time arguments: sizes (clusters C, degree and lowest degree of the links, kind of activation), then the
    length rho of the means, second layer, biases and coefficients of the activation by neuron, lambda times the share
    of each cluster (N, C), the links' coefficients (C, degree + 1), and the frame's Gram matrix.
    """

    C: int
    degree: int
    low: int
    kind: int
    rho: float
    a: Any
    b: Any
    series: Any
    weight: Any
    local: Any
    remote: Any
    gram: Any
    orthonormal: int
    mode: int


cluster_gradient: Callable[..., tuple[float, ...]]
cluster_hessian: Callable[..., tuple[float, ...]]


def shifted(kind, a, t, row, low, top, S, lane):
    """S[i, lane] = alpha_i = a E[sigma(Z + t) h_i(Z)] for i = low..top, by recurrences that never cancel.

    Kinds: 0 relu, 1 polynomial with orthonormal coefficients `row`, 2 erf(z/sqrt2), 3 exp, 4 cos, 5 Phi.
    """
    if kind == 0:
        density = a * math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
        if low <= 1:
            below = 0.5 * math.erfc(-t / math.sqrt(2.0))
            S[0, lane] = a * t * below + density
            S[1, lane] = a * below
        before, h, sign = 0.0, density, 1.0
        for i in range(2, top + 1):
            S[i, lane] = sign * h / math.sqrt(i * (i - 1.0))
            before, h = h, (t * h - math.sqrt(i - 2.0) * before) / math.sqrt(i - 1.0)
            sign = -sign
    elif kind == 1:
        for i in range(low, top + 1):
            total, factor = 0.0, a
            for order in range(i, row.size):
                total += row[order] * factor
                factor *= t * math.sqrt(order + 1.0) / (order + 1.0 - i)
            S[i, lane] = total
    elif kind == 2 or kind == 5:
        scale = a if kind == 2 else 0.5 * a
        u = t / math.sqrt(2.0)
        if kind == 2:
            S[0, lane] = a * math.erf(0.5 * t)
        else:
            S[0, lane] = 0.5 * a * math.erfc(-0.5 * t)
        before, h = 0.0, scale * 2.0 * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        shrink = math.sqrt(0.5)
        for i in range(1, top + 1):
            S[i, lane] = shrink * h / math.sqrt(i * 1.0)
            before, h = h, (u * h - math.sqrt(i - 1.0) * before) / math.sqrt(i * 1.0)
            shrink *= -math.sqrt(0.5)
    else:
        value = a * math.exp(t + 0.5) if kind == 3 else a * math.exp(-0.5)
        for i in range(top + 1):
            S[i, lane] = value if kind == 3 else value * math.cos(t + 0.5 * math.pi * i)
            value /= math.sqrt(i + 1.0)


def block_start(k, p):
    """The table of neuron k: the links' weights times lambda and the share of each cluster; the A_i come later."""
    C, degree, weight, local, remote, mode = p.C, p.degree, p.weight, p.local, p.remote, p.mode
    S = np.zeros((3 * degree + 5, C))
    for c in range(C):
        for i in range(degree + 1):
            S[degree + 3 + i, c] = weight[k, c] * local[c, i]
            S[2 * degree + 4 + i, c] = 0.0 if mode == 4 else weight[k, c] * remote[c, i]
    return S


def gradient(y, g, S, k, p):
    """g = dU/d(kappa, xi, nu) of neuron k; returns U."""
    C, degree, low, kind, rho, a, b, series = p.C, p.degree, p.low, p.kind, p.rho, p.a, p.b, p.series
    row = series[k] if series.shape[0] > 1 else series[0]
    g[C] = 0.0
    total = 0.0
    for c in range(C):
        shifted(kind, a[k], rho * y[C + 1 + c] + b[k], row, low, degree + 1, S, c)
        d_kappa, d_xi, d_t, value = cluster_gradient(S, c, y[c], y[C])
        g[c] = d_kappa
        g[C] += d_xi
        g[C + 1 + c] = rho * d_t
        total += value
    return total


def alone(y, g, mode, C):
    """Turn the gradient g into the slope of tier R2 (mode 3) or R4 (mode 4), where every task is on its own.

    R2: kappa' = U_kappa (1 - kappa^2), xi likewise, means at rest.  R4: task and mean of a cluster on their circle.
    """
    for i in range(C + 1):
        if mode == 3:
            g[i] *= 1.0 - y[i] * y[i]
        elif i < C:
            R = y[i] * g[i] + y[C + 1 + i] * g[C + 1 + i]
            g[i] -= y[i] * R
            g[C + 1 + i] -= y[C + 1 + i] * R
        else:
            g[i] = 0.0
    if mode == 3:
        g[C + 1 :] = 0.0


def block_slope(y, out, S, k, p):
    """dm_a/dt = sum_b G_ab g_b - m_a R with R = sum_b m_b g_b.

    Modes: 0 the paper's, whose R lacks the means; 1 exact; 2 R1, means at rest; 3 R2; 4 R4.
    """
    C, gram, orthonormal, mode = p.C, p.gram, p.orthonormal, p.mode
    n = 2 * C + 1
    gradient(y, out, S, k, p)
    if mode > 2:
        alone(y, out, mode, C)
        return
    R = 0.0
    for i in range(n if mode == 1 else C + 1):
        R += y[i] * out[i]
    if orthonormal:
        for i in range(n):
            out[i] -= y[i] * R
    else:
        g = out.copy()
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += gram[i, j] * g[j]
            out[i] = total - y[i] * R
    if mode == 2:
        out[C + 1 :] = 0.0


def hessian(y, H, S, k, p):
    """The Hessian of U in (kappa, xi, nu) of neuron k: a cluster couples kappa_c, xi and nu_c."""
    C, degree, low, kind, rho, a, b, series = p.C, p.degree, p.low, p.kind, p.rho, p.a, p.b, p.series
    row = series[k] if series.shape[0] > 1 else series[0]
    H[:] = 0.0
    for c in range(C):
        v = C + 1 + c
        shifted(kind, a[k], rho * y[v] + b[k], row, low, degree + 2, S, c)
        kk, xx, kt, xt, tt = cluster_hessian(S, c, y[c], y[C])
        H[c, c] = kk
        H[C, C] += xx
        H[c, v] = H[v, c] = rho * kt
        H[C, v] = H[v, C] = rho * xt
        H[v, v] = rho * rho * tt


def jacobian_alone(y, J, g, H, mode, C):
    """The Jacobian of `alone`."""
    J[:] = 0.0
    for i in range(C + 1):
        if mode == 3:
            J[i, i] = H[i, i] * (1.0 - y[i] * y[i]) - 2.0 * y[i] * g[i]
            for v in range(C + 1, 2 * C + 1):
                J[i, v] = H[i, v] * (1.0 - y[i] * y[i])
        elif i < C:
            pair = (i, C + 1 + i)
            R = y[pair[0]] * g[pair[0]] + y[pair[1]] * g[pair[1]]
            for p in pair:
                for q in pair:
                    slope = g[q] + y[pair[0]] * H[pair[0], q] + y[pair[1]] * H[pair[1], q]
                    J[p, q] = H[p, q] - y[p] * slope - (R if p == q else 0.0)


def block_jacobian(y, J, S, k, p):
    """J_ab = (G H)_ab - [a = b] R - m_a (g_b + sum_c m_c H_cb), H the Hessian of U; modes as in `block_slope`."""
    C, gram, orthonormal, mode = p.C, p.gram, p.orthonormal, p.mode
    n = 2 * C + 1
    g, H, carried = np.empty(n), np.empty((n, n)), np.empty(n)
    gradient(y, g, S, k, p)
    hessian(y, H, S, k, p)
    if mode > 2:
        jacobian_alone(y, J, g, H, mode, C)
        return
    last = n if mode == 1 else C + 1
    R = 0.0
    for i in range(last):
        R += y[i] * g[i]
    for j in range(n):
        carried[j] = g[j] if j < last else 0.0
        for i in range(last):
            carried[j] += y[i] * H[i, j]
    moved = H
    if not orthonormal:
        moved = np.zeros((n, n))
        for i in range(n):  # numba's product of matrices takes half a second to compile
            for b in range(n):
                for j in range(n):
                    moved[i, j] += gram[i, b] * H[b, j]
    for i in range(n):
        for j in range(n):
            J[i, j] = moved[i, j] - y[i] * carried[j]
        J[i, i] -= R
    if mode == 2:
        J[C + 1 :] = 0.0


def flow(t, y, p):
    """dm/dt of all neurons."""
    C = p.C
    n = 2 * C + 1
    out = np.empty(y.size)
    for k in range(y.size // n):
        S = block_start(k, p)
        at = k * n
        block_slope(y[at : at + n], out[at : at + n], S, k, p)
    return out


def loss(y, p):
    """The correlation loss -sum_j U_j of all neurons followed."""
    C = p.C
    n = 2 * C + 1
    g = np.empty(n)
    total = 0.0
    for k in range(y.size // n):
        S = block_start(k, p)
        total -= gradient(y[k * n : k * n + n], g, S, k, p)
    return total
