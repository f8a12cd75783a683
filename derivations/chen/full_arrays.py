"""The flow with noise patches as array operations, for NumPy and JAX: point by point, as in `full_loops`."""

from collections.abc import Callable
from typing import Any

from derivations.chen import route
from derivations.chen.arrays import Kernels, entropy, grid, speed, split, types
from derivations.chen.full_loops import Arguments


def bank(kernels: Kernels, rows: Any, x: Any, power: Any) -> tuple[Any, Any]:
    """sigma and sigma' of every row at every strength, the strengths last."""
    value, slope = kernels["activation"](None, rows[..., None] * x, power)
    return value, slope + 0 * value


def fields(xp: Any, kernels: Kernels, y: Any, given: Arguments, strength: Any, patches: Any) -> dict[str, Any]:
    """Everything about one point: nodes, logits and outputs (side, K, K', A, 1, C, M), slopes along its patches."""
    M, J, K, power = given.M, given.J, given.K, given.power
    filters, routers = coordinates(xp, y, M, J, K, patches.shape[1])
    feat, cen, gcen, gfeat = split(y[: 2 * K * (M * J + M)], M, J, K)
    one, (xa, xb, xc) = xp.ones(1), strength[:, None]
    a, chance, label, c = grid(xp, K, xa, one, one, xc, one)
    (fa, sa), (fb, sb), (fc, sc) = (bank(kernels, *pair, power) for pair in ((feat, a), (cen, xb), (feat, c)))
    sides = xp.asarray([1.0, -1.0])
    value, slope = bank(kernels, xp.einsum("mjl,pl->mjp", filters, patches), sides, power)
    lifted = (sides * (routers @ patches.sum(axis=0))[:, None]).T[:, None, None, None, None, None]
    extra = value.sum(axis=(1, 2)).T[:, None, None, None, None, None]
    h = types(xp, gfeat[..., None] * a, gcen[..., None] * xb, gfeat[..., None] * c) + lifted
    f = types(xp, fa.sum(1), fb.sum(1), fc.sum(1)) + extra
    return {
        "a": a, "b": xb, "c": c, "chance": chance[..., None] / 2, "label": label, "h": h, "f": f, "slope": slope,
        "sides": sides, "sa": a * sa, "sb": xb * sb, "sc": c * sc,
    }  # fmt: skip


def drifts(xp: Any, kernels: Kernels, y: Any, given: Arguments, strength: Any, patches: Any) -> tuple[Any, ...]:
    """Unnormalised drifts (M, J, L) and (M, L), E|g| (M,) and loss of one point."""
    M, J, K = given.M, given.J, given.K
    z = fields(xp, kernels, y, given, strength, patches)
    h, f, chance, slope = z["h"], z["f"], z["chance"], z["slope"]
    square = types(xp, *((z[name] ** 2).sum(1) for name in ("sa", "sb", "sc")))
    square = square + given.length * (slope**2).sum(axis=(1, 2)).T[:, None, None, None, None, None]
    p = route.probabilities(h, xp)
    raised = xp.exp(h - h.max(axis=-1, keepdims=True))
    pi = raised / raised.sum(axis=-1, keepdims=True)
    margin = z["label"] * pi * f
    small = xp.exp(-xp.abs(margin))
    q = xp.where(margin > 0, small, 1.0) / (1 + small)
    loss = (chance * p * (xp.log1p(small) + xp.maximum(-margin, 0.0))).sum()
    size = chance * p * q * pi
    g = size * z["label"]
    r = g * f - pi * (g * f).sum(axis=-1, keepdims=True)
    along = xp.einsum("skcabdm,s,mjps,pl->mjl", g, z["sides"], slope, patches)
    push = xp.einsum("skcabdm,s,pl->ml", r, z["sides"], patches)
    dfeat = xp.einsum("skcabdm,mjka->mjk", g, z["sa"]) + xp.einsum("skcabdm,mjcd->mjc", g, z["sc"])
    dcen = xp.einsum("skcabdm,mjkb->mjk", g, z["sb"])
    dgfeat = xp.einsum("skcabdm,a->mk", r, z["a"]) + xp.einsum("skcabdm,d->mc", r, z["c"])
    dgcen = xp.einsum("skcabdm,b->mk", r, z["b"])
    signals = xp.concatenate([dfeat, dcen], axis=-1), xp.concatenate([dgfeat, dgcen], axis=-1)
    filters = along + xp.concatenate([signals[0], xp.zeros((M, J, patches.shape[1] - 2 * K))], axis=-1)
    routers = push + xp.concatenate([signals[1], xp.zeros((M, patches.shape[1] - 2 * K))], axis=-1)
    return filters, routers, (size * xp.sqrt(square)).sum(axis=(0, 1, 2, 3, 4, 5)), loss


def build_full(xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow`, `loss` and `watch` of tier full; see `full_loops.full_drift`."""

    def both(y: Any, given: Arguments) -> tuple[Any, Any]:
        def point(strength: Any, noise: Any) -> tuple[Any, ...]:
            return drifts(xp, kernels, y, given, strength, noise)

        K = given.K
        filters, routers, coherent, loss = mean(xp, point, given.strengths, given.patches)
        scale = speed(xp, xp.sqrt((filters**2).sum(axis=(1, 2))), given.layer * coherent)[:, None, None]
        filters, routers = scale * filters, given.rho * routers
        parts = (
            filters[..., :K], filters[..., K : 2 * K], routers[:, K : 2 * K], routers[:, :K], filters[..., 2 * K :],
            routers[:, 2 * K :],
        )  # fmt: skip
        return xp.concatenate([part.reshape(-1) for part in parts]), loss

    def watch(y: Any, given: Arguments) -> Any:
        def point(strength: Any, noise: Any) -> tuple[Any, ...]:
            z = fields(xp, kernels, y, given, strength, noise)
            right = z["label"] * z["f"] > 0
            found = []
            for p in (route.probabilities(z["h"], xp), xp.eye(given.M)[z["h"].argmax(axis=-1)]):
                share = z["chance"] * p
                found += [share.sum(axis=(0, 2, 3, 4, 5)), (share * right).sum()]
            return tuple(found)

        noisy, right, sure, sure_right = mean(xp, point, given.strengths, given.patches)
        scalars = xp.stack([entropy(xp, sure), sure_right, entropy(xp, noisy), right])
        return xp.concatenate([noisy.sum(axis=0), scalars, noisy.reshape(-1)])

    return {
        "flow": lambda t, y, given: both(y, given)[0],
        "loss": lambda y, given: both(y, given)[1],
        "watch": watch,
    }


def mean(xp: Any, function: Callable[..., tuple[Any, ...]], strengths: Any, patches: Any) -> tuple[Any, ...]:
    """The mean of a function's results over the points; JAX takes a few of them at once."""
    if "jax" in xp.__name__:
        import jax

        found = jax.lax.map(lambda each: function(*each), (xp.asarray(strengths), xp.asarray(patches)), batch_size=16)
        return tuple(part.mean(axis=0) for part in found)
    each = [function(*point) for point in zip(strengths, patches, strict=True)]
    return tuple(sum(parts) / len(each) for parts in zip(*each, strict=True))


def coordinates(xp: Any, y: Any, M: int, J: int, K: int, L: int) -> tuple[Any, Any]:
    """filters (M, J, L) and routers (M, L) in the frame [v, c, basis of the residual span] of a flat state."""
    end = 2 * K * (M * J + M)
    feat, cen, gcen, gfeat = split(y[:end], M, J, K)
    rest = y[end:].reshape(M * J + M, L - 2 * K)
    filters = xp.concatenate([feat, cen, rest[: M * J].reshape(M, J, L - 2 * K)], axis=-1)
    return filters, xp.concatenate([gfeat, gcen, rest[M * J :]], axis=-1)
