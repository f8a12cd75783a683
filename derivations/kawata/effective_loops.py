"""The contraction of a finite step as plain loops for numba; `effective` has the derivation."""

import math
from collections.abc import Callable

import numpy as np

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


def one_sample(m, c, C, kind, rho, a, b, row, local, remote, gram, d, noise, x0, w0, x1, w1):
    """D_c = E[|g|^2 | c] of one neuron with overlaps m."""
    k, v = m[c], m[C + 1 + c]
    along = math.sqrt(max(1.0 - k * k, 0.0))  # e1: the local task off the neuron
    x = m[C]
    low = (gram[c, C] - k * x) / along if along > 1e-8 else 0.0
    across = math.sqrt(max(1.0 - x * x - low * low, 0.0))  # e2: the global task off both
    first = (gram[c, C + 1 + c] - k * v) / along if along > 1e-8 else 0.0
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
            u = k * z0 + along * x1[j]
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


def effective_flow(
    t, y, C, degree, low, kind, rho, a, b, series, weight, local, remote, gram, orthonormal, mode,
    d, factor, links, others, noise, x0, w0, x1, w1,
):  # fmt: skip
    """The exact flow minus factor_c D_c m of every neuron."""
    out = flow(t, y, C, degree, low, kind, rho, a, b, series, weight, local, remote, gram, orthonormal, mode)
    n = 2 * C + 1
    for k in range(y.size // n):
        row = series[k] if series.shape[0] > 1 else series[0]
        m = y[k * n : k * n + n]
        for c in range(C):
            if factor[k, c] == 0.0:
                continue
            D = one_sample(m, c, C, kind, rho, a[k], b[k], row, links, others, gram, d, noise, x0, w0, x1, w1)
            for i in range(n):
                out[k * n + i] -= factor[k, c] * D * m[i]
    return out


def effective_loss(
    y, C, degree, low, kind, rho, a, b, series, weight, local, remote, gram, orthonormal, mode,
    d, factor, links, others, noise, x0, w0, x1, w1,
):  # fmt: skip
    """The correlation loss, which the contraction lets rise."""
    return loss(y, C, degree, low, kind, rho, a, b, series, weight, local, remote, gram, orthonormal, mode)
