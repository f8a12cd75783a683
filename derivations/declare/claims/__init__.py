"""Claims of a declared model: generated ones, which test every derivation, and those of the author."""

from derivations.claim import Claim
from derivations.contract import System, UsageError


def claims(system: System) -> tuple[Claim, ...]:
    """Return all claims of a declared system, those of the author first.

    Raises `UsageError` for a claim of the author with the name of another claim.
    """
    from derivations.declare.claims import fluctuations, generated, growing, in_stages, memory_rates, stated

    def of_one(system: System) -> tuple[Claim, ...]:
        return (*generated.claims(system), *memory_rates.claims(system), *growing.claims(system))

    several = system.parameters.declaration.stages  # type: ignore[attr-defined]
    # Bands are those of one stage, because runs of SGD already differ at the beginning of a later one.
    derived_claims = (
        tuple(in_stages.claims(system, of_one)) if several else (*of_one(system), *fluctuations.claims(system))
    )
    stated_claims = stated.claims(system)
    used_ids = {claim.id for claim in derived_claims}
    for claim in stated_claims:
        if claim.id in used_ids:
            raise UsageError(f"claim {claim.id}: a generated claim has this name; choose another id")
    return (*stated_claims, *derived_claims)
