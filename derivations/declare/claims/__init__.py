"""The claims of a declared model: those that every derivation can be held to, and those that its author states."""

from derivations.claim import Claim
from derivations.contract import System, UsageError


def claims(system: System) -> tuple[Claim, ...]:
    """All claims of a declared system, those that its author states first.

    Raises `UsageError` for a claim of the author's that has the name of another.
    """
    from derivations.declare.claims import fluctuations, generated, growing, in_stages, memory_rates, stated

    def of_one(system: System) -> tuple[Claim, ...]:
        return (*generated.claims(system), *memory_rates.claims(system), *growing.claims(system))

    several = system.parameters.declaration.stages  # type: ignore[attr-defined]
    # Bands are those of one stage: a later one begins where runs of SGD have spread already.
    made = tuple(in_stages.claims(system, of_one)) if several else (*of_one(system), *fluctuations.claims(system))
    own = stated.claims(system)
    taken = {claim.id for claim in made}
    for claim in own:
        if claim.id in taken:
            raise UsageError(f"claim {claim.id}: a generated claim has this name; choose another id")
    return (*own, *made)
