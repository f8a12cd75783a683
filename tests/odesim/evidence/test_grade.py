"""Grades: which claims count, and what they are worth."""

import pytest

import derivations
from derivations.claim import Claim, Grid, Variant
from derivations.contract import Source
from derivations.laws import Agrees, All, Bounded, Equals, Power, Probability, Vanishes
from odesim.evidence.grade import MEANINGS, grade, printed_at, reproduces
from odesim.evidence.verification import claims_of

PAPER = Source("A. Author", "A paper", "", 2024)


def claim(place="Theorem 1", id="thm-1", **more):
    return Claim(id, "x", PAPER.at(place), print, Equals(1.0), {"quick": Grid()}, lambda c: c, (7,), **more)


def verdict(name="plateau", answer="confirmed", reproduces="number", published="eq. (23)", **more):
    return {"claim": name, "variant": "main", "answer": answer, "reproduces": reproduces, "published": published} | more


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (Equals(2.0), "number"),
        (Power(0.5), "law"),
        (Power(0.5, bound="at most"), "law"),
        (Bounded(high=1.0), ""),
        (Vanishes(1e-9), ""),
        (Agrees(0.1), ""),
        (Probability(low=0.9), ""),
        (All({"a": Power(0.5), "b": Bounded(high=1.0)}), "law"),
        (All({"a": Power(0.5), "b": Equals(1.0)}), "number"),
    ],
)
def test_values_are_numbers_and_powers_are_laws(law, kind):
    assert reproduces(law) == kind


def test_what_is_derived_here_corrected_or_our_own_is_not_printed():
    main, corrected = Variant("main"), Variant("corrected")
    assert printed_at(claim(), main) == "Theorem 1"
    assert printed_at(claim(), corrected) == ""
    assert printed_at(claim("generated", derived=True), main) == ""
    assert printed_at(claim("Theorem 1, our extension"), main) == ""
    assert printed_at(claim(id="own-1"), main) == ""


@pytest.mark.parametrize(
    ("verdicts", "name", "words"),
    [
        ([verdict()], "number reproduced", "the published number of claim plateau is confirmed (eq. (23))"),
        ([verdict(), verdict("rate", reproduces="law")], "number reproduced", "claim plateau"),
        ([verdict("rate", reproduces="law")], "law reproduced", "the published law of claim rate"),
        ([verdict("rate", reproduces="law"), verdict(answer="refuted")], "law reproduced", "claim rate"),
        ([verdict(published="")], "qualitative", "no claim states a number or a law at a place"),
        ([verdict(reproduces="")], "qualitative", "bounds, signs or events"),
        ([verdict(answer="refuted")], "qualitative", "published claim plateau is refuted"),
        ([verdict(answer="inconclusive")], "qualitative", "published claim plateau is open"),
        ([verdict(identity="by definition")], "qualitative", "no claim states"),
        ([], "qualitative", "it states no claim"),
    ],
)
def test_the_grade_is_that_of_the_best_published_claim_that_is_confirmed(verdicts, name, words):
    found = grade(verdicts)
    assert found.name == name and words in found.because
    assert found.record()["meaning"] == MEANINGS[name]
    assert found.against == tuple(v["claim"] for v in verdicts if v["answer"] == "refuted")


@pytest.mark.parametrize("name", ["saad_solla_1995", "simsek_2023", "liao_declared"])
def test_generated_claims_never_count(name):
    system = derivations.system(name)
    generated = [c for c in claims_of(system) if c.source.place == "generated"]
    assert len(generated) >= 4
    assert not any(printed_at(c, form) for c in generated for form in c.variants)


def test_a_claim_counts_where_its_file_says_where_the_source_prints_it():
    (plateau,) = claims_of(derivations.system("saad_solla_1995"), ["plateau"])
    assert "symmetric phase" in printed_at(plateau, plateau.variants[0])
    (own,) = claims_of(derivations.system("lee_2021"), ["unlike"])
    assert printed_at(own, own.variants[0]) == ""
