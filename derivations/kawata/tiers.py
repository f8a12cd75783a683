"""The equations of every tier of `kawata`, above the files that hold them."""

from derivations.contract import Equations
from derivations.kawata import effective, hidden, population
from derivations.kawata.parameters import Parameters


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier: `exact`, `paper` (the truncated drift), `effective`, or a reduced form `R1` to `R4`."""
    tier = tier or parameters.tier
    if tier == "gated":  # no gate has been learned yet: this is the exact flow
        tier = "exact"
    if tier == "effective":
        return effective.equations(parameters, 1.0 / parameters.M)
    if tier in population.MODES:
        return population.neuronwise(parameters, tier)
    return hidden.equations(parameters, tier)
