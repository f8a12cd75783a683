"""The claims of system `liao` can fail: every broken twin is refuted, and the right forms come out as expected."""

from derivations.claim import Claim, Variant
from odesim.evidence import verification
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

SYSTEM = find_system("liao")
FAST = ("algebra", "expansions", "symbolic", "gradient", "leading", "concentration")
"""Modules whose forms are decided within seconds; most controls of the others are fast."""
SLOW = {"eq-10", "lem-5", "lem-6", "lem-7"}
"""Claims of these modules that take more than two seconds at effort `quick`."""


def slow(module: str, claim: Claim, forms: bool) -> bool:
    """Return True if a claim's control, or its forms, take more than a few seconds."""
    return module not in FAST or claim.id in SLOW if forms else claim.slow_control


def test_the_broken_twin_of_a_form_is_refuted(lab: Laboratory, claim: Claim, held: Variant):
    verdict = verification.control(lab, claim, held)
    assert verdict.answer == "refuted", verdict.reason


def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast(fast_controls: int):
    assert fast_controls >= 10
