"""The series that generated programs look up: S_ab(rho) of gates at unit variance, and their means."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.declare import grammar
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels, values

TOLERANCE = 1e-13
"""Of every S_ab on [-1, 1], relative to its largest value."""
Entries = Sequence[tuple[str, str, int, str, str, int]]
FIRST, LARGEST = 65, 1200
"""Orders of the expansions tried."""


@functools.lru_cache(maxsize=32)
def tables(declared: Declaration, found: Kernels, numbers: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Series (programs, columns, terms) and means (programs, entries), filled up with zeros."""
    known = values(declared, numbers)
    series = [_columns(entries, known) for entries in found.pairs]
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


def _columns(entries: Entries, known: dict[str, float]) -> np.ndarray:
    """The coefficients (columns, terms) of the S_ab of one program, all of one pair of gates."""
    return _table(entries, known).coefficients if entries else np.zeros((0, 0))


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


def _table(entries: Entries, known: dict[str, float]) -> Any:
    """The `CorrelationTable` of one program."""
    from hermite.correlation import Correlations, NotReached

    kind, slope, _, other, steep, _ = entries[0]
    one, two = (grammar.number(grammar.read(text), known) for text in (slope, steep))
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
