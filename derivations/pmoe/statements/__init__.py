"""The equations of motion of system `pmoe`, level by level, stated in index notation."""

from derivations.pmoe.parameters import Parameters, settle
from derivations.statement import Statement


def router(parameters: Parameters, tier: str) -> Statement:
    """The statement of the routers' own training, the same for every level."""
    from derivations.pmoe.statements import classes, small

    p = settle(parameters, "router")
    return classes.routers(p, tier) if p.softmax else small.routers(p, tier)


def experts(parameters: Parameters, tier: str) -> Statement:
    """The statement of a level of the experts' training with frozen routers."""
    return _statement(settle(parameters, "experts"), tier, "experts")


def joint(parameters: Parameters, tier: str) -> Statement:
    """The statement of a level of joint training."""
    return _statement(settle(parameters, "joint"), tier, "joint")


def _statement(p: Parameters, tier: str, stage: str) -> Statement:
    if p.softmax:
        from derivations.pmoe.statements import classes

        return classes.statement(p, tier, stage)
    if tier == "L3":
        from derivations.pmoe.statements import small

        return small.two_samples(p, stage)
    from derivations.pmoe.statements import levels

    return levels.statement(p, tier, stage)
