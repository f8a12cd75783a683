"""What every claim must be able to do: be confirmed by perfect data, and have a control with power."""

import dataclasses
import types

import pytest

import derivations
from derivations.claim import HOLDS
from derivations.laws import All
from odesim.evidence import verification
from odesim.request.case import find_system
from tests.derivations.ideal import could_hold

CLAIMS = [(system, claim) for system in derivations.names() for claim in verification.claims_of(find_system(system))]


def grids(claim, variant):
    """The sweep of a form at the lowest effort that decides it."""
    return next(grid for effort in verification.EFFORTS if (grid := verification.grid_of(claim, variant, effort)))


def without_minimum(law):
    """The law without the least number of random draws and of sizes that it asks for before it holds."""
    if isinstance(law, All):
        return All({name: without_minimum(part) for name, part in law.parts.items()})
    waived = {"exceptions": None, "short": "waived"}
    fields = {field.name for field in dataclasses.fields(law)}
    return dataclasses.replace(law, **{name: value for name, value in waived.items() if name in fields})


def twin_of(claim):
    """The broken twin and the form it is made of."""
    twin = claim.control(claim)
    forms = {variant.name: variant for variant in twin.variants}
    return twin, forms[claim.control_variant] if claim.control_variant else twin.variants[0]


@pytest.mark.parametrize(("system", "claim"), CLAIMS, ids=[f"{system} {claim.id}" for system, claim in CLAIMS])
def test_every_form_could_be_confirmed_and_has_a_control_with_power(system, claim):
    for variant in claim.variants:
        law = variant.law or claim.law
        if variant.expected == "inconclusive":
            continue  # too few runs or sizes at this effort, as the claim says itself
        if variant.expected == "refuted":
            law = without_minimum(law)  # a counterexample refutes, however few the runs
        assert could_hold(law, grids(claim, variant), dict(variant.settings)), variant.name
    twin, variant = twin_of(claim)
    law = without_minimum(variant.law or twin.law)
    assert could_hold(law, grids(twin, variant), dict(variant.settings)), "the law of the control"
    assert variant.expected in HOLDS, f"the control is made of {variant.name}, which is {variant.expected}"
    assert_no_constant(claim, twin)
    assert_different(claim, twin, variant)


def assert_no_constant(claim, twin):
    # A function that looks nothing up measures nothing: `lambda lab, point, seed: -1.0`.
    measure = twin.measure
    if isinstance(measure, types.FunctionType) and twin.measure is not claim.measure:
        code = measure.__code__
        assert code.co_names or code.co_freevars, "the control returns a constant"


def assert_different(claim, twin, variant):
    original = next(v for v in claim.variants if v.name == variant.name)
    same_law = (variant.law or twin.law) == (original.law or claim.law)
    same_measure = twin.measure is claim.measure
    same_sweep = twin.sweep == claim.sweep and variant.settings == original.settings and variant.sweep == original.sweep
    assert not (same_law and same_measure and same_sweep), "the control is the claim"
    assert dataclasses.is_dataclass(twin)
