"""The statements and the equations of every stage and tier of `pmoe`, collected from their files."""

import functools

from derivations.contract import Equations
from derivations.equations.tier import equations_of
from derivations.pmoe.parameters import Parameters, settle
from derivations.pmoe.tiers import classes, levels, router, router_pairs, two_samples
from derivations.statement import Statement


@functools.lru_cache(maxsize=64)
def experts_statement(parameters: Parameters, tier: str) -> Statement:
    """The statement of a level of the experts' training with constant routers."""
    return _by_loss(settle(parameters, "experts"), tier, "experts")


@functools.lru_cache(maxsize=64)
def joint_statement(parameters: Parameters, tier: str) -> Statement:
    """The statement of a level of joint training."""
    return _by_loss(settle(parameters, "joint"), tier, "joint")


@functools.lru_cache(maxsize=64)
def routers_statement(parameters: Parameters, tier: str) -> Statement:
    """The statement of the training of routers, the same for every level."""
    p = settle(parameters, "router")
    return (router_pairs if p.softmax else router).statement(p, tier)


def _by_loss(p: Parameters, tier: str, stage: str) -> Statement:
    if p.softmax:
        return classes.statement(p, tier, stage)
    return two_samples.statement(p, stage) if tier == "L3" else levels.statement(p, tier, stage)


def experts(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of the experts' training with constant routers."""
    return equations_of(experts_statement(parameters, tier or parameters.tier))


def joint(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of joint training."""
    return equations_of(joint_statement(parameters, tier or parameters.tier))


def routers(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of the training of routers."""
    return equations_of(routers_statement(parameters, tier or parameters.tier))
