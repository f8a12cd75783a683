"""The equations of motion of system `kawata`, tier by tier, stated in index notation."""

import dataclasses

from derivations.kawata.parameters import Parameters
from derivations.statement import Statement


def phase1(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage phase1."""
    if tier == "R3":
        from derivations.kawata.statements import hidden

        return hidden.statement(parameters)
    if tier == "effective":
        from derivations.kawata.statements import effective

        return effective.statement(parameters, 1.0 / parameters.M)
    from derivations.kawata.statements import flow

    if tier == "gated":  # as `tiers.equations`: no gate has been learned yet
        return ungated(flow.statement(parameters, "exact"), "phase1", "no gate has been learned yet")

    return flow.statement(parameters, tier)


def ungated(exact: Statement, stage: str, why: str) -> Statement:
    """The page of tier `gated` where it is the exact flow."""
    rule = f"Here tier gated is the exact flow, since {why}."
    return dataclasses.replace(exact, name=f"kawata, {stage}, gated", rules=(*exact.rules, rule))


def phase3(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage phase3: `gated`, or that of phase1 with the shares that the gate leaves."""
    if tier == "gated" and parameters.routing == "gate":
        from derivations.kawata.statements import gated

        return gated.statement(parameters)
    if tier == "gated":
        return ungated(phase3(parameters, "exact"), "phase3", "with routing=perfect no gate decides")
    if tier == "effective":
        from derivations.kawata.statements import effective

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
