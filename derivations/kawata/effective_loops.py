"""The contraction of a finite step as plain loops for numba; `effective` has the derivation."""

import collections
import math
from collections.abc import Callable

import numpy as np

from derivations.kawata import loops

Arguments = collections.namedtuple(
    "Arguments", (*loops.Arguments._fields, "d", "factor", "links", "others", "noise", "x0", "w0", "x1", "w1")
)
"""Those of the exact flow, then d, the factor of D (N, C), the links as they are (C, degree + 1), zeta^2, and nodes."""

flow: Callable[..., np.ndarray]
loss: Callable[..., float]


def slope_at(kind, t, row):
    """sigma'(t).  Kinds: 0 relu, 1 polynomial with orthonormal coefficients `row`, 2 erf, 3 exp, 4 cos, 5 Phi."""
    if kind == 0:
        return 1.0 if t > 0.0 else 0.0
    if kind == 1:
        total, before, h = 0.0, 0.0, 1.0
        for n in range(1, row.size):  # h_n' = sqrt(n) h_{n-1}
            total += row[n] * math.sqrt(n * 1.0) * h
            before, h = h, (t * h - math.sqrt(n - 1.0) * before) / math.sqrt(n * 1.0)
        return total
    if kind == 3:
        return math.exp(t)
    if kind == 4:
        return -math.sin(t)
    density = math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    return density if kind == 5 else 2.0 * density


def one_sample(m, k, c, p):
    """D_c = E[|g|^2 | c] of neuron k with overlaps m."""
    C, kind, rho, a, b, gram, d, noise = p.C, p.kind, p.rho, p.a[k], p.b[k], p.gram, p.d, p.noise
    local, remote, x0, w0, x1, w1 = p.links, p.others, p.x0, p.w0, p.x1, p.w1
    row = p.series[k] if p.series.shape[0] > 1 else p.series[0]
    kappa, v = m[c], m[C + 1 + c]
    along = math.sqrt(max(1.0 - kappa * kappa, 0.0))  # e1: the local task off the neuron
    x = m[C]
    low = (gram[c, C] - kappa * x) / along if along > 1e-8 else 0.0
    across = math.sqrt(max(1.0 - x * x - low * low, 0.0))  # e2: the global task off both
    first = (gram[c, C + 1 + c] - kappa * v) / along if along > 1e-8 else 0.0
    second = (gram[C, C + 1 + c] - x * v - low * first) / across if across > 1e-8 else 0.0
    rest = max(1.0 - v * v - first * first - second * second, 0.0)
    shift = rho * v + b
    # The links are shifted where the mean has an overlap with a task; here fields are those of z.
    start = max(-9.0, -shift) if kind == 0 else 0.0
    width = max(start + 1.0, 9.0) - start if kind == 0 else 1.0
    total = 0.0
    for i in range(x0.size):
        z0 = start + width * x0[i] if kind == 0 else x0[i]
        weight = w0[i]
        if kind == 0:
            weight *= width * math.exp(-0.5 * z0 * z0) / math.sqrt(2.0 * math.pi)
        s = a * slope_at(kind, z0 + shift, row)
        if s == 0.0:
            continue
        inner = 0.0
        for j in range(x1.size):
            u = kappa * z0 + along * x1[j]
            f, before, h = 0.0, 0.0, 1.0
            for n in range(local.shape[1]):
                f += local[c, n] * h
                before, h = h, (u * h - math.sqrt(n * 1.0) * before) / math.sqrt(n + 1.0)
            for l in range(x1.size):  # noqa: E741
                q = x * z0 + low * x1[j] + across * x1[l]
                y, before, h = f, 0.0, 1.0
                for n in range(remote.shape[1]):
                    y += remote[c, n] * h
                    before, h = h, (q * h - math.sqrt(n * 1.0) * before) / math.sqrt(n + 1.0)
                one, two = x1[j] + rho * first, x1[l] + rho * second
                inner += w1[j] * w1[l] * (y * y + noise) * (one * one + two * two + rho * rho * rest + d - 3.0)
        total += weight * s * s * inner
    return total


def effective_flow(t, y, p):
    """The exact flow minus factor_c D_c m of every neuron."""
    C, factor = p.C, p.factor
    out = flow(t, y, p)
    n = 2 * C + 1
    for k in range(y.size // n):
        m = y[k * n : k * n + n]
        for c in range(C):
            if factor[k, c] == 0.0:
                continue
            D = one_sample(m, k, c, p)
            for i in range(n):
                out[k * n + i] -= factor[k, c] * D * m[i]
    return out


def effective_loss(y, p):
    """The correlation loss, which the contraction lets rise."""
    return loss(y, p)
