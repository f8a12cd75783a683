"""Rates of order parameters by the tiers of a declared model, and their comparison with rates of samples."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, System
from derivations.declare import schedules, velocity_blocks
from derivations.declare.claims import sample_gradient
from derivations.declare.claims.sample_gradient import BATCHES
from derivations.declare.claims.states import FINE, TIMES
from derivations.declare.parameter_class import rows
from derivations.laws import Agrees, All
from derivations.laws.agreement import Score, score

Rates = dict[str, np.ndarray]
"""The rate of every order parameter, by name."""
SLOWEST = 0.2
"""Part of the largest rate; an order parameter with a smaller rate is compared relative to this part."""


def rates(lab: Any, initial: Initial, tier: str) -> tuple[Rates, Rates, int]:
    """Return the rates of change by the right-hand side of a tier, their standard errors, and the degrees of freedom of
    these.

    The clock, whose rate is always 1, is left out. A right-hand side that is sampled is averaged over independent
    randomisations of its points.
    """
    if tier == "exact":
        found = _moving(lab.functions(initial, tier).flow(initial.state))
        return found, {name: np.zeros_like(rate) for name, rate in found.items()}, BATCHES - 1
    made = []
    for k in range(TIMES):
        more = {"points": FINE, "sample_seed": 1 + k}
        other = dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, **more))
        made.append(_moving(lab.functions(other, tier).flow(initial.state)))
    whole = {name: np.array([each[name] for each in made]) for name in made[0]}
    return (
        {name: each.mean(axis=0) for name, each in whole.items()},
        {name: each.std(axis=0, ddof=1) / np.sqrt(TIMES) for name, each in whole.items()},
        TIMES - 1,
    )


def _moving(found: Mapping[str, np.ndarray]) -> Rates:
    return {name: rate for name, rate in found.items() if name != schedules.TIME}


def compared(sampled: Rates, expected: Rates, errors: Rates, freedom: int) -> dict[str, Score]:
    """Compare batches (batches, ..) of rates with expected ones and their errors, each order parameter separately.

    An order parameter with a small rate is compared relative to a part of the largest rate.
    """
    least = SLOWEST * max(float(np.abs(rate).max()) for rate in expected.values())
    found = {}
    for name, batches in sampled.items():
        own = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
        error = np.sqrt(own**2 + errors[name] ** 2)
        size = max(float(np.abs(expected[name]).max()), least)
        found[name] = score(batches.mean(axis=0), error, expected[name], min(freedom, len(batches) - 1), size)
    return found


def scaled(found: Rates, factor: float) -> Rates:
    """Return rates multiplied by a factor."""
    return {name: factor * rate for name, rate in found.items()}


def by_parameter(system: System, margin: float, because: str, scalars: bool = True) -> All:
    """Return the law that every order parameter agrees within a relative margin."""
    at = rows(system.parameters())
    names = [block.name for block in at.moving] + (sample_gradient.scalar_names(at) if scalars else [])
    if at.velocities:
        every = [name for name, *_ in velocity_blocks.described(at)]
        if at.declaration.limit == "batch" and not scalars:
            every, scalars = [block.name for block in at.velocities], True
        names = [*names, *every] if scalars else [block.name for block in at.velocities if block.letter == "VV"]
    return All({name: Agrees(margin, because=because) for name in names})
