"""The equations of motion of system `pmoe`, level by level, stated in index notation."""

from derivations.pmoe.parameters import Parameters, settle
from derivations.statement import Statement


def router(parameters: Parameters, tier: str) -> Statement:
    """The statement of the routers' own training, the same for every level."""
    from derivations.pmoe.tiers import router, router_pairs

    p = settle(parameters, "router")
    return (router_pairs if p.softmax else router).statement(p, tier)


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
        from derivations.pmoe.tiers import two_samples

        return two_samples.statement(p, stage)
    from derivations.pmoe.statements import levels

    return levels.statement(p, tier, stage)
