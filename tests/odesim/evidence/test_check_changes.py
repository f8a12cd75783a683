"""Changes between two checks, of records that differ in one thing each."""

import copy

import pytest

from odesim.evidence.check_changes import apart, changes

CLAIM = {
    "claim": "floor", "variant": "main", "statement": "It ends at 1", "predicted": 1.0, "margin": 0.1,
    "answer": "confirmed", "estimate": 1.01, "interval": [0.99, 1.03],
}  # fmt: skip
RECORD = {
    "system": {"name": "model"},
    "verdict": {"answer": "confirmed"},
    "grade": {"name": "number reproduced"},
    "request": {"effort": "quick"},
    "versions": {"odesim": "1.0", "numpy": "2.1"},
    "claims": [CLAIM, {**CLAIM, "claim": "rate", "variant": "printed"}],
}


def changed(**fields):
    later = copy.deepcopy(RECORD)
    later["claims"][0].update(fields)
    return changes(RECORD, later)


def test_the_same_check_has_no_changes():
    found = changes(RECORD, copy.deepcopy(RECORD))
    assert found.none and found.sentences() == ["nothing changed"]


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        ({"answer": "refuted"}, "answers", (("floor", "confirmed", "refuted"),)),
        ({"estimate": 1.2, "interval": [1.18, 1.22]}, "moved", (("floor", 1.01, 1.2),)),
        ({"estimate": 1.04, "interval": [1.02, 1.06]}, "moved", ()),
        ({"statement": "It ends at 2"}, "restated", ("floor",)),
        ({"margin": 0.2}, "restated", ("floor",)),
        ({"answer": "inconclusive", "estimate": None, "interval": None, "predicted": None, "margin": None},
         "restated", ()),
    ],
)  # fmt: skip
def test_a_change_of_a_claim_is_said_in_its_place(fields, attribute, value):
    assert getattr(changed(**fields), attribute) == value


def test_claims_that_come_and_go_and_versions():
    later = copy.deepcopy(RECORD)
    later["claims"] = [CLAIM, {**CLAIM, "claim": "new"}]
    later["versions"] = {"odesim": "1.1", "numpy": "2.1", "jax": None}
    later["grade"]["name"] = "qualitative"
    found = changes(RECORD, later)
    assert (found.added, found.removed) == (("new",), ("rate (printed)",))
    assert found.versions == (("odesim", "1.0", "1.1"),)
    assert found.headline == (("grade", "number reproduced", "qualitative"),)
    assert found.sentences()[0] == "grade: number reproduced before, qualitative now"


def test_rounding_of_an_exact_number_is_no_move():
    one = {"estimate": 0.1, "interval": [0.1, 0.1]}
    assert not apart(one, {"estimate": 0.1 + 1e-12, "interval": None})
    assert apart(one, {"estimate": 0.1 + 1e-8, "interval": None})
