"""Where the pairs of a declared model read and where their means belong: tables of indices for the sizes of a run."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from derivations.declare.lanes import Entry, Served, entries
from derivations.declare.rows import Rows
from derivations.lanes import LANES

INDEX = np.uint32
"""Unsigned, which spares numba a test for negative indices, and short, so that tables stay in the cache."""

if TYPE_CHECKING:
    from derivations.declare.kernels import Kernels


def tables(found: "Kernels", at: Rows) -> tuple[np.ndarray, ...]:
    """`cells` (cells, pairs), `spans` (blocks before every function), and where the means Y (mean, pair) belong:

    `units` (2, pairs) of every pair; `first`, the place in Y for every entry of C, one past the last for none; `more`
    (place in C, place in Y) of further terms; `into` (place in R, place in Y, u, v), a unit one past the last for the
    factor 1; `most` (1,), the number of means.

    Of two students a function gives the means of both sides; a teacher that shares it does not move, so that those of
    its side are left where they are.  Lanes that stand by repeat the last pair.
    """
    declared = at.declaration
    blocks, spans, terms, width = [], [0], [], 0
    most = max([len(one.cells) for one in found.lanes], default=0)
    for one in found.lanes:
        columns = []
        for g, h, same in one.kinds:
            i, j = _pairs(at, g, h, same)
            pair = width + sum(c.shape[1] for c in columns) + np.arange(len(i))
            columns.append(_cells(at, one, g, h, i, j))
            terms += [
                term
                for number, entry in enumerate(entries(declared, *one.kinds[0]))
                if h < len(declared.students) or 1 != entry.row[0]
                for term in _terms(at, entry, (g, h), same, (i, j), number, pair)
            ]
        table = np.concatenate(columns, axis=1)
        short = -table.shape[1] % LANES
        table = np.concatenate([table, np.repeat(table[:, -1:], short, axis=1)], axis=1)
        blocks.append(np.pad(table, ((0, most - len(table)), (0, 0))))
        width += table.shape[1]
        spans.append(width // LANES)
    means = max([len(list(entries(declared, *one.kinds[0]))) for one in found.lanes], default=0)
    C = _flat([term for matrix, term in terms if matrix == "C"], at.total, width)
    R = _flat([term for matrix, term in terms if matrix == "R"], max(at.sizes), width)
    return (
        np.ascontiguousarray(np.concatenate([np.zeros((most, 0)), *blocks], axis=1), INDEX),
        np.array(spans, np.int64),
        *(np.ascontiguousarray(table, INDEX) for table in (*_sorted(C, at.students * at.total, means, width), R)),
        np.array([means], np.int64),
    )


def _flat(terms: list[np.ndarray], columns: int, width: int) -> np.ndarray:
    """(place in the target, place in Y, u, v) of all terms (row, column, mean, pair, u, v)."""
    row, column, mean, pair, u, v = np.concatenate([np.zeros((6, 0), np.int64), *terms], axis=1)
    return np.array([row * columns + column, mean * width + pair, u, v])


def _sorted(terms: np.ndarray, size: int, means: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`units`, `first` and `more` of the terms (place in C, place in Y, u, v) of a C of some size."""
    units, first = np.zeros((2, width), np.int64), np.full(size, means * width)
    units[:, terms[1] % width] = terms[2:]
    filled, at = np.unique(terms[0], return_index=True)
    first[filled] = terms[1][at]
    return units, first, np.delete(terms[:2], at, axis=1)


def _pairs(at: Rows, g: int, h: int, same: bool) -> tuple[np.ndarray, np.ndarray]:
    """The units (i, j) of all pairs; under a correlation loss students do not meet."""
    if h < len(at.declaration.students) and at.declaration.loss == "correlation":
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if same:
        return np.arange(at.sizes[g]), np.arange(at.sizes[g])
    if g == h:
        return np.triu_indices(at.sizes[g], 1)
    i, j = np.indices((at.sizes[g], at.sizes[h])).reshape(2, -1)
    return i, j


def _rows(at: Rows, g: int, i: np.ndarray) -> list[np.ndarray]:
    """The rows of the slots of some units of a group."""
    return [at.starts[g, slot] + i for slot in at.declaration.groups[g].slots]


def _cells(at: Rows, one: Served, g: int, h: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Where a function's arguments stand in `flat` of `loops.seen`: (cells, pairs)."""
    fields = [*_rows(at, g, i), *_rows(at, h, j)]
    n, most = at.total, max(at.sizes)
    found = [fields[a] * n + fields[b] for a in range(len(fields)) for b in range(a, len(fields))]
    for group, unit in ((g, i), (h, j)):
        before = sum(len(k.scalars) for k in at.declaration.groups[:group])
        found += [n * n + (before + b) * most + unit for b in range(len(at.declaration.groups[group].scalars))]
    return np.array([found[cell] for cell in one.cells], np.int64).reshape(len(one.cells), len(i))


def _terms(
    at: Rows, entry: Entry, kinds: tuple[int, int], same: bool, units: tuple[np.ndarray, np.ndarray], mean: int,
    pair: np.ndarray,
) -> Iterator[tuple[str, np.ndarray]]:  # fmt: skip
    """(row, column, mean, pair, u, v) of one mean of all pairs: C is symmetric on the students."""
    first = [sum(at.sizes[:g]) for g in kinds]
    u, v = (start + k for start, k in zip(first, units, strict=True))
    side, k = entry.row
    if entry.matrix == "R":
        groups = at.declaration.groups
        word, row = groups[kinds[side]].own[k], sum(len(group.own) for group in groups[: kinds[side]]) + k
        own = np.full_like(u, sum(at.sizes)) if word == "a" else (u, v)[side]
        yield "R", np.array([np.full_like(u, row), units[side], np.full_like(u, mean), pair, own, (v, u)[side]])
        return
    rows = [_rows(at, g, unit) for g, unit in zip(kinds, units, strict=True)]
    row, column = rows[side][k], rows[entry.column[0]][entry.column[1]]
    rest = (np.full_like(u, mean), pair, u, v)
    yield "C", np.array([row, column, *rest])
    across = entry.column[0] != side
    if (across and not same and kinds[1] < len(at.declaration.students)) or (not across and k != entry.column[1]):
        yield "C", np.array([column, row, *rest])
