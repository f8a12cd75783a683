"""Memories and state-dependent values in the equations of motion, as expressions of SymPy."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from derivations.contract import UsageError
from derivations.declare import episode_motion, memory, schedule_equations, second_order
from derivations.declare.algebra import Algebra, Vector
from derivations.declare.grammar import entry
from derivations.declare.schedules import Schedule
from derivations.statement import Base, Definition, Equation, sp

if TYPE_CHECKING:
    from derivations.declare.motion import Motion


def seen(symbols: Algebra, expression: Any) -> Any:
    """Replace the names of entries and means of order parameters in an expression."""
    places = {}
    for symbol in expression.free_symbols:
        parsed = entry(symbol.name)
        if parsed is not None:
            places[symbol] = _entry(symbols, *parsed)
    return expression.xreplace(places)


UNDEFINED = sp.Symbol("undefined")
"""Constant NaN, which a value below 0 becomes, so that a run ends there."""


def values(symbols: Algebra, schedule: Schedule) -> Iterator[Definition]:
    """Return the value of a schedule; a state-dependent value is NaN if it is below 0.

    Other values are checked before a run begins.
    """
    value = seen(symbols, schedule_equations.expression(schedule))
    if schedule.seen:
        unchecked = sp.Symbol(f"unchecked_{schedule.name}")
        yield Definition((unchecked,), value, schedule.text)
        value = sp.Piecewise((unchecked, unchecked >= 0), (UNDEFINED, True))
    yield Definition((sp.Symbol(schedule.name),), value, schedule.text)


def _entry(symbols: Algebra, name: str, indices: tuple[int, ...]) -> Any:
    """An entry (indices from 1) or the mean of an order parameter, over all eigenspaces if none is named."""
    for first, second in symbols.moving():
        if symbols.label(first, second) == name:
            *block, i, j = [sp.Integer(k - 1) for k in indices] or [None, None]
            if block:
                return Base(name)[(*block, i, j)]
            if indices:
                return symbols.product(first, i, second, j)
            i, j = symbols.index("k", first.group), symbols.index("l", second.group)
            total = sp.Sum(symbols.product(first, i, second, j), i, j)
            return total / symbols.size(first.group) / symbols.size(second.group)
    for number, word, _ in symbols.rows.scalars:
        if symbols.declared.students[number].named(word) == name:
            if indices:
                return symbols.number(number, word, sp.Integer(indices[0] - 1))
            i = symbols.index("k", number)
            return sp.Sum(symbols.number(number, word, i), i) / symbols.size(number)
    raise UsageError(f"{name} is not an order parameter that changes")


def equations(motion: "Motion") -> Iterator[Equation]:
    """Return the rates of memories; those with the second-order term of an online limit are added later, with this
    term.
    """
    if motion.declared.limit == "online" and not motion.second:
        return
    yield from rates(motion, square)


def rates(motion: "Motion", square: Callable[["Motion", str], Any]) -> Iterator[Equation]:
    """The rates of memories, with the squared gradients that `square` gives by name."""
    gradients = memory.of_squares(motion.declared)
    for memory_variable in motion.declared.memories:
        rate = seen(motion.algebra, schedule_equations.symbolic(memory_variable.rate))
        places = {sp.Symbol(name): square(motion, name) for name in memory_variable.seen if name in gradients}
        yield Equation(sp.Symbol(memory_variable.name), rate.xreplace(places))


def square(motion: "Motion", name: str) -> Any:
    """The sum of squared gradients of some vectors: sum_i E[c_i^2]/B in an online limit, else sum_i |E[c_i x]|^2."""
    symbols, total = motion.algebra, sp.Integer(0)
    for number, slot in memory.vectors_of(motion.declared, name):
        first = Vector(number, slot)
        i = symbols.index("i", number)
        if motion.declared.limit == "online":
            square = symbols.eigenvalue * second_order.entry(symbols, first, i, first, i)
            value = symbols.share * symbols.over_clusters(square) / symbols.norm(first, i) ** 2
            total += sp.Sum(symbols.over_spaces(value), i) / (
                sp.Symbol("batch") * episode_motion.step(symbols.declared)
            )
            continue
        for second in symbols.vectors:
            j = symbols.index("r", second.group)
            if motion.pulled(first, i, second, j) != 0:
                total += sp.Sum(motion.gradient(first, i, second, j) * motion.drift(first, i, second, j), i, j)
    return total
