"""The tiers of system `liao`, one file for each."""

from typing import TYPE_CHECKING

from derivations.contract import Equations
from derivations.liao.parameters import Parameters

if TYPE_CHECKING:
    from derivations.statement import Statement


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier (`exact`, `cascade`, `riccati`, `riccati_paper`, `linear`) for given sizes."""
    from derivations.equations.tier import equations_of  # which loads SymPy

    return equations_of(statement(parameters, tier or parameters.tier))


def statement(parameters: Parameters, tier: str) -> "Statement":
    """The statement of a tier of the stages train and tune."""
    from derivations.liao.tiers import cascade, exact, linear, riccati

    if tier == "exact":
        return exact.statement(parameters)
    if tier == "cascade":
        return cascade.statement(parameters)
    return linear.statement(parameters) if tier == "linear" else riccati.statement(parameters, tier)
