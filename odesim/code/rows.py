"""States of rows that do not act on each other, such as neurons under a correlation loss.

The program of one row is compiled, and the engine executes it for every row (`odesim.code.engine.flow`). It is not
compiled again for another number of rows.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.equations.program import Define, Program
from derivations.statement import Statement, indices_of, key_of


def count_rows(statement: Statement, numbers: Mapping[str, Any]) -> int:
    """Return the number of rows of a state for values of the constants; 1 if the state has no rows."""
    return 1 if statement.rows is None else int(numbers[_size(statement)])


def _size(statement: Statement) -> str:
    """Return the name of the constant that is the number of rows."""
    return str(statement.rows.upper + 1)


def of_one_row(statement: Statement, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the constants for a state of one row; without rows, all values."""
    if statement.rows is None:
        return dict(numbers)
    one = {key_of(c.target) for c in statement.constants if statement.rows in indices_of(c.target)}
    found = {name: value[:1] if name in one else value for name, value in numbers.items()}
    return {**found, _size(statement): 1}


def require_separate(program: Program, summed: bool) -> None:
    """Raise `ValueError` for a program whose rows act on each other, because one row alone would have other rates.

    Only a number for all rows, such as a loss, may be `summed` over them.
    """
    rows = program.statement.rows
    if rows is None:
        return
    for item in program.body:
        if not isinstance(item, Define):
            continue
        others = [i for i in item.domain if i != rows and (i.lower, i.upper) == (rows.lower, rows.upper)]
        if others or (rows in item.over and not summed):
            raise ValueError(f"{program.statement.name}: {item.name} joins entries of {rows}, whose rows are separate")


def constants_of_rows(program: Program) -> frozenset[str]:
    """Return the names of the constants, including those of the set-up, whose first index is that of the rows."""
    rows = program.statement.rows
    axes = {key_of(c.target): indices_of(c.target) for c in program.statement.constants}
    axes |= {item.name: item.axes for item in program.setup if isinstance(item, Define)}
    found = frozenset(name for name, indices in axes.items() if rows in indices)
    assert all(axes[name][0] == rows for name in found), "the index of rows is not the first"
    return found


def with_rows(
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray], own: Mapping[str, int], values: Mapping[str, Any], rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return W, T and N for a number of rows, with the individual numbers of the rows at the end of W.

    `own` has the places where the steps read the individual constants; `odesim.code.engine.flow` copies them there.
    """
    if rows == 1 and not own:
        return arrays
    W, T, N = arrays
    table = [np.reshape(np.asarray(values[name], float), (rows, -1)) for name in own]
    places = [at + np.arange(numbers.shape[1]) for at, numbers in zip(own.values(), table, strict=True)]
    count = sum(numbers.shape[1] for numbers in table)
    head = N.copy()
    head[5:9] = rows, count, T.size, W.size
    flat = np.concatenate([*table, np.empty((rows, 0))], axis=1).ravel()
    T = np.concatenate([T, *places]).astype(np.uint32)
    return np.concatenate([W, flat]), T, head
