"""The claims of system `kawata` can fail: every broken twin is refuted, and the right forms come out as expected."""

import importlib

import pytest

from derivations.claim import Claim, Variant
from odesim import verification
from odesim.case import find_system
from odesim.lab import Laboratory

SYSTEM = find_system("kawata")
FAST = ("algebra", "sequences", "initialisation", "gates")
"""Modules without integrations, decided within seconds."""


@pytest.fixture(scope="module")
def lab() -> Laboratory:
    """One laboratory for all, so that functions are compiled and runs are made once."""
    return Laboratory(SYSTEM, "quick")


def listed(with_variants: bool) -> list:
    """Every claim (and form); those that integrate or simulate are slow."""
    found = []
    for name in importlib.import_module("derivations.kawata.claims").MODULES:
        marks = [] if name in FAST else [pytest.mark.slow]
        for claim in importlib.import_module(f"derivations.kawata.claims.{name}").CLAIMS:
            if not with_variants:
                found.append(pytest.param(claim, id=claim.id, marks=marks))
                continue
            found += [pytest.param(claim, v, id=f"{claim.id} {v.name}", marks=marks) for v in claim.variants]
    return found


@pytest.mark.parametrize("claim", listed(False))
def test_a_broken_twin_is_refuted(lab: Laboratory, claim: Claim):
    verdict = verification.control(lab, claim)
    assert verdict.answer == "refuted", verdict.reason


@pytest.mark.parametrize(("claim", "variant"), listed(True))
def test_each_form_comes_out_as_expected(lab: Laboratory, claim: Claim, variant: Variant):
    verdict = verification.verify(lab, claim, variant)
    assert verdict.answer == variant.expected, verdict.reason


def test_there_are_at_least_seventy_claims():
    assert len(verification.claims_of(SYSTEM)) >= 70
