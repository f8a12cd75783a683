"""The equations of motion of system `chen`, tier by tier, stated in index notation."""

from derivations.chen.parameters import Parameters
from derivations.statement import Statement


def statement(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage train."""
    from derivations.chen.tiers import equations

    equations(parameters, tier)  # refuses what no tier describes
    if tier in ("p3", "full") and (tier == "p3" or parameters.P == 3):
        from derivations.chen.statements import exact

        return exact.statement(parameters, tier)
    if tier == "full":
        from derivations.chen.statements import full

        return full.statement(parameters)
    from derivations.chen.tiers import reduced

    return reduced(parameters, tier)
