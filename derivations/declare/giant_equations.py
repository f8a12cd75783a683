"""Giant steps as equations: the change of every order parameter in one step of the map (`giant`).

A step adds to a trained vector u, and with momentum to its velocity v, a combination of v, u and its mean gradient g,
du = x_v v + x_u u + x_g g, so that

    change of u_a . u_b = du_a . u_b + u_a . du_b + du_a . du_b
    g_a . u_b = D_ab,   g_a . v_b = sum_r C_ar u_r . v_b,   g_a . g_b = sum_r D_ar C_br + E[c_a c_b] d/B

free x_u = -eta decay, x_g = -eta; sphere: x_u = eta D_aa/G_aa in the place of decay, and rows are scaled back to their
norms; momentum beta: v' = beta v + g + decay u, u' = u - eta v', Nesterov u' = u - eta (g + decay u + beta v').
"""

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from derivations.declare import (
    memory,
    memory_equations,
    schedule_equations,
    second_order,
    velocity_blocks,
    velocity_equations,
)
from derivations.declare.algebra import Vector
from derivations.declare.schedules import Schedule
from derivations.statement import Base, Definition, Equation, sp

if TYPE_CHECKING:
    from derivations.declare.motion import Motion

BETA, TIME, DECAY, SHARE = sp.symbols("momentum momentum_time decay batch")
"""Constants of training; the last is B/d here."""
Combination = dict[str, Any]
"""The factors of v, u and g of one vector."""
Unit = tuple[Vector, Any]
"""A vector, and the index of its unit."""


def kept(motion: "Motion") -> tuple[Any, Any]:
    """Return the parts of the velocity and of the gradient in the new velocity."""
    if motion.declared.momentum is None:
        return sp.Integer(0), sp.Integer(1)
    return (1 - 1 / TIME, 1 / TIME) if motion.declared.timed else (BETA, sp.Integer(1))


def _pulled(motion: "Motion", vector: Vector, i: Any) -> Any:
    """The factor of u in the gradient with decay and constraint."""
    factor = sp.Integer(0) if motion.declared.weights == "sphere" else DECAY
    return factor if motion.declared.weights == "free" else factor - motion.along(vector, i)


def pushed(motion: "Motion", vector: Vector, i: Any) -> Combination:
    """Return the change of the velocity of a vector in a step."""
    keep, damp = kept(motion)
    return {"v": keep - 1, "u": damp * _pulled(motion, vector, i), "g": damp}


def moved(motion: "Motion", vector: Vector, i: Any) -> Combination:
    """Return the change of a vector in a step; empty for one that is not trained."""
    if not motion.algebra.moves(vector):
        return {}
    eta, momentum = motion.rate(vector.group, vector.slot), motion.declared.momentum
    keep, damp = kept(motion)
    of_g, of_v = (damp * (1 + keep), keep**2) if momentum is not None and momentum.nesterov else (damp, keep)
    combination = {"u": -eta * of_g * _pulled(motion, vector, i), "g": -eta * of_g}
    return combination if momentum is None else {**combination, "v": -eta * of_v}


def product(motion: "Motion", p: str, first: Unit, q: str, second: Unit) -> Any:
    """Return the inner product of two vectors; `p` and `q` are v for a velocity, u for the vector, g for the mean
    gradient.
    """
    symbols = motion.algebra
    if "vug".index(p) > "vug".index(q):
        return product(motion, q, second, p, first)
    match p + q:
        case "vv":
            return velocity_equations.square(symbols, *first, *second)
        case "vu":
            return velocity_equations.product(symbols, *first, *second)
        case "vg":
            return velocity_equations.seen(motion, *second, *first)
        case "uu":
            return symbols.overlap(*first, *second)
        case "ug":
            return motion.drift(*second, *first)
    return gradients(motion, first, second)


def gradients(motion: "Motion", left: Unit, right: Unit) -> Any:
    """The inner product of two mean gradients, with the noise of the batch."""
    (first, i), (second, j) = left, right
    symbols = motion.algebra
    if symbols.vectors.index(first) > symbols.vectors.index(second):
        (first, i), (second, j) = right, left
    inner_product = _within(motion, first, i, second, j)
    if motion.second:
        norms = symbols.norm(first, i) * symbols.norm(second, j)
        inner_product += second_order.entry(symbols, first, i, second, j) / SHARE / norms
    return inner_product


def _within(motion: "Motion", first: Vector, i: Any, second: Vector, j: Any) -> Any:
    """Return the product of two mean gradients within the span of all vectors; each pair is stored once."""
    return Base(f"Gamma_{motion.algebra.label(first, second)}")[i, j]


def total(motion: "Motion", x: Combination, p: Unit, y: Combination, q: Unit) -> Any:
    """The inner product of two combinations."""
    return sp.Add(*(a * b * product(motion, s, p, t, q) for s, a in x.items() for t, b in y.items()))


def definitions(motion: "Motion") -> Iterator[Definition]:
    """Yield the products of mean gradients within the span, and on the sphere the factors that rescale rows."""
    symbols = motion.algebra
    moving = [first for first in symbols.vectors if symbols.moves(first)]
    for n, first in enumerate(moving):
        for second in moving[n:]:
            i, j, gradient_product = symbols.index("i", first.group), symbols.index("j", second.group), sp.Integer(0)
            for vector in symbols.vectors:
                r = symbols.index("r", vector.group)
                if motion.pulled(second, j, vector, r) != 0:
                    gradient_product += sp.Sum(motion.drift(first, i, vector, r) * motion.pull(second, j, vector, r), r)
            yield Definition((_within(motion, first, i, second, j),), gradient_product, "E[c_i x] . E[c_j x]")
    yield from _settled(motion)
    if motion.declared.weights == "sphere":
        for first in moving:
            i = symbols.index("i", first.group)
            square = symbols.overlap(first, i, first, i)
            value = sp.sqrt(square / (square + _change(motion, (first, i), (first, i))))
            yield Definition((_scale(motion, first, i),), value, "factor that brings a vector back to its norm")


def values_of_memories(motion: "Motion") -> list[Schedule]:
    """Yield the values of training after the memories of a step: all except the noise, if there are memories."""
    if not motion.giant or not motion.declared.memories:
        return []
    return [schedule for schedule in motion.schedules if schedule.name != "noise"]


def _settled(motion: "Motion") -> Iterator[Definition]:
    """The memories after a step, and the values of training at these."""
    new = {}
    for memory_equation in memory_equations.rates(motion, _square) if motion.declared.memories else ():
        new[memory_equation.target] = sp.Symbol(f"new_{memory_equation.target.name}")
        yield Definition(
            (new[memory_equation.target],), memory_equation.target + memory_equation.rate, "memory after the step"
        )
    for schedule in values_of_memories(motion):
        for definition in memory_equations.values(motion.algebra, schedule):
            yield dataclasses.replace(definition, value=definition.value.xreplace(new))


def _square(motion: "Motion", name: str) -> Any:
    """The sum of the squared mean gradients of some vectors, with the noise of the batch."""
    squares = sp.Integer(0)
    for number, slot in memory.vectors_of(motion.declared, name):
        unit = Vector(number, slot), motion.algebra.index("i", number)
        squares += sp.Sum(gradients(motion, unit, unit), unit[1])
    return squares


def _scale(motion: "Motion", vector: Vector, i: Any) -> Any:
    """Return the factor that brings a vector back to its norm; 1 if the norm may change, or the vector is not
    trained.
    """
    if motion.declared.weights != "sphere" or not motion.algebra.moves(vector):
        return sp.Integer(1)
    return Base(f"scale_{motion.algebra.label(vector, vector)}")[i]


def _change(motion: "Motion", first: Unit, second: Unit) -> Any:
    """The change of u_a . u_b before rows are scaled."""
    x, y, unchanged = moved(motion, *first), moved(motion, *second), {"u": sp.Integer(1)}
    return (
        total(motion, x, first, unchanged, second)
        + total(motion, unchanged, first, y, second)
        + total(motion, x, first, y, second)
    )


def equations(motion: "Motion") -> Iterator[Equation]:
    """The change in a step of all overlaps, readouts and biases, velocities, and of the clock."""
    symbols = motion.algebra
    for first, second in symbols.moving():
        left = first, symbols.index("i", first.group)
        right = second, symbols.index("j", second.group)
        scale = _scale(motion, *left) * _scale(motion, *right)
        target = symbols.overlap(*left, *right)
        change = scale * _change(motion, left, right) + (scale - 1) * target
        if change != 0:
            yield Equation(target, change)
    keep, damp = kept(motion)
    nesterov = motion.declared.momentum is not None and motion.declared.momentum.nesterov
    for number in symbols.students:
        i = symbols.index("i", number)
        for word in motion.declared.groups[number].own:
            if motion.declared.moves(motion.declared.groups[number], word):
                slope = damp * motion.slope(number, word, i)
                old = 0 if motion.declared.momentum is None else velocity_equations.push(symbols, number, word, i)
                push = keep * old + slope
                direction = slope + keep * push if nesterov else push
                yield Equation(symbols.number(number, word, i), -motion.rate(number, word) * direction)
    yield from _velocities(motion)
    for memory_of in motion.declared.memories:
        target = sp.Symbol(memory_of.name)
        yield Equation(target, sp.Symbol(f"new_{memory_of.name}") - target)
    if motion.declared.clocked:
        yield Equation(schedule_equations.CLOCK, sp.Integer(1))


def _velocities(motion: "Motion") -> Iterator[Equation]:
    """The change of all velocities in a step."""
    symbols, (keep, damp) = motion.algebra, kept(motion)
    for block in symbols.rows.velocities:
        first, second = Vector(*block.first), Vector(*block.second)
        left, right = (first, symbols.index("i", first.group)), (second, symbols.index("j", second.group))
        x, v, u = pushed(motion, *left), {"v": sp.Integer(1)}, {"u": sp.Integer(1)}
        if block.letter == "VV":
            y, target, second_vector = pushed(motion, *right), velocity_equations.square(symbols, *left, *right), v
        else:
            y, target, second_vector = moved(motion, *right), velocity_equations.product(symbols, *left, *right), u
        change = (
            total(motion, x, left, second_vector, right)
            + total(motion, v, left, y, right)
            + total(motion, x, left, y, right)
        )
        yield Equation(target, change)
    for number, word, _ in velocity_blocks.pushes(symbols.rows):
        i = symbols.index("i", number)
        target = velocity_equations.push(symbols, number, word, i)
        yield Equation(target, (keep - 1) * target + damp * motion.slope(number, word, i))
