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


def unmade(layout: Rows, arrays: Mapping[str, np.ndarray]) -> list[tuple[int, int]]:
    """Return the copies that some arrays do not contain, with the students that they copy, as numbers of groups."""
    declared = layout.declaration

    def held(copy: int, of: int) -> bool:
        names = [layout.block_of((of, slot), (copy, slot)).name for slot in declared.groups[copy].slots]
        stars = [declared.groups[copy].named(f"{slot}_star") for slot in declared.groups[copy].slots]
        return any(name in arrays for name in (*names, *stars))

    return [(copy, of) for copy, of in copies.sources(declared) if not held(copy, of)]


def implied(layout: Rows, arrays: Mapping[str, np.ndarray]) -> set[str]:
    """Return the blocks of copies that some arrays do not contain; they follow from those of students."""
    declared, without = layout.declaration, unmade(layout, arrays)
    starts = {layout.of(copy, slot).start for copy, _ in without for slot in declared.groups[copy].slots}
    return {block.name for block in layout.blocks if starts & {block.rows.start, block.columns.start}}


def stated(layout: Rows) -> set[str]:
    """Return the blocks of copies; a start with one of them must have all."""
    return implied(layout, {})


def weights(declared: Declaration) -> set[str]:
    """Return the names of the vectors of copies in a file of weights, which are optional."""
    groups = declared.groups
    return {groups[k].named(f"{slot}_star") for k, _ in copies.sources(declared) for slot in groups[k].slots}


def with_copies(layout: Rows, gram: np.ndarray, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return Gram matrices (.., n, n) with copies of the students, except copies that `arrays` already contain."""
    return _picked(layout, gram, unmade(layout, arrays))


def with_velocities(
    layout: Rows, state: dict[str, np.ndarray], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the velocities of a start; their overlaps with new copies are those with the students."""
    sources = dict(unmade(layout, arrays))
    names = {(block.first, block.second): block.name for block in layout.velocities}
    return {
        block.name: state[names[block.first, (sources[block.second[0]], block.second[1])]]
        for block in layout.velocities
        if block.second[0] in sources
    }


def with_weights(layout: Rows, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights by name, with missing copies made of the students."""
    groups = layout.declaration.groups
    copied_weights = {
        groups[copy].named(f"{slot}_star"): arrays[groups[of].named(slot)]
        for copy, of in unmade(layout, arrays)
        for slot in groups[copy].slots
        if groups[of].named(slot) in arrays
    }
    return {**copied_weights, **arrays}


def begin(initial: Initial, rng: np.random.Generator) -> Initial:
    """The start of a stage after its `begin`, from left to right; overlaps with new directions are drawn by `rng`."""
    layout = rows(initial.parameters)
    declared: Declaration = layout.declaration
    values = {**initial.state, **initial.constants}
    gram = velocity_blocks.extended(layout, layout.gram(values), values)
    for change in declared.changes:
        if change.kind == "copy":
            pair = next(pair for pair in copies.sources(declared) if declared.groups[pair[0]].name == change.name)
            gram = _picked(layout, gram, [pair])
            values |= _readouts(declared, values, pair)
        elif change.kind == copies.FRESH:
            gram = _fresh(initial, gram, change.name, rng)
        else:
            start_values = values[change.value] if isinstance(change.value, str) else change.value
            values[change.name] = np.broadcast_to(start_values, values[change.name].shape).copy()
    blocks = (*layout.velocities, *velocity_blocks.hidden(layout))
    values |= layout.components(gram) | velocity_blocks.components(layout, gram, blocks)
    return dataclasses.replace(
        initial,
        state={name: values[name] for name in initial.state},
        constants={name: values[name] for name in initial.constants},
    )


def _picked(layout: Rows, gram: np.ndarray, pairs: list[tuple[int, int]]) -> np.ndarray:
    """Return T G T^T, where T replaces the rows of copies by those of their students."""
    if not pairs:
        return gram
    picked = np.arange(gram.shape[-1])
    for copy, of in pairs:
        for slot in layout.declaration.groups[copy].slots:
            picked[layout.of(copy, slot)] = picked[layout.of(of, slot)]
    return gram[..., picked, :][..., picked]


def _readouts(declared: Declaration, values: Mapping[str, np.ndarray], pair: tuple[int, int]) -> dict[str, np.ndarray]:
    """The readouts of a copy that is made."""
    copy, of = (declared.readout_name(number, "") for number in pair)
    return {copy: values[of]} if of in values else {}


def _fresh(initial: Initial, gram: np.ndarray, name: str, rng: np.random.Generator) -> np.ndarray:
    """Return the Gram matrix (n, n) with random directions, with the norm of the start, for one slot of a group.

    Velocities, which follow all rows, are unchanged.
    """
    layout = rows(initial.parameters)
    groups = layout.declaration.students
    slots = [(k, slot) for k, group in enumerate(groups) for slot in group.slots]
    new = layout.of(*next((k, slot) for k, slot in slots if groups[k].named(slot) == name))
    old_rows = np.setdiff1d(np.arange(len(gram)), np.arange(new.start, new.stop))
    # Columns without a row are directions outside of the span. The order of the rows does not change, so that replicas
    # of SGD and their flow draw the same numbers. In few dimensions there may be no space for these columns.
    count = new.stop - new.start
    frame = (root if len(old_rows) + count <= initial.parameters.d else thin_root)(gram[np.ix_(old_rows, old_rows)])
    rank = frame.shape[1]
    coordinates = np.zeros((len(gram), rank + count))
    coordinates[old_rows, :rank] = frame
    fresh = np.zeros((count, rank + count))
    fresh[:, :rank] = rng.normal(size=(count, rank))
    free = initial.parameters.d - rank - np.arange(count)
    orthogonal_part = np.tril(rng.normal(size=(count, count)), -1)
    orthogonal_part[np.diag_indices(count)] = np.sqrt(rng.chisquare(np.maximum(free, 1)))
    fresh[:, rank:] = np.where(np.arange(count) < initial.parameters.d - rank, orthogonal_part, 0.0)
    size = np.linalg.norm(fresh, axis=1)
    coordinates[new] = fresh * (norms(initial.parameters)[new] / size)[:, None]
    new_gram = coordinates @ coordinates.T
    new_gram[np.ix_(old_rows, old_rows)] = gram[np.ix_(old_rows, old_rows)]  # exactly the same as before
    return new_gram


def norms(parameters: Any) -> np.ndarray:
    """The norms (students,) of the student rows at the start."""
    layout = rows(parameters)
    values, slot_index = np.empty(layout.students), 0
    for number, group in enumerate(parameters.declaration.students):
        for slot in group.slots:
            values[layout.of(number, slot)] = getattr(parameters, parameters.declaration.start.norms[slot_index][0])
            slot_index += 1
    return values
