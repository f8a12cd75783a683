"""The claims of system `pmoe` can fail: every broken twin is refuted, and the right forms come out as expected."""

import importlib

import pytest

import derivations.pmoe
from derivations.claim import Claim, Variant
from odesim import verification
from odesim.case import find_system
from odesim.lab import Laboratory

SYSTEM = find_system("pmoe")
FAST = ("router", "coupling")
"""Modules whose claims are decided within seconds; the others are held against `expected` by `verify`."""
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
FULL = {"disc-1-digits", "fig-4-digits"}
"""Claims that need the effort full and scikit-learn."""


@pytest.fixture(scope="module")
def lab() -> Laboratory:
    """One laboratory for all, so that functions are compiled and runs are made once."""
    return Laboratory(SYSTEM, "quick")


def owner(claim: Claim) -> str:
    """The module that a claim stands in."""
    for name in derivations.pmoe.claims.MODULES:
        if claim in importlib.import_module(f"derivations.pmoe.claims.{name}").CLAIMS:
            return name
    raise AssertionError(claim.id)


def controlled() -> list:
    """All claims that the effort quick decides, those that integrate or train marked slow."""
    found = []
    for claim in verification.claims_of(SYSTEM):
        if claim.id in FULL:
            continue
        slow = owner(claim) not in FAST and claim.id not in QUICK
        found.append(pytest.param(claim, id=claim.id, marks=[pytest.mark.slow] if slow else []))
    return found


def forms() -> list:
    """Every form of every claim."""
    return [
        pytest.param(*marked.values, variant, id=f"{marked.id} {variant.name}", marks=marked.marks)
        for marked in controlled()
        for variant in marked.values[0].variants
    ]


@pytest.mark.parametrize("claim", controlled())
def test_a_broken_twin_is_refuted(lab: Laboratory, claim: Claim):
    verdict = verification.control(lab, claim)
    assert verdict.answer == "refuted", verdict.reason


@pytest.mark.parametrize(("claim", "variant"), forms())
def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast():
    assert sum(not parameter.marks for parameter in controlled()) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FULL))
def test_digits_come_out_as_expected(name: str):
    pytest.importorskip("sklearn")
    full = Laboratory(SYSTEM, "full")
    for claim in verification.claims_of(SYSTEM, [name]):
        for variant in claim.variants:
            verdict = verification.verify(full, claim, variant)
            assert verdict.answer == variant.expected, verdict.reason
        assert verification.control(full, claim).answer == "refuted"
