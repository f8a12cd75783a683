"""The answer of a check as a whole."""

import pytest

from odesim.evidence.check import overall


def verdict(answer, expected="confirmed", claim="one", **more):
    return {"claim": claim, "variant": "main", "answer": answer, "expected": expected} | more


@pytest.mark.parametrize(
    ("verdicts", "answer", "words"),
    [
        ([verdict("confirmed")], "confirmed", "Every claim came out as expected"),
        ([verdict("confirmed"), verdict("refuted", claim="two")], "refuted", "against what was expected: two"),
        ([verdict("refuted"), verdict("inconclusive", claim="two")], "refuted", "against what was expected: one"),
        ([verdict("confirmed"), verdict("inconclusive", claim="two")], "inconclusive", "Open, against what was"),
        ([verdict("confirmed"), verdict("refuted", "refuted", "two")], "confirmed", "refutations of two were expected"),
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
