"""The right-hand sides as array operations, for NumPy and JAX: the same mathematics, written a second time."""

from collections.abc import Callable, Mapping
from typing import Any

from derivations.chen import route
from derivations.chen.loops import Arguments

Kernels = Mapping[str, Callable[..., tuple[Any, ...]]]


def build_p3(xp: Any, kernels: Kernels) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, given)` and `loss(y, given)` of tier p3; see `loops.p3_drift`."""

    def bank(rows: Any, x: Any, power: Any) -> tuple[Any, Any]:
        """sigma and x sigma' of every filter at every strength, (M, J, K, nodes)."""
        value, slope = kernels["activation"](None, rows[..., None] * x, power)
        return value, x * (slope + 0 * value)

    def both(y: Any, given: Arguments) -> tuple[Any, Any]:
        rho, layer, power, xb = given.rho, given.layer, given.power, given.xb
        feat, cen, gcen, gfeat = split(y, given.M, given.J, given.K)
        a, chance, label, c = grid(xp, given.K, given.xa, given.wa, given.wb, given.xc, given.wc)
        (fa, sa), (fb, sb), (fc, sc) = (bank(*pair, power) for pair in ((feat, a), (cen, xb), (feat, c)))
        h = types(xp, gfeat[..., None] * a, gcen[..., None] * xb, gfeat[..., None] * c)
        f = types(xp, fa.sum(1), fb.sum(1), fc.sum(1))
        norms = xp.sqrt(types(xp, (sa**2).sum(1), (sb**2).sum(1), (sc**2).sum(1)))
        p = route.probabilities(h, xp)
        raised = xp.exp(h - h.max(axis=-1, keepdims=True))
        pi = raised / raised.sum(axis=-1, keepdims=True)
        margin = label * pi * f
        small = xp.exp(-xp.abs(margin))
        q = xp.where(margin > 0, small, 1.0) / (1 + small)
        loss = (chance[..., None] * p * (xp.log1p(small) + xp.maximum(-margin, 0.0))).sum()
        size = chance[..., None] * p * q * pi
        coherent = (size * norms).sum(axis=(0, 1, 2, 3, 4))
        g = size * label
        r = g * f - pi * (g * f).sum(axis=-1, keepdims=True)
        dfeat = xp.einsum("kcabdm,mjka->mjk", g, sa) + xp.einsum("kcabdm,mjcd->mjc", g, sc)
        dcen = xp.einsum("kcabdm,mjkb->mjk", g, sb)
        dgfeat = xp.einsum("kcabdm,a->mk", r, a) + xp.einsum("kcabdm,d->mc", r, c)
        dgcen = xp.einsum("kcabdm,b->mk", r, xb)
        norm = xp.sqrt((dfeat**2 + dcen**2).sum(axis=(1, 2)))
        scale = speed(xp, norm, layer * coherent)[:, None, None]
        parts = (scale * dfeat, scale * dcen, rho * dgcen, rho * dgfeat)
        return xp.concatenate([part.reshape(-1) for part in parts]), loss

    def counts(noisy: bool, y: Any, given: Arguments, laws: tuple[Any, ...]) -> tuple[Any, Any]:
        """The dispatch (K, M) and the accuracy, under the routing noise or by the largest logit."""
        (xa, wa, xb, wb, xc, wc), power = laws, given.power
        feat, cen, gcen, gfeat = split(y, given.M, given.J, given.K)
        a, chance, label, c = grid(xp, given.K, xa, wa, wb, xc, wc)
        f = types(xp, *(bank(rows, x, power)[0].sum(1) for rows, x in ((feat, a), (cen, xb), (feat, c))))
        h = types(xp, gfeat[..., None] * a, gcen[..., None] * xb, gfeat[..., None] * c)
        p = route.probabilities(h, xp) if noisy else xp.eye(given.M)[h.argmax(axis=-1)]
        weight = chance[..., None] * p
        return weight.sum(axis=(1, 2, 3, 4)), (weight * (label * f > 0)).sum()

    def watch(y: Any, given: Arguments) -> Any:
        coarse = (given.xa, given.wa, given.xb, given.wb, given.xc, given.wc)
        fine = (given.fa, given.va, given.fb, given.vb, given.fc, given.vc)
        noisy, right = counts(True, y, given, coarse)
        sure, sure_right = counts(False, y, given, fine)
        scalars = xp.stack([entropy(xp, sure), sure_right, entropy(xp, noisy), right])
        return xp.concatenate([noisy.sum(axis=0), scalars, noisy.reshape(-1)])

    return {
        "flow": lambda t, y, given: both(y, given)[0],
        "loss": lambda y, given: both(y, given)[1],
        "watch": watch,
    }


def grid(xp: Any, K: int, xa: Any, wa: Any, wb: Any, xc: Any, wc: Any) -> tuple[Any, Any, Any, Any]:
    """(+-alpha, probability of every type (K, K', A, B, C), label along A, +-gamma)."""
    a, c = xp.concatenate([xa, -xa]), xp.concatenate([xc, -xc])
    va, vc = xp.concatenate([wa, wa]) / 2, xp.concatenate([wc, wc]) / 2
    apart = (1 - xp.eye(K)) / (K * (K - 1))
    chance = apart[:, :, None, None, None] * (va[:, None, None] * wb[:, None] * vc)
    label = xp.where(xp.arange(a.shape[0]) < xa.shape[0], 1.0, -1.0)[:, None, None, None]
    return a, chance, label, c


def types(xp: Any, first: Any, second: Any, third: Any) -> Any:
    """The sum of three tables (M, K, nodes) over all example types, (K, K', A, B, C, M)."""
    a, b, c = (xp.moveaxis(table, 0, -1) for table in (first, second, third))
    return a[:, None, :, None, None] + b[:, None, None, :, None] + c[None, :, None, None, :]


def entropy(xp: Any, counts: Any) -> Any:
    """Dispatch entropy of probabilities (K, M)."""
    share = counts / xp.where(counts.sum(axis=0) > 0, counts.sum(axis=0), 1.0)
    return -(counts * xp.log(xp.where(share > 0, share, 1.0))).sum()


def speed(xp: Any, norm: Any, width: Any) -> Any:
    """1/max(norm, width), and 0 where both vanish."""
    largest = xp.maximum(norm, width)
    return xp.where(largest > 0, 1.0, 0.0) / xp.where(largest > 0, largest, 1.0)


def split(y: Any, M: int, J: int, K: int) -> tuple[Any, Any, Any, Any]:
    """feat, cen (M, J, K), gcen, gfeat (M, K) of a flat state."""
    size, router = M * J * K, M * K
    return (
        y[:size].reshape(M, J, K),
        y[size : 2 * size].reshape(M, J, K),
        y[2 * size : 2 * size + router].reshape(M, K),
        y[2 * size + router :].reshape(M, K),
    )
