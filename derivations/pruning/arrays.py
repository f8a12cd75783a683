"""The right-hand sides as array operations, for NumPy and JAX: the same mathematics, written a second time."""

from collections.abc import Callable, Mapping
from typing import Any

from derivations.contract import UsageError
from derivations.pruning import flow_loops, recursion_loops

Kernels = Mapping[str, Callable[..., tuple[Any, ...]]]


def masses(xp: Any, kernels: Kernels, h: Any, l: int, soft: bool) -> tuple[Any, Any]:
    """(S, S (1 - S)) of both task tokens against every irrelevant pattern, (2, k, N); 0 where it is not selected."""
    x = xp.stack([h[:, :1] - h[:, 2:], h[:, 1:2] - h[:, 2:]])
    inside = xp.where(x >= 0, x, 0.0) if not soft else x
    mass, _, pull = kernels["gate"](None, inside, l)
    chosen = 1.0 if soft else xp.where(x >= 0, 1.0, 0.0)
    return mass * chosen, pull * chosen


def best_of(xp: Any, h: Any, pi: Any, copies: int) -> Any:
    """The law (k, N) of the pattern with the largest logit among `copies` draws; equal logits share theirs."""
    logits = h[:, 2:]
    lower = (logits[:, None, :] < logits[:, :, None]) @ pi
    tied = (logits[:, None, :] == logits[:, :, None]) @ pi
    return ((lower + tied) ** copies - lower**copies) * pi / xp.where(tied > 0, tied, 1.0)


def build_recursion(data: str, xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, p)` and `loss(y, p)` of the recursion for one or several repeated patterns."""
    if data not in ("single", "multi_copy"):
        raise UsageError(f"data={data} is computed by the compiled loops alone: use the numba back end")

    def both(y: Any, p: recursion_loops.Arguments) -> tuple[Any, Any]:
        k, m, d, a, l, pi, copies = p.k, p.m, p.d, p.a, p.l, p.pi, p.copies
        h, u = y[: k * d].reshape(k, d), y[k * d :].reshape(k, m, d)
        sigma = xp.maximum(u, 0.0).sum(1)
        S, pull = masses(xp, kernels, h, l, p.n == l)
        chance = 0.5 * best_of(xp, h, pi, copies) if copies > 1 else 0.5 * pi[None] * xp.ones((k, 1))
        sbar = S * sigma[:, :2].T[:, :, None] + (1 - S) * sigma[None, :, 2:]
        weight = xp.stack([chance, chance])
        if p.loss:
            f = (a[:, None] * sbar).sum(1)
            weight = weight * xp.where(xp.stack([f[0], -f[1]]) < 1, 1.0, 0.0)[:, None]
        A = weight * pull * (sigma[:, :2].T[:, :, None] - sigma[None, :, 2:])
        dh = xp.concatenate([A[0].sum(-1)[:, None], -A[1].sum(-1)[:, None], A[1] - A[0]], axis=1)
        task = (weight * S).sum(-1)
        others = weight[0] * (1 - S[0]) - weight[1] * (1 - S[1])
        g = xp.concatenate([task[0][:, None], -task[1][:, None], others], axis=1)
        du = p.eta_e * a[:, None, None] * g[:, None] * xp.where(u >= 0, 1.0, 0.0)
        value = (a[:, None] * (weight[0] * sbar[0] - weight[1] * sbar[1])).sum()
        slope = xp.concatenate([(p.eta_r * a[:, None] * dh).reshape(-1), du.reshape(-1)])
        return slope, weight[:, 0].sum() - value

    return {
        "flow": lambda t, y, p: both(y, p)[0],
        "loss": lambda y, p: both(y, p)[1],
    }


def build_flow(xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, p)` of the tiers flow and frozen away from ties."""

    def flow(t: Any, y: Any, p: flow_loops.Arguments) -> Any:
        k, d, a, pi, top = p.k, p.d, p.a, p.pi, p.top
        h, D, low = (y[i * k * d : (i + 1) * k * d].reshape(k, d) for i in range(3))
        bound = xp.maximum(0.0, -xp.minimum(low, D))
        alive = xp.where(top >= bound[:, :, None], 1.0, 0.0)
        sigma = (alive * (top + D[:, :, None])).sum(-1)
        S, pull = masses(xp, kernels, h, p.l, p.soft == 1)
        A = 0.5 * pi * pull * (sigma[:, :2].T[:, :, None] - sigma[None, :, 2:])
        task = (0.5 * pi * S).sum(-1)
        free = 1.0 - p.frozen
        dh = xp.concatenate([A[0].sum(-1)[:, None], -A[1].sum(-1)[:, None], free * (A[1] - A[0])], axis=1)
        g = xp.concatenate([task[0][:, None], -task[1][:, None], free * 0.5 * pi * (S[1] - S[0])], axis=1)
        dh, g = p.eta_r * a[:, None] * dh, p.eta_e * a[:, None] * g
        below = xp.where(D <= low, xp.minimum(g, 0.0), 0.0)
        return xp.concatenate([dh.reshape(-1), g.reshape(-1), below.reshape(-1)])

    return {"flow": flow}
