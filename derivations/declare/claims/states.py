"""States, names and horizons that the generated claims of a declared model share."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import break_measure
from derivations.claim import Claim, Grid
from derivations.contract import Initial, System
from derivations.declare import data, sampled, schedules
from derivations.declare.claims import velocity_gradient
from derivations.declare.initial import enter
from derivations.declare.system import rows

SMALL = 40
"""Dimension of the random states at which right-hand sides are compared; their overlaps are a tenth and more."""
GIANT_STEPS = 2.0
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
    """Return a dimension that is large enough for all vectors, and for listed blocks of the inputs.

    If a file determines the dimension, it is that of the file.
    """
    inputs = parameters.declaration.inputs
    fixed = data.dimension(inputs)
    if fixed is not None:
        return fixed
    at = rows(parameters)
    return max(
        SMALL,
        2 * at.total + (at.students if parameters.declaration.momentum else 0),
        0 if inputs is None else len(inputs.blocks),
    )


def start(kind: type, seed: int, **changed: Any) -> Initial:
    """Return a random state of the declared sizes with clearly non-zero overlaps."""
    parameters: Any = kind()
    random = {"overlap": None} if parameters.declaration.teachers else {}
    parameters = dataclasses.replace(parameters, d=small_dimension(parameters), **random, **changed)
    found = enter(parameters, None, np.random.default_rng([seed, 11]))
    return velocity_gradient.pushed(found, np.random.default_rng([seed, 13]))


def flat(found: Initial, state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Components as one vector."""
    return rows(found.parameters).layout.pack(state)


@functools.lru_cache(maxsize=8)
def state(kind: type, seed: int) -> Initial:
    """Return the random state of a seed, for the model with this class of parameters, at a random time of a run."""
    found = start(kind, seed)
    if not schedules.active(found.parameters):
        return found
    end = min(2.0 * max(schedules.breaks(found.parameters), default=1.0), found.parameters.declaration.until)
    begin = found.parameters.declaration.begin
    end = end if end > begin else found.parameters.declaration.until
    time = np.array(begin + (end - begin) * np.random.default_rng([seed, 12]).random())
    return dataclasses.replace(found, state={**found.state, schedules.TIME: time})


def quieted(initial: Initial) -> Initial:
    """Return the same state with batches so large that the second-order term vanishes."""
    if not hasattr(initial.parameters, "batch"):  # of infinitely many samples
        return initial
    return dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, batch=10**12))


def horizon(system: System) -> float:
    """Return a time in which the state changes by a part of itself; two giant steps."""
    if system.parameters().declaration.limit == "batch":
        return GIANT_STEPS
    initial = state(system.parameters, 0)
    mean = sampled.without_clock(initial, sampled.scatter(None, initial, initial.state)[0])
    y = sampled.without_clock(initial, flat(initial, initial.state))
    return float(np.clip(0.3 * np.abs(y).max() / max(np.abs(mean).max(), 1e-12), 1e-3, 1e3))
