"""Generated claim on giant steps: SGD in many dimensions follows the map."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare import batches
from derivations.declare.claims import sample_gradient
from derivations.declare.claims.states import FINE, generated_claim, horizon
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import settled
from derivations.laws import Agrees
from derivations.laws.agreement import Score, score

DIMENSION, REPLICAS = 1000, 64
"""Smallest dimension of SGD (the map neglects terms of order 1/d), and the number of replicas."""
RANDOMISATIONS = 8
"""Number of randomisations of a map whose means are sampled."""
SMALL, LARGE = 200, 200_000
"""Dimension and batch if the map is the mean over all samples."""


def followed(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> Score:
    """Compare the mean of compressed SGD after a few steps with the map, relative to the change of the map."""
    system, until = lab.system, horizon(lab.system)
    p = system.parameters()
    layout, exact = rows(p), settled(p) == "exact"
    names = [*(block.name for block in layout.moving), *sample_gradient.scalar_names(layout)]
    run_options: dict[str, Any] = {"seed": seed, "until": until, "save_points": 2, "d": max(DIMENSION, p.d)}
    if p.declaration.noisy:
        sgd = flow = {"batch": round(batches.over_dimension(p) * run_options["d"])}
    else:
        run_options, sgd, flow = {**run_options, "d": SMALL}, {"batch": LARGE}, {}
    options = [{}] if exact else [{"points": FINE, "sample_seed": 1 + k} for k in range(RANDOMISATIONS)]
    flows = [lab.integrate(**point_options, **run_options, **flow) for point_options in options]
    ends, starts = (np.array([np.concatenate([f[n][k].ravel() for n in names]) for f in flows]) for k in (-1, 0))
    change = ends.mean(0) - starts.mean(0)
    run = lab.simulate(method="compressed", seeds=REPLICAS, **run_options, **sgd)
    sgd_ends = np.concatenate([run[name][:, -1].reshape(REPLICAS, -1) for name in names], axis=1)
    variance, freedom = sgd_ends.var(0, ddof=1) / REPLICAS, REPLICAS - 1
    if not exact:
        variance, freedom = variance + ends.var(0, ddof=1) / RANDOMISATIONS, RANDOMISATIONS - 1
    size = max(float(np.abs(change).max()), 1e-300)
    return score(sgd_ends.mean(0), np.sqrt(variance), starts.mean(0) + (1 + twist) * change, freedom, size)


def map_claim(system: System) -> Claim:
    """The claim that the mean of SGD follows the map of giant steps."""
    text = "SGD with a batch of the order of d follows the map, up to terms of order 1/d"
    law = Agrees(0.1, "motion", "a tenth of the change of the map")
    return generated_claim(system, "giant-steps", text, followed, law, once({}, seeds=2), 0.2, (7,))
