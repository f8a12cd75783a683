"""E[c c^T] of the online limit on arrays, from the generated quadruples or by tilting (erf)."""

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from derivations.declare.arrays import Arguments, Form, View


def second(form: "Form", view: "View", a: "Arguments") -> Any:
    """E[c_a c_b] (S, S) over all pairs of student vectors."""
    if form.found.tilts:
        return _tilted(form, view, a)
    xp = form.xp
    found: dict[tuple[int, int, int, int], Any] = {}
    students, groups = range(form.students), range(len(form.slots))
    for g, h in itertools.combinations_with_replacement(students, 2):
        ai, aj = view.w[form.units(g, a.sizes)], view.w[form.units(h, a.sizes)]
        both = ai[:, None] * aj
        totals: list[Any] = [0.0] * (form.slots[g] * form.slots[h])
        for k, m in itertools.combinations_with_replacement(groups, 2):
            twice = 1.0 if k == m else 2.0
            wk = view.w[form.units(k, a.sizes)] * (a.rates[5] if k < form.students else 1.0)
            wm = view.w[form.units(m, a.sizes)] * (a.rates[5] if m < form.students else 1.0)
            values = form.call(f"quad_{g}_{h}_{k}_{m}", (g, h, k, m), view, a)
            totals = [
                total + twice * (value * wk[:, None] * wm).sum((2, 3))
                for total, value in zip(totals, values, strict=True)
            ]
        noise = form.call(f"pair_{g}_{h}", (g, h), view, a)
        for n, (s, t) in enumerate(itertools.product(range(form.slots[g]), range(form.slots[h]))):
            found[g, s, h, t] = both * (totals[n] + a.rates[4] ** 2 * noise[n])
            if g != h:
                found[h, t, g, s] = found[g, s, h, t].T
    places = [(g, s) for g in students for s in range(form.slots[g])]
    return xp.concatenate([xp.concatenate([found[(*p, *q)] for q in places], axis=1) for p in places], axis=0)


def _tilted(form: "Form", view: "View", a: "Arguments") -> Any:
    """`tilt.tilted` on arrays (students, students, units, units)."""
    xp, K = form.xp, a.moves.shape[0]
    factor, slope = a.tilts
    unit = view.w * factor
    v = xp.concatenate([unit[:K] * a.rates[5], unit[K:]])
    C = 2.0 * slope[:, None] * slope * view.G
    own = 1 + xp.diagonal(C)[:K]
    cross = C[:K, :K]
    det = own[:, None] * own - cross**2
    first, last = C[:K, None, :], C[None, :K, :]
    one = (own[None, :, None] * first - cross[:, :, None] * last) / det[:, :, None]
    two = (own[:, None, None] * last - cross[:, :, None] * first) / det[:, :, None]
    size = 1 / xp.sqrt(1 + xp.diagonal(C) - one * first - two * last)
    inside = C - one[..., :, None] * first[..., None, :] - two[..., :, None] * last[..., None, :]
    angle = xp.arcsin(xp.clip(inside * size[..., :, None] * size[..., None, :], -1.0, 1.0))
    value = a.rates[4] ** 2 + 2 / xp.pi * (v[:, None] * v * angle).sum((2, 3))
    return value * (4 / xp.pi) * slope[:K, None] * slope[:K] / xp.sqrt(det) * unit[:K, None] * unit[:K]
