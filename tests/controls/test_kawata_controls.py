"""The claims of system `kawata` can fail: every broken twin is refuted, and the right forms come out as expected."""

from derivations.claim import Claim, Variant
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

SYSTEM = find_system("kawata")
FAST = ("algebra", "sequences", "initialisation", "gates")
"""Modules without integrations, decided within seconds."""
SLOW = {"phase2-n", "lem-C.15-noise", "lem-C.15-grad"}


def slow(module: str, claim: Claim, forms: bool) -> bool:
    """Return True if a claim, or its forms, integrate or simulate."""
    return module not in FAST or claim.id in SLOW


def test_the_broken_twin_of_a_form_is_refuted(lab: Laboratory, claim: Claim, held: Variant):
    verdict = verification.control(lab, claim, held)
    assert verdict.answer == "refuted", verdict.reason


def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast(fast_controls: int):
    assert fast_controls >= 10


def test_there_are_at_least_seventy_claims():
    assert len(verification.claims_of(SYSTEM)) >= 70
