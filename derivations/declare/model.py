"""Microscopic model of a declaration: student, teacher, loss, one SGD step.

    f(x) = sum_i a_i phi(u_i . x, ..),  y = f*(x) + noise N(0, 1),  x ~ N(0, I_d),  loss l(f, y), mean over a batch
    u <- u - h (dl/du + decay u), s <- s - h dl/ds; `sphere`: along the tangential part, the norm restored

No kernel, moment or expansion is used here.
"""

import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Eigenspaces, Initial, Labelled, ScalarModel, unpacked
from derivations.declare import (
    classes,
    data,
    evaluate,
    looked,
    looks,
    mixture,
    momentum,
    noise,
    parameter_class,
    schedules,
    spectra,
    speeds,
    spread,
    symbols,
    velocity_blocks,
    written,
)
from derivations.declare.declaration import Declaration, Inputs
from derivations.declare.initial import of_rules, stack
from derivations.declare.initial import weights as holds_weights
from derivations.declare.rows import Rows
from derivations.declare.schedules import Schedule


def model(parameters: Any) -> ScalarModel:
    """Return the model of the declaration of the parameters."""
    return of_declaration(noise.in_force(parameters), schedules.active(parameters))


@functools.lru_cache(maxsize=64)
def of_declaration(declared: Declaration, changing: tuple[Schedule, ...] = ()) -> ScalarModel:
    """The model of a declaration, one for all sizes and values; its functions are written when they are needed.

    `changing` are the active schedules.
    """
    return ScalarModel(
        module=__name__,
        helpers=(),
        normalised=False,
        noise=(0, len(declared.force)),
        sizes=sizes,
        numbers=numbers,
        place=place,
        weights=functools.partial(weights, declared),
        observe=observe,
        constants=tuple(declared.readout_name(k, readout.head) for k, readout in declared.fixed_readouts())
        + tuple(group.named(word) for group in declared.students for word in declared.constants(group)),
        scalars=scalars,
        further=further,
        losses=functools.partial(of_samples, evaluate.losses, declared, changing),
        moves=functools.partial(of_samples, moves, declared, changing) if (moves := _moves(declared)) else None,
        wrong=functools.partial(of_samples, evaluate.wrong, declared, changing) if declared.classifies() else None,
        written=functools.partial(written.module, declared, changing),
        stem=f"declared_{signature(declared, changing)}",
        fixed=fixed,
        spaces=spaces,
        velocities=velocities if declared.momentum is not None else None,
        kept=kept if declared.momentum is not None and not declared.inertial else None,
        lengths=looks.measured(declared),
        episode=1 if declared.episode is None else declared.episode.samples,
        degree=degree(declared),
    )


def degree(declared: Declaration) -> int:
    """Return the degree of the units as polynomials of their fields; 0 if a unit, a share or the loss is not a
    polynomial.

    Rules, looks, predictions and noise with another than the normal distribution also give 0.
    """
    import sympy

    plain = declared.loss in ("squared", "correlation") and declared.own_loss is None
    if not plain or declared.rules or declared.look is not None or declared.predicted or declared.law is not None:
        return 0
    degrees = []
    for group in declared.groups:
        unit, fields = symbols.build(group.unit, group.slots), [symbols.slot(slot) for slot in group.slots]
        if group.share is not None or not unit.is_polynomial(*fields):
            return 0
        degrees.append(sympy.Poly(unit, *fields).total_degree())
    return int(max(degrees, default=0))


def _moves(declared: Declaration) -> Callable[..., Any] | None:
    """Return the motion by samples if it is not a derivative of their losses."""
    return looked.moves if declared.look is not None else evaluate.moves if declared.rules else None


def signature(declared: Declaration, changing: tuple[Schedule, ...] = ()) -> str:
    """12 hexadecimal characters of all that the written functions depend on: expressions, loss, constraint."""
    groups = [(group.unit, group.slots, group.scalars, group.output == "trained") for group in declared.groups]
    contents = (len(declared.students), groups, declared.loss, declared.own_loss, declared.weights, declared.names)
    contents = (*contents, declared.limit, declared.rates, changing) if changing else contents
    contents = (
        (*contents, declared.rules, [declared.ruled(group) for group in declared.students])
        if declared.rules
        else contents
    )
    contents = (*contents, declared.law) if declared.law is not None else contents
    contents = (*contents, declared.memories, declared.limit, declared.rates) if declared.memories else contents
    contents = (
        (*contents, declared.answers) if declared.several or declared.labelling or declared.predicted else contents
    )
    contents = (
        (*contents, declared.momentum.timed, declared.momentum.nesterov, declared.limit)
        if declared.momentum
        else contents
    )
    contents = (*contents, *resting) if declared.momentum and (resting := momentum.resting(declared)) else contents
    contents = (*contents, declared.look.use, declared.look.times) if declared.look is not None else contents
    contents = (*contents, declared.episode) if declared.episode is not None else contents
    return hashlib.sha256(repr(contents).encode()).hexdigest()[:12]


def sizes(parameters: Any) -> tuple[int, int]:
    """The rows of students, and those of teachers and means."""
    rows = parameter_class.rows(parameters)
    return rows.students, rows.total - rows.students


def further(parameters: Any) -> int:
    """Return the rows of norms, one for each vector if the loss depends on norms, and one for each scalar."""
    rows = parameter_class.rows(parameters)
    row_count = sum(count for _, _, count in rows.scalars)
    row_count += len(parameters.declaration.memories)
    return row_count + (rows.students if written.norms(parameters.declaration) else 0)


def numbers(parameters: Any, gram: np.ndarray) -> tuple[Any, ...]:
    """Return the arguments in `written.arguments` up to the constant readouts."""
    rows = parameter_class.rows(parameters)
    counts = np.array([count for _, _, count in rows.scalars], int)
    square, start_parameters = np.diag(rows.whole(gram)), schedules.begun(parameters)
    return (
        *rows.units,
        *(np.array([value]) for value in parameter_class.numbers(parameters)),
        square[rows.students :].copy(),
        np.array([noise.scale(parameters)]),
        np.array([float(start_parameters.decay)]),
        np.sqrt(square[: rows.students]),
        speeds.of_steps(parameters),
        np.append(
            np.repeat(speeds.of_scalar_steps(parameters), counts), np.zeros(len(parameters.declaration.memories))
        ),
        *momentum.constants(parameters),
        *looks.constants(parameters),
        *_clock(parameters),
    )


def _clock(parameters: Any) -> tuple[np.ndarray, ...]:
    """Return steps in a unit of time, and the switches: their times, and their values before and after.

    In an online limit a time is the number of a step, which is exact in single precision; in a flow, whose step is not
    known here, it is a time.
    """
    if not schedules.active(parameters) and not parameters.declaration.memories:
        return ()
    turns = [(turn.time, turn.before, turn.after) for turn in schedules.turns(parameters)]
    times, values_before, values_after = np.array(turns, float).reshape(-1, 3).T.copy()
    steps = 1.0 if parameters.declaration.limit == "batch" else float(parameters.d)
    if parameters.declaration.limit != "flow":
        times = np.ceil(times * steps - schedules.BEFORE)
    return np.array([steps]), times, values_before, values_after


def scalars(initial: Initial) -> np.ndarray:
    """The readouts and scalars (s,) at the start, in the order of `Rows.scalars`."""
    values = [initial.state[name] for name in scalar_names(parameter_class.rows(initial.parameters))]
    values += [np.atleast_1d(initial.state[memory.name]) for memory in initial.parameters.declaration.memories]
    return np.concatenate([*values, np.empty(0)])


def scalar_names(rows: Rows) -> list[str]:
    """The names of readouts and scalars in the order parameters."""
    return [rows.declaration.students[k].named(word) for k, word, _ in rows.scalars]


def spaces(parameters: Any) -> Eigenspaces | None:
    """The eigenspaces of the inputs; None for x ~ N(0, I)."""
    blocks, law = spectra.blocks(parameters), mixture.mixture(parameters)
    if blocks is None or law is None:
        return None
    inputs = parameters.declaration.inputs
    has_samples = inputs.data is not None
    return Eigenspaces(
        law.eigenvalue,
        blocks.dimension,
        functools.partial(mixture.variances, parameters),
        law.probability,
        law.mean,
        law.label,
        samples=functools.partial(spectra.samples, parameters) if has_samples else None,
        count=inputs.data.shape[0] if has_samples else 0,
        targets=functools.partial(data.labels, inputs.label) if inputs.label is not None else None,
        frame=functools.partial(frame, inputs),
    )


def frame(inputs: Inputs) -> np.ndarray | None:
    """Return the fixed vectors (fixed, d) with given coordinates, which come last; None if there are none."""
    taught, means = data.teacher(inputs), classes.named_means(inputs)
    vectors = [rows for rows in (taught, means) if rows is not None]
    return np.vstack(vectors) if vectors else None


def place(initial: Initial) -> np.ndarray:
    """The Gram matrix (n, n) of all rows, or those (L, n, n) of their parts in the eigenspaces."""
    return parameter_class.rows(initial.parameters).gram({**initial.state, **initial.constants})


def weights(declared: Declaration, arrays: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The rows (n, d) of a file of weights; None for overlaps."""
    weight_arrays = spread.with_given(declared, arrays)
    return stack(Rows(declared, ()), weight_arrays) if holds_weights(weight_arrays) else None


def observe(parameters: Any, saved: np.ndarray) -> Labelled:
    """The blocks Q and M, readouts and scalars, from packed Gram matrices and scalars (.., n n + s)."""
    rows = parameter_class.rows(parameters)
    count = rows.students if rows.declaration.momentum is not None else 0  # rows of velocities
    gram, values = unpacked(saved, rows.total + count, rows.stack)
    components = rows.components(gram)
    variables: dict[str, Any] = {b.name: (b.dims, components[b.name], b.meaning) for b in rows.moving}
    position = 0
    for (k, word, count), name in zip(rows.scalars, scalar_names(rows), strict=True):
        heads = {readout.word: readout.head for readout in rows.declaration.students[k].readouts}
        meaning = f"{word} of unit i" if word not in heads else "readout of unit i"
        meaning += f" for head {heads[word]}" if heads.get(word) else ""
        variables[name] = ((rows.dimension(k),), values[..., position : position + count], meaning)
        position += count
    for memory in rows.declaration.memories:
        variables[memory.name] = ((), values[..., position], f"memory, with the rate {memory.text}")
        position += 1
    return variables | _observed_velocities(rows, gram, values[..., position:])


def _observed_velocities(rows: Rows, gram: np.ndarray, values: np.ndarray) -> Labelled:
    """Return the velocities, if they are order parameters."""
    blocks, trained = velocity_blocks.components(rows, gram), velocity_blocks.pushes(rows)
    starts = dict(
        zip([scalar[:2] for scalar in rows.scalars], np.cumsum([0, *(n for *_, n in rows.scalars)]), strict=False)
    )
    blocks |= {
        velocity_blocks.push_name(rows, g, word): values[..., starts[g, word] : starts[g, word] + count]
        for g, word, count in trained
    }
    return {name: (dims, blocks[name], text) for name, dims, text in velocity_blocks.described(rows)}


def kept(parameters: Any, saved: np.ndarray) -> Labelled:
    """Return the velocities of a fixed beta, which are not order parameters, from packed Gram matrices and numbers (..,
    n).
    """
    rows = parameter_class.rows(parameters)
    gram, values = unpacked(saved, rows.total + rows.students, rows.stack)
    blocks = velocity_blocks.hidden(rows)
    components = velocity_blocks.components(rows, gram, blocks)
    labelled = {block.name: (block.dims, components[block.name], block.meaning) for block in blocks}
    position = values.shape[-1] // 2
    for number, word, count in rows.scalars:
        name = velocity_blocks.push_name(rows, number, word)
        labelled[name] = (
            (rows.dimension(number),),
            values[..., position : position + count],
            f"velocity of {word} of unit i",
        )
        position += count
    return labelled


def velocities(initial: Initial) -> tuple[np.ndarray, np.ndarray]:
    """Return the Gram matrix (.., n + S, n + S) with the velocities of vectors after all rows, and those (s,) of
    numbers.
    """
    rows, values = parameter_class.rows(initial.parameters), {**initial.constants, **initial.state}
    scalar_velocities = []
    for number, word, count in rows.scalars:
        name = velocity_blocks.push_name(rows, number, word)
        scalar_velocities.append(np.asarray(values.get(name, np.zeros(count)), float))
    scalar_velocities.append(np.zeros(len(rows.declaration.memories)))
    return velocity_blocks.extended(rows, place(initial), values), np.concatenate(scalar_velocities)


def fixed(initial: Initial) -> Labelled:
    """The overlaps among the teachers, the readouts that do not move, and the blocks of the inputs."""
    rows = parameter_class.rows(initial.parameters)
    variables: dict[str, Any] = {b.name: (b.dims, initial.constants[b.name], b.meaning) for b in rows.fixed}
    for k, readout in rows.declaration.fixed_readouts():
        name = rows.declaration.readout_name(k, readout.head)
        variables[name] = ((rows.dimension(k),), initial.constants[name], f"readout of {rows.dimension(k)} i")
    return {
        **variables,
        **of_rules(initial),
        **spectra.labelled(initial.parameters),
        **mixture.labelled(initial.parameters),
    }


def of_samples(
    measure: Callable[..., Any], declared: Declaration, changing: tuple[Schedule, ...], vectors: Any, scalars: Any,
    x: Any, labels: Any, *numbers: Any,
) -> Any:  # fmt: skip
    """Apply a `measure` of `evaluate` to samples, with the run-time arguments of the written functions."""
    named = dict(zip(written.arguments(declared, changing), numbers, strict=True))
    return measure(declared, vectors, scalars, x, labels, named)
