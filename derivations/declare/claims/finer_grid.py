"""The generated claim of looks with exact means: automatic differentiation of samples, over a grid of more nodes.

Moments after a look have a high degree (26 for He_3), for which random samples are not accurate.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare import quadrature
from derivations.declare.claims import sample_gradient
from derivations.declare.claims.states import generated_claim, quieted, state
from derivations.laws import Vanishes

MORE = 2
"""Number of nodes in every variable in addition to those of the tier."""


def finer_grid(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """The largest relative difference of drift and second-order term from the motion by samples at finer nodes."""
    initial = state(lab.system.parameters, seed)
    quiet, p = quieted(initial), initial.parameters
    grid = quadrature.nodes(p, MORE)
    assert grid is not None
    estimates = sample_gradient.at_points(initial, grid[0].T, grid[1])
    drift, total = (lab.functions(start, "exact").flow(start.state) for start in (quiet, initial))
    pairs = [(sample_gradient.drift_of(estimates, quiet), drift)]
    if p.declaration.noisy:
        second = {name: total[name] - drift[name] for name in total}
        pairs.append((sample_gradient.second_of(estimates, initial), second))
    return max(_distance(estimate, expected, twist) for estimate, expected in pairs)


def _distance(estimates: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], twist: float) -> float:
    size = max(float(np.abs(expected[name]).max()) for name in estimates)
    gaps = (float(np.abs(rates[0] - (1 + twist) * expected[name]).max()) for name, rates in estimates.items())
    return max(gaps) / max(size, 1e-300)


def finer_grid_claim(system: System) -> Claim:
    """The claim that drift and second-order term are means of the motion by samples after their looks."""
    text = "Drift and second-order term are means over steps of SGD after virtual steps, by automatic differentiation"
    law = Vanishes(1e-8, meaning="relative difference")
    return generated_claim(system, "finer-grid", text, finer_grid, law, once({}, seeds=2), 1e-4, (2,))
