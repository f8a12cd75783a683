"""The equations of every stage and tier of `pmoe`, above the files that hold them."""

from derivations.contract import Equations
from derivations.pmoe import population
from derivations.pmoe.classes import population as several
from derivations.pmoe.parameters import Parameters, settle


def experts(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of the experts' training with frozen routers."""
    return _by_loss(settle(parameters, "experts"), tier or parameters.tier, "experts")


def joint(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of joint training."""
    return _by_loss(settle(parameters, "joint"), tier or parameters.tier, "joint")


def _by_loss(p: Parameters, tier: str, stage: str) -> Equations:
    if p.softmax:
        return several.equations(p, tier)
    if tier == "L3":
        from derivations.equations.tier import equations_of
        from derivations.pmoe.tiers import two_samples

        return equations_of(two_samples.statement(p, stage))
    return population.equations(p, tier)


def routers(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of the routers' own training."""
    from derivations.equations.tier import equations_of
    from derivations.pmoe.tiers import router, router_pairs

    p = settle(parameters, "router")
    return equations_of((router_pairs if p.softmax else router).statement(p, tier or p.tier))
