"""Moments of the one-sample gradient, and the contracted flow, from array operations: apart from the loops."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from derivations.kawata import arrays

TINY = 1e-8


def slope(xp: Any, kind: int, t: Any, series: Any) -> Any:
    """sigma'(t), with the coefficients of a polynomial along the last axis of `series`."""
    if kind == 0:
        return xp.where(t > 0, 1.0, 0.0) + 0.0 * t
    if kind == 1:
        h = arrays.hermite_functions(xp, t, max(series.shape[-1] - 2, 0))
        return sum((series[..., n] * math.sqrt(n) * h[n - 1] for n in range(1, series.shape[-1])), 0.0 * t)
    if kind in (3, 4):
        return xp.exp(t) if kind == 3 else -xp.sin(t)
    return (2.0 if kind == 2 else 1.0) * xp.exp(-t * t / 2) / math.sqrt(2 * math.pi)


def evaluate(xp: Any, coefficients: Any, u: Any) -> Any:
    """sum_n c_n h_n(u)."""
    h = arrays.hermite_functions(xp, u, max(coefficients.shape[-1] - 1, 1))
    return sum((coefficients[n] * h[n] for n in range(coefficients.shape[-1])), 0.0 * u)


def quotient(xp: Any, top: Any, bottom: Any) -> Any:
    """top/bottom, 0 where the direction divided by has no length."""
    return xp.where(bottom > TINY, top / xp.where(bottom > TINY, bottom, 1.0), 0.0)


def root(xp: Any, square: Any) -> Any:
    """The square root of what is negative only by rounding."""
    return xp.sqrt(xp.maximum(square, 0.0))


def given_cluster(xp: Any, m: Any, c: int, p: Any) -> tuple[Any, Any]:
    """D_c (N,) and S_c (N, n, n) of neurons with overlaps m (N, n); `p` as in `effective_loops.Arguments`."""
    C, kind, rho, a, b, series, gram, d, noise = p.C, p.kind, p.rho, p.a, p.b, p.series, p.gram, p.d, p.noise
    local, remote, x0, w0, x1, w1 = p.links, p.others, p.x0, p.w0, p.x1, p.w1
    k, x, v = m[:, c], m[:, C], m[:, C + 1 + c]
    one = root(xp, 1 - k * k)
    low = quotient(xp, gram[c, C] - k * x, one)
    two = root(xp, 1 - x * x - low * low)
    # Coordinates of every frame vector along e1, e2; what remains of it is orthogonal to w, e1 and e2.
    first = quotient(xp, gram[c] - k[:, None] * m, one[:, None])
    second = quotient(xp, gram[C] - x[:, None] * m - low[:, None] * first, two[:, None])
    rest = gram - m[:, :, None] * m[:, None] - first[:, :, None] * first[:, None] - second[:, :, None] * second[:, None]
    mean = rho * xp.stack([first[:, C + 1 + c], second[:, C + 1 + c]])
    shift = rho * v + b
    if kind == 0:
        start = xp.maximum(-9.0, -shift)[:, None]
        width = xp.maximum(start + 1.0, 9.0) - start
        z0 = start + width * x0
        weight = w0 * width * xp.exp(-z0 * z0 / 2) / math.sqrt(2 * math.pi)
    else:
        z0, weight = x0 + 0.0 * shift[:, None], w0 + 0.0 * shift[:, None]
    weight = weight * (a[:, None] * slope(xp, kind, z0 + shift[:, None], series[:, None, :])) ** 2
    u = k[:, None, None] * z0[..., None] + one[:, None, None] * x1
    q = x[:, None, None] * z0[..., None] + low[:, None, None] * x1
    y = evaluate(xp, local[c], u)[..., None] + evaluate(xp, remote[c], q[..., None] + two[:, None, None, None] * x1)
    square = weight[:, :, None, None] * (y * y + noise) * w1[:, None] * w1
    Q = xp.stack([x1[:, None] + 0.0 * x1, 0.0 * x1[:, None] + x1])[:, None] + mean[:, :, None, None]
    M0 = square.sum((1, 2, 3))
    inner = square.sum(1)
    M1 = xp.einsum("nij,pnij->pn", inner, Q)
    M2 = xp.einsum("nij,pnij,qnij->pqn", inner, Q, Q)
    far = rest[:, C + 1 + c, C + 1 + c]
    D = M2[0, 0] + M2[1, 1] + M0 * (rho * rho * far + d - 3)
    A = xp.stack([first, second])  # (2, N, n)
    along, away = xp.einsum("pna,pn->na", A, M1), rho * rest[:, C + 1 + c]
    S = xp.einsum("pna,pqn,qnb->nab", A, M2, A) + M0[:, None, None] * (away[:, :, None] * away[:, None] + rest)
    return D, S + along[:, :, None] * away[:, None] + away[:, :, None] * along[:, None]


def one_sample(xp: Any, m: Any, weight: Any, p: Any) -> tuple[Any, Any]:
    """D (N,) and S (N, n, n), clusters averaged with `weight` (N, C)."""
    parts = [given_cluster(xp, m, c, p) for c in range(p.C)]
    D = sum(weight[:, c] * parts[c][0] for c in range(p.C))
    return D, sum(weight[:, c, None, None] * parts[c][1] for c in range(p.C))


def build(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow` and `loss`."""
    exact = arrays.build_exact(xp, kernels)

    def flow(t, y, p):
        m = xp.reshape(y, (-1, 2 * p.C + 1))
        D, _ = one_sample(xp, m, p.factor, p)
        return exact["flow"](t, y, p) - xp.reshape(D[:, None] * m, (-1,))

    return {"flow": flow, "loss": exact["loss"]}
