"""States, names and horizons that the generated claims of a declared model share."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure
from derivations.claim import Claim, Grid
from derivations.contract import Initial, System, UsageError
from derivations.declare import data, leading, sampled, schedules, spectra
from derivations.declare.claims import velocity_gradient
from derivations.declare.initial import enter, partners
from derivations.declare.parameter_class import rows

SMALL = 40
"""The dimension of the random states at which right-hand sides are compared: overlaps of a tenth and more."""
MOST = 400
"""Largest dimension that is chosen so that vectors fit into every block of the inputs."""
ALONG = 0.6
"""Part of its teacher that is added to a student of the same norm where the information exponent is 3 or larger.

The drift is of order m^(k - 1) in the overlap m.  At m = 0.1 and k = 3 it is a hundredth of the noise of a sample of
unit size, so that no affordable number of samples would measure it.
"""
SLOW_EXPONENT = 3
"""Information exponent from which on this is done."""
OVERLAP = 0.5
"""Overlap at the start of SGD in the same case: about that of a student to which `ALONG` of its teacher was added."""
GIANT_STEPS = 2.0
SHORTEST = 1e-3
"""The shortest time of a run, however fast the state changes."""
FLOW_RATE = 0.1
"""Step size times the dimension of SGD on a gradient flow, whose fluctuations are measured."""
FINE, TIMES = 2**16, 16
"""Numbers of points and of randomisations of the sampled flow that SGD is compared with."""


def generated_claim(
    system: System, id: str, statement: str, measure: Any, law: Any, sweep: Mapping[str, Grid | None], twist: float,
    rungs: tuple[int, ...],
) -> Claim:  # fmt: skip
    return Claim(
        id=id, statement=statement, source=system.source.at("generated"), measure=measure, law=law, sweep=sweep,
        control=break_measure(functools.partial(measure, twist=twist)), rungs=rungs, derived=True,
    )  # fmt: skip


def small_dimension(parameters: Any) -> int:
    """Return a dimension that is large enough for all vectors, also in each of the listed blocks of the inputs.

    If a file determines the dimension, it is that of the file. Blocks of small shares are not filled beyond `MOST`
    dimensions, because explicit SGD moves all coordinates.
    """
    inputs = parameters.declaration.inputs
    fixed = data.dimension(inputs)
    if fixed is not None:
        return fixed
    layout = rows(parameters)
    return max(
        SMALL,
        2 * layout.total + (layout.students if parameters.declaration.momentum else 0),
        0 if inputs is None or not inputs.blocks else _filling_blocks(parameters),
    )


def _filling_blocks(parameters: Any) -> int:
    """Return the dimension in which every block of the inputs has a coordinate for each vector, `MOST` at most."""
    spectrum = spectra.blocks(parameters)
    share = np.ones(1) if spectrum is None else spectrum.share
    return max(len(share), min(MOST, math.ceil(rows(parameters).total / share.min())))


def start(kind: type, seed: int, **changes: Any) -> Initial:
    """Return a random state of the declared sizes with clearly non-zero overlaps."""
    parameters: Any = kind()
    random = {"overlap": None} if parameters.declaration.teachers else {}
    parameters = dataclasses.replace(parameters, d=small_dimension(parameters), **random, **changes)
    initial = enter(parameters, None, np.random.default_rng([seed, 11]))
    initial = _along_teachers(initial) if slow_start(parameters) else initial
    return velocity_gradient.pushed(initial, np.random.default_rng([seed, 13]))


def slow_start(parameters: Any) -> bool:
    """Return True if the information exponent of single-field units on isotropic inputs is 3 or larger."""
    if any(block.name in dict(parameters.declaration.start.arrays) for block in rows(parameters).moving):
        return False  # the declaration states its overlaps
    try:
        return leading.shared_degree(parameters)[0] >= SLOW_EXPONENT
    except UsageError:  # several fields, groups or eigenspaces: exponents of other kinds
        return False


def start_of_sgd(parameters: Any) -> dict[str, float]:
    """Return the parameters of a start from which SGD moves visibly: none, or an overlap where small ones rest."""
    return {"overlap": OVERLAP} if slow_start(parameters) else {}


def _along_teachers(initial: Initial) -> Initial:
    """Add to every student `ALONG` of its teacher, scaled to its norm, and restore its norm."""
    layout = rows(initial.parameters)
    gram = layout.gram({**initial.constants, **initial.state})
    norms, students = np.sqrt(np.diag(gram)), np.arange(layout.students)
    teacher = layout.students + partners(layout)
    change = np.eye(len(gram))
    change[students, teacher] += ALONG * norms[students] / norms[teacher]
    gram = change @ gram @ change.T
    scale = norms / np.sqrt(np.diag(gram))
    components = layout.components(gram * np.outer(scale, scale))
    moving = {block.name: components[block.name] for block in layout.moving}
    return dataclasses.replace(initial, state={**initial.state, **moving})


def flat(initial: Initial, state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Components as one vector."""
    return rows(initial.parameters).layout.pack(state)


@functools.lru_cache(maxsize=8)
def state(kind: type, seed: int) -> Initial:
    """Return the random state of a seed, for the model with this class of parameters, at a random time of a run."""
    initial = start(kind, seed)
    if not schedules.active(initial.parameters):
        return initial
    end = min(2.0 * max(schedules.breaks(initial.parameters), default=1.0), initial.parameters.declaration.until)
    begin = initial.parameters.declaration.begin
    end = end if end > begin else initial.parameters.declaration.until
    time = np.array(begin + (end - begin) * np.random.default_rng([seed, 12]).random())
    return dataclasses.replace(initial, state={**initial.state, schedules.TIME: time})


def quieted(initial: Initial) -> Initial:
    """Return the same state with batches so large that the second-order term vanishes."""
    if not hasattr(initial.parameters, "batch"):  # of infinitely many samples
        return initial
    return dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, batch=10**12))


def horizon(system: System) -> float:
    """Return a time in which the state changes by a part of itself; two giant steps.

    Declared values that depend on the state, such as the step, stay above 0 for four times as long.
    """
    if system.parameters().declaration.limit == "batch":
        return GIANT_STEPS
    initial = state(system.parameters, 0)
    rates = sampled.scatter(None, initial, initial.state)[0]
    mean = sampled.without_clock(initial, rates)
    y = sampled.without_clock(initial, flat(initial, initial.state))
    until = float(np.clip(0.3 * np.abs(y).max() / max(np.abs(mean).max(), 1e-12), SHORTEST, 1e3))
    while until > SHORTEST and _leaves(initial, rates, 4 * until):
        until /= 2
    return until


def _leaves(initial: Initial, rates: np.ndarray, time: float) -> bool:
    """Return True if a declared value falls to 0 in this time, by a linear extrapolation of the state."""
    if not any(schedule.seen for schedule in schedules.active(initial.parameters)):
        return False
    moved = rows(initial.parameters).layout.unpack(flat(initial, initial.state) + time * rates)
    return bool(schedules.ended(dataclasses.replace(initial, state=moved)))
