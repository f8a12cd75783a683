"""Rows of copies in the Gram matrix, and changes at the beginning of a stage.

A copy is made by G <- T G T^T, where T selects rows. New directions of a slot are drawn in dimension d. In the frame of
Cholesky's factor of the other rows, u has independent normal coordinates, and a chi-distributed length outside; it is
scaled to the norm of the start.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.declare import copies, velocity_blocks
from derivations.declare.declaration import Declaration
from derivations.declare.parameter_class import rows
from derivations.declare.rows import Rows
from derivations.vectors import root, thin_root


def unmade(found: Rows, arrays: Mapping[str, np.ndarray]) -> list[tuple[int, int]]:
    """Return the copies that some arrays do not contain, with the students that they copy, as numbers of groups."""
    declared = found.declaration

    def held(copy: int, of: int) -> bool:
        names = [found.block_of((of, slot), (copy, slot)).name for slot in declared.groups[copy].slots]
        stars = [declared.groups[copy].named(f"{slot}_star") for slot in declared.groups[copy].slots]
        return any(name in arrays for name in (*names, *stars))

    return [(copy, of) for copy, of in copies.sources(declared) if not held(copy, of)]


def implied(found: Rows, arrays: Mapping[str, np.ndarray]) -> set[str]:
    """Return the blocks of copies that some arrays do not contain; they follow from those of students."""
    declared, without = found.declaration, unmade(found, arrays)
    starts = {found.of(copy, slot).start for copy, _ in without for slot in declared.groups[copy].slots}
    return {block.name for block in found.blocks if starts & {block.rows.start, block.columns.start}}


def stated(found: Rows) -> set[str]:
    """Return the blocks of copies; a start with one of them must have all."""
    return implied(found, {})


def weights(declared: Declaration) -> set[str]:
    """Return the names of the vectors of copies in a file of weights, which are optional."""
    groups = declared.groups
    return {groups[k].named(f"{slot}_star") for k, _ in copies.sources(declared) for slot in groups[k].slots}


def with_copies(found: Rows, gram: np.ndarray, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return Gram matrices (.., n, n) with copies of the students, except copies that `arrays` already contain."""
    return _picked(found, gram, unmade(found, arrays))


def with_velocities(
    found: Rows, state: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the velocities of a start; their overlaps with new copies are those with the students."""
    made = dict(unmade(found, arrays))
    names = {(block.first, block.second): block.name for block in found.velocities}
    return {
        block.name: state[names[block.first, (made[block.second[0]], block.second[1])]]
        for block in found.velocities
        if block.second[0] in made
    }


def with_weights(found: Rows, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights by name, with missing copies made of the students."""
    groups = found.declaration.groups
    made = {
        groups[copy].named(f"{slot}_star"): arrays[groups[of].named(slot)]
        for copy, of in unmade(found, arrays)
        for slot in groups[copy].slots
        if groups[of].named(slot) in arrays
    }
    return {**made, **arrays}


def begin(initial: Initial, rng: np.random.Generator) -> Initial:
    """The start of a stage after its `begin`, from left to right; overlaps with new directions are drawn by `rng`."""
    found = rows(initial.parameters)
    declared: Declaration = found.declaration
    values = {**initial.state, **initial.constants}
    gram = velocity_blocks.extended(found, found.gram(values), values)
    for change in declared.changes:
        if change.kind == "copy":
            pair = next(pair for pair in copies.sources(declared) if declared.groups[pair[0]].name == change.name)
            gram = _picked(found, gram, [pair])
            values |= _readouts(declared, values, pair)
        elif change.kind == copies.FRESH:
            gram = _fresh(initial, gram, change.name, rng)
        else:
            given = values[change.value] if isinstance(change.value, str) else change.value
            values[change.name] = np.broadcast_to(given, values[change.name].shape).copy()
    blocks = (*found.velocities, *velocity_blocks.hidden(found))
    values |= found.components(gram) | velocity_blocks.components(found, gram, blocks)
    return dataclasses.replace(
        initial,
        state={name: values[name] for name in initial.state},
        constants={name: values[name] for name in initial.constants},
    )


def _picked(found: Rows, gram: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return T G T^T, where T replaces the rows of copies by those of their students."""
    if not pairs:
        return gram
    picked = np.arange(gram.shape[-1])
    for copy, of in pairs:
        for slot in found.declaration.groups[copy].slots:
            picked[found.of(copy, slot)] = picked[found.of(of, slot)]
    return gram[..., picked, :][..., picked]


def _readouts(declared: Declaration, values: Mapping[str, np.ndarray], pair: tuple[int, int]) -> dict[str, np.ndarray]:
    """The readouts of a copy that is made."""
    copy, of = (declared.readout_name(number, "") for number in pair)
    return {copy: values[of]} if of in values else {}


def _fresh(initial: Initial, gram: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    """Return the Gram matrix (n, n) with random directions, with the norm of the start, for one slot of a group.

    Velocities, which follow all rows, are unchanged.
    """
    found = rows(initial.parameters)
    groups = found.declaration.students
    slots = [(k, slot) for k, group in enumerate(groups) for slot in group.slots]
    new = found.of(*next((k, slot) for k, slot in slots if groups[k].named(slot) == name))
    kept = np.setdiff1d(np.arange(len(gram)), np.arange(new.start, new.stop))
    # Columns without a row are directions outside of the span. The order of the rows does not change, so that replicas
    # of SGD and their flow draw the same numbers. In few dimensions there may be no space for these columns.
    count = new.stop - new.start
    frame = (root if len(kept) + count <= initial.parameters.d else thin_root)(gram[np.ix_(kept, kept)])
    rank = frame.shape[1]
    coordinates = np.zeros((len(gram), rank + count))
    coordinates[kept, :rank] = frame
    drawn = np.zeros((count, rank + count))
    drawn[:, :rank] = rng.normal(size=(count, rank))
    free = initial.parameters.d - rank - np.arange(count)
    outside = np.tril(rng.normal(size=(count, count)), -1)
    outside[np.diag_indices(count)] = np.sqrt(rng.chisquare(np.maximum(free, 1)))
    drawn[:, rank:] = np.where(np.arange(count) < initial.parameters.d - rank, outside, 0.0)
    size = np.linalg.norm(drawn, axis=1)
    coordinates[new] = drawn * (norms(initial.parameters)[new] / size)[:, None]
    made = coordinates @ coordinates.T
    made[np.ix_(kept, kept)] = gram[np.ix_(kept, kept)]  # exactly the same as before
    return made


def norms(parameters: Any) -> np.ndarray:
    """The norms (students,) of the student rows at the start."""
    found = rows(parameters)
    values, at = np.empty(found.students), 0
    for number, group in enumerate(parameters.declaration.students):
        for slot in group.slots:
            values[found.of(number, slot)] = getattr(parameters, parameters.declaration.start.norms[at][0])
            at += 1
    return values
