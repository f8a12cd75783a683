"""The answer of a check as a whole."""

import pytest

from odesim.evidence.check import Check, overall
from odesim.evidence.verdicts import Verdicts


def verdict(answer, expected="confirmed", claim="one", **more):
    return {"claim": claim, "variant": "main", "answer": answer, "expected": expected} | more


@pytest.mark.parametrize(
    ("verdicts", "answer", "words"),
    [
        ([verdict("confirmed")], "confirmed", "Every claim came out as expected"),
        ([verdict("confirmed"), verdict("refuted", claim="two")], "refuted", "Unexpectedly refuted: two"),
        ([verdict("refuted"), verdict("inconclusive", claim="two")], "refuted", "Unexpectedly refuted: one"),
        ([verdict("confirmed"), verdict("inconclusive", claim="two")], "inconclusive", "Unexpectedly open"),
        (
            [verdict("confirmed"), verdict("refuted", "refuted", "two")],
            "confirmed",
            "to be refuted in some form (errata and rivals): two",
        ),
        ([verdict("refuted", "refuted")], "inconclusive", "Every claim came out as expected"),
        ([verdict("consistent", "consistent")], "consistent", "1 form of 1 claim"),
        ([verdict("confirmed", identity="by definition")], "inconclusive", "1 identity of the construction"),
        ([verdict("confirmed"), verdict("consistent", claim="two")], "confirmed", "No claim is refuted"),
        ([verdict("inconclusive", "inconclusive")], "inconclusive", "Every claim came out as expected"),
    ],
)
def test_unexpected_refutations_come_before_open_claims_and_these_before_confirmed_ones(verdicts, answer, words):
    found = overall(verdicts)
    assert found.answer == answer and words in found.sentence


def test_many_claims_are_counted_and_not_all_named():
    found = overall([verdict("refuted", claim=f"c{k}") for k in range(9)])
    assert "c0, c1, c2, c3, c4, c5 and 3 more" in found.sentence and len(found.refuted) == 9


def test_the_headline_names_how_many_claims_have_a_refuted_form():
    record = {
        "system": {"name": "model"}, "comparison": {"missing": "not asked for"}, "claims": [],
        "verdict": {"answer": "confirmed", "sentence": "", "known": ["two"], "counts": {}, "unexpected": 0},
        "grade": {"name": "qualitative", "because": "", "further": ""},
    }  # fmt: skip
    assert "confirmed, but for 1 claim with a refuted form" in repr(Check(record, Verdicts([])))
