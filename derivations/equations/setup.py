"""The set-up of a program: arrays that depend only on the constants of a statement, such as 1/a^2 of norms a."""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from derivations.equations.arrays import Arrays, gauss_nodes
from derivations.equations.interpreter import infinite_tables, symbols_of_tables
from derivations.equations.program import Item, Program, Ranges
from derivations.statement import Statement


def setup(program: Program, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a program and the arrays that depend only on them, by name."""
    return SetUp(program.statement, program.setup, program.reads)(numbers)


class SetUp:
    """The set-up of a program for one set of sizes; it evaluates again only the arrays of a changed constant.

    Many short runs differ only in their start, and their set-up would take longer than their steps. `reads` are the
    names of all arrays that the program uses.
    """

    def __init__(self, statement: Statement, items: tuple[Item, ...], reads: Iterable[str]) -> None:
        self.statement, self.items = statement, items
        self._nodes = gauss_nodes(reads)
        self._known: dict[str, Any] = {}

    def __call__(self, numbers: Mapping[str, Any]) -> dict[str, Any]:
        """The constants and the arrays that depend on them, by name."""
        old = self._known
        same = {name: old[name] for name, value in numbers.items() if name in old and np.array_equal(old[name], value)}
        fresh = set(numbers) - set(same)
        values = {**numbers, **same}
        if not old or fresh & self._tabled:
            tables = infinite_tables(self.statement, numbers)
            values |= tables
            fresh |= tables.keys()
        arrays = Arrays(Ranges(numbers, self.statement.terms), {**old, **self._nodes, **values})
        with np.errstate(all="ignore"):  # in cases of a Piecewise that are not used
            for item in self.items:
                if item.reads & fresh or not item.writes <= old.keys():
                    arrays.run(item)
                    fresh |= item.writes
        self._known = arrays.values
        return dict(arrays.values)

    @functools.cached_property
    def _tabled(self) -> frozenset[str]:
        """The constants that definitions over an infinite index depend on."""
        return symbols_of_tables(self.statement)
