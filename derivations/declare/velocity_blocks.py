"""The order parameters of velocities, for momentum with a time scale: VV_ww, VQ_ww, VM_ww, and velocity_a of numbers.

VV_rs are overlaps of the velocities of the slots r and s. VQ_rs are those of the velocity of r (first index) with the
student's slot s, VM_rs those with the teacher's. Only trained vectors and numbers have velocities.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import PARTS, Dense, Initial, Symmetric, UsageError

if TYPE_CHECKING:
    from derivations.declare.rows import Rows

Place = tuple[int, str]
"""The number of a group, and a slot."""
VELOCITY = "velocity_"
"""Prefix of the velocity of a number."""
ROUGH = 1e-5
"""Tolerance of a negative eigenvalue of the Gram matrix of a state, relative to the largest: runs have errors."""


@dataclasses.dataclass(frozen=True)
class VelocityBlock:
    """Overlaps of the velocities of one slot, `first`, with velocities (letter VV) or vectors of `second`.

    `rows` and `columns` are those of the two slots in the Gram matrix.
    """

    name: str
    letter: str
    first: Place
    second: Place
    rows: slice
    columns: slice
    dims: tuple[str, ...]
    symmetric: bool
    meaning: str

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return self.rows.stop - self.rows.start, self.columns.stop - self.columns.start

    @property
    def part(self) -> Dense | Symmetric:
        """Its part of the layout of the state."""
        return Symmetric(self.name, self.shape[0], ()) if self.symmetric else Dense(self.name, self.shape)


def blocks(layout: "Rows") -> tuple[VelocityBlock, ...]:
    """All blocks that are order parameters, VV, then VQ, then VM; empty unless momentum has a time scale."""
    if not layout.declaration.inertial:
        return ()
    kinds = layout.declaration.kinds
    return _among(
        layout, [(g, s) for g, s in layout.starts if layout.is_student(g) and layout.declaration.moves(kinds[g], s)]
    )


def hidden(layout: "Rows") -> tuple[VelocityBlock, ...]:
    """The blocks of velocities that only SGD has, for a constant beta: of all students, since stages may move others.

    With several eigenspaces of the inputs there is one for each, as for all overlaps.
    """
    if layout.declaration.momentum is None or layout.declaration.inertial:
        return ()
    all_blocks = _among(layout, [place for place in layout.starts if layout.is_student(place[0])])
    return (
        tuple(dataclasses.replace(block, dims=(PARTS, *block.dims)) for block in all_blocks)
        if layout.stack
        else all_blocks
    )


def _among(layout: "Rows", moving: list[Place]) -> tuple[VelocityBlock, ...]:
    """The blocks of the velocities of some slots."""
    places = list(layout.starts)
    all_blocks = [_block(layout, "VV", first, second) for n, first in enumerate(moving) for second in moving[n:]]
    all_blocks += [
        _block(layout, "VQ", first, second) for first in moving for second in places if layout.is_student(second[0])
    ]
    all_blocks += [
        _block(layout, "VM", first, second) for first in moving for second in places if not layout.is_student(second[0])
    ]
    return tuple(all_blocks)


def _block(layout: "Rows", letter: str, first: Place, second: Place) -> VelocityBlock:
    (g, r), (h, s), kinds = first, second, layout.declaration.kinds
    words = [word for word in (kinds[g].name, kinds[h].name if h != g else "") if word]
    dims = [layout.dimension(g), layout.dimension(h)]
    if dims[0] == dims[1]:
        dims[1] += "_"
    second_text = {"VV": f"the velocity of {s}_j", "VQ": f"{s}_j", "VM": f"{s}*_j"}[letter]
    whose = [f"{kinds[k].name} {layout.role(k)}".strip() for k in (g, h)]
    meaning = f"overlap of the velocity of {r}_i of {whose[0]} with {second_text} of {whose[1]}"
    name = "_".join([*words, letter, r + s])
    symmetric = letter == "VV" and first == second
    return VelocityBlock(
        name, letter, first, second, layout.of(*first), layout.of(*second), (dims[0], dims[1]), symmetric, meaning
    )


def pushes(layout: "Rows") -> tuple[tuple[int, str, int], ...]:
    """The numbers of student units that have velocities, (group, word, count)."""
    if not layout.declaration.inertial:
        return ()
    students = layout.declaration.students
    return tuple((g, word, count) for g, word, count in layout.scalars if layout.declaration.moves(students[g], word))


def push_name(layout: "Rows", number: int, word: str) -> str:
    """The name of the velocity of a number of a group's units."""
    return layout.declaration.students[number].named(VELOCITY + word)


def parts(layout: "Rows") -> list[Dense | Symmetric]:
    """The parts of the layout, after readouts and numbers."""
    layout_parts: list[Dense | Symmetric] = [block.part for block in layout.velocities]
    return [*layout_parts, *(Dense(push_name(layout, g, word), (count,)) for g, word, count in pushes(layout))]


def described(layout: "Rows") -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Name, dimensions and meaning of all velocities, in the order of the layout."""
    for block in layout.velocities:
        yield block.name, block.dims, block.meaning
    for g, word, _ in pushes(layout):
        readout = word in layout.declaration.students[g].trained_readouts
        number_text = f"readout {word}_i" if readout else f"number {word} of unit i"
        yield push_name(layout, g, word), (layout.dimension(g),), f"velocity of the {number_text}"


def of_sgd(layout: "Rows", arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The final velocities of an SGD run with a constant beta. Raises `UsageError` for arrays of other shapes."""
    shapes: dict[str, tuple[int, ...]] = {block.name: (*layout.stack, *block.shape) for block in hidden(layout)}
    shapes |= {push_name(layout, g, word): (count,) for g, word, count in layout.scalars} if shapes else {}
    velocities = {name: np.asarray(arrays[name], float) for name in shapes if name in arrays}
    for name, values in velocities.items():
        if values.shape != shapes[name]:
            raise UsageError(f"{name} must have shape {shapes[name]}, but has {values.shape}")
    return velocities


def start(layout: "Rows", arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The velocities at the start: those of an earlier run, else 0. Raises `UsageError` for arrays of other shapes."""
    velocities = {}
    for part in parts(layout):
        values = np.asarray(arrays.get(part.name, np.zeros(part.shape)), float)
        if values.shape != part.shape:
            raise UsageError(f"{part.name} must have shape {part.shape}, but has {values.shape}")
        if isinstance(part, Symmetric) and not np.allclose(values, values.T, rtol=ROUGH, atol=0.0):
            raise UsageError(f"{part.name} is not symmetric")
        velocities[part.name] = values
    return velocities


def require(layout: "Rows", initial: Initial) -> None:
    """Raise `UsageError` for velocities that no vectors can have, to the accuracy of a run."""
    if not layout.velocities:
        return
    gram = extended(layout, layout.gram({**initial.state, **initial.constants}), initial.state)
    smallest, largest = np.linalg.eigvalsh(gram)[[0, -1]]
    if smallest < -ROUGH * largest:
        raise UsageError(
            "the initial velocities do not fit the vectors: the Gram matrix of all of them has the least "
            f"eigenvalue {smallest:.3g}; give {', '.join(block.name for block in layout.velocities)} of one state"
        )


def extended(layout: "Rows", gram: np.ndarray, state: Mapping[str, Any]) -> np.ndarray:
    """The Gram matrix (.., n + S, n + S) of all rows followed by the students' velocities; these are 0 without a
    state.
    """
    n, S = layout.total, layout.students
    extended_gram = np.zeros((*gram.shape[:-2], n + S, n + S))
    extended_gram[..., :n, :n] = gram
    for block in (*layout.velocities, *(block for block in hidden(layout) if block.name in state)):
        rows = slice(n + block.rows.start, n + block.rows.stop)
        shift = n if block.letter == "VV" else 0
        columns = slice(shift + block.columns.start, shift + block.columns.stop)
        values = np.asarray(state[block.name], float)
        extended_gram[..., rows, columns] = values
        extended_gram[..., columns, rows] = np.swapaxes(values, -1, -2)
    return extended_gram


def components(
    layout: "Rows", gram: np.ndarray, those: tuple[VelocityBlock, ...] | None = None
) -> dict[str, np.ndarray]:  # fmt: skip
    """The blocks of velocities (.., *shape) from Gram matrices (.., n + S, n + S); order parameters, or `those`."""
    n, by_name = layout.total, {}
    for block in layout.velocities if those is None else those:
        shift = n if block.letter == "VV" else 0
        columns = slice(shift + block.columns.start, shift + block.columns.stop)
        by_name[block.name] = gram[..., n + block.rows.start : n + block.rows.stop, columns].copy()
    return by_name
