"""The flow of neurons behind a gate from array operations (NumPy, JAX): assembled independently of the loops."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from derivations.kawata.gated_loops import Arguments
from derivations.special import special

SQRT2, NORMAL = math.sqrt(2.0), math.sqrt(2.0 * math.pi)


def hermite(tau: Any, top: int) -> list[Any]:
    """He_0(tau), .., He_top(tau)."""
    found = [1.0 + 0.0 * tau, tau]
    for n in range(1, top):
        found.append(tau * found[n] - n * found[n - 1])
    return found[: top + 1]


def derivatives(xp: Any, kind: int, a: Any, s: Any, r: Any, series: Any, top: int) -> list[Any]:
    """d^m/ds^m a E[sigma(r Z + s)] for m = 0..top, in closed form; see `gated_loops.smoothed` for the kinds."""
    if kind == 0:
        u = s / r
        density, below = xp.exp(-u * u / 2) / NORMAL, special(xp).erfc(-u / SQRT2) / 2
        h = hermite(u, max(top - 2, 0))
        rest = [(-1.0) ** m * r ** (1 - m) * h[m - 2] * density for m in range(2, top + 1)]
        return [a * value for value in (s * below + r * density, below, *rest)]
    if kind == 1:
        return [_polynomial(a, s, 1.0 - r * r, series, m) for m in range(top + 1)]
    if kind in (2, 5):
        width = xp.sqrt(1.0 + r * r)
        u = s / width
        first = special(xp).erf(u / SQRT2) if kind == 2 else special(xp).erfc(-u / SQRT2) / 2
        density, h = (2.0 if kind == 2 else 1.0) * xp.exp(-u * u / 2) / NORMAL, hermite(u, max(top - 1, 0))
        rest = [(-1.0) ** (m - 1) * h[m - 1] * density / width**m for m in range(1, top + 1)]
        return [a * value for value in (first, *rest)]
    if kind == 3:
        return [a * xp.exp(s + r * r / 2)] * (top + 1)
    return [a * xp.exp(-r * r / 2) * xp.cos(s + math.pi * m / 2) for m in range(top + 1)]


def _polynomial(a: Any, s: Any, v: Any, series: Any, m: int) -> Any:
    """The m-th derivative of sum_l c_l h_l, whose mean at variance 1 - v has He_l replaced by that of variance v."""
    total = 0.0 * s * v
    for order in range(m, series.shape[-1]):
        n = order - m
        scale = math.exp(math.lgamma(order + 1) / 2 - math.lgamma(n + 1))
        for k in range(n // 2 + 1):
            term = math.factorial(n) / (math.factorial(k) * math.factorial(n - 2 * k)) * (-0.5) ** k
            total = total + series[..., order] * scale * term * v**k * s ** (n - 2 * k)
    return a * total


def decided(xp: Any, p: Arguments, a: Any, t: Any, tau: Any, q: Any) -> Any:
    """B[j][n] for j + n <= top (j < top where n = 0), as `gated_loops.decided`; a, t, tau, q of one shape (N, C)."""
    kind, series, top = p.kind, p.series[:, None, :], p.degree + 2
    density, share = xp.exp(-tau * tau / 2) / NORMAL, special(xp).erfc(-tau / SQRT2) / 2
    plain = derivatives(xp, kind, a, t, 1.0 + 0.0 * q, series, top)
    angle = xp.arcsin(q)[..., None] * p.x
    wide = (a[..., None], (t[..., None] - xp.sin(angle) * tau[..., None]), xp.cos(angle), series[..., None, :])
    inner = derivatives(xp, kind, *wide, top)
    factor = p.w * xp.arcsin(q)[..., None] * xp.cos(angle) * density[..., None]
    given = derivatives(xp, kind, a, t - q * tau, xp.sqrt(1.0 - q * q), series, top)
    He = hermite(tau, top)
    B = [[share * plain[j] + (factor * inner[j + 1]).sum(-1)] for j in range(top)]
    B.append([])
    for n in range(1, top + 1):
        for j in range(top + 1 - n):
            terms = [
                math.comb(n - 1, k) * (-1.0) ** (n - 1 - k) * He[n - 1 - k] * (-q) ** k * given[j + k] for k in range(n)
            ]
            B[j].append(density * sum(terms))
    return B


def build(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow` and `loss`."""

    def gradient(y, p):
        C, degree, rho, weight, local, remote, expert = p.C, p.degree, p.rho, p.weight, p.local, p.remote, p.expert
        m = xp.reshape(y, (-1, 2 * C + 2))
        kappa, xi, nu, q = m[:, :C], m[:, C : C + 1] + 0.0 * m[:, :C], m[:, C + 1 : -1], m[:, -1:] + 0.0 * m[:, :C]
        gates = p.frame[expert][:, -1]
        own, other = gates[:, :C], gates[:, C : C + 1]
        t = rho * nu + p.b[:, None]
        B = decided(xp, p, p.a[:, None] + 0.0 * t, t, p.tau[expert], q)
        d_kappa, d_xi, d_nu, d_q, value = (0.0 * kappa for _ in range(5))
        for i in range(degree + 1):
            for j in range(i + 1):
                n = i - j
                scale = weight * math.sqrt(math.factorial(i)) / (math.factorial(j) * math.factorial(n))
                f, g = scale * local[:, i] * own**n, scale * remote[:, i] * other**n
                both = f * kappa**j + g * xi**j
                value = value + both * B[j][n]
                if j:
                    d_kappa = d_kappa + j * f * kappa ** (j - 1) * B[j][n]
                    d_xi = d_xi + j * g * xi ** (j - 1) * B[j][n]
                d_nu, d_q = d_nu + rho * both * B[j + 1][n], d_q + both * B[j + 1][n + 1]
        parts = [d_kappa, d_xi.sum(1, keepdims=True), d_nu, d_q.sum(1, keepdims=True)]
        return m, xp.concatenate(parts, axis=1), value.sum()

    def flow(t, y, p):
        m, g, _ = gradient(y, p)
        return xp.reshape(xp.einsum("nij,nj->ni", p.frame[p.expert], g) - m * (m * g).sum(1, keepdims=True), (-1,))

    return {"flow": flow, "loss": lambda y, p: -gradient(y, p)[2]}
