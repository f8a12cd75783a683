"""Initial condition of a declared model: overlaps, drawn at any dimension, declared, or read from a file."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled, UsageError
from derivations.declare import beginnings, copies, data, mixture, schedules, spectra, spread, velocity_blocks
from derivations.declare.declaration import Declaration
from derivations.declare.grammar import number as value_of
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.readouts import COPIED
from derivations.declare.rows import Rows, readout
from derivations.declare.schedules import TIME
from derivations.vectors import grams_by_block, root

SYMMETRIC = 1e-9
"""Allowed deviation from symmetry, or of the smallest eigenvalue below zero, of a given Gram matrix; nine digits are
enough.
"""


def enter(parameters: Any, previous: Mapping[str, np.ndarray] | None, rng: np.random.Generator) -> Initial:
    """Return the initial condition of a run: from arrays (a file, an earlier run, the declaration), or drawn with
    `rng`.
    """
    declared: Declaration = parameters.declaration
    layout = rows(parameters)
    declared_arrays = {
        name: np.asarray(values, float)
        for name, values in declared.start.arrays
        if getattr(parameters, name, None) is None  # a number by -p replaces a list of readouts
    }
    arrays = declared_arrays if previous is None else spread.with_given(declared, previous)
    stating = any(block.name in arrays for block in layout.moving)
    if previous is not None and weights(arrays) is not None:
        gram = _of_weights(parameters, arrays)
    elif stating:
        gram = _of_overlaps(parameters, arrays, rng)
    else:
        gram = draw(parameters, rng)
    components = layout.components(beginnings.with_copies(layout, gram, arrays))
    state = {block.name: components[block.name] for block in layout.moving}
    constants = {block.name: components[block.name] for block in layout.fixed}
    for number, word, count in layout.scalars:
        group = declared.students[number]
        name = group.named(word)
        trained = word in group.trained_readouts
        value = np.asarray(arrays.get(name, getattr(parameters, name if trained else word)), float)
        state[name] = _vector(name, value, count)
    values, of = dict(zip(declared.names, numbers(parameters), strict=True)), dict(copies.sources(declared))
    for number, fixed_readout in declared.fixed_readouts():
        name = declared.readout_name(number, fixed_readout.head)
        if name in arrays:
            value = arrays[name]
        elif fixed_readout.output == COPIED:
            value = state[declared.groups[of[number]].named(fixed_readout.word)]
        else:
            value = readout(fixed_readout, layout.sizes[number], values)
        constants[name] = _vector(name, np.asarray(value, float), layout.sizes[number])
    constants |= _numbers_of_rules(parameters, arrays)
    state |= velocity_blocks.start(layout, {} if previous is None else arrays)
    state |= beginnings.with_velocities(layout, state, arrays)
    constants |= velocity_blocks.of_sgd(layout, arrays)
    for memory in declared.memories:
        state[memory.name] = np.asarray(arrays.get(memory.name, getattr(parameters, memory.name)), float).reshape(())
    if declared.clocked:
        state[TIME] = np.zeros(())
    exact = not weights(arrays) if stating or weights(arrays) else mixture.overlap(parameters) is not None
    initial = Initial(parameters, state, constants, parameters.d**-0.5, exact)
    if any(schedule.seen for schedule in schedules.active(parameters)):
        clock = {TIME: np.array(declared.begin)} if declared.begin else {}
        schedules.now(dataclasses.replace(initial, state={**state, **clock}))  # refuses values out of their domains
    return initial


def _numbers_of_rules(parameters: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the scalars of each unit that only rules use: given, one for all units, or an expression in j."""
    declared, scalars = parameters.declaration, {}
    formulas = {number.name: number.formula for number in declared.numbers}
    for group, size in zip(declared.students, rows(parameters).sizes, strict=False):
        for word in declared.constants(group):
            name, value = group.named(word), getattr(parameters, word)
            if value is None:
                value = [value_of(formulas[word], {"j": j + 1.0}) for j in range(size)]
            scalars[name] = _vector(name, np.asarray(arrays.get(name, value), float), size)
    return scalars


def of_rules(initial: Initial) -> Labelled:
    """Return the scalars of each unit that only rules use, in the form that a run saves."""
    layout, variables = rows(initial.parameters), {}
    for number, group in enumerate(layout.declaration.students):
        for word in layout.declaration.constants(group):
            values = initial.constants[group.named(word)]
            variables[group.named(word)] = ((layout.dimension(number),), values, f"number {word} of unit i")
    return variables


def _vector(name: str, value: np.ndarray, count: int) -> np.ndarray:
    """Return one scalar of each unit, (count,), from that many or from one for all."""
    if value.shape not in ((), (1,), (count,)):
        raise UsageError(f"{name} has the shape {value.shape}, but there are {count} units")
    return np.broadcast_to(value, (count,)).copy()


def teacher_gram(parameters: Any) -> np.ndarray:
    """The Gram matrix (n, n) of the teacher's rows: orthonormal, equal overlaps, or as declared.

    Raises `UsageError` for an invalid matrix: not symmetric, of another size, or with a negative eigenvalue.
    """
    layout, declared = rows(parameters), parameters.declaration
    copied = sum(len(declared.groups[k].slots) * layout.sizes[k] for k, _ in copies.sources(declared))
    if copied:
        gram = np.eye(layout.teachers)  # the rows of copies become those of students, whatever values are here
        gram[:-copied, :-copied] = _stated_gram(parameters, layout.teachers - copied)
        return gram
    return _stated_gram(parameters, layout.teachers)


def _stated_gram(parameters: Any, size: int) -> np.ndarray:
    """Return the Gram matrix (size, size) of the teacher's rows in the declaration."""
    declared = parameters.declaration
    if size == 0:
        return np.zeros((0, 0))
    if hasattr(parameters, "gram"):
        gram = np.full((size, size), parameters.gram)
        np.fill_diagonal(gram, 1.0)
        least_eigenvalue = 1 + min((size - 1) * parameters.gram, -parameters.gram)
        if size > 1 and least_eigenvalue < -SYMMETRIC:
            raise UsageError(
                f"gram = {parameters.gram:g} is impossible for {size} vectors: their Gram matrix has the least "
                f"eigenvalue {least_eigenvalue:.3g}; take at least {-1 / (size - 1):.3g}"
            )
        return gram
    gram = np.asarray(declared.gram, float)
    if gram.shape != (size, size):
        raise UsageError(f"the teacher's Gram matrix must be {size} x {size}, but is {gram.shape[0]} x {gram.shape[1]}")
    require_gram(gram, "the teacher's Gram matrix")
    zero = np.flatnonzero(np.diag(gram) <= 0)
    if zero.size:
        raise UsageError(f"the teacher's Gram matrix has a zero on its diagonal, row {zero[0]}, so a vector is zero")
    return gram


def require_gram(gram: np.ndarray, name: str) -> None:
    """Raise `UsageError` unless a matrix is symmetric and positive semi-definite."""
    scale = max(float(np.abs(gram).max()), 1e-300)
    if not np.isfinite(gram).all() or np.abs(gram - gram.T).max() > SYMMETRIC * scale:
        raise UsageError(f"{name} is not symmetric and finite")
    least_eigenvalue = float(np.linalg.eigvalsh(gram).min())
    if least_eigenvalue < -SYMMETRIC * scale:
        raise UsageError(f"{name} does not belong to any vectors: its least eigenvalue is {least_eigenvalue:.3g}")


def teachers(parameters: Any, rng: np.random.Generator) -> np.ndarray:
    """Return the Gram matrix (n, n) of the rows of teachers and means, or those (L, n, n) of their parts in
    eigenspaces.
    """
    gram, layout = teacher_gram(parameters), rows(parameters)
    if not layout.stack and not layout.means:
        return gram
    parts = spread.fixed_blocks(parameters, gram, rng)
    return parts if layout.stack else parts[0]


def draw(parameters: Any, rng: np.random.Generator) -> np.ndarray:
    """A Gram matrix (n, n) drawn in dimension d without a d-vector; (L, n, n) with several eigenspaces.

    Student rows are random directions with the declared norms: Gaussian components in the teachers' span, and
    Bartlett's factor outside of it. With `overlap` every row has this cosine with the teacher of its number and slot,
    and the rest of the row is orthogonal to all other vectors.
    """
    layout = rows(parameters)
    if layout.stack or layout.means or not layout.teachers:
        fixed = teachers(parameters, rng)
        parts = spread.draw(
            parameters, fixed if layout.stack else fixed[None], beginnings.norms(parameters), partners(layout), rng
        )
        return parts if layout.stack else parts[0]
    taught, s = teacher_gram(parameters), layout.students
    frame = root(taught)
    t = taught.shape[0]
    if parameters.overlap is None:
        coordinates = np.zeros((s, t + s))
        coordinates[:, :t] = rng.normal(size=(s, t))
        lower = np.tril_indices(s, -1)
        coordinates[:, t:][lower] = rng.normal(size=len(lower[0]))
        coordinates[:, t:][np.diag_indices(s)] = np.sqrt(rng.chisquare(parameters.d - t - np.arange(s)))
    else:
        coordinates = np.zeros((s, t + s))
        partner = partners(layout)
        unit_teachers = frame / np.sqrt(np.diag(taught))[:, None]
        coordinates[:, :t] = parameters.overlap * unit_teachers[partner]
        coordinates[:, t:] = np.sqrt(1 - parameters.overlap**2) * np.eye(s)
    size = np.linalg.norm(coordinates, axis=1)
    coordinates *= (beginnings.norms(parameters) / size)[:, None]
    all_rows = np.vstack([coordinates, np.hstack([frame, np.zeros((t, s))])])
    gram = all_rows @ all_rows.T
    gram[s:, s:] = taught
    if parameters.overlap is None:
        return gram
    gram[np.arange(s), np.arange(s)] = beginnings.norms(parameters) ** 2  # exactly the requested value
    return gram


def partners(layout: Rows) -> np.ndarray:
    """Return the teacher's row, counted among the teachers', of every student row: same slot (else the first), its
    number.
    """
    declared = layout.declaration
    students, partner = len(declared.students), np.zeros(layout.students, int)
    if not declared.teachers:
        return partner
    for number, group in enumerate(declared.students):
        matched = next(
            (k for k, t in enumerate(copies.stated(declared)) if t.name == group.name),
            min(number, len(copies.stated(declared)) - 1),
        )
        teacher = declared.teachers[matched]
        for slot in group.slots:
            teacher_slot = slot if slot in teacher.slots else teacher.slots[0]
            start = layout.of(students + matched, teacher_slot).start - layout.students
            size = layout.sizes[students + matched]
            partner[layout.of(number, slot)] = start + np.arange(layout.sizes[number]) % size
    return partner


def weight_names(layout: Rows) -> list[tuple[str, int, str]]:
    """The arrays of a file of weights: (name, group, slot); a teacher's end in `_star`."""
    names = []
    for number, group in enumerate(layout.declaration.kinds):
        for slot in group.slots:
            names.append((group.named(slot if layout.is_student(number) else f"{slot}_star"), number, slot))
    return names


def weights(arrays: Mapping[str, np.ndarray]) -> bool | None:
    """Return True if arrays are weights (with a name ending in `_star` that is not a readout), otherwise None."""
    return True if any(n.endswith("_star") and not n.endswith("a_star") for n in arrays) else None


def stack(layout: Rows, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The rows (n, d) of weights by name, in the eigenbasis of the inputs."""
    arrays = beginnings.with_weights(layout, arrays)
    rows = np.vstack([np.asarray(arrays[name], float) for name, _, _ in weight_names(layout)])
    return data.rotated(layout.declaration.inputs, rows)


def _of_weights(parameters: Any, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    all_rows = stack(rows(parameters), arrays)
    with np.errstate(over="ignore", invalid="ignore"):  # too large values and NaN raise an error
        blocks = spectra.blocks(parameters) if rows(parameters).stack else None
        return all_rows @ all_rows.T if blocks is None else grams_by_block(all_rows, blocks.dimension)


def _of_overlaps(parameters: Any, arrays: Mapping[str, np.ndarray], rng: np.random.Generator) -> np.ndarray:
    layout = rows(parameters)
    values = dict(arrays)
    implied_names = beginnings.implied(layout, arrays)
    required = {block.name for block in layout.moving} | beginnings.stated(layout)
    missing = [block.name for block in layout.blocks if block.name in required - implied_names - values.keys()]
    if missing:
        raise UsageError(
            f"the start lacks {', '.join(missing)}: give all overlaps of the students with each other and with "
            "the teachers"
        )
    s = layout.students
    full = np.zeros((*layout.stack, layout.total, layout.total))
    full[..., s:, s:] = teachers(parameters, rng)
    values = {**layout.components(full), **values}
    for block in layout.blocks:
        if np.shape(values[block.name]) != block.shape:
            raise UsageError(f"{block.name} must have shape {block.shape}, but has {np.shape(values[block.name])}")
    gram = layout.gram(values)
    for number, matrix in enumerate(gram if layout.stack else [gram], 1):
        location = f", block {number} of the inputs" if layout.stack else ""
        require_gram(matrix, f"the Gram matrix of the start{location}")
    return gram


def read(arrays: Mapping[str, np.ndarray], parameters: Any, explicit: frozenset[str] = frozenset()) -> Any:
    """Check the weights or overlaps of an initial file and return the parameters with their sizes.

    Raises `UsageError` for arrays that are missing, unknown, zero, not finite, or of inconsistent shapes.
    """
    layout, declared = rows(parameters), parameters.declaration
    arrays = spread.with_given(declared, arrays)
    if declared.clocked:  # the end of a run has a clock, but the new run begins at 0
        arrays = {name: values for name, values in arrays.items() if name != TIME}
    scalars = [declared.students[number].named(word) for number, word, _ in layout.scalars]
    scalars += [declared.readout_name(k, fixed_readout.head) for k, fixed_readout in declared.fixed_readouts()]
    scalars += [name for name, *_ in velocity_blocks.described(layout)]
    for name, values in arrays.items():
        if not np.isfinite(np.asarray(values, float)).all():
            raise UsageError(f"{name} of the initial file is not finite")
    if weights(arrays) or any(name in arrays for name, _, _ in weight_names(layout)):
        expected = {name: (number, slot) for name, number, slot in weight_names(layout)}
    else:
        expected = {block.name: None for block in layout.blocks}
    optional = (
        {block.name for block in layout.fixed} | beginnings.implied(layout, arrays) | beginnings.weights(declared)
    )
    missing = [name for name in expected if name not in arrays and name not in optional]
    extra = [name for name in arrays if name not in expected and name not in scalars]
    if missing or extra:
        wrong = f"lacks {', '.join(missing)}" if missing else f"has unknown arrays {', '.join(extra)}"
        raise UsageError(
            f"the initial file {wrong}; expected {', '.join(expected)}, and optionally "
            f"{', '.join(dict.fromkeys(scalars))}"
        )
    if weights(arrays):
        _require_means(layout, arrays)
    resized = dataclasses.replace(parameters, **_sizes(parameters, arrays, explicit))
    start = enter(resized, arrays, np.random.default_rng(0))
    velocity_blocks.require(rows(resized), start)
    for name, values in {**start.state, **start.constants}.items():
        block = next((b for b in rows(resized).blocks if b.name == name), None)
        if block is not None and block.symmetric:
            squares = np.diag(values.sum(0) if block.stack else values)
            if (squares <= 0).any():
                raise UsageError(f"row {int(np.argmin(squares))} of {name}: a weight vector is zero")
    if resized.d < rows(resized).total and not rows(resized).stack:
        values = np.linalg.eigvalsh(rows(resized).gram({**start.state, **start.constants}))
        rank = int((values > SYMMETRIC * values[-1]).sum())
        if rank > resized.d:
            raise UsageError(
                f"the overlaps belong to {rank} independent vectors, which do not exist in d = {resized.d} dimensions"
            )
    return resized


def _sizes(parameters: Any, arrays: Mapping[str, np.ndarray], explicit: frozenset[str]) -> dict[str, int]:
    layout, declared = rows(parameters), parameters.declaration
    sizes: dict[str, int] = {}
    for number, group in enumerate(declared.groups):
        student, word = layout.is_student(number), copies.size_name(declared, number)
        shapes = {}
        for slot in group.slots:
            name = group.named(slot if student else f"{slot}_star")
            if weights(arrays):
                shapes |= {name: np.shape(arrays[name])} if name in arrays or not group.copied else {}
            else:
                block = next(b for b in layout.blocks if b.symmetric and b.rows == layout.of(number, slot))
                if block.name in arrays:
                    shapes[block.name] = np.shape(arrays[block.name])
        for name, shape in shapes.items():
            if len(shape) != 2 + (bool(layout.stack) and not weights(arrays)):
                suffix = " for every block of the inputs" if layout.stack and not weights(arrays) else ""
                raise UsageError(f"{name} must be a matrix{suffix}, but has shape {shape}")
            if sizes.setdefault(word, shape[-2]) != shape[-2]:
                raise UsageError(f"{name} has {shape[-2]} rows, but other arrays say {word} = {sizes[word]}")
            if not all(shape):
                raise UsageError(f"{name} is empty: its shape is {shape}")
            length = data.weights_dimension(declared.inputs, shape[1]) if weights(arrays) else 0
            if weights(arrays) and sizes.setdefault("d", length) != length:
                raise UsageError(f"{name} has vectors in dimension {length}, others in {sizes['d']}")
    for name, value in sizes.items():
        if name in explicit and getattr(parameters, name) != value:
            raise UsageError(
                f"-p {name}={getattr(parameters, name)} disagrees with the initial file, which has {name} = "
                f"{value}; leave out the option or change the file"
            )
    return sizes


def _require_means(layout: Rows, arrays: Mapping[str, np.ndarray]) -> None:
    """Raise `UsageError` unless a file of weights has a vector for every named mean."""
    for name, number, _ in weight_names(layout):
        if number >= len(layout.declaration.groups) and len(np.shape(arrays[name])) != 2:
            raise UsageError(f"{name} must be a matrix, but has shape {np.shape(arrays[name])}")
        if number >= len(layout.declaration.groups) and len(arrays[name]) != layout.means:
            raise UsageError(f"{name} has {len(arrays[name])} rows, but the inputs have {layout.means} named means")
