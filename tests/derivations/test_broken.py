"""Ways to break a claim: each makes a twin of one form, and changes what it says it changes."""

import dataclasses

import pytest

from derivations.broken import (
    break_law,
    break_measure,
    break_number,
    break_part,
    break_setting,
    claim_of,
    focused,
    form_of_control,
    grid,
    twin_of,
    with_seeds,
)
from derivations.claim import Variant
from derivations.contract import Source
from derivations.laws import All, Bounded, Equals, Power

SOURCE = Source("Nobody", "Nothing", "Nowhere", 2000)


def measure(lab, point, seed):
    return point.get("x", 0.0)


def claim(control, **more):
    return claim_of(SOURCE, "id", "words", "Lemma 1", measure, Equals(1.0, absolute=0.1), grid({"x": 1.0}), control,
                    rungs=(1,), **more)  # fmt: skip


POWER = Variant("power", {"y": 2}, law=Power(2.0, margin=0.05), sweep={"quick": grid({"d": 1})})


def test_a_form_is_broken_by_the_control_of_its_claim_with_its_own_law_and_sweep():
    whole = claim(break_number(), variants=(Variant("first"), POWER))
    first, power = (twin_of(whole, form) for form in whole.variants)
    assert first.law.value == pytest.approx(1.2)
    assert first.sweep == whole.sweep
    assert power.law.exponent == pytest.approx(2.1)
    assert power.law.margin == 0.05
    assert power.sweep == POWER.sweep
    assert [form.name for form in power.variants] == ["power"]


def test_a_control_of_a_form_takes_the_place_of_that_of_the_claim():
    whole = claim(break_number(), variants=(dataclasses.replace(POWER, control=break_setting(x=3.0)),))
    twin = twin_of(whole, whole.variants[0])
    assert twin.law == POWER.law
    assert twin.variants[0].settings == {"y": 2, "x": 3.0}


def test_without_a_form_the_one_that_the_control_is_written_for_is_broken():
    whole = claim(break_number(), variants=(Variant("first"), POWER), control_variant="power")
    assert form_of_control(whole) is POWER
    assert twin_of(whole).variants[0].name == "power"


def test_a_claim_reduced_to_a_form_measures_the_same():
    whole = claim(break_number(), variants=(Variant("first"), POWER))
    reduced = focused(whole, POWER)
    assert reduced.law is POWER.law
    assert reduced.measure is measure
    assert reduced.variants[0].law is None


def test_a_control_with_more_seeds_breaks_the_same_at_the_same_points():
    whole = claim(
        with_seeds(16, break_setting(x=3.0)),
        variants=(Variant("main", sweep={"quick": None, "full": grid({"x": 2.0}, seeds=8)}),),
    )
    twin = twin_of(whole)
    assert twin.sweep == {"quick": None, "full": grid({"x": 2.0}, seeds=16)}
    assert twin.variants[0].settings == {"x": 3.0}


def test_law_part_and_measure_are_replaced_alone():
    broken = twin_of(claim(break_law(value=7.0)))
    assert broken.law == Equals(7.0, absolute=0.1)
    parts = All({"a": Equals(1.0, absolute=0.1), "b": Bounded(high=2.0)})
    whole = dataclasses.replace(claim(break_part("b", high=1.0)), law=parts)
    assert twin_of(whole).law == All({"a": Equals(1.0, absolute=0.1), "b": Bounded(high=1.0)})
    assert twin_of(claim(break_measure(len))).measure is len
