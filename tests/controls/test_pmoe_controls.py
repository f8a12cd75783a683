"""The claims of system `pmoe` can fail: every broken twin is refuted, and the right forms come out as expected."""

import pytest

from derivations.claim import HOLDS, Claim, Variant
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

SYSTEM = find_system("pmoe")
FAST = ("router", "coupling")
"""Modules whose claims are decided within seconds."""
QUICK = {
    "eq-26",
    "joint-conserve",
    "asm-4.4-init",
    "exps",
    "exps-joint",
    "exps-even",
    "tab-2",
    "kappa0-series",
    "cnn-P-law",
}
"""Claims of other modules that are."""
OMITTED = {"disc-1-digits", "fig-4-digits"}
"""Claims that need the effort full and scikit-learn."""


def slow(module: str, claim: Claim, forms: bool) -> bool:
    """Return True if a claim, or its forms, integrate or train."""
    return module not in FAST and claim.id not in QUICK


def test_the_broken_twin_of_a_form_is_refuted(lab: Laboratory, claim: Claim, held: Variant):
    verdict = verification.control(lab, claim, held)
    assert verdict.answer == "refuted", verdict.reason


def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast(fast_controls: int):
    assert fast_controls >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(OMITTED))
def test_digits_come_out_as_expected(name: str):
    pytest.importorskip("sklearn")
    full = Laboratory(SYSTEM, "full")
    (claim,) = verification.claims_of(SYSTEM, [name])
    for variant in claim.variants:
        verdict = verification.verify(full, claim, variant)
        assert verdict.answer == variant.expected, verdict.reason
        if variant.expected in HOLDS:
            assert verification.control(full, claim, variant).answer == "refuted"
