"""The exact flow of neurons behind a gate, as plain loops for numba; `gated` has the derivation.

The flat state is (neurons, 2C + 2): kappa_1..kappa_C, xi, nu_1..nu_C and the overlap q with the own gate's direction.
"""

import math
from typing import Any, NamedTuple

import numpy as np


class Arguments(NamedTuple):
    """The run-time arguments: clusters, degree of the links, kind of activation, length of the means; second layer,
    biases and coefficients of the activation by neuron; lambda, the links' coefficients (C, degree + 1); the Gram
    matrices `frame` (M, 2 C + 2, 2 C + 2) of the frame and each gate's direction, the gate of every neuron, thresholds
    tau (M, C), nodes x and weights w.
    """

    C: int
    degree: int
    kind: int
    rho: float
    a: Any
    b: Any
    series: Any
    weight: float
    local: Any
    remote: Any
    frame: Any
    expert: Any
    tau: Any
    x: Any
    w: Any


def smoothed(kind, a, s, r, row, top, G):
    """G[m] = d^m/ds^m a E[sigma(r Z + s)] for m = 0..top: an activation smoothed at width r <= 1.

    Kinds: 0 relu, 1 polynomial with orthonormal coefficients `row`, 2 erf(z/sqrt2), 3 exp, 4 cos, 5 Phi.
    """
    if kind == 0:
        u = s / r
        density = a * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        below = 0.5 * a * math.erfc(-u / math.sqrt(2.0))
        G[0] = s * below + r * density
        G[1] = below
        before, h = 0.0, density / r
        for m in range(2, top + 1):  # (-1)^m r^(1-m) He_{m-2}(u) phi(u)
            G[m] = h
            before, h = h, -(u * h / r + (m - 2.0) * before / (r * r))
    elif kind == 1:
        v = 1.0 - r * r  # E[He_l(r Z + s)] is the Hermite polynomial of variance v at s
        for m in range(top + 1):
            G[m] = 0.0
        before, P = 0.0, 1.0
        for low in range(row.size):  # P is that of degree `low`, which degree low + m has after m derivatives
            for m in range(min(top, row.size - 1 - low) + 1):
                scale = a * row[low + m]
                if scale != 0.0:
                    G[m] += scale * P * math.exp(0.5 * math.lgamma(low + m + 1.0) - math.lgamma(low + 1.0))
            before, P = P, s * P - low * v * before
    elif kind == 2 or kind == 5:
        width = math.sqrt(1.0 + r * r)
        u, scale = s / width, a if kind == 5 else 2.0 * a
        G[0] = a * (0.5 * math.erfc(-u / math.sqrt(2.0)) if kind == 5 else math.erf(u / math.sqrt(2.0)))
        before, h = 0.0, scale * math.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi) / width
        for m in range(1, top + 1):
            G[m] = h
            before, h = h, -(u * h / width + (m - 1.0) * before / (width * width))
    else:
        value = a * (math.exp(s + 0.5 * r * r) if kind == 3 else math.exp(-0.5 * r * r))
        for m in range(top + 1):
            G[m] = value if kind == 3 else value * math.cos(s + 0.5 * math.pi * m)


def decided(k, t, tau, q, p, B, G):
    """B[j, n] = E[d^j a sigma(u + t) d^n 1(v + tau >= 0)] for j + n <= top, u and v standard normal of correlation q.

    B[j, 0] at q is its value at 0 and the integral of dB[j, 0]/dq = B[j + 1, 1], taken in the angle arcsin q at the
    nodes x of [0, 1]; where the indicator is differentiated, v = -tau and the mean is that given v.  a and sigma are
    those of neuron k, top = degree + 2.
    """
    kind, a, top, x, w = p.kind, p.a[k], p.degree + 2, p.x, p.w
    row = p.series[k] if p.series.shape[0] > 1 else p.series[0]
    density = math.exp(-0.5 * tau * tau) / math.sqrt(2.0 * math.pi)
    share = 0.5 * math.erfc(-tau / math.sqrt(2.0))
    smoothed(kind, a, t, 1.0, row, top, G)
    for j in range(top):
        B[j, 0] = share * G[j]
    if density > 0.0 and q != 0.0:
        angle = math.asin(q)
        for k in range(x.size):
            smoothed(kind, a, t - math.sin(angle * x[k]) * tau, math.cos(angle * x[k]), row, top, G)
            factor = w[k] * angle * math.cos(angle * x[k]) * density
            for j in range(top):
                B[j, 0] += factor * G[j + 1]
    smoothed(kind, a, t - q * tau, math.sqrt(1.0 - q * q), row, top, G)
    for n in range(1, top + 1):
        for j in range(top + 1 - n):
            total, binomial, power = 0.0, 1.0, 1.0
            for k in range(n):  # d^(n-1)/dtau of phi(tau) G^(j)(t - q tau)
                before, h = 0.0, 1.0
                for i in range(n - 1 - k):
                    before, h = h, -tau * h - i * before
                total += binomial * power * h * G[j + k]
                binomial *= (n - 1.0 - k) / (k + 1.0)
                power *= -q
            B[j, n] = density * total


def gated_gradient(y, g, k, p, gate, tau, B, G):
    """g = dU/d(kappa, xi, nu, q) of neuron k; returns U.  `gate` holds th.w*_1.., th.w*_g of its gate's direction."""
    C, degree, rho, b, weight, local, remote = p.C, p.degree, p.rho, p.b, p.weight, p.local, p.remote
    g[:] = 0.0
    total = 0.0
    for c in range(C):
        decided(k, rho * y[C + 1 + c] + b[k], tau[c], y[2 * C + 1], p, B, G)
        for i in range(degree + 1):
            if local[c, i] == 0.0 and remote[c, i] == 0.0:
                continue
            for j in range(i + 1):
                n = i - j
                scale = math.exp(0.5 * math.lgamma(i + 1.0) - math.lgamma(j + 1.0) - math.lgamma(n + 1.0))
                own = weight * scale * local[c, i] * gate[c] ** n
                other = weight * scale * remote[c, i] * gate[C] ** n
                value = own * y[c] ** j + other * y[C] ** j
                total += value * B[j, n]
                if j > 0:
                    g[c] += own * j * y[c] ** (j - 1) * B[j, n]
                    g[C] += other * j * y[C] ** (j - 1) * B[j, n]
                g[C + 1 + c] += rho * value * B[j + 1, n]
                g[2 * C + 1] += value * B[j + 1, n + 1]
    return total


def gated_flow(t, y, p):
    """dm/dt = G g - m (m.g) of all neurons, G the Gram matrix of the frame and the own gate's direction."""
    C, degree, frame, expert, tau = p.C, p.degree, p.frame, p.expert, p.tau
    n = 2 * C + 2
    out, g = np.empty(y.size), np.empty(n)
    B, G = np.empty((degree + 3, degree + 3)), np.empty(degree + 4)
    for k in range(y.size // n):
        m, e = y[k * n : k * n + n], expert[k]
        gate = frame[e, n - 1]
        gated_gradient(m, g, k, p, gate, tau[e], B, G)
        R = 0.0
        for i in range(n):
            R += m[i] * g[i]
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += frame[e, i, j] * g[j]
            out[k * n + i] = total - m[i] * R
    return out


def gated_loss(y, p):
    """The correlation loss -sum_j U_j of all neurons followed."""
    C, degree, frame, expert, tau = p.C, p.degree, p.frame, p.expert, p.tau
    n = 2 * C + 2
    g, total = np.empty(n), 0.0
    B, G = np.empty((degree + 3, degree + 3)), np.empty(degree + 4)
    for k in range(y.size // n):
        e = expert[k]
        total -= gated_gradient(y[k * n : k * n + n], g, k, p, frame[e, n - 1], tau[e], B, G)
    return total
