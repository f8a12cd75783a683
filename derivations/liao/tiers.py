"""The equations of every tier of `liao`, above the files that hold them."""

from derivations.contract import Equations
from derivations.liao import population, reduced
from derivations.liao.parameters import Parameters


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier (`exact`, `cascade`, `riccati`, `riccati_paper`, `linear`) for given sizes."""
    tier = tier or parameters.tier
    return population.exact(parameters) if tier == "exact" else reduced.equations(parameters, tier)
