"""The tiers of system `liao`, one file for each."""

import dataclasses
import functools
from typing import TYPE_CHECKING

from derivations.contract import Equations
from derivations.liao.parameters import Parameters

if TYPE_CHECKING:
    from derivations.statement import Statement


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier (`exact`, `cascade`, `riccati`, `riccati_paper`, `linear`) for given sizes."""
    return _equations(_relevant(parameters), tier or parameters.tier)


def statement(parameters: Parameters, tier: str) -> "Statement":
    """The statement of a tier of the stages train and tune."""
    return _statement(_relevant(parameters), tier)


def _relevant(parameters: Parameters) -> Parameters:
    """The parameters with defaults for those that no statement depends on, so that runs of a sweep share statements."""
    default = Parameters()
    others = ("d", "init", "tier", "prune_samples", "renormalise")
    return dataclasses.replace(parameters, **{name: getattr(default, name) for name in others})


@functools.lru_cache(maxsize=64)
def _equations(parameters: Parameters, tier: str) -> Equations:
    from derivations.equations.tier import equations_of  # this import loads SymPy

    return equations_of(_statement(parameters, tier))


@functools.lru_cache(maxsize=64)
def _statement(parameters: Parameters, tier: str) -> "Statement":
    from derivations.liao.tiers import cascade, exact, linear, riccati

    if tier == "exact":
        return exact.statement(parameters)
    if tier == "cascade":
        return cascade.statement(parameters)
    return linear.statement(parameters) if tier == "linear" else riccati.statement(parameters, tier)
