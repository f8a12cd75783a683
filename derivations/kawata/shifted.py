"""The shifted Hermite coefficients alpha_i(t) = E[sigma(Z + t) h_i(Z)] of every activation, as arrays (NumPy, JAX)."""

import math
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
