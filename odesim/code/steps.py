"""Steps of the compiled engine, and the tables that they use."""

from typing import Any

import numpy as np

from derivations.lanes import folded
from odesim.code.formulas import Formula, Unsupported
from odesim.code.places import Places

LANES, WIDTH, HEAD = 16, 10, 12
"""Points of a block, numbers of a step, and numbers before the first step.

The numbers before the first step are the number of steps, four places of work space for a block, four numbers on rows
(`odesim.code.engine.flow`), and the first places of the tables of the next program, if there is one.
"""
COPY, SUM, PRODUCT, BLOCKS, LOOPS, RATES = range(6)
"""Operations of steps. The columns of the row of a step, by their names in the engine:

what count at to by more which COPY entries places in T target SUM entries places in T target factors in W terms PRODUCT
rows left matrix target right matrix inner dimension columns BLOCKS blocks places in T target arguments results formula,
series, argument, many LOOPS numbers numbers in N formula RATES entries places in T

BLOCKS count arguments and results in numbers of one block, sixteen for each.
"""
NEGLIGIBLE = 1e-300
"""Size below which coefficients of a series are zeros of its parity."""
TOLERANCE = 1e-14
"""Upper bound of the truncation error of a series."""


def head_of(steps: int, room: list[int]) -> list[int]:
    """Return the numbers before the first step, for a state of one row, with four places of work space for a block."""
    return [steps, *room, 1, *[0] * (HEAD - 2 - len(room))]


class Steps:
    """Rows of steps, the tables that they read, and the texts of the model's kernel.

    Factors and coefficients of series are in W. The number of coefficients depends on the values of the series in
    `labels`. Other steps may have the same `texts`; the model's kernel is then shared.
    """

    def __init__(self, places: Places, texts: dict[tuple[str, ...], int]) -> None:
        self.places, self.texts = places, texts
        self.rows: list[list[int]] = []
        self._T: list[np.ndarray] = []
        self._size = 0
        self._loops: list[tuple[int, list[int]]] = []
        self._room = [1, 1, 1]
        self.labels: set[str] = set()

    def copy(self, places: np.ndarray, to: int) -> None:
        """Add the step W[to ..] = W[places]."""
        self._row(COPY, places.size, self._table(places), to)

    def rates(self, places: np.ndarray) -> None:
        """Add the step dy = W[places], the last one."""
        self._row(RATES, places.size, self._table(places))

    def sum(self, places: np.ndarray, factors: np.ndarray, to: int) -> None:
        """Add the step W[to + e] = sum over the first axis of factors[.., e] W[places[.., e]]."""
        self._row(SUM, places.shape[1], self._table(places), to, self.places.constant(factors), len(places))

    def multiply(self, left: int, right: int, shape: tuple[int, int, int], to: int) -> None:
        """Add the product of matrices (rows, inner) and (inner, columns) that begin at two places."""
        rows, inner, columns = shape
        self._row(PRODUCT, rows, left, to, right, inner, columns)

    def blocks(self, formula: Formula, leaves: list[np.ndarray], results: int, to: int) -> None:
        """Add a formula at points, in blocks of sixteen, for the places of its leaves at all points."""
        count = leaves[0].size if leaves else 1
        blocks = -(-count // LANES)
        table = np.full((len(leaves), LANES * blocks), self.places.one)
        for k, places in enumerate(leaves):
            table[k, :count] = places
        table = table.reshape(len(leaves), blocks, LANES).transpose(1, 0, 2)
        lines = ("for lane in range(16):", *(f"    {line}" for line in formula.lines))
        by, more, many = LANES * len(leaves), LANES * results, len(formula.series)
        self.labels.update(formula.series)
        level = self._series([self.places.constants[label] for label in formula.series]) if many else 0
        which, argument = self.text(lines), LANES * formula.argument
        self._row(BLOCKS, blocks, self._table(table), to, by, more, which, level, argument, many)
        self._room = [max(a, b) for a, b in zip(self._room, (by, LANES * many, more), strict=True)]

    def loops(self, lines: tuple[str, ...], numbers: list[int]) -> None:
        """Add loops of the kernel over W, with their integer arguments."""
        self._loops.append((len(self.rows), numbers))
        self._row(LOOPS, len(numbers), 0, 0, 0, 0, self.text(lines))

    def text(self, lines: tuple[str, ...]) -> int:
        """Return the number of a text in the kernel; equal texts share one."""
        return self.texts.setdefault(lines, len(self.texts))

    def _row(self, *row: int) -> None:
        self.rows.append([*map(int, row), *[0] * (WIDTH - len(row))])

    def _table(self, places: Any) -> int:
        at, values = self._size, np.ravel(places)
        self._T.append(values)
        self._size += values.size
        return at

    def _series(self, rows: list[np.ndarray]) -> int:
        """Write power series in the form of `odesim.code.engine.fill_series`, and return the first place."""
        dense = np.array(rows)
        odd = [bool((np.abs(row[2::2]) <= NEGLIGIBLE).all()) for row in dense]
        if not all(o or (np.abs(row[1::2]) <= NEGLIGIBLE).all() for o, row in zip(odd, dense, strict=True)):
            raise Unsupported("a series that is neither odd nor even")
        table = folded(dense, odd, TOLERANCE)
        levels, many = table.levels.shape[:2]
        heads: list[float] = []
        runs: list[np.ndarray] = []
        count = 3 * levels + many * int((table.reach[1] + 4).sum())
        first = self.places.reserve(count)
        at = first + 3 * levels
        for k in range(levels):
            last = int(table.reach[1, k])
            heads += [table.reach[0, k] if k < levels - 1 else np.inf, last // 4, at]
            for i in range(many):
                ends = [table.shift[i], table.odd[i], 1.0 - table.odd[i]]
                runs.append(np.concatenate([table.levels[k, i, last::-1], ends]))
            at += many * (last + 4)
        self.places.fill(first, np.concatenate([heads, *runs]))
        return first

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return W, places, and steps with the numbers of the loops, as new arrays, because two threads must not share
        them.
        """
        # Blocks are vectors of the processor, which are read at once if their places are aligned.
        self.places.reserve(-self.places.size % LANES)
        room = [self.places.reserve(-(-count // LANES) * LANES) for count in (*self._room, LANES)]
        rows, loops = [list(row) for row in self.rows], [n for _, numbers in self._loops for n in numbers]
        at = HEAD + WIDTH * len(rows)
        for row, numbers in self._loops:
            rows[row][2], at = at, at + len(numbers)
        head = head_of(len(rows), room)
        N = np.array([*head, *(n for row in rows for n in row), *loops], np.uint64)
        return self.places.vector(), np.concatenate([*self._T, [0]]).astype(np.uint32), N
