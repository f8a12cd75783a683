"""The equations of every tier of `chen`, above the files that hold them."""

import functools
from typing import TYPE_CHECKING

from derivations.chen import full, population
from derivations.chen.parameters import Parameters
from derivations.contract import Equations, UsageError

if TYPE_CHECKING:
    from derivations.statement import Statement


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
    if tier == "full":
        return full.full(parameters)
    from derivations.equations.tier import equations_of  # which loads SymPy

    return equations_of(reduced(parameters, tier))


@functools.lru_cache(maxsize=64)
def reduced(parameters: Parameters, tier: str) -> "Statement":
    """The statement of a reduced tier."""
    from derivations.chen.tiers import explore, group2, manifold

    if tier == "explore":
        return explore.statement(parameters)
    if parameters.activation != "cubic":
        raise UsageError(f"tier {tier} is derived for cubic experts, but activation = {parameters.activation}")
    return group2.statement(parameters) if tier == "group2" else manifold.statement(parameters, tier)
