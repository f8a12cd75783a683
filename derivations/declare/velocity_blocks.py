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


def blocks(at: "Rows") -> tuple[VelocityBlock, ...]:
    """All blocks that are order parameters, VV, then VQ, then VM; empty unless momentum has a time scale."""
    if not at.declaration.inertial:
        return ()
    kinds = at.declaration.kinds
    return _among(at, [(g, s) for g, s in at.starts if at.is_student(g) and at.declaration.moves(kinds[g], s)])


def hidden(at: "Rows") -> tuple[VelocityBlock, ...]:
    """The blocks of velocities that only SGD has, for a constant beta: of all students, since stages may move others.

    With several eigenspaces of the inputs there is one for each, as for all overlaps.
    """
    if at.declaration.momentum is None or at.declaration.inertial:
        return ()
    found = _among(at, [place for place in at.starts if at.is_student(place[0])])
    return tuple(dataclasses.replace(one, dims=(PARTS, *one.dims)) for one in found) if at.stack else found


def _among(at: "Rows", moving: list[Place]) -> tuple[VelocityBlock, ...]:
    """The blocks of the velocities of some slots."""
    places = list(at.starts)
    found = [_block(at, "VV", one, two) for n, one in enumerate(moving) for two in moving[n:]]
    found += [_block(at, "VQ", one, two) for one in moving for two in places if at.is_student(two[0])]
    found += [_block(at, "VM", one, two) for one in moving for two in places if not at.is_student(two[0])]
    return tuple(found)


def _block(at: "Rows", letter: str, one: Place, two: Place) -> VelocityBlock:
    (g, r), (h, s), kinds = one, two, at.declaration.kinds
    words = [word for word in (kinds[g].name, kinds[h].name if h != g else "") if word]
    dims = [at.dimension(g), at.dimension(h)]
    if dims[0] == dims[1]:
        dims[1] += "_"
    other = {"VV": f"the velocity of {s}_j", "VQ": f"{s}_j", "VM": f"{s}*_j"}[letter]
    whose = [f"{kinds[k].name} {at.role(k)}".strip() for k in (g, h)]
    meaning = f"overlap of the velocity of {r}_i of {whose[0]} with {other} of {whose[1]}"
    name = "_".join([*words, letter, r + s])
    same = letter == "VV" and one == two
    return VelocityBlock(name, letter, one, two, at.of(*one), at.of(*two), (dims[0], dims[1]), same, meaning)


def pushes(at: "Rows") -> tuple[tuple[int, str, int], ...]:
    """The numbers of student units that have velocities, (group, word, count)."""
    if not at.declaration.inertial:
        return ()
    students = at.declaration.students
    return tuple((g, word, count) for g, word, count in at.scalars if at.declaration.moves(students[g], word))


def push_name(at: "Rows", number: int, word: str) -> str:
    """The name of the velocity of a number of a group's units."""
    return at.declaration.students[number].named(VELOCITY + word)


def parts(at: "Rows") -> list[Dense | Symmetric]:
    """The parts of the layout, after readouts and numbers."""
    found: list[Dense | Symmetric] = [block.part for block in at.velocities]
    return [*found, *(Dense(push_name(at, g, word), (count,)) for g, word, count in pushes(at))]


def described(at: "Rows") -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Name, dimensions and meaning of all velocities, in the order of the layout."""
    for block in at.velocities:
        yield block.name, block.dims, block.meaning
    for g, word, _ in pushes(at):
        readout = word in at.declaration.students[g].trained_readouts
        what = f"readout {word}_i" if readout else f"number {word} of unit i"
        yield push_name(at, g, word), (at.dimension(g),), f"velocity of the {what}"


def of_sgd(at: "Rows", arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The final velocities of an SGD run with a constant beta. Raises `UsageError` for arrays of other shapes."""
    shapes: dict[str, tuple[int, ...]] = {block.name: (*at.stack, *block.shape) for block in hidden(at)}
    shapes |= {push_name(at, g, word): (count,) for g, word, count in at.scalars} if shapes else {}
    found = {name: np.asarray(arrays[name], float) for name in shapes if name in arrays}
    for name, values in found.items():
        if values.shape != shapes[name]:
            raise UsageError(f"{name} must have shape {shapes[name]}, but has {values.shape}")
    return found


def start(at: "Rows", arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The velocities at the start: those of an earlier run, else 0. Raises `UsageError` for arrays of other shapes."""
    found = {}
    for part in parts(at):
        values = np.asarray(arrays.get(part.name, np.zeros(part.shape)), float)
        if values.shape != part.shape:
            raise UsageError(f"{part.name} must have shape {part.shape}, but has {values.shape}")
        if isinstance(part, Symmetric) and not np.allclose(values, values.T, rtol=ROUGH, atol=0.0):
            raise UsageError(f"{part.name} is not symmetric")
        found[part.name] = values
    return found


def require(at: "Rows", initial: Initial) -> None:
    """Raise `UsageError` for velocities that no vectors can have, to the accuracy of a run."""
    if not at.velocities:
        return
    gram = extended(at, at.gram({**initial.state, **initial.constants}), initial.state)
    least, most = np.linalg.eigvalsh(gram)[[0, -1]]
    if least < -ROUGH * most:
        raise UsageError(
            "the initial velocities do not fit the vectors: the Gram matrix of all of them has the least "
            f"eigenvalue {least:.3g}; give {', '.join(block.name for block in at.velocities)} of one state"
        )


def extended(at: "Rows", gram: np.ndarray, state: Mapping[str, Any]) -> np.ndarray:
    """The Gram matrix (.., n + S, n + S) of all rows followed by the students' velocities; these are 0 without a
    state.
    """
    n, S = at.total, at.students
    found = np.zeros((*gram.shape[:-2], n + S, n + S))
    found[..., :n, :n] = gram
    for block in (*at.velocities, *(block for block in hidden(at) if block.name in state)):
        rows = slice(n + block.rows.start, n + block.rows.stop)
        shift = n if block.letter == "VV" else 0
        columns = slice(shift + block.columns.start, shift + block.columns.stop)
        values = np.asarray(state[block.name], float)
        found[..., rows, columns] = values
        found[..., columns, rows] = np.swapaxes(values, -1, -2)
    return found


def components(
    at: "Rows", gram: np.ndarray, those: tuple[VelocityBlock, ...] | None = None
) -> dict[str, np.ndarray]:  # fmt: skip
    """The blocks of velocities (.., *shape) from Gram matrices (.., n + S, n + S); order parameters, or `those`."""
    n, found = at.total, {}
    for block in at.velocities if those is None else those:
        shift = n if block.letter == "VV" else 0
        columns = slice(shift + block.columns.start, shift + block.columns.stop)
        found[block.name] = gram[..., n + block.rows.start : n + block.rows.stop, columns].copy()
    return found
