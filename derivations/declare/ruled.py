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


def rule(symbols: Algebra, vector: Vector) -> Ruled | None:
    """Return the rule of trained vectors; None if they are trained by the loss."""
    return symbols.shapes[vector.group].rule(vector.slot) if symbols.moves(vector) else None


def own(symbols: Algebra, vector: Vector) -> Ruled | None:
    """Return the rule of vectors if it has its own psi."""
    vector_rule = rule(symbols, vector)
    return (
        vector_rule
        if vector_rule is not None and (vector_rule.value is not None or vector_rule.rewarded is not None)
        else None
    )


def slope(symbols: Algebra, vector: Vector) -> Part:
    """Return psi of vectors: that of a rule, or the derivative of the unit."""
    shape, vector_rule = symbols.shapes[vector.group], own(symbols, vector)
    if vector_rule is not None and vector_rule.value is not None:
        return vector_rule.value
    return shape.slopes[symbols.group(vector).slots.index(vector.slot)]


def front(symbols: Algebra, vector: Vector, i: Any) -> Any:
    """Return the factor of c_i: the readout, or that of a rule."""
    vector_rule = rule(symbols, vector)
    if vector_rule is None:
        return symbols.weight(vector.group, i)
    group, places = symbols.group(vector), {}
    for symbol in sp.sympify(vector_rule.front).free_symbols:
        name = symbol.name
        if name == "a":
            places[symbol] = symbols.weight(vector.group, i)
        elif name in symbols.declared.constants(group):
            places[symbol] = Base(group.named(name))[i]
        elif name in group.scalars:
            places[symbol] = symbols.number(vector.group, name, i)
        else:
            places[symbol] = sp.Symbol(name)
    return sp.sympify(vector_rule.front).xreplace(places)


def met(symbols: Algebra, vector: Vector, squared: bool) -> list[int]:
    """Return the groups whose units are in X; for a squared loss both sides, else teachers."""
    vector_rule = rule(symbols, vector)
    kind = vector_rule.met if vector_rule is not None else "error" if squared else "label"
    if kind in ("one", "reward"):
        return []
    return [g for g in symbols.answering if kind == "error" or not symbols.is_student(g)]


def definitions(motion: "Motion") -> Iterator[Definition]:
    """Yield the means with psi, for all vectors whose rules have one."""
    symbols = motion.algebra
    for vector in symbols.vectors:
        vector_rule = own(symbols, vector)
        if vector_rule is not None and vector_rule.rewarded is not None:
            yield from episode_motion.definitions(motion, vector, vector_rule.rewarded)
        if vector_rule is None or vector_rule.value is None:
            continue
        g, i = vector.group, symbols.index("i", vector.group)
        if vector_rule.met == "one":
            means = [
                Mean(f"X_{motion.algebra.pair(g, g, vector.slot + t)}", (bend,))
                for t, bend in zip(symbols.group(vector).slots, vector_rule.bends, strict=True)
            ]
            yield from motion.kernels.definitions((g,), (i,), means, "means over a unit")
            continue
        for h in met(symbols, vector, motion.squared):
            j, shape = symbols.index("j", h), symbols.shapes[h]
            for word, index in (("", j), ("own", i)):
                if word and (g != h or not symbols.gated(g)):
                    continue
                means = [
                    Mean(f"V{word}_{_named(symbols, vector, h, t)}", (vector_rule.value, slope))
                    for t, slope in zip(shape.slots, shape.slopes, strict=True)
                    if not (word and t == vector.slot and symbols.radial)
                ]
                means += [
                    Mean(f"W{word}_{_named(symbols, vector, h, t)}", (bend, shape.value))
                    for t, bend in zip(symbols.group(vector).slots, vector_rule.bends, strict=True)
                    if not (t == vector.slot and symbols.radial)
                ]
                text = "means of a rule and a unit" + (", of a unit with itself" if word else "")
                yield from motion.kernels.definitions((g, h), (i, index), means, text)


def _named(symbols: Algebra, vector: Vector, h: int, slot: str) -> str:
    """The name of an array of a rule's means: of the pair, with its slot and that of the other unit."""
    return f"rule_{symbols.pair(vector.group, h)}_{vector.slot}_{slot}"


def bends(motion: "Motion") -> Iterator[Definition]:
    """Yield front_i E[dpsi_i/dz_t X] of all vectors with rules."""
    symbols = motion.algebra
    for vector in symbols.vectors:
        vector_rule = rule(symbols, vector)
        for slot in symbols.group(vector).slots if vector_rule is not None and vector_rule.rewarded is None else ():
            i = symbols.index("i", vector.group)
            if (value := _bend(motion, vector, slot, i)) != 0:
                text = "slope of a rule, times all interacting units"
                yield Definition((_entry(motion, vector, slot, i),), value, text)


def _entry(motion: "Motion", vector: Vector, slot: str, i: Any) -> Any:
    label = motion.algebra.label(vector, vector)
    return Base(f"bend_{label}_{vector.slot}_{slot}")[(*motion.algebra.of_fields, i)]


def _bend(motion: "Motion", vector: Vector, slot: str, i: Any) -> Any:
    """Return front_i E[dpsi_i/dz_t X] of unit i; 0 if a constraint removes it."""
    symbols, vector_rule, g = motion.algebra, rule(motion.algebra, vector), vector.group
    assert vector_rule is not None
    if slot == vector.slot and symbols.radial:
        return sp.Integer(0)
    total = sp.Integer(0)
    if vector_rule.value is None:
        s, t = sorted((vector.slot, slot), key=symbols.group(vector).slots.index)
        total = motion.total(g, "W", s + t, i, vector)
    elif vector_rule.met == "one":
        total = motion.entry(f"X_{symbols.pair(g, g, vector.slot + slot)}", i)
    else:
        for h in met(symbols, vector, motion.squared):
            k = symbols.index("k", h)
            total += sp.Sum(symbols.weight(h, k) * _mean(motion, "W", vector, h, slot, i, k), k)
    return front(symbols, vector, i) * total


def gradient(motion: "Motion", first: Vector, second: Vector) -> Any:
    """Return C_ij of vectors with a rule."""
    symbols, vector_rule = motion.algebra, rule(motion.algebra, first)
    assert vector_rule is not None
    if vector_rule.rewarded is not None:
        return episode_motion.gradient(motion, first, second, vector_rule.rewarded)
    g, h = first.group, second.group
    i, j = symbols.index("i", g), symbols.index("j", h)
    constrained, product = first == second and symbols.radial, sp.Integer(0)
    if h in met(symbols, first, motion.squared):
        if vector_rule.value is None:
            slots = first.slot + second.slot if g <= h else second.slot + first.slot
            mean = motion.mean("V", g, h, slots, i, j, apart=constrained)
        else:
            mean = _mean(motion, "V", first, h, second.slot, i, j, apart=constrained)
        product = front(symbols, first, i) * symbols.weight(h, j) * mean
    if g != h:
        return product
    if constrained:
        return sp.Piecewise((0, sp.Eq(i, j)), (product, True)) if product != 0 else product
    if _bend(motion, first, second.slot, i) == 0:
        return product
    return product + sp.KroneckerDelta(i, j) * _entry(motion, first, second.slot, i)


def _mean(
    motion: "Motion", letter: str, vector: Vector, h: int, slot: str, i: Any, j: Any, apart: bool = False
) -> Any:  # fmt: skip
    """An entry of an array of a rule's means at unit i of its group and unit j of group h."""
    symbols, name = motion.algebra, _named(motion.algebra, vector, h, slot)
    entry = motion.entry(f"{letter}_{name}", i, j)
    if vector.group != h or apart or not symbols.gated(h):
        return entry
    return sp.Piecewise((motion.entry(f"{letter}own_{name}", i), sp.Eq(i, j)), (entry, True))
