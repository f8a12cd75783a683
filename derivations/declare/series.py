"""The series that generated programs look up: S_ab(rho) of gates at unit variance, and their means."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.declare import grammar
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels, values
from derivations.lanes import Series, folded

if TYPE_CHECKING:
    from hermite.correlation import CorrelationTable

TOLERANCE = 1e-13
"""Of every S_ab on [-1, 1], relative to its largest value."""
Entries = tuple[tuple[str, str, int, str, str, int], ...]
FIRST, LARGEST = 65, 1200
"""Orders of the expansions tried."""


@functools.lru_cache(maxsize=32)
def tables(declared: Declaration, found: Kernels, numbers: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Series (programs, columns, terms) and means (programs, entries), filled up with zeros."""
    known = values(declared, numbers)
    series = [_table(entries, known).coefficients if entries else np.zeros((0, 0)) for entries in found.pairs]
    width, terms = max((t.shape[0] for t in series), default=0), max((t.shape[1] for t in series), default=0)
    filled = np.zeros((len(series), max(width, 1), max(terms, 1)))
    for k, table in enumerate(series):
        filled[k, : table.shape[0], : table.shape[1]] = table
    means = np.zeros((len(found.means), max([len(entries) for entries in found.means] + [1])))
    for k, entries in enumerate(found.means):
        for i, (kind, slope, order) in enumerate(entries):
            size = grammar.number(grammar.read(slope), known)
            means[k, i] = _expansion(kind, size, FIRST).derivative_means[order]
    return filled, means


@functools.lru_cache(maxsize=32)
def lookups(declared: Declaration, found: Kernels, numbers: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The series of the functions in lanes: (functions, levels, rows, 2 + terms), and `reach` (functions, 2, levels).

    A row is shift, odd, then its terms in rho^2, as `derivations.lanes.correlations` takes them; the last level of a
    function with fewer is repeated.
    """
    known = values(declared, numbers)
    each: list[Series | None] = [None] * len(found.lanes)
    for k, one in enumerate(found.lanes):
        if one.rows == 0:
            continue
        table = _table(found.pairs[one.program], known)
        dense, odd = table.coefficients, [mark == 1 for mark in table.parity]
        if one.split:
            dense, odd = np.repeat(dense, 2, axis=0), [False, True] * len(dense)
            dense[0::2, 1::2], dense[1::2, 0::2] = 0.0, 0.0
        elif -1 in table.parity:
            raise AssertionError(f"a series of {found.pairs[one.program][0]} is neither even nor odd")
        each[k] = folded(dense, odd, TOLERANCE)
    rows = max([one.rows for one in found.lanes] + [1])
    levels, terms = ([table.levels.shape[axis] for table in each if table is not None] for axis in (0, 2))
    looks = np.zeros((len(each), max([*levels, 1]), rows, 2 + max([*terms, 1])))
    reach = np.zeros((len(each), 2, looks.shape[1]))
    for k, table in enumerate(each):
        if table is not None:
            at = np.minimum(np.arange(looks.shape[1]), len(table.levels) - 1)
            own = table.levels[at]
            looks[k, :, : own.shape[1], 0], looks[k, :, : own.shape[1], 1] = table.shift, table.odd
            looks[k, :, : own.shape[1], 2 : 2 + own.shape[2]] = own
            reach[k] = table.reach[:, at]
    return looks, reach


def tilts(declared: Declaration, found: Kernels, numbers: tuple[float, ...]) -> np.ndarray:
    """Factor and slope of every group of erf units (2, groups), empty where the second-order term needs none."""
    known = values(declared, numbers)
    each = [[grammar.number(grammar.read(text), known) for text in group] for group in found.tilts]
    return np.array(each).reshape(-1, 2).T


def bound(declared: Declaration, found: Kernels, numbers: tuple[float, ...]) -> tuple[float, int]:
    """(worst bound, most terms) of all series of a declaration: the error on [-1, 1] over the largest value or 1.

    Source: Cauchy-Schwarz and Parseval (`hermite.correlation`).
    """
    known = values(declared, numbers)
    tables = [_table(entries, known) for entries in found.pairs if entries]
    worst = [
        float(error) / table.correlations.scale(a, b)
        for table in tables
        for (a, b), error in zip(table.pairs, table.truncation, strict=True)
    ]
    return max(worst, default=0.0), max((table.coefficients.shape[1] for table in tables), default=0)


def _table(entries: Entries, known: dict[str, float]) -> "CorrelationTable":
    """The series of one program, all of one pair of gates."""
    _, slope, _, _, steep, _ = entries[0]
    return _made(entries, *(grammar.number(grammar.read(text), known) for text in (slope, steep)))


@functools.lru_cache(maxsize=64)
def _made(entries: Entries, one: float, two: float) -> "CorrelationTable":
    """The series at given slopes, the expansions as long as they need to be."""
    from hermite.correlation import Correlations, NotReached

    kind, _, _, other, _, _ = entries[0]
    wanted = [(a, b) for _, _, a, _, _, b in entries]
    order = FIRST
    while True:
        found = Correlations(_expansion(kind, one, order), _expansion(other, two, order))
        try:
            return found.table(wanted, TOLERANCE)
        except NotReached:
            if order >= LARGEST:
                raise
            order = min(LARGEST, order * 3 // 2)


def _expansion(kind: str, slope: float, order: int) -> Any:
    from hermite import functions

    return functions.NAMES[kind](order, slope)
