"""The pairs of units as numba compiles them: sixteen in lanes, found and added up by tables of indices.

Every distinct pair of kinds of units has one straight-line function `lanes_k`, in which a moment of sixteen pairs is
one vector operation.  A pair of students is done once for both sides, since many of their means are the same, and a
teacher of a student's kind shares the student's function.  What the functions read (entries of the Gram matrix,
biases) and where their means belong are tables for the sizes of a run (`lane_tables`), so that neither text nor
compilation knows how many units there are.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from derivations.declare.declaration import Declaration
from derivations.declare.gates import Part, Shape
from derivations.lanes import LANES

if TYPE_CHECKING:
    from derivations.declare.kernels import Maker


class Served(NamedTuple):
    """One function `lanes_k`: its number among all programs, and the pairs of groups (g, h, same) it serves.

    `cells` are the arguments of the pair that it reads, by number; `at` is the place among them of the correlation of
    the two gates, -1 without series, of which it reads `rows`; `split` says that every series has two, even powers and
    odd ones; `means` is how many it gives.
    """

    program: int
    kinds: tuple[tuple[int, int, bool], ...]
    cells: tuple[int, ...]
    at: int
    rows: int
    split: bool
    means: int


class Entry(NamedTuple):
    """One mean of a pair of units: the matrix it belongs to ("C", "R"), and where.

    Of C the unit's side (0, 1) and slot for row and column; of R the side whose number it is, and its place in `own`.
    """

    matrix: str
    row: tuple[int, int]
    column: tuple[int, int] = (0, 0)


def entries(declared: Declaration, g: int, h: int, same: bool) -> Iterator[Entry]:
    """The means that a pair of groups needs, in order; of two students those of both sides.

    On the sphere and for normalised weights d2phi/dz_s^2 moves u_s along itself, which the constraint takes away.
    """
    slots = [len(declared.groups[k].slots) for k in (g, h)]
    sides = (0, 1) if h < len(declared.students) and not same else (0,)
    yield from (Entry("C", (0, s), (1, t)) for s in range(slots[0]) for t in range(slots[1]))
    for side in sides:
        free = declared.weights == "free"
        pairs = [(s, t) for s in range(slots[side]) for t in range(s, slots[side]) if s != t or free]
        yield from (Entry("C", (side, s), (side, t)) for s, t in pairs)
    for side in sides:
        yield from (Entry("R", (side, b)) for b in range(len(declared.groups[(g, h)[side]].own)))


def factors(entry: Entry, shapes: Sequence[Shape], own: Sequence[Sequence[str]]) -> tuple[Part, Part]:
    """The parts of both units whose product's mean an entry is."""
    found = [shapes[0].value, shapes[1].value]
    side, k = entry.row
    if entry.matrix == "R":
        if own[side][k] != "a":
            found[side] = shapes[side].scalars[k - (own[side][0] == "a")]
    elif entry.column[0] == side:
        found[side] = shapes[side].bends[k][entry.column[1]]
    else:
        found = [shapes[0].slopes[k], shapes[1].slopes[entry.column[1]]]
    return found[0], found[1]


def texts(maker: "Maker") -> tuple[list[tuple[str, str]], tuple[Served, ...]]:
    """The functions `lanes_k`, `pairs` that calls them, and what each serves."""
    shapes, students = maker.shapes, maker.students
    found: list[tuple[str, str]] = []
    served: list[Served] = []
    for g in range(students):
        alike = [h for h in range(students, len(shapes)) if _alike(shapes[g], shapes[h])]
        kinds = [[(g, g, False), *((g, h, False) for h in alike)], [(g, g, True)]]
        kinds += [[(g, h, False)] for h in range(g + 1, len(shapes)) if h not in alike]
        for group in kinds:
            name = f"lanes_{len(served)}"
            text, one = _function(maker, name, group)
            found.append((name, text))
            served.append(one)
    return [*found, ("pairs", _pairs_text(served))], tuple(served)


def _alike(one: Shape, two: Shape) -> bool:
    """Whether a teacher's unit is a student's, so that they share a function (numbers of units' own are none's)."""
    return one == two and not one.scalars


def _function(maker: "Maker", name: str, kinds: Sequence[tuple[int, int, bool]]) -> tuple[str, Served]:
    """`name(G, S, m, numbers, C)`: the means C of sixteen pairs from cells G and series S, flat arrays, row by row.

    LLVM makes vector operations only where it knows that no two arrays overlap, which it tests for few of them, and
    takes every row of unknown length for one.  The names are among those that no number of a user's can have
    (`named.WRITTEN`).
    """
    declared, (g, h, same) = maker.declared, kinds[0]
    both = [maker.shapes[k] for k in (g, h)]
    own = [declared.groups[k].own for k in (g, h)]
    wanted = [factors(entry, both, own) for entry in entries(declared, g, h, same)]
    program, tables = maker.program((g, h), same)
    results = program.results(wanted)
    split = any(gate.kind == "softplus" for gate, *_ in tables.pairs)

    def series(found: re.Match[str]) -> str:
        row = int(found[1])
        return f"({_cell('S', 2 * row)} + {_cell('S', 2 * row + 1)})" if split else _cell("S", row)

    stored = [f"{_cell('C', k)} = {result}" for k, result in enumerate(results)]
    lines = [re.sub(r"\bS\[(\d+)\]", series, line) for line in [*program.body(), *stored]]
    whole, arguments = "\n".join(lines), program.arguments(())[:-2]
    cells = [k for k, cell in enumerate(arguments) if re.search(rf"\b{cell}\b", whole)]
    at = -1
    if tables.pairs:
        one, _, two, _ = tables.pairs[0]
        rho = arguments.index(f"c{one.slot}_{len(both[0].slots) + two.slot}")
        cells = sorted({*cells, rho})
        at = cells.index(rho)
    head = [f"    {word} = numbers[{k}]" for k, word in enumerate(declared.names) if re.search(rf"\b{word}\b", whole)]
    read = [f"{arguments[cell]} = {_cell('G', k)}" for k, cell in enumerate(cells)]
    body = [f"        {line}" for line in (*read, *lines)]
    text = "\n".join([f"def {name}(G, S, m, numbers, C):", *head, f"    for i in range({LANES}):", *body])
    rows = len(tables.pairs) * (1 + split)
    return text + "\n", Served(len(maker.tables) - 1, tuple(kinds), tuple(cells), at, rows, split, len(results))


def _cell(array: str, row: int) -> str:
    return f"{array}[{LANES * row} + i]"


def _pairs_text(served: Sequence[Served]) -> str:
    """`pairs`: the means Y (mean, pair), flat, of all pairs, function by function, from `flat` of `loops.seen`."""
    lines = [
        "def pairs(flat, numbers, means, cells, spans, looks, reach, Y):",
        f"    X, square = np.empty({LANES} * cells.shape[0]), np.empty({LANES})",
        f"    S, Z = np.empty({LANES} * looks.shape[2]), np.empty({LANES * max(one.means for one in served)})",
    ]
    if any(one.at >= 0 for one in served):
        lines.append(f"    table = S.reshape((looks.shape[2], {LANES}))")
    for k, one in enumerate(served):
        rho = f"X[{LANES * one.at} : {LANES * (one.at + 1)}]"
        first = f"looks[{k}, 0, :{one.rows}"
        table = f"looks[{k}, :, :{one.rows}, 2:], {first}, 0], {first}, 1], reach[{k}]"
        lines += [
            f"    for block in range(spans[{k}], spans[{k + 1}]):",
            f"        start = {LANES} * block",
            f"        for k in range({len(one.cells)}):",
            f"            for lane in range({LANES}):",
            f"                X[{LANES} * k + lane] = flat[cells[k, start + lane]]",
            *([f"        correlations({rho}, {table}, square, table)"] if one.at >= 0 else []),
            f"        lanes_{k}(X, S, means[{one.program}], numbers, Z)",
            f"        for k in range({one.means}):",
            f"            for lane in range({LANES}):",
            f"                Y[k * cells.shape[1] + start + lane] = Z[{LANES} * k + lane]",
        ]
    return "\n".join(lines) + "\n"
