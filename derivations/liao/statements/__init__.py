"""The equations of motion of system `liao`, tier by tier, stated in index notation."""

from derivations.liao.parameters import Parameters
from derivations.statement import Statement


def statement(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of the stages train and tune."""
    if tier == "exact":
        from derivations.liao.statements import exact

        return exact.statement(parameters)
    from derivations.liao.statements import reduced

    return reduced.statement(parameters, tier)
