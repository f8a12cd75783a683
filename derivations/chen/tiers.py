"""The equations of every tier of `chen`, above the files that hold them."""

from derivations.chen import full, population, reduced
from derivations.chen.parameters import Parameters
from derivations.contract import Equations, UsageError


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier (`p3`, `full`, `explore`, `spec`, `specnoise`, `group2`) for given sizes."""
    tier = tier or parameters.tier
    if parameters.variant != "paper" or not parameters.noise or not parameters.normalise or parameters.balance:
        raise UsageError(
            "the flow is that of Algorithm 1 with its routing noise; variant=released, noise=false, normalise=false "
            "and balance are for odesim simulate"
        )
    if tier == "p3":
        return population.exact(parameters)
    return full.full(parameters) if tier == "full" else reduced.equations(parameters, tier)
