"""Schedules at their edges: jumps that rounding parts, a step that ends at 0, clocks in what is told and studied."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import schedules

UNIT = {"name": "linear", "student": {"unit": "w"}, "start": {"norm": 0.5, "overlap": 0.0}}


def linear(noise=0.0, **training):
    return odesim.declare(**UNIT, teacher={"noise": noise}, training={"limit": "online", **training})


def overlap(run):
    return np.asarray(run["M_ww"])[..., -1, 0, 0]


def test_jumps_that_rounding_parts_are_one():
    # The root of 1 - t/49 is 49.00000000000001.
    model = linear(noise=[[0, 0.3], [49, 0.0]], step="0.02 + relu(1 - t/49)/50")
    assert len(schedules.breaks(model.parameters())) == 1
    area = 0.02 * 60 + 49 / 2 / 50
    assert overlap(odesim.integrate(model, until=60, rtol=1e-9)) == pytest.approx(1 - np.exp(-area), abs=1e-7)
    assert odesim.linearise(odesim.integrate(model, save_at=[0, 40]), 40.0).time == 40.0


def test_a_step_may_end_at_0():
    model = linear(step="1 - t/4")
    assert overlap(odesim.integrate(model, until=4, rtol=1e-9)) == pytest.approx(1 - np.exp(-2), abs=1e-7)
    run = odesim.simulate(model, method="compressed", d=50, until=4, seeds=2)
    assert np.isfinite(run["M_ww"]).all()


def test_a_long_escape_without_schedules_ends_at_its_horizon():
    # The clock of the integrator is renewed on the way, and the horizon less that is rounded.
    model = odesim.declare(
        name="escape",
        student={"unit": "He(3, w)"},
        teacher={},
        training={"weights": "sphere"},
        start={"overlap": 1e-22},
    )
    run = odesim.integrate(model, until=1.1790459248111173e21)
    assert run.outcome.kind == "completed" and float(run["time"][-1]) == 1.1790459248111173e21


def test_models_that_differ_in_rates_alone_are_not_taken_for_each_other():
    tables = {
        "name": "pair",
        "student": {"fast": {"unit": "erf(w)"}, "slow": {"unit": "erf(w)"}},
        "teacher": {"unit": "erf(w)"},
        "start": {"overlap": 0.3},
    }
    ends = []
    for rates in ({"w": "1/(1 + t)"}, {"w": "1/(1 + t)", "fast_w": 0.3}):
        model = odesim.declare(**tables, training={"rates": rates})
        options = {"d": 50, "until": 1.0, "save_points": 2, "rtol": 1e-8}
        sampled = odesim.integrate(model, tier="sampled", backend="jax", **options)
        exact = odesim.integrate(model, **options)
        assert np.asarray(sampled["fast_M_ww"]) == pytest.approx(np.asarray(exact["fast_M_ww"]), abs=2e-3)
        ends.append(overlap({"M_ww": exact["fast_M_ww"]}))
    assert abs(ends[0] - ends[1]) > 0.02


def test_the_error_of_samples_is_that_of_the_overlaps_at_their_time():
    tables = {
        "name": "pair",
        "student": {"units": 2, "unit": "erf(w)"},
        "teacher": {"units": 2},
        "start": {"overlap": 0.3},
    }
    steps = (0.2, [[0, 1.0], [0.5, 0.2]])
    errors = []
    for step in steps:
        model = odesim.declare(**tables, training={"limit": "online", "step": step})
        run = odesim.integrate(model, d=50, tier="sampled", save_at=[0, 0.25, 1.0])
        errors.append(run.summary["sampling_error"][-1])
    assert 0.5 < errors[1] / errors[0] < 2  # the states differ; a rate of 1 of the clock would make it a thousandth


def test_the_loss_of_own_samples_has_the_noise_of_its_time():
    inputs = np.random.default_rng(0).standard_normal((300, 5))
    model = odesim.declare(
        **{**UNIT, "start": {"norm": 0.5}}, teacher={"noise": [[0, 0.5], [1, 0.0]]}, inputs={"data": inputs},
        training={"limit": "online", "step": 0.5},
    )  # fmt: skip
    run = odesim.simulate(model, method="explicit", until=6, save_at=[0, 6], seeds=4)
    constant = odesim.simulate(model, method="explicit", until=6, save_at=[0, 6], seeds=4, noise=0.5)
    assert np.asarray(constant["loss"])[:, -1].mean() > 0.1
    assert np.asarray(run["loss"])[:, -1].mean() < 0.02


def test_a_clock_has_no_stationary_point_and_no_size():
    run = odesim.integrate(linear(step="1/(1 + t/1000)"), until=500)
    late = odesim.linearise(run, 500.0, method="differences")
    assert late.error < 1e-8
    with pytest.raises(UsageError, match="these equations depend on time, so they have no stationary points"):
        late.stationary()


def test_an_event_is_not_called_like_the_clock():
    with pytest.raises(UsageError, match="the name 't' of an event already exists"):
        odesim.declare(
            **UNIT, teacher={}, training={"rates": "1/(1 + t)"}, event=[{"name": "t", "of": "M_ww"}]
        )  # fmt: skip


def test_a_number_in_the_place_of_a_schedule_is_told():
    model = linear(step=[[0, 1.0], [3, 0.5]])
    run = odesim.integrate(model, until=1, step=0.2)
    assert (
        "step" not in run.summary["conventions"] and "step" in odesim.integrate(model, until=1).summary["conventions"]
    )


def test_numbers_at_which_a_jump_has_no_time_are_named():
    model = odesim.declare(
        **UNIT, teacher={}, parameters={"k": 1.0}, training={"limit": "online", "step": "0.1 + step(t/k - 1)"}
    )
    with pytest.raises(UsageError, match=r"step is '0.1 \+ step\(t/k - 1\)'"):
        odesim.integrate(model, until=1, k=0.0)
