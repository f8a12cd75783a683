"""The tiers of system `kawata`, one file each: their statements and equations."""

import dataclasses

from derivations.contract import Equations, UsageError
from derivations.equations.tier import equations_of
from derivations.kawata.parameters import Parameters
from derivations.statement import Statement


def equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier of stage phase1, generated from its statement."""
    return equations_of(phase1(parameters, tier or parameters.tier))


def retraining_equations(parameters: Parameters, tier: str | None = None) -> Equations:
    """The equations of a tier of stage phase3, generated from its statement."""
    return equations_of(retraining(parameters, tier or parameters.tier))


def phase1(parameters: Parameters, tier: str) -> Statement:
    """`exact`, `paper` (the truncated drift), `effective`, or a reduced form `R1` to `R4`."""
    if tier == "R3":
        from derivations.kawata.tiers import hidden

        return hidden.statement(parameters)
    if tier == "effective":
        from derivations.kawata.tiers import effective

        return effective.statement(parameters, 1.0 / parameters.M)
    from derivations.kawata.tiers import flow

    if tier == "gated":
        return ungated(flow.statement(parameters, "exact"), "phase1", "no gate has been learned yet")
    return flow.statement(parameters, tier)


def ungated(exact: Statement, stage: str, why: str) -> Statement:
    """Tier `gated` if it equals the exact flow."""
    rule = f"Here tier gated is the exact flow, since {why}."
    return dataclasses.replace(exact, name=f"kawata, {stage}, gated", rules=(*exact.rules, rule))


def phase3(parameters: Parameters, tier: str) -> Statement:
    """The statement of stage phase3 for its page.

    Raises `UsageError` for tier gated with neurons of different activations, which the printed files do not support.
    """
    if tier == "gated" and parameters.routing == "gate" and parameters.signs:
        raise UsageError("the page is for neurons of one activation: omit signs=true, with which activations differ")
    return retraining(parameters, tier)


def retraining(parameters: Parameters, tier: str) -> Statement:
    """`gated`, or a tier of stage phase1 with shares of the clusters that follow from the gate.

    The latter is exact to leading order in the gate's overlaps.
    """
    if tier == "gated" and parameters.routing == "gate":
        from derivations.kawata.tiers import gated

        return gated.statement(parameters)
    if tier == "gated":
        return ungated(retraining(parameters, "exact"), "phase3", "with routing=perfect no gate decides")
    if tier == "effective":
        from derivations.kawata.tiers import effective

        found = effective.statement(parameters, 1.0)
    else:
        found = phase1(parameters, tier)
    source = found.source + "; Section 3.2, Algorithm 1 (Phase III)"
    if parameters.routing == "perfect":
        return dataclasses.replace(found, name=f"kawata, phase3, {tier}", source=source)
    return dataclasses.replace(
        found,
        name=f"kawata, phase3, {tier}",
        source=source,
        validity="the gate's overlaps with tasks and neurons are small: a cluster's samples reach the expert at random",
        neglects=f"{found.neglects}; the correlation of the gate's decision with the fields of tasks and neurons",
    )
