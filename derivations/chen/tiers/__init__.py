"""The statements of every tier of `chen`, and their equations."""

import functools
from typing import TYPE_CHECKING

from derivations.chen.parameters import Parameters
from derivations.contract import Equations, UsageError

if TYPE_CHECKING:
    from derivations.statement import Statement


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier (`p3`, `full`, `explore`, `spec`, `specnoise`, `group2`) for given sizes."""
    from derivations.equations.tier import equations_of  # this import loads SymPy

    return equations_of(statement(parameters, tier or parameters.tier))


def statement(parameters: Parameters, tier: str) -> "Statement":
    """The statement of a tier of stage train. Raises `UsageError` for training options that no tier describes."""
    if parameters.variant != "paper" or not parameters.noise or not parameters.normalise or parameters.balance:
        raise UsageError(
            "the flow is that of Algorithm 1 with its routing noise; variant=released, noise=false, normalise=false "
            "and balance are for odesim simulate"
        )
    return _statement(parameters, tier)


@functools.lru_cache(maxsize=64)
def _statement(parameters: Parameters, tier: str) -> "Statement":
    from derivations.chen.tiers import exact, explore, full, group2, manifold

    if tier == "p3" or (tier == "full" and parameters.P == 3):
        return full.without_patches(parameters) if tier == "full" else exact.statement(parameters)
    if tier == "full":
        return full.statement(parameters)
    if tier == "explore":
        return explore.statement(parameters)
    if parameters.activation != "cubic":
        raise UsageError(f"tier {tier} is derived for cubic experts, but activation = {parameters.activation}")
    return group2.statement(parameters) if tier == "group2" else manifold.statement(parameters, tier)
