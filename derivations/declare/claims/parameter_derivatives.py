"""Generated claim on the derivatives of a flow with respect to its parameters, compared with differences of flows."""

from collections.abc import Mapping
from typing import Any

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare.claims.states import generated_claim, horizon
from derivations.laws import Vanishes

LENGTHS = (1e-3, 1e-4)
"""Steps of differences with respect to a parameter, in units of the parameter.

The shorter one is used where the longer one gives another slope than the derivative: at a logarithm of a small distance
the truncation error of the longer one was 1 per cent. A wrong derivative differs at both.
"""
MARGIN = 1e-5
CENTRAL, CENTRAL_WEIGHTS = (-2, -1, 1, 2), (1 / 12, -2 / 3, 2 / 3, -1 / 12)
ABOVE, ABOVE_WEIGHTS = (0, 1, 2, 3, 4), (-25 / 12, 4, -3, 4 / 3, -1 / 4)
"""Nodes and weights of fourth-order derivatives, on both sides of a value and on one side."""


def derivatives_claim(system: System) -> Claim:
    text = "The derivatives of the final loss by every parameter equal finite differences between flows"
    law = Vanishes(MARGIN, meaning="relative difference")
    return generated_claim(system, "gradient-differences", text, slopes, law, once({}), 1e-3, (3,))


def slopes(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """The largest difference of derivatives of the final loss from differences of flows, relative to the largest."""
    until = horizon(lab.system)
    answer = lab.gradient(of=["final loss"], seed=seed, until=until)
    values = dict(zip(answer["parameter"].tolist(), answer["at"].tolist(), strict=True))
    parameters = lab.system.parameters()
    # A batch is an integer in flows.
    values = {name: value for name, value in values.items() if not isinstance(getattr(parameters, name), int)}
    derivatives = {name: (1 + twist) * slope for name, slope in answer.of("final loss").items()}
    scale = {name: abs(value) or 1.0 for name, value in values.items()}
    deviation = 0.0
    for length in LENGTHS:
        slope = {
            name: _difference(lab, seed, until, name, value, length) * scale[name] for name, value in values.items()
        }
        size = max(max(map(abs, slope.values())), 1e-300)
        deviation = max(abs(derivatives[name] * scale[name] - slope[name]) for name in slope) / size
        if deviation < MARGIN:
            break
    return deviation


def _difference(lab: Any, seed: int, until: float, name: str, value: float, length: float) -> float:
    """The slope of the final loss by one parameter, from differences of fourth order between flows."""
    # At 0, where the domain of a parameter may end, the nodes are on one side.
    nodes, weights = (CENTRAL, CENTRAL_WEIGHTS) if value else (ABOVE, ABOVE_WEIGHTS)
    step = length * (abs(value) or 1.0)
    losses = (
        lab.integrate(seed=seed, until=until, rtol=1e-12, save_points=2, parameters={name: value + k * step})["loss"]
        for k in nodes
    )
    return sum(weight * float(loss[-1]) for weight, loss in zip(weights, losses, strict=True)) / step
