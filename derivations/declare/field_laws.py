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
    for schedule in schedules:
        yield from memory_equations.values(symbols, schedule)
    yield from _spreads(symbols)
    yield from _centres(symbols)
    yield from _norms(symbols)


def _spreads(symbols: Algebra) -> Iterator[Definition]:
    """Yield the covariances of the fields, if the inputs have eigenvalues."""
    if symbols.declared.inputs is None:
        return
    for n, first in enumerate(symbols.seen):
        for second in symbols.seen[n:]:
            i, j = symbols.index("i", first.group), symbols.index("j", second.group)
            value = symbols.over_spaces(symbols.eigenvalue * symbols.overlap(first, i, second, j))
            yield Definition((symbols.spread(first, i, second, j),), value, "covariances of the fields")


def _centres(symbols: Algebra) -> Iterator[Definition]:
    """Yield the means of the fields, if clusters have means."""
    mean = symbols.mean
    if mean is None:
        return
    for vector in symbols.seen:
        i, k = symbols.index("i", vector.group), symbols.index("r", mean.group)
        value = sp.Sum(symbols.mean_weight(k) * symbols.product(vector, i, mean, k), k)
        yield Definition((symbols.centre(vector, i),), value, "means of the fields")


def _norms(symbols: Algebra) -> Iterator[Definition]:
    for vector in symbols.vectors:
        i = symbols.index("i", vector.group)
        if symbols.norm(vector, i) != 1:
            yield Definition((symbols.norm(vector, i),), sp.sqrt(symbols.product(vector, i, vector, i)), "norm")
            if not symbols.declared.several:
                value = symbols.weight(vector.group, i) / symbols.norm(vector, i)
                yield Definition((symbols.scaled_weight(vector, i),), value, "weight over norm")
