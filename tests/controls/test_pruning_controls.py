"""The claims of system `pruning` can fail: every broken twin is refuted, and the right forms come out as expected."""

from derivations.claim import Claim, Variant
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

SYSTEM = find_system("pruning")
FAST = ("identities", "gradients", "timing", "findings")
"""Modules whose claims are decided within seconds."""
SLOW = {"monotone-classes", "k-crit", "eq-23", "eq-25", "eq-26", "dip-threshold", "lem-E4"}


def slow(module: str, claim: Claim, forms: bool) -> bool:
    """Return True if a claim, or its forms, integrate or train for long."""
    return module not in FAST or claim.id in SLOW


def test_the_broken_twin_of_a_form_is_refuted(lab: Laboratory, claim: Claim, held: Variant):
    verdict = verification.control(lab, claim, held)
    assert verdict.answer == "refuted", verdict.reason


def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast(fast_controls: int):
    assert fast_controls >= 10


def test_there_are_at_least_forty_claims():
    assert len(verification.claims_of(SYSTEM)) >= 40
