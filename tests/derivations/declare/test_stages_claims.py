"""Claims of models of several stages: generated in every stage, stated over the whole course."""

import numpy as np
import pytest

import odesim
from derivations.declare.claims.in_stages import path
from odesim.evidence import laboratory, verification

CLAIMS = [
    {"id": "forgets", "measure": "final error_first", "law": {"at_least": 0.2}},
    {"id": "later", "measure": "first time error_second <= 0.1", "law": {"equals": 2.4646, "margin": 0.01}},
    {"id": "sooner", "measure": "final error_first", "until": 1.5, "law": {"at_most": 0.1}},
    {"id": "by-sgd", "measure": "final error_first", "engine": "compressed", "law": {"at_least": 0.15}},
]


def model():
    """Two teachers of one linear unit, whose errors have closed forms: every stage relaxes by exp(-t)."""
    return odesim.declare(
        name="relaxes", student={"unit": "w"}, teacher={"gram": 0.5, "one": {}, "two": {}},
        training={"limit": "flow", "step": 0.01}, claim=CLAIMS,
        start={"Q_ww": [[0.25]], "one_M_ww": [[0.1]], "two_M_ww": [[0.1]]},
        stage=[
            {"name": "first", "teacher": ["one"], "until": 1.5},
            {"name": "second", "teacher": ["two"], "until": 4, "rates": "1 + 0.2*(t - 1.5)"},
        ],
    )  # fmt: skip


def test_ids_of_claims():
    ids = [claim.id for claim in verification.claims_of(model())]
    assert {"drift-first", "drift-second", "small-step-second", "gradient-first", "forgets", "by-sgd"} <= set(ids)
    assert len(ids) == len(set(ids)) and "drift" not in ids


@pytest.mark.parametrize("name", ["drift", "gradient", "tiers", "integrators"])
@pytest.mark.parametrize("stage", ["first", "second"])
def test_generated_claims_of_every_stage(name, stage):
    own = model()
    lab = laboratory.Laboratory(own)
    (claim,) = verification.claims_of(own, [f"{name}-{stage}"])
    assert verification.verify(lab, claim, claim.variants[0]).answer == "confirmed"
    assert verification.control(lab, claim).answer == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["first", "second"])
def test_all_other_generated_claims(stage):
    own = model()
    lab = laboratory.Laboratory(own)
    for claim in verification.claims_of(own):
        if claim.id.endswith(stage):
            assert verification.verify(lab, claim, claim.variants[0]).answer == "confirmed", claim.id
            assert verification.control(lab, claim).answer == "refuted", claim.id


def known(t):
    """|w - one*|^2 and |w - two*|^2 at a time: w relaxes to one*, then to two*."""
    early = np.exp(-min(t, 1.5))
    # w = one* + e (w0 - one*): the products of w with w, one*, two*.
    ww = early**2 * (0.25 - 2 * 0.1 + 1) + 2 * early * (0.1 - 1) + 1
    wo, wt = 1 + early * (0.1 - 1), 0.5 + early * (0.1 - 0.5)
    if t > 1.5:
        s = t - 1.5
        late = np.exp(-(s + 0.1 * s**2))
        ww = late**2 * (ww - 2 * wt + 1) + 2 * late * (wt - 1) + 1
        wo, wt = 0.5 + late * (wo - 0.5), 1 + late * (wt - 1)
    return ww - 2 * wo + 1, ww - 2 * wt + 1


def test_paths_are_those_of_the_whole_course():
    lab = laboratory.Laboratory(model())
    for stage, place in (("first", 0), ("second", 1)):
        times, values = path(lab, f"error_{stage}", "flow", None, seed=0, save_points=11, rtol=1e-10)
        assert times[0] == 0 and times[-1] == 4 and (np.diff(times) > 0).all()
        assert values == pytest.approx([known(t)[place] for t in times], abs=1e-8)
    times, _ = path(lab, "error_first", "compressed", 2.0, seed=0, save_points=11)
    assert times[-1] == pytest.approx(2.0)


def test_stated_claims():
    answers = {v.claim: v.answer for v in odesim.verify(model(), [claim["id"] for claim in CLAIMS])}
    assert answers["later"] == "confirmed" and set(answers.values()) <= {"confirmed", "consistent"}


def test_a_measure_that_no_stage_has():
    tables = [{"measure": "final error_third", "law": {"at_most": 1.0}}]
    with pytest.raises(odesim.UsageError, match=r"what a run holds is .*error_first, error_second"):
        odesim.declare(
            student={"unit": "w"}, teacher={"one": {}, "two": {}}, claim=tables,
            stage=[{"name": "first", "teacher": ["one"], "until": 1}, {"name": "second", "teacher": ["two"]}],
        )  # fmt: skip
