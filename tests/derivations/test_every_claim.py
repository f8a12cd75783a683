"""Conditions on every claim: perfect data confirm it, and its control has power."""

import dataclasses
import types

import pytest

import derivations
from derivations.broken import focused, form_of_control, twin_of
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


@pytest.mark.parametrize(("system", "claim"), CLAIMS, ids=[f"{system} {claim.id}" for system, claim in CLAIMS])
def test_every_form_could_be_confirmed_and_has_a_control_with_power(system, claim):
    written_for = form_of_control(claim)
    nothing_holds = all(variant.expected not in HOLDS for variant in claim.variants)  # open or refuted in every form
    words = f"the control is made of {written_for.name}, which is {written_for.expected}"
    assert written_for.expected in HOLDS or nothing_holds, words
    for variant in claim.variants:
        law = variant.law or claim.law
        if variant.expected == "inconclusive":
            continue  # too few runs or sizes at this effort, as the claim says itself
        if variant.expected == "refuted":
            law = without_minimum(law)  # a counterexample refutes, however few the runs
        assert could_hold(law, grids(claim, variant), dict(variant.settings)), variant.name
        if variant.expected in HOLDS:
            whole, twin = focused(claim, variant), twin_of(claim, variant)
            (form,) = twin.variants
            broken = without_minimum(twin.law)
            assert could_hold(broken, grids(twin, form), dict(form.settings)), f"the law of {variant.name}'s control"
            assert_no_constant(whole, twin)
            assert_different(whole, twin)


def assert_no_constant(claim, twin):
    # A function that looks nothing up measures nothing: `lambda lab, point, seed: -1.0`.
    measure = twin.measure
    if isinstance(measure, types.FunctionType) and twin.measure is not claim.measure:
        code = measure.__code__
        assert code.co_names or code.co_freevars, "the control returns a constant"


def assert_different(claim, twin):
    (original,), (form,) = claim.variants, twin.variants
    assert form.law is None, "the law of the twin is that of its claim"
    same_sweep = (twin.sweep, form.settings, form.sweep) == (claim.sweep, original.settings, original.sweep)
    assert not (twin.law == claim.law and twin.measure is claim.measure and same_sweep), "the control is the claim"
    assert dataclasses.is_dataclass(twin)
