"""Generated claim on momentum with a fixed beta: SGD has the flow, or the online limit, of the step over 1 - beta."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare.claims.states import generated_claim, horizon, small_dimension
from derivations.declare.parameter_class import rows
from derivations.laws import Agrees
from derivations.laws.agreement import Score, score

MEMORIES = 400
"""Number of steps of a run in units of 1/(1 - beta); the limit neglects terms of the order of its inverse."""
REPLICAS, BATCH = 24, 256
"""Replicas of SGD, and their batch in a flow, whose limit has no noise."""


LEAST = 0.3
"""Smallest beta that is judged. Without the factor 1/(1 - beta) about beta of the motion is missing."""


def accelerated(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """Compare the mean of compressed SGD with momentum with the limit, relative to the change of the limit.

    The control has the limit of the step itself, without the factor of momentum.
    """
    system, until = lab.system, horizon(lab.system)
    parameters = system.parameters()
    beta, names = parameters.momentum, [block.name for block in rows(parameters).moving]
    steps = int(np.ceil(MEMORIES / (1.0 - beta)))
    run_options: dict[str, Any] = {"seed": seed, "until": until, "save_points": 2, "d": small_dimension(parameters)}
    options: dict[str, Any] = {"step_size": until / steps, "batch": BATCH}
    if parameters.declaration.limit == "online":
        run_options, options = {**run_options, "d": max(run_options["d"], round(steps / until))}, {}
    flow = lab.integrate(rtol=1e-8, **run_options, **({"momentum": 0.0} if twist else {}))
    run = lab.simulate(method="compressed", seeds=REPLICAS, **run_options, **options)
    start, end = (np.concatenate([flow[name][k].ravel() for name in names]) for k in (0, -1))
    ends = np.concatenate([run[name][:, -1].reshape(REPLICAS, -1) for name in names], axis=1)
    size = max(float(np.abs(end - start).max()), 1e-300)
    return score(ends.mean(0), ends.std(0, ddof=1) / np.sqrt(REPLICAS), end, REPLICAS - 1, size)


def momentum_claim(system: System) -> Claim:
    text = "SGD with momentum beta follows the limit with the step divided by 1 - beta, not the limit with the step"
    margin = min(0.15, system.parameters().momentum / 3)
    law = Agrees(margin, "motion", "at most a third of the part that is missing without the factor")
    return generated_claim(system, "momentum", text, accelerated, law, once({}, seeds=2), 1.0, (8,))
