"""The claims of a declared model: those that every derivation can be held to, and those that its author states."""

from derivations.claim import Claim
from derivations.contract import System


def claims(system: System) -> tuple[Claim, ...]:
    """All claims of a declared system, the generated ones first."""
    from derivations.declare.claims import generated, growing, stated

    return (*generated.claims(system), *growing.claims(system), *stated.claims(system))
