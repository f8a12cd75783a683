"""The same right-hand sides as array operations, for NumPy and JAX: the mathematics, written a second time."""

from collections.abc import Callable, Mapping
from typing import Any

from derivations.pmoe.loops import Arguments

Kernels = Mapping[str, Callable[..., tuple[Any, ...]]]


def hard_share(xp: Any, g: Any, counts: Any, l: int) -> Any:  # noqa: E741
    """n_s(z; x) (k, C, P): the copies left when those of every pattern of larger route value are taken; ties by
    index.
    """
    index = xp.arange(g.shape[-1])
    larger = (g[:, None, :] > g[:, :, None]) | ((g[:, None, :] == g[:, :, None]) & (index[None, :] < index[:, None]))
    above = xp.einsum("szw,cw->scz", larger + 0.0, counts)
    return xp.clip(l - above, 0.0, counts[None])


def soft_share(xp: Any, g: Any, counts: Any, l: int, width: Any) -> Any:  # noqa: E741
    """n_s(z; x) = N sigmoid((g_s - c)/width) (k, C, P), c by 100 bisections so that they sum to l."""
    total = counts.sum(axis=-1)
    reach = width * (xp.log(total) + 40.0)
    low = g.min(axis=-1)[:, None] - reach
    high = g.max(axis=-1)[:, None] + reach

    def share(c: Any) -> Any:
        u = (g[:, None, :] - c[..., None]) / width
        small = xp.exp(-xp.abs(u))
        return counts[None] * xp.where(u > 0, 1.0, small) / (1 + small)

    for _ in range(100):
        c = (low + high) / 2
        more = share(c).sum(axis=-1) > l
        low, high = xp.where(more, c, low), xp.where(more, high, c)
    return xp.where((total <= l)[None, :, None], counts[None], share((low + high) / 2))


def shares(xp: Any, g: Any, counts: Any, l: int, gate: int, width: Any) -> tuple[Any, Any]:  # noqa: E741
    """(n_s, n_s G_s), each (k, C, P); gates from 10 on are those of a soft top-l."""
    routed = soft_share(xp, g, counts, l, width) if gate >= 10 else hard_share(xp, g, counts, l)
    gate = gate % 10
    if gate == 0:
        return routed, routed
    if gate == 2:
        return routed, routed / l
    top = xp.where(routed > 0, g[:, None, :], -xp.inf).max(axis=-1, keepdims=True)
    if gate == 1:
        raised = routed * xp.exp(xp.where(routed > 0, g[:, None, :] - top, 0.0))
        return routed, raised / raised.sum(axis=-1, keepdims=True)
    first = (routed > 0) & (g[:, None, :] == top)
    return routed, first / xp.maximum(first.sum(axis=-1, keepdims=True), 1.0)


def output(xp: Any, kernels: Kernels, share: Any, phi: Any, label: Any, l: int) -> tuple[Any, ...]:  # noqa: E741
    """(logistic cost, its derivative) of every count c, at the margin sum_sz share phi label / l."""
    return kernels["logistic"](None, label * xp.einsum("scz,sz->c", share, phi) / l)


def observables(xp: Any, kernels: Kernels, phi: Any, g: Any, p: Arguments) -> Any:
    """error, v1, v2, assumption 4.4, the routed copies (k, P), and P(o_a routed by s | class a) (2, k), flat."""
    counts, label, weight = p.counts, p.label, p.weight
    routed, share = shares(xp, g, counts, p.l, p.gate, p.width)
    _, v = output(xp, kernels, share, phi, label, p.l)
    margin = label * xp.einsum("scz,sz->c", share, phi)
    member = xp.stack([label > 0, label < 0]) + 0.0
    mass = xp.maximum(member @ weight, 1e-300)
    gates = share / xp.where(routed > 0, routed, 1.0)
    there = xp.stack([(routed[:, :, a] > 0) + 0.0 for a in range(2)], axis=-1)
    asked = member.T * (counts[:, :2] > 0)
    top = gates.max(axis=-1)
    good = xp.stack([(routed[:, :, a] > 0) & (gates[:, :, a] >= top) for a in range(2)], axis=-1)
    best = (good | (asked[None] == 0)).all(axis=1).any(axis=0).all()
    scalars = [(weight * (margin <= 0)).sum(), *((member @ (weight * v)) / mass), best + 0.0]
    accuracy = xp.einsum("scq,cq,c->qs", there, asked, weight) / mass[:, None]
    parts = [xp.stack(scalars), xp.einsum("scz,c->sz", routed, weight).reshape(-1), accuracy.reshape(-1)]
    return xp.concatenate(parts)


def metric_of(xp: Any, kernels: Kernels, k: int, gram: Any) -> Any:
    """K/k (1, P, P), the metric of an expert of infinite width, the cosine of a pattern with itself exactly 1."""
    norm = xp.sqrt(xp.diagonal(gram))
    cosine = xp.where(xp.eye(gram.shape[0]) > 0, 1.0, gram / (norm[:, None] * norm))
    return (gram * kernels["overlap"](None, cosine)[0])[None] / k


def build(level: str, xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow`, `loss` and `watch` of a level "l0", "l1" or "l2"."""

    def drives(g: Any, phi: Any, p: Arguments) -> Any:
        share = shares(xp, g, p.counts, p.l, p.gate, p.width)[1]
        cost, v = output(xp, kernels, share, phi, p.label, p.l)
        push = share * (p.weight * p.label * v / p.l)[None, :, None]
        mean = xp.einsum("scz,sz->sc", share, phi)
        c = push.sum(axis=1)
        return c, c * phi - xp.einsum("scz,sc->sz", push, mean), (p.weight * cost).sum()

    def parts(y: Any, p: Arguments) -> tuple[Any, Any, Any]:
        """(moving part, response, route)."""
        if level == "l0":
            size = p.k * p.M * p.P
            pre = y[:size].reshape(p.k, p.M, p.P)
            return pre, xp.einsum("sm,smz->sz", p.held, xp.maximum(pre, 0.0)), y[size:].reshape(p.k, p.P)
        phi = y[: p.k * p.P].reshape(p.k, p.P)
        return phi, phi, y[p.k * p.P :].reshape(p.k, p.P)

    def both(y: Any, p: Arguments) -> Any:
        moving, phi, g = parts(y, p)
        c, d, loss = averaged(drives, g, phi, p)
        if level == "l0":
            active = xp.where(moving >= 0, c[:, None, :], 0.0)
            change = (p.held / p.held.size)[..., None] * (active @ p.gram)
        else:
            metric = p.held if level == "l1" else metric_of(xp, kernels, p.k, p.gram) * xp.ones((p.k, 1, 1))
            change = xp.einsum("szw,sw->sz", metric, c)
        return xp.concatenate([change.reshape(-1), (p.lam * d @ p.gram).reshape(-1)]), loss

    def watch(y: Any, p: Arguments) -> Any:
        _, phi, g = parts(y, p)
        return observables(xp, kernels, phi, g, p)

    return {"flow": lambda t, y, p: both(y, p)[0], "loss": lambda y, p: both(y, p)[1], "watch": watch}


def averaged(drives: Callable[..., Any], g: Any, phi: Any, p: Arguments) -> tuple[Any, ...]:
    """The drives averaged over the shifts of the route values."""
    found = [drives(g + p.jitter[r], phi, p) for r in range(p.jitter.shape[0])]
    return tuple(sum(part) / len(found) for part in zip(*found, strict=True))
