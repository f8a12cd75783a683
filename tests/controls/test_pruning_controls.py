"""The claims of system `pruning` can fail: every broken twin is refuted, and the right forms come out as expected."""

import importlib

import pytest

import derivations.pruning
from derivations.claim import Claim, Variant
from odesim import verification
from odesim.case import find_system
from odesim.lab import Laboratory

SYSTEM = find_system("pruning")
FAST = ("identities", "gradients", "timing", "findings")
"""Modules whose claims are decided within seconds; the others are held against `expected` by `verify`."""
SLOW = {"monotone-classes", "k-crit", "eq-23", "eq-25", "eq-26", "dip-threshold"}


@pytest.fixture(scope="module")
def lab() -> Laboratory:
    """One laboratory for all, so that functions are compiled and runs are made once."""
    return Laboratory(SYSTEM, "quick")


def owner(claim: Claim) -> str:
    """The module that a claim stands in."""
    for name in derivations.pruning.claims.MODULES:
        if claim in importlib.import_module(f"derivations.pruning.claims.{name}").CLAIMS:
            return name
    raise AssertionError(claim.id)


def controlled() -> list:
    """All claims, those that integrate or train for long marked slow."""
    found = []
    for claim in verification.claims_of(SYSTEM):
        slow = owner(claim) not in FAST or claim.id in SLOW
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


def test_there_are_at_least_forty_claims_and_twenty_fast_controls():
    assert len(verification.claims_of(SYSTEM)) >= 40
    assert sum(not parameter.marks for parameter in controlled()) >= 20
