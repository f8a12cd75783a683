"""The equations of every stage and tier of `pmoe`, above the files that hold them."""

from derivations.contract import Equations
from derivations.pmoe import closed, population
from derivations.pmoe.classes import population as several
from derivations.pmoe.parameters import Parameters, settle


def experts(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of the experts' training with frozen routers."""
    return _by_loss(settle(parameters, "experts"), tier or parameters.tier)


def joint(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of joint training."""
    return _by_loss(settle(parameters, "joint"), tier or parameters.tier)


def _by_loss(p: Parameters, tier: str) -> Equations:
    if p.softmax:
        return several.equations(p, tier)
    return closed.equations(p) if tier == "L3" else population.equations(p, tier)


def routers(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of the routers' own training."""
    p = settle(parameters, "router")
    return (several if p.softmax else population).routers(p, tier or p.tier)
