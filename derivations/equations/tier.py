"""A tier from its statement: state, layout, events, arguments, and generated functions.

The file of a tier has one function `statement(parameters)`; the program integrates `equations_of(statement)`.
"""

import functools
from collections.abc import Mapping
from typing import Any

from derivations.contract import Code, Component, Dense, Equations, Layout, Symmetric, Tier, Upper
from derivations.equations.program import Ranges
from derivations.statement import Named, Statement, Watched, indices_of, key_of


def equations_of(statement: Statement) -> Equations:
    """The equations of a tier, generated from its statement.

    Raises `ValueError` for a statement that is only a page: one without the name of a tier or without observables.
    """
    s = statement
    if not s.tier or s.observables is None:
        raise ValueError(f"{s.name} cannot be run: give the statement a tier and observables")
    return Equations(
        about=Tier(name=s.tier, validity=s.validity, neglects=s.neglects),
        advance=s.advance,
        code=Code(structure=f"{s.name} {s.fingerprint}", statement=lambda: s),
        state=tuple(component(v) for v in s.state),
        layout=layout_of(s, s.sizes),
        arguments=s.arguments,
        begin=s.begin,
        admits=s.admits,
        crossings=s.crossings,
        watched=tuple(component(w) for w in s.watched),
        observables=s.observables,
    )


def layout_of(statement: Statement, numbers: Mapping[str, Any]) -> Layout:
    """The flat state of a statement at given sizes, numbers by the names of their symbols."""
    sizes = tuple((name, value) for name, value in numbers.items() if isinstance(value, int))
    return _layout(statement.state, sizes, statement.rows is not None)


@functools.lru_cache(maxsize=256)
def _layout(state: tuple[Named, ...], sizes: tuple[tuple[str, int], ...], rows: bool) -> Layout:
    ranges = Ranges(dict(sizes), {})
    return Layout(tuple(part(v, ranges, rows) for v in state), rows)


def component(variable: Named | Watched) -> Component:
    """Return the saved component of a state variable, or of an observable."""
    return Component(key_of(variable.target), variable.dims, variable.bounds, variable.symbol, variable.meaning)


def part(variable: Named, ranges: Ranges, rows: bool = False) -> Dense | Upper | Symmetric:
    """Return the layout of a state variable in the flat state, or in one of its rows.

    For a symmetric matrix it is one half, without a diagonal of ones.
    """
    name, shape = key_of(variable.target), tuple(length(i, ranges) for i in indices_of(variable.target)[rows:])
    if variable.unit:
        return Upper(name, shape[0])
    return Symmetric(name, shape[-1], shape[:-2]) if variable.symmetric else Dense(name, shape)


def length(index: Any, ranges: Ranges) -> int:
    """The length of an axis; -1, for the rest of the flat state, if the size of its index is -1."""
    return -1 if ranges.whole(index.upper) == -2 else ranges.end(index)
