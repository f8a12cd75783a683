"""Heads beside stages and momentum: the digits of two tasks in turn, velocities of readouts, and what is refused."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare.claims import generated
from odesim.evidence.laboratory import Laboratory
from tests.derivations.declare import judged
from tests.derivations.declare.test_heads import LEE

FIRST = {"name": "first", "head": "one", "until": 15}
SECOND = {"name": "second", "head": "two", "until": 30}


def in_turn(**second):
    return odesim.declare(**{"name": "in-turn", **LEE, "stage": [FIRST, {**SECOND, **second}]})


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_two_tasks_in_turn_have_their_digits(backend):
    times = {"first": [0, 15], "second": [15, 16, 18, 22, 30]}
    model = in_turn()
    first = odesim.integrate(model, stage="first", save_at=times["first"], backend=backend)
    (second,) = odesim.integrate(model, stage="second", after=first, save_at=times["second"], backend=backend)
    assert np.asarray(second.time) == pytest.approx(times["second"])
    assert np.asarray(second["error_one"]) == pytest.approx(
        [0.003225, 0.003871, 0.008702, 0.034206, 0.071073], abs=6e-7
    )
    assert np.asarray(second["error_two"]) == pytest.approx(
        [0.341150, 0.293481, 0.214196, 0.071994, 0.008795], abs=6e-7
    )
    assert np.asarray(second["error"]) == pytest.approx(np.asarray(second["error_two"]))
    assert np.ptp(np.asarray(second["a_one"]), axis=0) == pytest.approx(0)


def test_readouts_alone_forget_nothing():
    first, second = odesim.integrate(in_turn(trained=["a"]), stage="all", save_points=3)
    assert np.asarray(second["error_one"]) == pytest.approx(0.003225, abs=6e-7)
    assert float(second["error_two"][-1]) == pytest.approx(0.306577, abs=6e-7)
    assert np.asarray(second["Q_ww"])[-1] == pytest.approx(np.asarray(first["Q_ww"])[-1])


def test_sgd_trains_one_head_after_the_other():
    model, d = in_turn(), 2000
    options = {"method": "compressed", "d": d, "seeds": 24, "save_points": 2, "until": {"first": 15, "second": 18}}
    runs = odesim.simulate(model, stage="all", **options)
    flow = odesim.integrate(model, stage="all", d=d, save_points=2, until={"first": 15, "second": 18})
    for one, two in zip(runs, flow, strict=True):
        z = judged.z_of_runs(one, two, ("Q_ww", "one_M_ww", "two_M_ww"))
        # Ten numbers of the same replicas, and a deviation of order 1/d.
        assert np.abs(z).max() < 5
    assert np.ptp(np.asarray(runs[0]["a_two"]), axis=1) == pytest.approx(0)
    assert np.ptp(np.asarray(runs[1]["a_one"]), axis=1) == pytest.approx(0)


def test_a_stage_names_the_head_that_it_asks_for():
    with pytest.raises(UsageError, match="stage second: no head is called 'tow'; did you mean 'two'"):
        in_turn(head="tow")


def timed(**training):
    return odesim.declare(
        **{**LEE, "training": {**LEE["training"], "momentum": {"time": 2.0}, **training}}, name="timed"
    )


@pytest.mark.parametrize("claim", ["drift", "second-order"])
def test_velocities_of_heads_are_those_of_samples(claim):
    assert judged.answer(timed(step=0.8), claim) == "confirmed"


def test_velocities_of_a_softmax_are_those_at_every_point():
    assert generated.own_points(Laboratory(timed(loss="softmax")), {}, 1) < 1e-8


def test_a_head_that_is_not_in_force_has_no_velocity():
    run = odesim.integrate(timed(head="two"), until=1, save_points=3)
    assert "velocity_a_two" in run.state and "velocity_a_one" not in run.state
    assert np.ptp(np.asarray(run["a_one"]), axis=0) == pytest.approx(0)


def test_a_fixed_momentum_is_a_larger_step_of_all_heads():
    slow = {**LEE, "training": {**LEE["training"], "step": 0.12, "momentum": 0.9}}
    one, two = (
        odesim.integrate(odesim.declare(**{"name": "m", **each}), until=5, save_points=3) for each in (slow, LEE)
    )
    for name in ("Q_ww", "one_M_ww", "a_two", "error_one"):
        assert np.asarray(one[name]) == pytest.approx(np.asarray(two[name]), rel=1e-7, abs=1e-9)


def test_velocities_go_on_in_stages_that_train_the_same():
    training = {**LEE["training"], "momentum": {"time": 2.0}, "head": "one"}
    stages = [{"name": "first", "until": 2}, {"name": "second", "until": 4}]
    tables = {"name": "m", **LEE, "training": training}
    whole = odesim.integrate(odesim.declare(**tables), until=4, save_points=3)
    parts = odesim.integrate(odesim.declare(**tables, stage=stages), stage="all", save_points=2)
    for name in ("VV_ww", "VQ_ww", "velocity_a_one", "error_two"):
        assert np.asarray(parts[1][name])[-1] == pytest.approx(np.asarray(whole[name])[-1], rel=1e-6, abs=1e-9)


def test_stages_that_train_other_things_have_no_velocities_in_common():
    with pytest.raises(UsageError, match=r"momentum = \{time = ..\} and stages that train different vectors"):
        odesim.declare(
            **{**LEE, "training": {**LEE["training"], "momentum": {"time": 2.0}}}, name="m", stage=[FIRST, SECOND]
        )


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_sgd_of_several_stages_keeps_velocities(method):
    # A stage that trains one head leaves the velocities of the other's readouts as they are.
    tables = {**LEE, "training": {**LEE["training"], "momentum": 0.9}, "stage": [FIRST, SECOND]}
    model = odesim.declare(**{"name": "m", **tables})
    first, second = odesim.simulate(
        model, stage="all", until={"first": 1, "second": 2}, method=method, d=50, seeds=3, save_points=2
    )
    assert np.array_equal(np.asarray(first["velocity_a_one"]), np.asarray(second["velocity_a_one"]))
    assert np.abs(np.asarray(first["velocity_a_one"])).max() > 0 and not np.asarray(first["velocity_a_two"]).any()
    assert np.abs(np.asarray(second["velocity_a_two"])).max() > 0


def test_events_watch_velocities_and_values_do_not():
    event = [{"of": "velocity_a_one", "threshold": 0.005, "absolute": True}]
    training = {**LEE["training"], "momentum": {"time": 2.0}}
    model = odesim.declare(**{**LEE, "name": "m", "event": event, "training": training})
    assert np.isfinite(np.asarray(odesim.integrate(model, until=1)["T_velocity_a_one"])).any()
    with pytest.raises(UsageError, match="values can use only overlaps and numbers, not velocities"):
        timed(step="1/(1 + VV_ww[1,1])")


def test_velocities_of_a_start_are_those_of_vectors():
    run = odesim.integrate(timed(), until=1, save_points=2).arrays(-1)
    state = {
        name: values for name, values in run.items() if "error" not in name and name not in ("loss", "best_cosine")
    }
    with pytest.raises(UsageError, match="VV_ww is not symmetric"):
        odesim.integrate(timed(), initial={**state, "VV_ww": state["VV_ww"] + [[0.0, 0.1], [0.0, 0.0]]}, until=1)


def test_a_number_that_a_stage_hides_has_a_name_of_its_own():
    with pytest.raises(UsageError, match="are called hidden_step"):
        odesim.declare(
            **{**LEE, "name": "m", "parameters": {"hidden_step": 2.0}, "stage": [FIRST, {**SECOND, "step": 0.3}]}
        )
