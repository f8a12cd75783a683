"""Velocities in the equations of motion, for a momentum with a time tau: dv/dt = (g - v)/tau, du/dt = -eta v.

    d(v_a . b)/dt   = (E[c_a x] . b + lambda u_a . b - v_a . b)/tau + the motion of b
    d(v_a . v_b)/dt = (D_a v_b + D_b v_a - 2 v_a . v_b)/tau + E[c_a c_b]/(B tau^2)
    D_a v           = E[c_a x] . v + lambda u_a . v
    d(u_a . b)/dt   = -eta_a v_a . b + the motion of b,   d v_s/dt = (E[dl/ds] - v_s)/tau,   ds/dt = -eta_s v_s

A step of SGD moves u by eta/d times v, which has no additional noise, so that u . u has no term of second order. A flow
has no noise at all. E[c_a x] = sum_r C_ar u_r has the product sum_r C_ar u_r . v_b with a velocity.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from derivations.declare import episode_motion, second_order, velocity_blocks
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.declaration import Declaration
from derivations.statement import Base, Definition, Equation, Named, sp

if TYPE_CHECKING:
    from derivations.declare.motion import Motion

INFINITE = (-float("inf"), float("inf"))
BETA, TIME, DECAY, BATCH = sp.symbols("momentum momentum_time decay batch")


def acceleration(declared: Declaration) -> Any:
    """The factor of all rates for a constant momentum beta: that of the step, 1/(1 - beta)."""
    return 1 if declared.momentum is None or declared.inertial else 1 / (1 - BETA)


def constants(declared: Declaration) -> tuple[Named, ...]:
    """The number of the momentum as a constant."""
    if declared.momentum is None:
        return ()
    return (Named(TIME, "time of momentum") if declared.timed else Named(BETA, "momentum beta"),)


def state(symbols: Algebra) -> Iterator[Named]:
    """The velocities, after readouts and biases."""
    at, blocks = symbols.rows, {block.name: block for block in symbols.rows.velocities}
    numbers = {velocity_blocks.push_name(at, g, word): (g, word) for g, word, _ in velocity_blocks.pushes(at)}
    for name, dims, text in velocity_blocks.described(at):
        same, groups = False, [numbers[name][0]] if name in numbers else []
        if name in blocks:
            same, groups = blocks[name].symmetric, [blocks[name].first[0], blocks[name].second[0]]
        target = Base(name)[tuple(symbols.index(role, g) for role, g in zip("ij", groups, strict=False))]
        yield Named(target, text, dims=dims, bounds=INFINITE, symbol=name, symmetric=same)


def _name(symbols: Algebra, letter: str, one: Vector, two: Vector) -> str:
    """The name of the overlaps of the velocities of `one` with `two`."""
    found = (b for b in symbols.rows.velocities if (b.letter, b.first, b.second) == (letter, tuple(one), tuple(two)))
    return next(found).name


def product(symbols: Algebra, one: Vector, i: Any, two: Vector, j: Any) -> Any:
    """v_i . u_j of a velocity and a vector of students or teachers."""
    return Base(_name(symbols, "VQ" if symbols.is_student(two.group) else "VM", one, two))[i, j]


def square(symbols: Algebra, one: Vector, i: Any, two: Vector, j: Any) -> Any:
    """v_i . v_j of two velocities; each unordered pair of slots is stored once."""
    if symbols.vectors.index(one) > symbols.vectors.index(two):
        one, i, two, j = two, j, one, i
    return Base(_name(symbols, "VV", one, two))[i, j]


def push(symbols: Algebra, number: int, word: str, i: Any) -> Any:
    """The velocity of a number of unit i: of its readout "a", or of a bias."""
    return Base(velocity_blocks.push_name(symbols.rows, number, word))[i]


def pace(motion: "Motion", number: int, word: str, i: Any) -> Any:
    """Return the rate of a number of unit i over its step factor: its velocity, or the slope of the loss."""
    return push(motion.algebra, number, word, i) if motion.declared.timed else motion.slope(number, word, i)


def _pairs(symbols: Algebra) -> Iterator[tuple[Vector, Vector]]:
    moving = [one for one in symbols.vectors if symbols.moves(one)]
    yield from ((one, two) for one in moving for two in moving)


def seen(motion: "Motion", one: Vector, i: Any, two: Vector, j: Any) -> Any:
    """E[c_i x] . v_j, the inner product of the mean gradient of u_i with the velocity of u_j."""
    return Base(f"D_{_name(motion.algebra, 'VQ', two, one)}")[i, j]


def definitions(motion: "Motion") -> Iterator[Definition]:
    """The inner products of the mean gradients with velocities."""
    if not motion.declared.inertial:
        return
    symbols = motion.algebra
    for one, two in _pairs(symbols):
        i, j, found = symbols.index("i", one.group), symbols.index("j", two.group), sp.Integer(0)
        for other in symbols.vectors:
            r = symbols.index("r", other.group)
            if motion.pulled(one, i, other, r) != 0:
                found += sp.Sum(motion.pull(one, i, other, r) * product(symbols, two, j, other, r), r)
        yield Definition((seen(motion, one, i, two, j),), found, "E[c_i x] . v_j, v a velocity")


def equations(motion: "Motion") -> Iterator[Equation]:
    """The motion of all velocities."""
    if not motion.declared.timed:
        return
    symbols = motion.algebra
    for block in symbols.rows.velocities:
        one, two = Vector(*block.first), Vector(*block.second)
        i, j = symbols.index("i", one.group), symbols.index("j", two.group)
        if block.letter == "VV":
            yield Equation(square(symbols, one, i, two, j), _square_rate(motion, one, i, two, j))
            continue
        here = product(symbols, one, i, two, j)
        rate = (motion.drift(one, i, two, j) + DECAY * symbols.overlap(one, i, two, j) - here) / TIME
        if symbols.moves(two):
            rate -= motion.rate(two.group, two.slot) * square(symbols, one, i, two, j)
        yield Equation(here, rate)
    for number, word, _ in velocity_blocks.pushes(symbols.rows):
        i = symbols.index("i", number)
        here = push(symbols, number, word, i)
        yield Equation(here, (motion.slope(number, word, i) - here) / TIME)


def _square_rate(motion: "Motion", one: Vector, i: Any, two: Vector, j: Any) -> Any:
    """The rate of v_i . v_j, with the noise of batches in an online limit."""
    symbols = motion.algebra
    rate = seen(motion, one, i, two, j) + DECAY * product(symbols, two, j, one, i)
    rate += seen(motion, two, j, one, i) + DECAY * product(symbols, one, i, two, j)
    rate = (rate - 2 * square(symbols, one, i, two, j)) / TIME
    if motion.second:
        rate += second_order.entry(symbols, one, i, two, j) / (BATCH * episode_motion.step(motion.declared) * TIME**2)
    return rate
