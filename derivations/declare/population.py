"""Common parts of all tiers of a declared model: state, constants, events, invariants, and range of validity."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract import Component, Crossing, Initial, Labelled, UsageError
from derivations.declare import (
    batches,
    changing_gates,
    coupling,
    episodes,
    giant,
    mixture,
    noise,
    schedules,
    spectra,
    velocity_blocks,
)
from derivations.declare.declaration import Declaration
from derivations.declare.initial import of_rules, teacher_gram
from derivations.declare.parameter_class import numbers, rows, sizes
from derivations.declare.places import known_places
from derivations.declare.rows import Rows
from derivations.declare.schedules import TIME

CLOCK = "time on the clock of the run"


def coupled(declared: Declaration, number_values: tuple[float, ...]) -> Callable[[Initial], Any] | None:
    """Return the coupled entries of a gradient flow.

    On inputs with eigenvalues these are the overlaps in each eigenspace; otherwise None in the online limit, and if
    every overlap acts on every other.
    """
    if declared.inertial:
        return None
    if declared.inputs is not None:
        return coupling.by_spaces
    return None if declared.limit != "flow" or coupling.dense(declared, number_values) else coupling.labels


def clock(parameters: Any) -> dict[str, Any]:
    """Return the clock and the jumps of a flow with time-dependent numbers, in the form of `Smooth`."""
    if not parameters.declaration.clocked:
        return {}
    return {"clock": TIME, "breaks": schedules.breaks(parameters), "ended": schedules.ended}


def validity(declared: Declaration) -> str:
    """Return the range of validity of the dynamics."""
    if declared.limit == "batch":
        return giant.validity(declared)
    if declared.limit == "online":
        return "exact for Gaussian inputs in the limit of large d at step eta / d and a batch of any fixed size"
    return (
        "exact for Gaussian inputs at every d, in the limit of small step size (gradient flow on the population loss)"
    )


def neglected(declared: Declaration) -> str:
    """Return the terms that the dynamics neglects if its means are exact."""
    return "fluctuations of order 1/sqrt(d)" if declared.noisy else "nothing"


def state(parameters: Any) -> tuple[Component, ...]:
    """Return overlaps that change, then readouts and scalars."""
    declared, layout = parameters.declaration, rows(parameters)
    unbounded = (-np.inf, np.inf)
    blocks = [Component(b.name, b.dims, unbounded, b.name, b.meaning) for b in layout.moving]
    for number, word, _ in layout.scalars:
        group = declared.students[number]
        text = f"readout {word}_i" if word in group.trained_readouts else f"number {word} of unit i"
        blocks.append(Component(group.named(word), (group.named("unit"),), unbounded, word, f"{text}, of the student"))
    for name, dims, text in velocity_blocks.described(layout):
        blocks.append(Component(name, dims, unbounded, name, text))
    for memory in declared.memories:
        blocks.append(Component(memory.name, (), unbounded, memory.name, f"memory, with the rate {memory.text}"))
    if declared.clocked:
        blocks.append(Component(TIME, (), unbounded, TIME, CLOCK))
    return tuple(blocks)


def require_unit(parameters: Any) -> None:
    """Raise `UsageError` for a series at unit variance if vectors have other norms."""
    declared, layout = parameters.declaration, rows(parameters)
    sizes = [getattr(parameters, name) for name, _ in declared.start.norms] if declared.weights == "sphere" else []
    if any(abs(size - 1) > 1e-9 for size in sizes) or (abs(np.diag(teacher_gram(parameters)) - 1) > 1e-9).any():
        raise UsageError(
            "tier exact: the means of a gate are series for unit variance, but student norms or the diagonal "
            f"of the teacher's Gram matrix ({layout.teachers} vectors) are not 1; use -p tier=sampled"
        )


def open_here(parameters: Any) -> str:
    """Return the reason why a model has no closed form at these parameters, although it has one at others, or ""."""
    return _open_episodes(parameters) or changing_gates.open_series(parameters)


def _open_episodes(parameters: Any) -> str:
    """Return the reason why a rule with a reward has no closed form at these sizes and this noise, or ""."""
    if not episodes.reads(parameters.declaration):
        return ""
    if sizes(parameters) != (1, 1):
        return "the success of a sample has closed forms only for one student unit and one teacher unit"
    noisy = parameters.noise is None or parameters.noise > 0
    return "the success of a sample has no closed form if labels have noise" if noisy else ""


def arguments(initial: Initial) -> tuple[Any, ...]:
    """The run-time arguments of the sampled flow (`arrays.Arguments`), sizes last."""
    p = initial.parameters
    declared: Declaration = p.declaration
    switches = list(schedules.switched(p, float(initial.state[TIME])).values()) if declared.clocked else []
    layout = rows(p)
    constant, places = known_places(initial)
    stepped = declared.limit != "flow"
    count = 1.0 if batches.changing(p) else p.batch if declared.limit == "online" else 1.0
    p = schedules.begun(p)
    gain = p.step**2 / (episodes.samples(p) * count) if declared.limit == "online" else 0.0
    if declared.limit == "batch":
        gain = 1.0 / batches.over_dimension(p)
    inertia = [getattr(p, declared.momentum.parameter)] if declared.momentum is not None and declared.inertial else []
    rates = np.array(
        [p.step if stepped else 1.0, p.decay, gain, noise.scale(p), *inertia,
         *([p.look_size] if declared.look is not None else [])]
    )  # fmt: skip
    return (
        constant, places["gram"], places["outs"], places["biases"], places["entries"], places["moves"],
        places["moving"], rates, *_law(p), np.array(numbers(p), float), np.array(switches, float), *layout.units,
    )  # fmt: skip


def _law(parameters: Any) -> tuple[np.ndarray, ...]:
    """Return the part of `arrays.Arguments` on the inputs: eigenvalues, shares, probabilities, means, labels."""
    blocks, law = spectra.blocks(parameters), mixture.mixture(parameters)
    none = np.zeros(0)
    if blocks is None or law is None:
        return np.ones((1, 1, 1)), np.array(1.0), np.ones(1), np.zeros((1, 0)), none
    label = none if law.label is None else law.label
    if len(blocks.share) == 1:
        return law.eigenvalue[:, :, None], np.array(1.0), law.probability, law.mean, label
    return law.eigenvalue[:, :, None, None], blocks.share[:, None, None], law.probability, law.mean, label


def constants(initial: Initial) -> Labelled:
    """Return teacher overlaps and constant readouts."""
    p = initial.parameters
    layout = rows(p)
    labelled: dict[str, Any] = {b.name: (b.dims, initial.constants[b.name], b.meaning) for b in layout.fixed}
    for number, readout in p.declaration.fixed_readouts():
        name, side = (
            p.declaration.readout_name(number, readout.head),
            "student" if layout.is_student(number) else "teacher",
        )
        labelled[name] = ((layout.dimension(number),), initial.constants[name], f"readout of {side} unit i")
    return {**labelled, **of_rules(initial), **spectra.labelled(p), **mixture.labelled(p)}


def crossings(declared: Declaration, layout: Rows) -> tuple[Crossing, ...]:
    """Return the declared events. Raises `UsageError` for an event of an unknown order parameter."""
    names = [b.name for b in layout.moving] + [declared.students[g].named(word) for g, word, _ in layout.scalars]
    names += [name for name, *_ in velocity_blocks.described(layout)]
    for event in declared.events:
        if event.of not in names:
            raise UsageError(
                f"event {event.name} watches {event.of!r}; the order parameters that change are {', '.join(names)}"
            )
    stacked = {b.name for b in layout.moving if b.stack}
    return tuple(
        Crossing(e.name, e.of, e.threshold, e.direction, e.absolute, summed=-3 if e.of in stacked else None,
                 meaning=f"first time {f'|{e.of}|' if e.absolute else e.of} passes {e.threshold:g}")
        for e in declared.events
    )  # fmt: skip


def invariants(initial: Initial, state: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the smallest eigenvalue of the Gram matrix along the run, and the largest rise of the loss without
    decay.
    """
    p = initial.parameters
    layout = rows(p)
    gram = layout.gram({**{b.name: initial.constants[b.name] for b in layout.fixed}, **state})
    extremes = {
        "gram_min_eigenvalue": float(np.linalg.eigvalsh(gram).min()) if np.isfinite(gram).all() else float("nan")
    }
    downhill = p.declaration.limit == "flow" and p.decay == 0 and not schedules.active(p) and not p.declaration.rules
    downhill = downhill and not p.declaration.timed and p.declaration.look is None  # with changing values it may rise
    if "loss" in state and downhill:
        extremes["loss_increase"] = float(np.diff(state["loss"]).max(initial=0.0))
    return extremes
