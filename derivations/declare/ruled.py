"""Effect of rules on the motion of a declared model: factors, interacting groups, and means with their psi.

For a slot whose rule is c_i = front_i psi_i X (`products`), X = sum_k w_k phi_k over the interacting groups,

    C_ir = front_i (sum_k w_k E[psi_i dphi_k/dz_r] + sum_k w_k E[dpsi_i/dz_r phi_k])

and front_i E[dpsi_i/dz_r] where X is 1. If psi is the unit's own derivative, the means are those of the gradient, and
only the factor differs.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from derivations.declare import episode_motion
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.gates import Part, Ruled
from derivations.declare.unit_kernels import Mean
from derivations.statement import Base, Definition, sp

if TYPE_CHECKING:
    from derivations.declare.motion import Motion


def rule(symbols: Algebra, one: Vector) -> Ruled | None:
    """Return the rule of trained vectors; None if they are trained by the loss."""
    return symbols.shapes[one.group].rule(one.slot) if symbols.moves(one) else None


def own(symbols: Algebra, one: Vector) -> Ruled | None:
    """Return the rule of vectors if it has its own psi."""
    found = rule(symbols, one)
    return found if found is not None and (found.value is not None or found.rewarded is not None) else None


def slope(symbols: Algebra, one: Vector) -> Part:
    """Return psi of vectors: that of a rule, or the derivative of the unit."""
    shape, found = symbols.shapes[one.group], own(symbols, one)
    if found is not None and found.value is not None:
        return found.value
    return shape.slopes[symbols.group(one).slots.index(one.slot)]


def front(symbols: Algebra, one: Vector, i: Any) -> Any:
    """Return the factor of c_i: the readout, or that of a rule."""
    found = rule(symbols, one)
    if found is None:
        return symbols.weight(one.group, i)
    group, places = symbols.group(one), {}
    for symbol in sp.sympify(found.front).free_symbols:
        name = symbol.name
        if name == "a":
            places[symbol] = symbols.weight(one.group, i)
        elif name in symbols.declared.constants(group):
            places[symbol] = Base(group.named(name))[i]
        elif name in group.scalars:
            places[symbol] = symbols.number(one.group, name, i)
        else:
            places[symbol] = sp.Symbol(name)
    return sp.sympify(found.front).xreplace(places)


def met(symbols: Algebra, one: Vector, squared: bool) -> list[int]:
    """Return the groups whose units are in X; for a squared loss both sides, else teachers."""
    found = rule(symbols, one)
    kind = found.met if found is not None else "error" if squared else "label"
    if kind in ("one", "reward"):
        return []
    return [g for g in symbols.answering if kind == "error" or not symbols.is_student(g)]


def definitions(motion: "Motion") -> Iterator[Definition]:
    """Yield the means with psi, for all vectors whose rules have one."""
    symbols = motion.algebra
    for one in symbols.vectors:
        found = own(symbols, one)
        if found is not None and found.rewarded is not None:
            yield from episode_motion.definitions(motion, one, found.rewarded)
        if found is None or found.value is None:
            continue
        g, i = one.group, symbols.index("i", one.group)
        if found.met == "one":
            means = [
                Mean(f"X_{motion.algebra.pair(g, g, one.slot + t)}", (bend,))
                for t, bend in zip(symbols.group(one).slots, found.bends, strict=True)
            ]
            yield from motion.kernels.definitions((g,), (i,), means, "means over a unit")
            continue
        for h in met(symbols, one, motion.squared):
            j, two = symbols.index("j", h), symbols.shapes[h]
            for word, other in (("", j), ("own", i)):
                if word and (g != h or not symbols.gated(g)):
                    continue
                means = [
                    Mean(f"V{word}_{_named(symbols, one, h, t)}", (found.value, slope))
                    for t, slope in zip(two.slots, two.slopes, strict=True)
                    if not (word and t == one.slot and symbols.radial)
                ]
                means += [
                    Mean(f"W{word}_{_named(symbols, one, h, t)}", (bend, two.value))
                    for t, bend in zip(symbols.group(one).slots, found.bends, strict=True)
                    if not (t == one.slot and symbols.radial)
                ]
                text = "means of a rule and a unit" + (", of a unit with itself" if word else "")
                yield from motion.kernels.definitions((g, h), (i, other), means, text)


def _named(symbols: Algebra, one: Vector, h: int, slot: str) -> str:
    """The name of an array of a rule's means: of the pair, with its slot and that of the other unit."""
    return f"rule_{symbols.pair(one.group, h)}_{one.slot}_{slot}"


def bends(motion: "Motion") -> Iterator[Definition]:
    """Yield front_i E[dpsi_i/dz_t X] of all vectors with rules."""
    symbols = motion.algebra
    for one in symbols.vectors:
        found = rule(symbols, one)
        for slot in symbols.group(one).slots if found is not None and found.rewarded is None else ():
            i = symbols.index("i", one.group)
            if (value := _bend(motion, one, slot, i)) != 0:
                text = "slope of a rule, times all interacting units"
                yield Definition((_entry(motion, one, slot, i),), value, text)


def _entry(motion: "Motion", one: Vector, slot: str, i: Any) -> Any:
    label = motion.algebra.label(one, one)
    return Base(f"bend_{label}_{one.slot}_{slot}")[(*motion.algebra.of_fields, i)]


def _bend(motion: "Motion", one: Vector, slot: str, i: Any) -> Any:
    """Return front_i E[dpsi_i/dz_t X] of unit i; 0 if a constraint removes it."""
    symbols, found, g = motion.algebra, rule(motion.algebra, one), one.group
    assert found is not None
    if slot == one.slot and symbols.radial:
        return sp.Integer(0)
    total = sp.Integer(0)
    if found.value is None:
        s, t = sorted((one.slot, slot), key=symbols.group(one).slots.index)
        total = motion.total(g, "W", s + t, i, one)
    elif found.met == "one":
        total = motion.entry(f"X_{symbols.pair(g, g, one.slot + slot)}", i)
    else:
        for h in met(symbols, one, motion.squared):
            k = symbols.index("k", h)
            total += sp.Sum(symbols.weight(h, k) * _mean(motion, "W", one, h, slot, i, k), k)
    return front(symbols, one, i) * total


def gradient(motion: "Motion", one: Vector, two: Vector) -> Any:
    """Return C_ij of vectors with a rule."""
    symbols, found = motion.algebra, rule(motion.algebra, one)
    assert found is not None
    if found.rewarded is not None:
        return episode_motion.gradient(motion, one, two, found.rewarded)
    g, h = one.group, two.group
    i, j = symbols.index("i", g), symbols.index("j", h)
    alone, both = one == two and symbols.radial, sp.Integer(0)
    if h in met(symbols, one, motion.squared):
        if found.value is None:
            slots = one.slot + two.slot if g <= h else two.slot + one.slot
            mean = motion.mean("V", g, h, slots, i, j, apart=alone)
        else:
            mean = _mean(motion, "V", one, h, two.slot, i, j, apart=alone)
        both = front(symbols, one, i) * symbols.weight(h, j) * mean
    if g != h:
        return both
    if alone:
        return sp.Piecewise((0, sp.Eq(i, j)), (both, True)) if both != 0 else both
    if _bend(motion, one, two.slot, i) == 0:
        return both
    return both + sp.KroneckerDelta(i, j) * _entry(motion, one, two.slot, i)


def _mean(
    motion: "Motion", letter: str, one: Vector, h: int, slot: str, i: Any, j: Any, apart: bool = False
) -> Any:  # fmt: skip
    """An entry of an array of a rule's means at unit i of its group and unit j of group h."""
    symbols, name = motion.algebra, _named(motion.algebra, one, h, slot)
    entry = motion.entry(f"{letter}_{name}", i, j)
    if one.group != h or apart or not symbols.gated(h):
        return entry
    return sp.Piecewise((motion.entry(f"{letter}own_{name}", i), sp.Eq(i, j)), (entry, True))
