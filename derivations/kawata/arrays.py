"""The exact flow as array operations (NumPy, JAX): the second, independent assembly of the same kernels."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from derivations.special import special


def hermite_functions(xp: Any, t: Any, top: int) -> list[Any]:
    """h_0(t), .., h_top(t), the orthonormal polynomials."""
    found = [1.0 + 0.0 * t, t]
    for n in range(1, top):
        found.append((t * found[n] - math.sqrt(n) * found[n - 1]) / math.sqrt(n + 1))
    return found[: top + 1]


def shifted(xp: Any, kind: int, a: Any, t: Any, series: Any, top: int) -> list[Any]:
    """alpha_0, .., alpha_top at t, in closed form; a and t of one shape, `series` (..., degrees) for polynomials.

    Kinds: 0 relu, 1 polynomial, 2 erf(z/sqrt2), 3 exp, 4 cos, 5 Phi.
    """
    if kind == 0:
        density = a * xp.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        below = a * special(xp).erfc(-t / math.sqrt(2)) / 2
        h = hermite_functions(xp, t, max(top - 2, 0))
        rest = [(-1.0) ** i * h[i - 2] * density / math.sqrt(i * (i - 1)) for i in range(2, top + 1)]
        return [t * below + density, below, *rest][: top + 1]
    if kind == 1:
        found = []
        for i in range(top + 1):
            total = 0.0 * t
            for order in range(i, series.shape[-1]):
                scale = math.exp((math.lgamma(order + 1) - math.lgamma(i + 1)) / 2 - math.lgamma(order - i + 1))
                total = total + series[..., order] * scale * t ** (order - i)
            found.append(a * total)
        return found
    if kind in (2, 5):
        u, scale = t / math.sqrt(2), a * (1.0 if kind == 2 else 0.5)
        first = a * special(xp).erf(t / 2) if kind == 2 else a * special(xp).erfc(-t / 2) / 2
        h, density = hermite_functions(xp, u, max(top - 1, 0)), 2 * xp.exp(-u * u / 2) / math.sqrt(2 * math.pi)
        rest = [
            scale * (-1.0) ** (i - 1) * h[i - 1] * density * 2 ** (-i / 2) / math.sqrt(i) for i in range(1, top + 1)
        ]
        return [first, *rest]
    size = [1 / math.sqrt(math.factorial(i)) for i in range(top + 1)]
    if kind == 3:
        return [a * xp.exp(t + 0.5) * size[i] for i in range(top + 1)]
    return [a * math.exp(-0.5) * xp.cos(t + math.pi * i / 2) * size[i] for i in range(top + 1)]


def tabulate(xp: Any, y: Any, p: Any) -> tuple[Any, ...]:
    """(rows, kappa (N, C), xi (N, C) repeated, table of the kernels) of a flat state; `p` as in `loops.Arguments`."""
    C, degree, a, b = p.C, p.degree, p.a, p.b
    m = xp.reshape(y, (-1, 2 * C + 1))
    kappa, xi, nu = m[:, :C], m[:, C : C + 1], m[:, C + 1 :]
    t = p.rho * nu + b[:, None]
    table = shifted(xp, p.kind, a[:, None] + 0.0 * t, t, p.series[:, None, :], degree + 2)
    table += [p.weight * p.local[:, i] for i in range(degree + 1)]
    far = p.remote if p.mode != 4 else 0.0 * p.remote
    table += [p.weight * far[:, i] for i in range(degree + 1)]
    return m, kappa, xi + 0.0 * kappa, table


def alone(xp: Any, m: Any, g: Any, mode: int, C: int) -> Any:
    """The slopes of tiers R2 (mode 3) and R4 (mode 4) from the gradient, as `loops.alone`."""
    kappa, nu, u, v = m[:, :C], m[:, C + 1 :], g[:, :C], g[:, C + 1 :]
    if mode == 3:
        return xp.concatenate([g[:, : C + 1] * (1.0 - m[:, : C + 1] ** 2), 0.0 * v], axis=1)
    R = kappa * u + nu * v
    return xp.concatenate([u - kappa * R, 0.0 * g[:, C : C + 1], v - nu * R], axis=1)


def build_exact(xp: Any, kernels: Mapping[str, Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, p)` and `loss(y, p)` of the tiers exact, paper, R1, R2 and R4."""

    def flow(t, y, p):
        C, rho, mode = p.C, p.rho, p.mode
        m, kappa, xi, table = tabulate(xp, y, p)
        d_kappa, d_xi, d_t, _ = kernels["cluster_gradient"](table, kappa, xi)
        d_t = d_t + 0.0 * kappa
        g = xp.concatenate([d_kappa + 0.0 * kappa, (d_xi + 0.0 * kappa).sum(1, keepdims=True), rho * d_t], axis=1)
        if mode > 2:
            return xp.reshape(alone(xp, m, g, mode, C), (-1,))
        last = 2 * C + 1 if mode == 1 else C + 1
        R = (m[:, :last] * g[:, :last]).sum(1, keepdims=True)
        pushed = (g if p.orthonormal else g @ p.gram) - m * R
        if mode == 2:
            pushed = xp.concatenate([pushed[:, : C + 1], 0.0 * pushed[:, C + 1 :]], axis=1)
        return xp.reshape(pushed, (-1,))

    def loss(y, p):
        _, kappa, xi, table = tabulate(xp, y, p)
        return -(kernels["cluster_gradient"](table, kappa, xi)[3] + 0.0 * kappa).sum()

    return {"flow": flow, "loss": loss}
