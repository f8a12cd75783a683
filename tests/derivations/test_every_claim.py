"""What every claim must be able to do: be confirmed by perfect data, and have a control with power."""

import dataclasses
import types

import pytest

import derivations
from derivations.claim import HOLDS
from odesim.evidence import verification
from odesim.request.case import find_system
from tests.derivations.ideal import could_hold

CLAIMS = [(system, claim) for system in derivations.names() for claim in verification.claims_of(find_system(system))]
every_claim = pytest.mark.parametrize(
    ("system", "claim"), CLAIMS, ids=[f"{system} {claim.id}" for system, claim in CLAIMS]
)


def grids(claim, variant):
    """The sweep of a form at the lowest effort that decides it."""
    return next(grid for effort in verification.EFFORTS if (grid := verification.grid_of(claim, variant, effort)))


def twin_of(claim):
    """The broken twin and the form it is made of."""
    twin = claim.control(claim)
    forms = {variant.name: variant for variant in twin.variants}
    return twin, forms[claim.control_variant] if claim.control_variant else twin.variants[0]


@every_claim
def test_every_form_could_be_confirmed_with_its_points_and_seeds(system, claim):
    for variant in claim.variants:
        law = variant.law or claim.law
        assert could_hold(law, grids(claim, variant), dict(variant.settings)), variant.name


@every_claim
def test_the_law_of_every_control_could_be_satisfied(system, claim):
    twin, variant = twin_of(claim)
    assert could_hold(variant.law or twin.law, grids(twin, variant), dict(variant.settings))


@every_claim
def test_a_control_breaks_a_form_that_holds(system, claim):
    _, variant = twin_of(claim)
    assert variant.expected in HOLDS, f"the control is made of {variant.name}, which is {variant.expected}"


@every_claim
def test_no_control_is_a_constant(system, claim):
    # A function that looks nothing up measures nothing: `lambda lab, point, seed: -1.0`.
    twin, _ = twin_of(claim)
    measure = twin.measure
    if isinstance(measure, types.FunctionType) and twin.measure is not claim.measure:
        code = measure.__code__
        assert code.co_names or code.co_freevars, "the control returns a constant"


@every_claim
def test_a_control_differs_from_its_claim(system, claim):
    twin, variant = twin_of(claim)
    original = next(v for v in claim.variants if v.name == variant.name)
    same_law = (variant.law or twin.law) == (original.law or claim.law)
    same_measure = twin.measure is claim.measure
    same_sweep = twin.sweep == claim.sweep and variant.settings == original.settings and variant.sweep == original.sweep
    assert not (same_law and same_measure and same_sweep)
    assert dataclasses.is_dataclass(twin)
