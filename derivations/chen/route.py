"""Top-1 routing with uniform noise: exact distribution of argmax_m (h_m + r_m), r_m ~ Unif[0, 1] independent.

    p_m(h) = int_H^(h_m + 1) prod_(l != m) min(1, u - h_l) du,   H = max_l h_l,   and 0 where h_m <= H - 1    (R1)

a piecewise polynomial of degree M - 1 in u with breakpoints h_l + 1; Gauss-Legendre with floor(M/2) + 1 nodes on each
piece is exact.
"""

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.chen.nodes import legendre

if TYPE_CHECKING:
    import sympy


def probabilities(h: Any, xp: Any = np) -> Any:
    """p (..., M) of logits h (..., M), exact to rounding; `xp` is NumPy or JAX's array library."""
    return winning_moment(h, lambda u: 1.0, xp)


def winning_moment(h: Any, function: Any, xp: Any = np) -> Any:
    """E[function(winning noisy logit) 1(m wins)] (..., M): (R1) with a factor function(u) in the integrand.

    Exact for constants and for functions that raise the degree by at most one.
    """
    piece, x, w = nodes_of(h.shape[-1])
    top = h.max(axis=-1, keepdims=True)
    b = xp.concatenate([top, xp.sort(xp.maximum(h + 1, top), axis=-1)], axis=-1)
    low, high = b[..., piece], b[..., piece + 1]
    u = low + (high - low) * x
    factors = xp.minimum(1.0, u[..., None] - h[..., None, :])
    inside = (low[..., None] + high[..., None]) / 2 < h[..., None, :] + 1
    value = (high - low) * w * function(u)
    # For m to win, u - h_m > 0, so the product without m is the whole product divided by the factor of m.
    product = xp.where(high > low, xp.prod(factors, axis=-1), 0.0)
    safe = xp.where(inside & (factors > 0), factors, 1.0)
    return (xp.where(inside, (value * product)[..., None] / safe, 0.0)).sum(axis=-2)


@functools.cache
def nodes_of(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The piece of (R1), the node on [0, 1] and the weight of every node of `winning_moment` for m experts.

    On the piece below the i-th smallest end, i of the factors are 1, so that the last pieces need few nodes.
    """
    found = [(i, *node) for i in range(m) for node in zip(*legendre((m - i) // 2 + 1), strict=True)]
    piece, x, w = (np.array(column) for column in zip(*found, strict=True))
    return piece, x, w


def jacobian(h: np.ndarray) -> np.ndarray:
    """dp_m/dh_l (M, M): minus the density that l ties with m at the top, off the diagonal; rows sum to zero.

    dp_m/dh_l = -int_H^(min(h_m, h_l) + 1) prod_(other) min(1, u - h_other) du,
    dp_m/dh_m = prod_(l != m) F(1 + h_m - h_l) - prod_(l != m) F(h_m - h_l), F = clip to [0, 1].
    """
    m = h.size
    x, w = legendre(m // 2 + 1)
    top = float(h.max())
    found = np.zeros((m, m))
    for a, b in itertools.combinations(range(m), 2):
        rest = np.delete(h, [a, b])
        end = min(h[a], h[b]) + 1
        if end > top:
            cuts = np.unique(np.clip([top, end, *(rest + 1)], top, end))
            for low, high in itertools.pairwise(cuts):
                u = low + (high - low) * x
                found[a, b] -= (high - low) * w @ np.minimum(1, u[:, None] - rest).prod(axis=1)
            found[b, a] = found[a, b]
    for a in range(m):
        gaps = h[a] - np.delete(h, a)
        found[a, a] = np.clip(1 + gaps, 0, 1).prod() - np.clip(gaps, 0, 1).prod()
    return found


def two_levels(above: int, below: int, gap: float) -> tuple[float, float]:
    """(p_in, p_out) for `above` experts at logit `gap` and `below` at 0, 0 <= gap.

    p_out = int_D^1 u^(b-1) (u-D)^a du, p_in = int_D^1 u^b (u-D)^(a-1) du + (1 - (1-D)^a)/a, D = min(gap, 1).
    """
    if gap >= 1:
        return 1 / above, 0.0
    x, w = legendre((above + below) // 2 + 1)
    u = gap + (1 - gap) * x
    w = (1 - gap) * w
    p_out = float(w @ (u ** (below - 1) * (u - gap) ** above)) if below else 0.0
    p_in = float(w @ (u**below * (u - gap) ** (above - 1))) + (1 - (1 - gap) ** above) / above
    return p_in, p_out


def symbolic(count: int) -> "tuple[list[sympy.Symbol], list[sympy.Expr]]":
    """(h, p) for h_1 >= h_2 >= ... >= h_M > h_1 - 1: the polynomials of (R1), by SymPy.

    In this order the breakpoints are h_M + 1 <= ... <= h_1 + 1, and between them the lower experts' factors are 1.
    """
    import sympy

    h = list(sympy.symbols(f"h1:{count + 1}", real=True))
    u = sympy.Symbol("u", real=True)
    ends = [h[0], *(h[k] + 1 for k in reversed(range(count)))]
    chances = []
    for m in range(count):
        total = sympy.Integer(0)
        for piece in range(count):
            alive = count - piece  # experts 0 .. alive - 1 still have a factor below 1 on this piece
            if m >= alive:
                continue
            integrand = sympy.prod([u - h[k] for k in range(alive) if k != m])
            total += sympy.integrate(sympy.expand(integrand), (u, ends[piece], ends[piece + 1]))
        chances.append(sympy.expand(total))
    return h, chances


def entropy(counts: np.ndarray) -> float:
    """Dispatch entropy of n_(k,m) (K, M): sum over experts of their share times the entropy of their clusters.

    Natural logarithm, 0 log 0 = 0; between 0 and log K.  Source: Chen et al. 2022, Section 6.
    """
    counts = np.asarray(counts, float)
    load = counts.sum(axis=0)
    share = counts / np.where(load > 0, load, 1.0)
    logs = np.log(np.where(share > 0, share, 1.0))
    return float(-(load / load.sum()) @ (share * logs).sum(axis=0))
