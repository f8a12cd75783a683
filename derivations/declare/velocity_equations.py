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
    layout, blocks = symbols.rows, {block.name: block for block in symbols.rows.velocities}
    numbers = {velocity_blocks.push_name(layout, g, word): (g, word) for g, word, _ in velocity_blocks.pushes(layout)}
    for name, dims, text in velocity_blocks.described(layout):
        symmetric, groups = False, [numbers[name][0]] if name in numbers else []
        if name in blocks:
            symmetric, groups = blocks[name].symmetric, [blocks[name].first[0], blocks[name].second[0]]
        target = Base(name)[tuple(symbols.index(role, g) for role, g in zip("ij", groups, strict=False))]
        yield Named(target, text, dims=dims, bounds=INFINITE, symbol=name, symmetric=symmetric)


def _name(symbols: Algebra, letter: str, first: Vector, second: Vector) -> str:
    """The name of the overlaps of the velocities of `first` with `second`."""
    matches = (
        b for b in symbols.rows.velocities if (b.letter, b.first, b.second) == (letter, tuple(first), tuple(second))
    )
    return next(matches).name


def product(symbols: Algebra, first: Vector, i: Any, second: Vector, j: Any) -> Any:
    """v_i . u_j of a velocity and a vector of students or teachers."""
    return Base(_name(symbols, "VQ" if symbols.is_student(second.group) else "VM", first, second))[i, j]


def square(symbols: Algebra, first: Vector, i: Any, second: Vector, j: Any) -> Any:
    """v_i . v_j of two velocities; each unordered pair of slots is stored once."""
    if symbols.vectors.index(first) > symbols.vectors.index(second):
        first, i, second, j = second, j, first, i
    return Base(_name(symbols, "VV", first, second))[i, j]


def push(symbols: Algebra, number: int, word: str, i: Any) -> Any:
    """The velocity of a number of unit i: of its readout "a", or of a bias."""
    return Base(velocity_blocks.push_name(symbols.rows, number, word))[i]


def pace(motion: "Motion", number: int, word: str, i: Any) -> Any:
    """Return the rate of a number of unit i over its step factor: its velocity, or the slope of the loss."""
    return push(motion.algebra, number, word, i) if motion.declared.timed else motion.slope(number, word, i)


def _pairs(symbols: Algebra) -> Iterator[tuple[Vector, Vector]]:
    moving = [first for first in symbols.vectors if symbols.moves(first)]
    yield from ((first, second) for first in moving for second in moving)


def seen(motion: "Motion", first: Vector, i: Any, second: Vector, j: Any) -> Any:
    """E[c_i x] . v_j, the inner product of the mean gradient of u_i with the velocity of u_j."""
    return Base(f"D_{_name(motion.algebra, 'VQ', second, first)}")[i, j]


def definitions(motion: "Motion") -> Iterator[Definition]:
    """The inner products of the mean gradients with velocities."""
    if not motion.declared.inertial:
        return
    symbols = motion.algebra
    for first, second in _pairs(symbols):
        i, j, total = symbols.index("i", first.group), symbols.index("j", second.group), sp.Integer(0)
        for third in symbols.vectors:
            r = symbols.index("r", third.group)
            if motion.pulled(first, i, third, r) != 0:
                total += sp.Sum(motion.pull(first, i, third, r) * product(symbols, second, j, third, r), r)
        yield Definition((seen(motion, first, i, second, j),), total, "E[c_i x] . v_j, v a velocity")


def equations(motion: "Motion") -> Iterator[Equation]:
    """The motion of all velocities."""
    if not motion.declared.timed:
        return
    symbols = motion.algebra
    for block in symbols.rows.velocities:
        first, second = Vector(*block.first), Vector(*block.second)
        i, j = symbols.index("i", first.group), symbols.index("j", second.group)
        if block.letter == "VV":
            yield Equation(square(symbols, first, i, second, j), _square_rate(motion, first, i, second, j))
            continue
        overlap = product(symbols, first, i, second, j)
        rate = (motion.drift(first, i, second, j) + DECAY * symbols.overlap(first, i, second, j) - overlap) / TIME
        if symbols.moves(second):
            rate -= motion.rate(second.group, second.slot) * square(symbols, first, i, second, j)
        yield Equation(overlap, rate)
    for number, word, _ in velocity_blocks.pushes(symbols.rows):
        i = symbols.index("i", number)
        overlap = push(symbols, number, word, i)
        yield Equation(overlap, (motion.slope(number, word, i) - overlap) / TIME)


def _square_rate(motion: "Motion", first: Vector, i: Any, second: Vector, j: Any) -> Any:
    """The rate of v_i . v_j, with the noise of batches in an online limit."""
    symbols = motion.algebra
    rate = seen(motion, first, i, second, j) + DECAY * product(symbols, second, j, first, i)
    rate += seen(motion, second, j, first, i) + DECAY * product(symbols, first, i, second, j)
    rate = (rate - 2 * square(symbols, first, i, second, j)) / TIME
    if motion.second:
        rate += second_order.entry(symbols, first, i, second, j) / (
            BATCH * episode_motion.step(motion.declared) * TIME**2
        )
    return rate
