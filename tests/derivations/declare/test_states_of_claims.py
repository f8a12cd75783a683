"""Starts of generated claims: vectors fit into blocks, and impossible runs leave a claim open."""

import dataclasses

import pytest

import odesim
from derivations.declare.claims import claims, parameter_derivatives
from derivations.declare.claims.states import MOST, SMALL, horizon, small_dimension
from odesim.errors import UsageError
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify
from tests.derivations.declare.judged import answer, control

COMMITTEE = {"student": {"unit": "w", "units": 2}, "teacher": {"units": 2}}


def blocks(*shares):
    count = len(shares)
    return {**COMMITTEE, "inputs": {"blocks": [[1.0 + k / count, share] for k, share in enumerate(shares)]}}


@pytest.mark.parametrize(
    ("tables", "dimension"),
    [(COMMITTEE, SMALL), (blocks(0.5, 0.5), SMALL), (blocks(*[1 / 16] * 16), 64), (blocks(0.999, 0.001), MOST)],
)
def test_every_block_has_room_for_all_vectors(tables, dimension):
    assert small_dimension(odesim.declare(**tables).parameters()) == dimension


def test_the_microscope_runs_on_sixteen_blocks():
    assert answer(odesim.declare(**blocks(*[1 / 16] * 16)), "microscope") == "confirmed"


def refused(lab, point, seed):
    raise UsageError("no such start")


def test_an_impossible_run_leaves_a_generated_claim_open_and_is_a_mistake_in_a_stated_one():
    system = odesim.declare(**COMMITTEE)
    claim = dataclasses.replace(next(claim for claim in claims(system) if claim.id == "drift"), measure=refused)
    verdict = verify(Laboratory(system), claim, claim.variants[0])
    assert verdict.answer == "inconclusive"
    assert "a run is impossible: no such start" in str(verdict)
    with pytest.raises(UsageError, match="no such start"):
        verify(Laboratory(system), dataclasses.replace(claim, derived=False), claim.variants[0])


def test_runs_of_claims_end_before_a_declared_step_falls_to_zero():
    tables = {"student": {"unit": "erf(w/sqrt(2))"}, "teacher": {}}
    # From the random state of the claims the step 2 + 0.2 log(1e-4/|w - v|^2) is 0.1, and falls at the rate 0.1.
    memory = {"level": {"start": 2.0, "rate": "0.01*log(1e-4/(Q_ww[1,1] - 2*M_ww[1,1] + 1))"}}
    step = "level + 0.2*log(1e-4/(Q_ww[1,1] - 2*M_ww[1,1] + 1))"
    system = odesim.declare(**tables, memory=memory, training={"limit": "online", "step": step})
    free = odesim.declare(**tables, training={"limit": "online", "step": 0.1})
    assert 0.01 < horizon(system) < 0.25 < horizon(free)
    assert answer(system, "back-ends") == "confirmed"


@pytest.mark.slow
def test_derivatives_at_a_logarithm_of_a_small_distance_are_confirmed(monkeypatch):
    system = odesim.system("critical_step")
    assert answer(system, "gradient-differences") == "confirmed"
    assert answer(system, "gradient-differences", control) == "refuted"
    # Over a thousandth of the decay the loss bends, so that the longer difference alone is another slope.
    monkeypatch.setattr(parameter_derivatives, "LENGTHS", parameter_derivatives.LENGTHS[:1])
    assert answer(system, "gradient-differences") == "refuted"
