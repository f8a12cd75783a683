"""The same right-hand sides with an output per class as array operations, for NumPy and JAX."""

from collections.abc import Callable, Mapping
from typing import Any

from derivations.pmoe.arrays import metric_of, shares

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


def observables(
    xp: Any,
    phi: Any,
    g: Any,
    l: int,  # noqa: E741
    gate: int,
    width: Any,
    counts: Any,
    label: Any,
    weight: Any,
) -> Any:
    """error, assumption 4.4, v (classes), the routed copies (k, P), P(o_a routed by s | class a) (classes, k), flat."""
    classes = phi.shape[1]
    routed, share = shares(xp, g, counts, l, gate, width)
    push, ahead, _ = pushes(xp, xp.einsum("scz,siz->ic", share, phi) / l, label)
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

    def drives(g: Any, phi: Any, l: int, gate: int, width: Any, counts: Any, label: Any, weight: Any) -> Any:  # noqa: E741
        share = shares(xp, g, counts, l, gate, width)[1]
        means = xp.einsum("scz,siz->sic", share, phi)
        push, _, cost = pushes(xp, means.sum(axis=0) / l, label)
        push = push * weight / l
        c = xp.einsum("ic,scz->siz", push, share)
        mean = xp.einsum("sic,ic,scz->sz", means, push, share)
        return c, (c * phi).sum(axis=1) - mean, (weight * cost).sum()

    def averaged(g: Any, phi: Any, l: int, gate: int, width: Any, jitter: Any, *rows: Any) -> Any:  # noqa: E741
        found = [drives(g + jitter[r], phi, l, gate, width, *rows) for r in range(jitter.shape[0])]
        return tuple(sum(part) / len(found) for part in zip(*found, strict=True))

    def parts(y: Any, k: int, *arguments: Any) -> tuple[Any, Any, Any, Any]:
        """(moving part, response, route, the other arguments from l on)."""
        if level == "l0":
            M, classes, P, *rest = arguments
            pre, out = y[: k * M * P].reshape(k, M, P), rest[6]
            phi = xp.einsum("smi,smz->siz", out, xp.maximum(pre, 0.0))
            return pre, phi, y[k * M * P :].reshape(k, P), rest
        classes, P, *rest = arguments
        phi = y[: k * classes * P].reshape(k, classes, P)
        return phi, phi, y[k * classes * P :].reshape(k, P), rest

    def both(y: Any, k: int, *arguments: Any) -> Any:
        moving, phi, g, rest = parts(y, k, *arguments)
        l, gate, lam, width, jitter, gram, *rest = rest  # noqa: E741
        c, d, loss = averaged(g, phi, l, gate, width, jitter, *rest[-3:])
        if level == "l0":
            out = rest[0]
            push = xp.einsum("smi,siz->smz", out, c) / (out.shape[0] * out.shape[1])
            change = xp.where(moving >= 0, push, 0.0) @ gram
        elif level == "l1":
            change = xp.einsum("sijzw,sjw->siz", rest[0], c)
        else:
            change = c @ metric_of(xp, kernels, k, gram)
        return xp.concatenate([change.reshape(-1), (lam * d @ gram).reshape(-1)]), loss

    def watch(y: Any, k: int, *arguments: Any) -> Any:
        _, phi, g, rest = parts(y, k, *arguments)
        l, gate, width, (counts, label, weight) = rest[0], rest[1], rest[3], rest[-3:]  # noqa: E741
        return observables(xp, phi, g, l, gate, width, counts, label, weight)

    return {
        "flow": lambda t, y, *arguments: both(y, *arguments)[0],
        "loss": lambda y, *arguments: both(y, *arguments)[1],
        "watch": watch,
    }
