"""Generated claim on the derivatives of a flow with respect to its parameters, compared with differences of flows."""

from collections.abc import Mapping
from typing import Any

from derivations.broken import once
from derivations.claim import Claim
from derivations.contract import System
from derivations.declare.claims.states import generated_claim, horizon
from derivations.laws import Vanishes

LENGTH = 1e-3
"""Step of differences with respect to a parameter, in units of the parameter."""
CENTRAL, CENTRAL_WEIGHTS = (-2, -1, 1, 2), (1 / 12, -2 / 3, 2 / 3, -1 / 12)
ABOVE, ABOVE_WEIGHTS = (0, 1, 2, 3, 4), (-25 / 12, 4, -3, 4 / 3, -1 / 4)
"""Nodes and weights of fourth-order derivatives, on both sides of a value and on one side."""


def derivatives_claim(system: System) -> Claim:
    text = "The derivatives of the final loss by every parameter equal finite differences between flows"
    law = Vanishes(1e-5, meaning="relative difference")
    return generated_claim(system, "gradient-differences", text, slopes, law, once({}), 1e-3, (3,))


def slopes(lab: Any, point: Mapping[str, Any], seed: int, twist: float = 0.0) -> float:
    """The largest difference of derivatives of the final loss from differences of flows, relative to the largest."""
    until, parameters = horizon(lab.system), lab.system.parameters()
    answer = lab.gradient(of=["final loss"], seed=seed, until=until)
    derivatives = answer.of("final loss")
    values = dict(zip(answer["parameter"].tolist(), answer["at"].tolist(), strict=True))
    differences = {}

    def loss(name: str, value: float) -> float:
        run = lab.integrate(seed=seed, until=until, rtol=1e-12, save_points=2, parameters={name: value})
        return float(run["loss"][-1])

    for name, value in values.items():
        if isinstance(getattr(parameters, name), int):  # a batch, which must be an integer in flows
            continue
        # At 0, where the domain of a parameter may end, the nodes are on one side.
        nodes, weights = (CENTRAL, CENTRAL_WEIGHTS) if value else (ABOVE, ABOVE_WEIGHTS)
        step = LENGTH * (abs(value) or 1.0)
        differences[name] = sum(w * loss(name, value + k * step) for k, w in zip(nodes, weights, strict=True)) / step
    scale = {name: abs(values[name]) or 1.0 for name in differences}
    size = max(abs(slope) * scale[name] for name, slope in differences.items())
    return max(abs((1 + twist) * derivatives[name] - differences[name]) * scale[name] for name in differences) / max(
        size, 1e-300
    )
