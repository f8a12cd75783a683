"""The reduced tiers as array operations, for NumPy and JAX."""

from collections.abc import Callable
from typing import Any

from derivations.chen import route
from derivations.chen.arrays import Kernels, speed
from derivations.chen.reduced_loops import Groups, Manifold


def build_explore(xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow` of tier explore; see `reduced_loops.explore_flow`."""

    def flow(t: Any, y: Any, M: int, J: int, K: int, power: Any, xa: Any, wa: Any) -> Any:
        z = y.reshape(M, J * K)[..., None] * xa
        up, down = (kernels["activation"](None, side, power)[1] for side in (z, -z))
        drive = (wa * xa * (up + down + 0 * z) / 2).sum(axis=-1)
        return (drive * speed(xp, xp.sqrt((drive**2).sum(axis=1)), 0.0)[:, None]).reshape(-1)

    return {"flow": flow}


def split_nodes(xp: Any, g: Any, low: Any, high: Any, x: Any, w: Any) -> tuple[Any, Any]:
    """Nodes and weights (N,) of a uniform law, cut where beta |g_m - g_l| = 1; cuts outside are empty pieces."""
    m = g.shape[0]
    gaps = xp.concatenate([xp.abs(g[i] - g[:i]) for i in range(1, m)])
    crossing = (gaps * low < 1) & (gaps * high > 1)
    cuts = xp.where(crossing, 1 / xp.where(crossing, gaps, 1.0), high)
    ends = xp.sort(xp.concatenate([xp.stack([low, high]), cuts]))
    width = ends[1:] - ends[:-1]
    nodes = ends[:-1, None] + width[:, None] * x
    return nodes.reshape(-1), (width[:, None] * w / (high - low)).reshape(-1)


def centre_nodes(xp: Any, g: Any, given: Any) -> tuple[Any, Any]:
    """The cut law where low < high; otherwise the given nodes, filled up with nodes of weight zero."""
    low, high, xb, wb, x, w = xp.asarray(given.low), xp.asarray(given.high), given.xb, given.wb, given.x, given.w
    nodes, weights = split_nodes(xp, g, low, xp.where(high > low, high, low + 1.0), x, w)
    fill = max(0, nodes.shape[0] - xb.shape[0])
    more = max(0, xb.shape[0] - nodes.shape[0])
    plain = xp.concatenate([xb, xb[0] + xp.zeros(fill)]), xp.concatenate([wb, xp.zeros(fill)])
    nodes = xp.concatenate([nodes, nodes[0] + xp.zeros(more)])
    weights = xp.concatenate([weights, xp.zeros(more)])
    return xp.where(high > low, nodes, plain[0]), xp.where(high > low, weights, plain[1])


def softmax(xp: Any, h: Any) -> Any:
    """exp(h)/sum exp(h) over the last axis."""
    raised = xp.exp(h - h.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def build_spec(xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow` of tiers spec and specnoise; see `reduced_loops.spec_flow`."""

    def flow(t: Any, y: Any, given: Manifold) -> Any:
        M, K, rho, layer, kstar, zeta = given.M, given.K, given.rho, given.layer, given.kstar, given.zeta
        xa, wa, xc, wc = given.xa, given.wa, given.xc, given.wc
        s, g = y[:M], y[M:].reshape(M, K)
        net, size, dg = xp.zeros(M), xp.zeros(M), xp.zeros((M, K))
        for k in range(K):
            nodes, weights = centre_nodes(xp, g[:, k], given)
            h = nodes[:, None, None] * g[:, k] + zeta @ g.T
            chance = weights[:, None, None] / zeta.shape[0]
            p, pi = route.probabilities(h, xp), softmax(xp, h)
            mine = (wa * kernels["own"](None, xa, s[:, None], pi[..., None])[0]).sum(axis=-1)
            theirs = (wc * kernels["other"](None, xc, s[:, None], pi[..., None])[0]).sum(axis=-1)
            weigh = p * pi * xp.where(kstar == k, mine, -theirs / (K - 1))
            net, size = net + (chance * weigh).sum(axis=(0, 1)), size + (chance * xp.abs(weigh)).sum(axis=(0, 1))
            push = weigh * s**3
            drift = rho / K * chance * (push - pi * push.sum(axis=-1, keepdims=True))
            along = xp.where(xp.arange(K) == k, nodes[:, None, None], 0.0) + zeta
            dg = dg + xp.einsum("bzm,bzk->mk", drift, along)
        return xp.concatenate([net * speed(xp, xp.abs(net), layer * size), dg.reshape(-1)])

    return {"flow": flow}


def build_group2(xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow` of tier group2; see `reduced_loops.group2_flow`."""

    def flow(t: Any, y: Any, given: Groups) -> Any:
        M, K, rho, layer = given.M, given.K, given.rho, given.layer
        xa, wa, xc, wc = given.xa, given.wa, given.xc, given.wc
        s, gap, mu = y[0], y[1], M // K
        levels = xp.stack([gap, 0.0 * gap])
        nodes, weights = centre_nodes(xp, levels, given)
        h = nodes[:, None] * gap * (xp.arange(M) < mu)
        p, pi = route.probabilities(h, xp), softmax(xp, h)
        mine = (wa * kernels["own"](None, xa, s, pi[:, :1])[0]).sum(axis=-1)
        theirs = (wc * kernels["other"](None, xc, s, pi[:, -1:])[0]).sum(axis=-1)
        inside, outside = p[:, 0] * pi[:, 0] * mine, p[:, -1] * pi[:, -1] * theirs
        net, size = (weights * (inside - outside)).sum(), (weights * (inside + outside)).sum()
        a_in, a_out = inside * s**3, -outside * s**3 / (K - 1)
        total = mu * a_in + (M - mu) * a_out
        moved = (weights * nodes * (a_in - a_out - (pi[:, 0] - pi[:, -1]) * total)).sum()
        return xp.stack([net * speed(xp, xp.abs(net), layer * size), rho / K * moved])

    return {"flow": flow}
