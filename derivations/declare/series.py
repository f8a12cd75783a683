"""Means of gates as power series in the correlation rho: S_ab(rho) of gates at unit variance."""

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.declare import grammar
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels, plain_gate, values

if TYPE_CHECKING:
    from derivations.declare.moments import Tables
    from hermite.correlation import CorrelationTable

TOLERANCE = 1e-13
"""Tolerance of every S_ab on [-1, 1], relative to its largest value."""
Entries = tuple[tuple[str, str, int, str, str, int], ...]
FIRST, LARGEST = 65, 1200
"""Lowest and highest order of the expansions."""


def means_of(tables: "Tables", namespace: dict[str, float]) -> list[float]:
    """The means E[F^(a)(z)] at unit variance of the gates of a program."""
    plain = [plain_gate(gate, order) for gate, order in tables.means]
    sizes = [(kind, grammar.number(grammar.read(slope), namespace), order) for kind, slope, order in plain]
    return [float(_expansion(kind, size, FIRST).derivative_means[order]) for kind, size, order in sizes]


def series_of(tables: "Tables", namespace: dict[str, float]) -> list[dict[str, np.ndarray]]:
    """The power series of all S_ab of a program: one row of coefficients, or one row of even and one of odd terms."""
    if not tables.pairs:
        return []
    entries = tuple((*plain_gate(first, a), *plain_gate(second, b)) for first, a, second, b in tables.pairs)
    table = _table(entries, namespace)
    series = []
    for row, parity in zip(table.coefficients, table.parity, strict=True):
        even, odd = row.copy(), row.copy()
        even[1::2], odd[0::2] = 0.0, 0.0
        series.append({"": row} if parity != -1 else {"even": even, "odd": odd})
    return series


def bound(declared: Declaration, kernels: Kernels, numbers: tuple[float, ...]) -> tuple[float, int]:
    """(worst bound, most terms) of all series of a declaration: the error on [-1, 1] over the largest value or 1.

    Source: Cauchy-Schwarz and Parseval (`hermite.correlation`).
    """
    namespace = values(declared, numbers)
    tables = [_table(entries, namespace) for entries in kernels.pairs if entries]
    worst = [
        float(error) / table.correlations.scale(a, b)
        for table in tables
        for (a, b), error in zip(table.pairs, table.truncation, strict=True)
    ]
    return max(worst, default=0.0), max((table.coefficients.shape[1] for table in tables), default=0)


def _table(entries: Entries, namespace: dict[str, float]) -> "CorrelationTable":
    """The series of one program, all for one pair of gates."""
    _, slope, _, _, steep, _ = entries[0]
    return _made(entries, *(grammar.number(grammar.read(text), namespace) for text in (slope, steep)))


@functools.lru_cache(maxsize=64)
def _made(entries: Entries, first_slope: float, second_slope: float) -> "CorrelationTable":
    """The series at given slopes, with expansions of the necessary length."""
    from hermite.correlation import Correlations, NotReached

    kind, _, _, second_kind, _, _ = entries[0]
    orders = [(a, b) for _, _, a, _, _, b in entries]
    order = FIRST
    while True:
        correlations = Correlations(_expansion(kind, first_slope, order), _expansion(second_kind, second_slope, order))
        try:
            return correlations.table(orders, TOLERANCE)
        except NotReached:
            if order >= LARGEST:
                raise
            order = min(LARGEST, order * 3 // 2)


def _expansion(kind: str, slope: float, order: int) -> Any:
    from hermite import functions

    return functions.NAMES[kind](order, slope)
