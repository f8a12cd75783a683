"""The equations of motion of system `pruning`, tier by tier, stated in index notation."""

from derivations.pruning.inputs import law_of_slope
from derivations.pruning.parameters import Parameters
from derivations.pruning.population import equations
from derivations.pruning.statements import laws, single, table
from derivations.pruning.tiers import homogeneous
from derivations.statement import Statement


def tune(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage tune."""
    return _statement(parameters, tier, "tune")


def post_tune(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage post-tune: that of tune, for the remaining experts."""
    return _statement(parameters, tier, "post-tune")


def _statement(p: Parameters, tier: str, stage: str) -> Statement:
    equations(p, tier)  # raises an error for parameters that no tier describes
    if tier == "homogeneous":
        return homogeneous.statement(p, stage)
    if tier == "recursion" and law_of_slope(p) == "empirical":
        return table.statement(p, stage)
    if tier == "recursion" and p.data in ("iid", "distinct"):
        return laws.statement(p, stage)
    return single.statement(p, tier, stage)
