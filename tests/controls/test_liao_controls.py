"""The claims of system `liao` can fail: every broken twin is refuted, and the right forms come out as expected."""

import importlib

import pytest

from derivations.claim import Claim, Variant
from odesim import verification
from odesim.case import find_system
from odesim.lab import Laboratory

SYSTEM = find_system("liao")
MODULES = ("algebra", "expansions", "symbolic", "gradient", "leading", "concentration")
"""Modules whose claims are decided within seconds; those that integrate are held against `expected` by `verify`."""
SLOW = {"eq-10", "lem-5", "lem-6", "lem-7"}
"""Claims of these modules that take more than two seconds at effort `quick`."""


@pytest.fixture(scope="module")
def lab() -> Laboratory:
    """One laboratory for all, so that functions are compiled and runs are made once."""
    return Laboratory(SYSTEM, "quick")


def controlled() -> list:
    """All claims of the system, those with a slow control marked so."""
    claims = verification.claims_of(SYSTEM)
    return [pytest.param(c, id=c.id, marks=[pytest.mark.slow] if c.slow_control else []) for c in claims]


def forms() -> list:
    """Every form of every claim of the fast modules."""
    found = []
    for name in MODULES:
        for claim in importlib.import_module(f"derivations.liao.claims.{name}").CLAIMS:
            marks = [pytest.mark.slow] if claim.id in SLOW else []
            found += [pytest.param(claim, v, id=f"{claim.id} {v.name}", marks=marks) for v in claim.variants]
    return found


@pytest.mark.parametrize("claim", controlled())
def test_a_broken_twin_is_refuted(lab: Laboratory, claim: Claim):
    verdict = verification.control(lab, claim)
    assert verdict.answer == "refuted", verdict.reason


@pytest.mark.parametrize(("claim", "variant"), forms())
def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_at_least_ten_controls_are_fast():
    assert sum(not claim.slow_control for claim in verification.claims_of(SYSTEM)) >= 10
