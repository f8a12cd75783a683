"""Definitions that precede all means in equations of motion: time-dependent values, and the distribution of the
fields.
"""

from collections.abc import Iterator, Sequence

from derivations.declare import memory_equations
from derivations.declare.algebra import Algebra
from derivations.declare.schedules import Schedule
from derivations.statement import Definition, sp


def definitions(symbols: Algebra, schedules: Sequence[Schedule]) -> Iterator[Definition]:
    """Yield time-dependent values of training, covariances and means of the fields, and norms by which a network
    divides.
    """
    for one in schedules:
        yield from memory_equations.values(symbols, one)
    yield from _spreads(symbols)
    yield from _centres(symbols)
    yield from _norms(symbols)


def _spreads(symbols: Algebra) -> Iterator[Definition]:
    """Yield the covariances of the fields, if the inputs have eigenvalues."""
    if symbols.declared.inputs is None:
        return
    for n, one in enumerate(symbols.seen):
        for two in symbols.seen[n:]:
            i, j = symbols.index("i", one.group), symbols.index("j", two.group)
            value = symbols.over_spaces(symbols.eigenvalue * symbols.overlap(one, i, two, j))
            yield Definition((symbols.spread(one, i, two, j),), value, "covariances of the fields")


def _centres(symbols: Algebra) -> Iterator[Definition]:
    """Yield the means of the fields, if clusters have means."""
    mean = symbols.mean
    if mean is None:
        return
    for one in symbols.seen:
        i, k = symbols.index("i", one.group), symbols.index("r", mean.group)
        value = sp.Sum(symbols.mean_weight(k) * symbols.product(one, i, mean, k), k)
        yield Definition((symbols.centre(one, i),), value, "means of the fields")


def _norms(symbols: Algebra) -> Iterator[Definition]:
    for one in symbols.vectors:
        i = symbols.index("i", one.group)
        if symbols.norm(one, i) != 1:
            yield Definition((symbols.norm(one, i),), sp.sqrt(symbols.product(one, i, one, i)), "norm")
            if not symbols.declared.several:
                value = symbols.weight(one.group, i) / symbols.norm(one, i)
                yield Definition((symbols.scaled_weight(one, i),), value, "weight over norm")
