"""Layout of the order parameters: the rows of the Gram matrix, its blocks, and their names.

Rows are ordered by group (students, then teachers), in a group by slot, in a slot by unit.  Q_rs are overlaps among the
students' slots r and s, M_rs those of a student's slot r with a teacher's slot s, P_rs those among the teachers.  The
named means of the inputs are rows like those of a teacher, after all others: mean_M_wm, mean_P_wm, mean_P_mm.
"""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.contract import BY_PARTS, PARTS, Dense, Layout, Symmetric
from derivations.declare import velocity_blocks
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import number as value_of
from derivations.declare.readouts import Readout
from derivations.declare.schedules import TIME

SPACE = PARTS
"""Name of the dimension over eigenspaces of the inputs."""


@dataclasses.dataclass(frozen=True)
class Block:
    """Block of the Gram matrix: its name, its rows and columns, and True if it lies on the diagonal.

    It is one matrix, or a `stack` of them: one for each eigenspace of the inputs.
    """

    name: str
    rows: slice
    columns: slice
    dims: tuple[str, ...]
    symmetric: bool
    meaning: str
    stack: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (.., rows, columns)."""
        return (*self.stack, self.rows.stop - self.rows.start, self.columns.stop - self.columns.start)


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of a declaration at given sizes, the numbers of units of the groups.

    `starts` maps (kind, group's name, slot) to the first row; kind is "student" or "teacher". With several eigenspaces
    of the inputs (`spaces`, the dimension "block" of arrays) there is one Gram matrix for each, of the parts of the
    vectors in it; their sum is that of the vectors.
    """

    declaration: Declaration
    sizes: tuple[int, ...]
    spaces: int = 1

    @property
    def stack(self) -> tuple[int, ...]:
        """Leading axes of a Gram matrix: (spaces,), or () for a single one."""
        return (self.spaces,) if self.spaces > 1 else ()

    @functools.cached_property
    def starts(self) -> dict[tuple[int, str], int]:
        """First row of (number of the group, slot)."""
        row, first_rows = 0, {}
        for number, (group, size) in enumerate(zip(self.declaration.kinds, self.sizes, strict=True)):
            for slot in group.slots:
                first_rows[number, slot] = row
                row += size
        return first_rows

    def of(self, number: int, slot: str) -> slice:
        """Return the rows of a slot of the group with this number."""
        start = self.starts[number, slot]
        return slice(start, start + self.sizes[number])

    @property
    def single(self) -> bool:
        """True if every unit has one vector, with the same name."""
        return len({slot for group in self.declaration.groups for slot in group.slots}) == 1

    @property
    def units(self) -> tuple[int, ...]:
        """Number of units of every group; `sizes` also has the number of named means at the end."""
        return self.sizes[: len(self.declaration.groups)]

    @property
    def students(self) -> int:
        """Number of rows of students."""
        return sum(
            len(group.slots) * size
            for group, size in zip(self.declaration.students, self.sizes[: len(self.declaration.students)], strict=True)
        )

    @property
    def total(self) -> int:
        """Number of rows."""
        return sum(len(group.slots) * size for group, size in zip(self.declaration.kinds, self.sizes, strict=True))

    @property
    def means(self) -> int:
        """Number of rows of named means of the inputs, which come last."""
        return sum(self.sizes[len(self.declaration.groups) :])

    @property
    def fields(self) -> int:
        """Number of rows with fields: those of students and teachers."""
        return self.total - self.means

    @property
    def teachers(self) -> int:
        """Number of rows of teachers."""
        return self.fields - self.students

    def is_student(self, number: int) -> bool:
        """Return True if the group with this number is one of students."""
        return number < len(self.declaration.students)

    @functools.cached_property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks above or on the diagonal, by name: Q, then M, then P."""
        blocks = [self._block(*pair) for pair in self._pairs()]
        return tuple(sorted(blocks, key=lambda block: "QMP".index(_letter(block.name))))

    def _pairs(self) -> Iterator[tuple[int, str, int, str]]:
        places = list(self.starts)
        for i, (g, r) in enumerate(places):
            for h, s in places[i:]:
                yield g, r, h, s

    def _block(self, g: int, r: str, h: int, s: str) -> Block:
        groups, first, second = self.declaration.kinds, self.is_student(g), self.is_student(h)
        letter = "Q" if second else "M" if first else "P"
        words = [groups[g].name, groups[h].name if h != g else ""]
        name = "_".join([*(word for word in words if word), letter, r + s])
        dims = [self.dimension(g), self.dimension(h)]
        if dims[0] == dims[1]:
            dims[1] += "_"
        descriptions = [f"{groups[k].name} {self.role(k)}".strip() for k in (g, h)]
        stars = ["*" if self.role(k) == "teacher" else "" for k in (g, h)]
        meaning = f"overlap {r}{stars[0]}_i . {s}{stars[1]}_j of {descriptions[0]} with {descriptions[1]}"
        if self.stack:
            dims, meaning = [SPACE, *dims], meaning + BY_PARTS
        return Block(name, self.of(g, r), self.of(h, s), tuple(dims), (g, r) == (h, s), meaning, self.stack)

    def block_of(self, first: tuple[int, str], second: tuple[int, str]) -> Block:
        """Return the block of the overlaps of two slots (group, slot), the earlier one first."""
        return self._block(*first, *second)

    def role(self, number: int) -> str:
        """Return the kind of vectors in a group: student, teacher, or vector of a mean."""
        if number >= len(self.declaration.groups):
            return "vector"
        return "student" if self.is_student(number) else "teacher"

    def dimension(self, number: int) -> str:
        """The name of the dimension of a group's units."""
        if number >= len(self.declaration.groups):
            return self.declaration.kinds[number].name
        return self.declaration.groups[number].named("unit" if self.is_student(number) else "teacher")

    @property
    def moving(self) -> tuple[Block, ...]:
        """Blocks that change: Q and M."""
        return tuple(block for block in self.blocks if _letter(block.name) != "P")

    @property
    def fixed(self) -> tuple[Block, ...]:
        """Blocks that are constants: P."""
        return tuple(block for block in self.blocks if _letter(block.name) == "P")

    @property
    def scalars(self) -> tuple[tuple[int, str, int], ...]:
        """The numbers of the students' units, (group, word, count): trained readouts, then biases, group by group."""
        scalars = []
        for number, group in enumerate(self.declaration.students):
            scalars += [(number, word, self.sizes[number]) for word in group.own]
        return tuple(scalars)

    @functools.cached_property
    def velocities(self) -> tuple[velocity_blocks.VelocityBlock, ...]:
        """Blocks of velocities, if momentum has a time."""
        return velocity_blocks.blocks(self)

    @property
    def teacher_overlaps(self) -> str:
        """The name of the overlaps of students with teachers, in a model with one group of each."""
        (name,) = [block.name for block in self.moving if _letter(block.name) == "M"]
        return name

    @property
    def layout(self) -> Layout:
        """The flat state: moving blocks (symmetric: with their diagonal), scalars, velocities, memories, the time."""
        parts: list[Any] = [
            Symmetric(block.name, block.shape[-1], block.stack) if block.symmetric else Dense(block.name, block.shape)
            for block in self.moving
        ]
        parts += [Dense(self.declaration.students[g].named(word), (count,)) for g, word, count in self.scalars]
        parts += velocity_blocks.parts(self)
        parts += [Dense(memory.name, ()) for memory in self.declaration.memories]
        parts += [Dense(TIME, ())] if self.declaration.clocked else []
        return Layout(tuple(parts))

    def components(self, gram: np.ndarray) -> dict[str, np.ndarray]:
        """The blocks (.., *shape) of Gram matrices (.., n, n), constants among them."""
        return {block.name: gram[..., block.rows, block.columns].copy() for block in self.blocks}

    def whole(self, gram: np.ndarray) -> np.ndarray:
        """The Gram matrices (.., n, n) of the vectors from those of their parts (.., *stack, n, n)."""
        return gram.sum(axis=-3) if self.stack else gram

    def gram(self, components: Mapping[str, Any]) -> np.ndarray:
        """Return the Gram matrices (.., n, n) from blocks (.., *shape); blocks without a leading axis are used for
        all.
        """
        lead = max((np.shape(components[block.name])[:-2] for block in self.blocks), key=len)
        gram = np.zeros((*lead, self.total, self.total))
        for block in self.blocks:
            values = np.asarray(components[block.name], float)
            gram[..., block.rows, block.columns] = values
            gram[..., block.columns, block.rows] = np.swapaxes(values, -1, -2)
        return gram


def _letter(name: str) -> str:
    return name.split("_")[-2]


def readout(fixed_readout: Readout, size: int, values: Mapping[str, float]) -> np.ndarray:
    """Return the untrained readouts (size,) of a group: 1, 1/K, 1/sqrt(K), or an expression in j.

    >>> readout(Readout("", "mean"), 4, {})
    array([0.25, 0.25, 0.25, 0.25])
    """
    if fixed_readout.output == "own":
        assert fixed_readout.expression is not None
        return np.array([value_of(fixed_readout.expression, {**values, "j": j + 1.0}) for j in range(size)])
    return np.full(size, {"sum": 1.0, "mean": 1.0 / size, "root": size**-0.5}[fixed_readout.output])


def cosines(layout: Rows, gram: np.ndarray) -> np.ndarray | None:
    """Largest |cosine| (.., teachers) over the students' rows, from Gram matrices (.., n, n)."""
    size = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = gram / (size[..., :, None] * size[..., None, :])
    s, end = layout.students, layout.fields
    return np.nan_to_num(np.abs(unit[..., :s, s:end])).max(axis=-2) if layout.teachers else None
