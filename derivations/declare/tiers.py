"""The equations of a declared model by tier."""

from typing import Any

from derivations.contract import Equations, UsageError
from derivations.declare import changing_gates, giant, population, quadrature, schedules
from derivations.declare.parameter_class import numbers
from derivations.declare.remembered import kernels


def equations(parameters: Any, tier: str | None) -> Equations:
    """The equations of a tier; by default, of the tier that `settled` selects.

    Raises `UsageError` for a tier that does not exist for this model, with the reason and a tier that exists.
    """
    selected = settled(parameters) if tier is None else tier
    if selected == "exact":
        from derivations.declare import exact, sampled

        return sampled.equations(parameters, selected) if on_grid(parameters) else exact.equations(parameters)
    if selected in ("sampled", "mixed"):
        from derivations.declare import sampled

        return sampled.equations(parameters, selected)
    if selected == "leading":
        from derivations.declare import leading

        return leading.equations(parameters)
    raise UsageError(f"declared models have no tier {tier!r}")


def settled(parameters: Any) -> str:
    """The default tier of a run: the first of exact, mixed and sampled that exists."""
    closed_forms = kernels(parameters.declaration, numbers(parameters))
    if population.open_here(parameters):
        return "sampled"
    if closed_forms.closed:
        return "exact" if quadrature.exists(parameters) else "sampled"
    declared = parameters.declaration
    if declared.noisy and closed_forms.second:
        return "mixed" if declared.limit == "online" or giant.mixes(declared) else "sampled"
    return "exact"


def require_within(parameters: Any, until: float, begin: float) -> None:
    """Raise `UsageError` if a value leaves its domain between two times, or a slope changes the sign assumed in the
    derivation.
    """
    schedules.require(parameters, until, begin)
    tier = settled(parameters) if parameters.tier == "auto" else parameters.tier
    if tier in ("exact", "mixed") and not on_grid(parameters):
        changing_gates.require_signs(parameters, until, begin)


def on_grid(parameters: Any) -> bool:
    """Return True if tier exact computes its means over a grid: exact for rules that are polynomials but not products.

    The tier then has no statement.
    """
    return bool(kernels(parameters.declaration, numbers(parameters)).closed) and quadrature.exists(parameters)
