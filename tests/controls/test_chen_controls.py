"""The claims of system `chen` can fail: every broken twin is refuted, and the right forms come out as expected."""

from derivations.claim import Claim, Variant
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

SYSTEM = find_system("chen")
FAST = ("routing", "ceiling", "data", "gradient")
"""Modules whose claims are decided within seconds."""
SLOW = {"nflip", "lem-E.2"}


def slow(module: str, claim: Claim, forms: bool) -> bool:
    """Return True if a claim, or its forms, integrate or train."""
    return module not in FAST or claim.id in SLOW


def test_the_broken_twin_of_a_form_is_refuted(lab: Laboratory, claim: Claim, held: Variant):
    verdict = verification.control(lab, claim, held)
    assert verdict.answer == "refuted", verdict.reason


def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast(fast_controls: int):
    assert fast_controls >= 10
