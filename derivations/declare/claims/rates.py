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
        exact_rates = _moving(lab.functions(initial, tier).flow(initial.state))
        return exact_rates, {name: np.zeros_like(rate) for name, rate in exact_rates.items()}, BATCHES - 1
    randomisations = []
    for k in range(TIMES):
        options = {"points": FINE, "sample_seed": 1 + k}
        variant = dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, **options))
        randomisations.append(_moving(lab.functions(variant, tier).flow(initial.state)))
    stacked = {name: np.array([values[name] for values in randomisations]) for name in randomisations[0]}
    return (
        {name: values.mean(axis=0) for name, values in stacked.items()},
        {name: values.std(axis=0, ddof=1) / np.sqrt(TIMES) for name, values in stacked.items()},
        TIMES - 1,
    )


def _moving(flow_rates: Mapping[str, np.ndarray]) -> Rates:
    return {name: rate for name, rate in flow_rates.items() if name != schedules.TIME}


def compared(sampled: Rates, expected: Rates, errors: Rates, freedom: int) -> dict[str, Score]:
    """Compare batches (batches, ..) of rates with expected ones and their errors, each order parameter separately.

    An order parameter with a small rate is compared relative to a part of the largest rate.
    """
    smallest = SLOWEST * max(float(np.abs(rate).max()) for rate in expected.values())
    scores = {}
    for name, batches in sampled.items():
        batch_error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
        error = np.sqrt(batch_error**2 + errors[name] ** 2)
        size = max(float(np.abs(expected[name]).max()), smallest)
        scores[name] = score(batches.mean(axis=0), error, expected[name], min(freedom, len(batches) - 1), size)
    return scores


def scaled(flow_rates: Rates, factor: float) -> Rates:
    """Return rates multiplied by a factor."""
    return {name: factor * rate for name, rate in flow_rates.items()}


def by_parameter(system: System, margin: float, because: str, scalars: bool = True) -> All:
    """Return the law that every order parameter agrees within a relative margin."""
    layout = rows(system.parameters())
    names = [block.name for block in layout.moving] + (sample_gradient.scalar_names(layout) if scalars else [])
    if layout.velocities:
        velocity_names = [name for name, *_ in velocity_blocks.described(layout)]
        if layout.declaration.limit == "batch" and not scalars:
            velocity_names, scalars = [block.name for block in layout.velocities], True
        names = (
            [*names, *velocity_names]
            if scalars
            else [block.name for block in layout.velocities if block.letter == "VV"]
        )
    return All({name: Agrees(margin, because=because) for name in names})
