"""The equations of motion of system `kawata`, tier by tier, stated in index notation."""

import dataclasses

from derivations.kawata.parameters import Parameters
from derivations.statement import Statement


def phase1(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage phase1."""
    if tier == "R3":
        from derivations.kawata.statements import hidden

        return hidden.statement(parameters)
    from derivations.kawata.statements import flow

    return flow.statement(parameters, tier)


def phase3(parameters: Parameters, tier: str) -> Statement:
    """The statement of a tier of stage phase3: that of phase1 with the shares that the gate leaves."""
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
