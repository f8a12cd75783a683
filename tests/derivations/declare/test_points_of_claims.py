"""Stated values whose right-hand side is a mean over random points: their intervals contain the sampling error."""

import functools

import numpy as np
import pytest

import odesim
from derivations.declare.claims import measurements, stated
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import verify

TABLES = {
    "student": {"unit": "erf(w/sqrt(2))", "units": 2},
    "teacher": {"units": 2, "noise": 0.1},
    "training": {"limit": "online", "step": 1.0},
    "start": {"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.3, 0.0], [0.0, 0.2]]},
}
UNTIL, FEW = 4.0, 1024
"""Time of the value, and points whose error at it is about one per cent."""


@functools.cache
def exact():
    """The error at the end by closed forms."""
    return float(odesim.integrate(odesim.declare(**TABLES), until=UNTIL, rtol=1e-10)["error"][-1])


def of_points(value, margin, lab_seed=0, tables=TABLES, **parameters):
    """The verdict on a value of the tier `sampled`."""
    asked = {"tier": "sampled", "points": FEW, **parameters}
    claim = {"id": "end", "measure": "final error", "until": UNTIL, "parameters": asked}
    system = odesim.declare(**tables, claim=[{**claim, "law": {"equals": value, "margin": margin}}])
    (found,) = stated.claims(system)
    return verify(Laboratory(system, seed=lab_seed), found, *found.variants)


def test_an_interval_contains_the_error_of_the_points():
    found = of_points(exact(), margin=0.1)
    low, high = found.interval
    assert found.answer == "confirmed" and low < exact() < high
    assert 2e-3 < (high - low) / 2 / exact() < 0.1  # 1e-6 is the error of the solver alone


def test_a_value_within_the_error_of_the_points_is_not_refuted():
    low, high = of_points(exact(), margin=0.1).interval
    near, far = (exact() + k * (high - low) for k in (0.3, 5.0))
    assert of_points(near, margin=1e-6).answer == "inconclusive"
    assert of_points(far, margin=1e-6).answer == "refuted"


def test_other_seeds_of_a_verdict_draw_other_points():
    first, second = (of_points(exact(), 0.1, lab_seed=seed) for seed in (0, 1))
    assert first.estimate != second.estimate and second.interval[0] < exact() < second.interval[1]


@pytest.mark.parametrize(("over", "starts"), [({}, 1), ({"seeds": 6}, 6)])
def test_seeds_of_points_keep_the_start_unless_the_claim_asks_for_seeds(over, starts):
    claim = {"id": "x", "measure": "final M_ww[1,2]", "until": 1e-9, "over": over, "law": {"equals": 1.0}}
    asked = {"tier": "sampled", "points": FEW}
    system = odesim.declare(**{**TABLES, "start": {"norm": 0.5}}, claim=[{**claim, "parameters": asked}])
    (found,) = stated.claims(system)
    lab = Laboratory(system)
    assert found.sweep["quick"].seeds == 6
    assert len({round(found.measure(lab, {}, seed), 6) for seed in range(6)}) == starts


def test_closed_forms_and_grids_are_one_run():
    for tables, tier in ((TABLES, "auto"), ({"student": {"unit": "He(2, w)"}}, "sampled")):
        claim = {"id": "x", "measure": "final error", "parameters": {"tier": tier}, "law": {"equals": 1.0}}
        (found,) = stated.claims(odesim.declare(**tables, claim=[claim]))
        runs = found.sweep["quick"].seeds
        assert (runs, found.law.error) == ((1, 1e-6) if tier == "auto" else (6, None))


ASKED = {"engine": "flow", "parameters": {}, "unbiased": True, "fixed_start": True}


def of_values(monkeypatch, value, **request):
    """The measurement of runs whose number is a function of their number of points."""
    monkeypatch.setattr(measurements, "of_one_run", lambda lab, request, draw, asked: value(request["points"]))
    return measurements.measured(Laboratory(odesim.declare(**TABLES)), request, 0, ASKED)


def test_the_bias_that_all_points_share_is_removed(monkeypatch):
    assert of_values(monkeypatch, lambda count: 1 + 8 / count, points=1024) == pytest.approx(1.0, abs=1e-14)
    assert of_values(monkeypatch, lambda count: 1 + 8 / count, points=64) == pytest.approx(1.0, abs=1e-14)


def test_a_time_that_few_points_do_not_reach_decides_nothing(monkeypatch):
    assert np.isnan(of_values(monkeypatch, lambda count: 3.0 if count > 512 else np.inf, points=1024))
    assert of_values(monkeypatch, lambda count: np.inf, points=1024) == np.inf


@pytest.mark.slow
def test_intervals_of_values_cover_the_truth():
    # 95 % of 40 intervals are 38; fewer than 34 have the probability 1 in 1000.
    repetitions = (of_points(exact(), 0.1, sample_seed=1000 * (k + 1)) for k in range(40))
    assert sum(found.interval[0] <= exact() <= found.interval[1] for found in repetitions) >= 34
