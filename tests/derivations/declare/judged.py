"""A generated claim by its name, judged as it is or with a change such as its control."""

from derivations.declare.claims import claims
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify


def answer(system, name, change=lambda claim: claim):
    (claim,) = (one for one in claims(system) if one.id == name)
    (variant,) = claim.variants
    return verify(Laboratory(system), change(claim), variant).answer


def control(claim):
    return claim.control(claim)
