"""The same right-hand sides with an output per class as array operations, for NumPy and JAX."""

from collections.abc import Callable, Mapping
from typing import Any

from derivations.pmoe.arrays import averaged, metric_of, shares
from derivations.pmoe.loops import Arguments

Kernels = Mapping[str, Callable[..., tuple[Any, ...]]]


def pushes(xp: Any, outputs: Any, label: Any) -> tuple[Any, Any, Any]:
    """(1(y = i) - softmax_i (c, C), the least f_y - f_j (C,), the loss (C,)) of outputs (c, C) and labels from 1."""
    own = xp.arange(outputs.shape[0])[:, None] + 1 == label
    mine = xp.where(own, outputs, 0.0).sum(axis=0)
    gap = xp.where(own, -xp.inf, outputs - mine)
    top = xp.maximum(gap.max(axis=0), 0.0)
    raised = xp.exp(gap - top)
    rest = raised.sum(axis=0)
    push = xp.where(own, rest, -raised) / (rest + xp.exp(-top))
    return push, -gap.max(axis=0), top + xp.log1p(rest + xp.expm1(-top))


def observables(xp: Any, phi: Any, g: Any, p: Arguments) -> Any:
    """error, assumption 4.4, v (classes), the routed copies (k, P), P(o_a routed by s | class a) (classes, k), flat."""
    classes, counts, label, weight = phi.shape[1], p.counts, p.label, p.weight
    routed, share = shares(xp, g, counts, p.l, p.gate, p.width)
    push, ahead, _ = pushes(xp, xp.einsum("scz,siz->ic", share, phi) / p.l, label)
    member = (xp.arange(classes)[:, None] + 1 == label) + 0.0
    mass = member @ weight
    mass = xp.where(mass > 0, mass, 1.0)
    gates = share / xp.where(routed > 0, routed, 1.0)
    asked = member.T * (counts[:, :classes] > 0)
    there = (routed[:, :, :classes] > 0) + 0.0
    good = (there > 0) & (gates[:, :, :classes] >= gates.max(axis=-1)[:, :, None])
    best = (good | (asked[None] == 0)).all(axis=1).any(axis=0).all()
    accuracy = xp.einsum("sci,ci,c->is", there, asked, weight) / mass[:, None]
    head = xp.stack([(weight * (ahead <= 0)).sum(), best + 0.0])
    v = (member * push) @ weight / mass
    return xp.concatenate([head, v, xp.einsum("scz,c->sz", routed, weight).reshape(-1), accuracy.reshape(-1)])


def build(level: str, xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow`, `loss` and `watch` of a level "l0", "l1" or "l2"."""

    def drives(g: Any, phi: Any, p: Arguments) -> Any:
        share = shares(xp, g, p.counts, p.l, p.gate, p.width)[1]
        means = xp.einsum("scz,siz->sic", share, phi)
        push, _, cost = pushes(xp, means.sum(axis=0) / p.l, p.label)
        push = push * p.weight / p.l
        c = xp.einsum("ic,scz->siz", push, share)
        mean = xp.einsum("sic,ic,scz->sz", means, push, share)
        return c, (c * phi).sum(axis=1) - mean, (p.weight * cost).sum()

    def parts(y: Any, p: Arguments) -> tuple[Any, Any, Any]:
        """(moving part, response, route)."""
        if level == "l0":
            size = p.k * p.M * p.P
            pre = y[:size].reshape(p.k, p.M, p.P)
            return pre, xp.einsum("smi,smz->siz", p.held, xp.maximum(pre, 0.0)), y[size:].reshape(p.k, p.P)
        size = p.k * p.classes * p.P
        phi = y[:size].reshape(p.k, p.classes, p.P)
        return phi, phi, y[size:].reshape(p.k, p.P)

    def both(y: Any, p: Arguments) -> Any:
        moving, phi, g = parts(y, p)
        c, d, loss = averaged(drives, g, phi, p)
        if level == "l0":
            push = xp.einsum("smi,siz->smz", p.held, c) / (p.k * p.M)
            change = xp.where(moving >= 0, push, 0.0) @ p.gram
        elif level == "l1":
            change = xp.einsum("sijzw,sjw->siz", p.held, c)
        else:
            change = c @ metric_of(xp, kernels, p.k, p.gram)
        return xp.concatenate([change.reshape(-1), (p.lam * d @ p.gram).reshape(-1)]), loss

    def watch(y: Any, p: Arguments) -> Any:
        _, phi, g = parts(y, p)
        return observables(xp, phi, g, p)

    return {"flow": lambda t, y, p: both(y, p)[0], "loss": lambda y, p: both(y, p)[1], "watch": watch}
