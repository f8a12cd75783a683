"""Snapshots of a user's own training as a run: the overlaps of the weights, and what is refused."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare import reading, system
from odesim.study.comparison import compare
from odesim.study.observation import Observation, observe

D = 12


@pytest.fixture
def committee(monkeypatch):
    """A committee with trained readouts and biases; its population dynamics are left out of these tests."""

    def equations(parameters, tier):
        raise UsageError("none here")

    monkeypatch.setattr("derivations.declare.tiers.equations", equations)
    tables = {
        "student": {"unit": "erf(w + b)", "units": 3, "output": "trained"},
        "teacher": {"unit": "erf(w)", "units": 2},
        "parameters": {"b": {"default": 0.0, "per": "unit"}},
    }
    return system.system(reading.declaration(tables, name="committee"))


def snapshots(count=4):
    """Weights, readouts and biases at `count` times, of another number of units than the declaration's."""
    rng = np.random.default_rng(1)
    arrays = {"w": rng.normal(size=(count, 4, D)), "w_star": rng.normal(size=(2, D))}
    arrays |= {"a": rng.normal(size=(count, 4)), "b": rng.normal(size=(count, 4)), "a_star": np.array([1.0, -2.0])}
    return {**arrays, "time": np.array([0.0, 0.5, 1.5, 4.0])[:count]}


def test_overlaps_readouts_and_constants_are_those_of_the_weights(committee):
    given = snapshots()
    run = observe(committee, given)
    assert run.origin.method == "observed"
    assert run.origin.parameters["units"] == 4 and run.origin.parameters["d"] == D
    assert np.array_equal(run.time, given["time"])
    w, w_star = given["w"], given["w_star"]
    assert np.abs(run["Q_ww"] - w @ np.swapaxes(w, 1, 2)).max() < 1e-12
    assert np.abs(run["M_ww"] - w @ w_star.T).max() < 1e-12
    assert run.state["M_ww"].dims == ("time", "unit", "teacher")
    assert np.array_equal(run["a"], given["a"]) and np.array_equal(run["b"], given["b"])
    assert np.abs(run["P_ww"] - w_star @ w_star.T).max() < 1e-12 and np.array_equal(run["a_star"], [1.0, -2.0])


def test_a_teacher_or_readout_may_come_with_time_or_without(committee):
    given = snapshots()
    run = observe(committee, given)
    stacked = {**given, "w_star": np.array([given["w_star"]] * 4), "a_star": np.array([given["a_star"]] * 4)}
    assert np.array_equal(observe(committee, stacked)["M_ww"], run["M_ww"])
    still = observe(committee, {**given, "a": given["a"][0]})
    assert np.array_equal(still["a"], np.array([given["a"][0]] * 4))
    assert np.array_equal(observe(committee, {k: v for k, v in given.items() if k != "time"}).time, np.arange(4.0))


def test_replicas_stand_in_front_of_the_time_and_share_the_teacher(committee, tmp_path):
    given = snapshots()
    w = np.array([given["w"], 2 * given["w"]])
    run = observe(committee, {**given, "w": w})
    assert run.state["M_ww"].dims == ("seed", "time", "unit", "teacher") and run.summary["replicas"] == 2
    for k in range(2):
        one = observe(committee, {**given, "w": w[k]})
        assert np.array_equal(run["M_ww"][k], one["M_ww"]) and np.array_equal(run["a"][k], one["a"])
    assert np.array_equal(observe(committee, {**given, "w": w[:1]})["Q_ww"][0], observe(committee, given)["Q_ww"])
    with pytest.raises(
        UsageError, match="w_star has an axis for replicas, but all replicas must have the same teacher"
    ):
        observe(committee, {**given, "w": w, "w_star": np.array([[given["w_star"]] * 4] * 2)})
    with pytest.raises(UsageError, match="the same number of replicas, at least one, but have: a 3, w 2"):
        observe(committee, {**given, "w": w, "a": np.array([given["a"]] * 3)})


def test_observed_replicas_are_compared_and_saved(tmp_path):
    system = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={}, training={"limit": "online"})
    rng = np.random.default_rng(2)
    w = rng.normal(size=(3, 2, 2, D)) / D**0.5
    weights = {"w": w, "w_star": np.eye(D)[:1], "time": [0.0, 0.5]}
    run = odesim.observe(system, weights)
    assert run["loss"].shape == (3, 2)
    flow = odesim.integrate(system, initial={"w": w[0, 0], "w_star": np.eye(D)[:1]}, until=0.5)
    assert odesim.compare(flow, run).summary()["replicas"] == 3
    assert odesim.load(run.save(tmp_path / "mine", pictures=False))["M_ww"].shape == (3, 2, 2, 1)


def test_float32_snapshots_are_taken(committee):
    given = {name: values.astype("float32") for name, values in snapshots().items()}
    assert np.abs(observe(committee, given)["Q_ww"] - observe(committee, snapshots())["Q_ww"]).max() < 1e-4


def wrong(name, values):
    return {**snapshots(), name: values}


def missing(name):
    return {k: v for k, v in snapshots().items() if k != name}


def bad(name):
    values = snapshots()[name]
    values[1, 2] = np.nan
    return wrong(name, values)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (missing("w_star"), "no weights of the teacher"),
        (missing("w"), "expected weights of shape"),
        ({}, "expected weights of shape"),
        (wrong("u", np.zeros((4, 4, D))), "unknown arrays u"),
        (wrong("w", np.zeros((4, D))), "expected weights of shape"),
        (wrong("w", np.zeros((4, 2, 2, 2, D))), "w must have the shape"),
        (wrong("a", np.zeros((4, 4, 1))), "a must have the shape"),
        (wrong("w", np.ones((5, 4, D))), "same number of snapshots"),
        (wrong("w", np.ones((0, 4, D))), "same number of snapshots"),
        (wrong("w", np.ones((4, 4, D + 1))), "dimension"),
        (wrong("a", np.ones((4, 3))), "a has the shape"),
        (bad("w"), r"w holds a number that is not finite at \[1, 2, 0\]"),
        (wrong("time", np.array([0.0, 1.0, 1.0, 2.0])), "increase"),
        (wrong("time", np.arange(3.0)), "one entry for each of 4"),
        (wrong("time", np.array([0.0, 1.0, np.inf, 2.0])), "finite"),
        (wrong("w_star", np.random.default_rng(0).normal(size=(4, 2, D))), "a teacher is fixed"),
        (wrong("w", np.zeros((4, 4, D))), "zero"),
        (wrong("w", np.array([["x"] * D] * 4)), "real numbers"),
    ],
)
def test_what_cannot_be_observed_is_refused_with_one_sentence(committee, given, sentence):
    with pytest.raises(UsageError, match=sentence):
        observe(committee, given)


def test_a_system_without_weights_is_refused():
    with pytest.raises(UsageError, match="no weights in d dimensions"):
        observe("chen", snapshots())


def test_the_digest_names_the_snapshots(committee):
    first, again = (Observation.build(committee, snapshots()) for _ in range(2))
    other = Observation.build(committee, wrong("a", snapshots()["a"] + 1.0))
    assert first.digest == again.digest != other.digest


def test_a_run_of_liao_observed_lies_on_its_flow():
    """The exact overlaps of weights that gradient descent moved in small steps, against the flow from their start."""
    rng = np.random.default_rng(3)
    teacher = np.eye(D)[:2]
    V, W = rng.normal(size=(2, 5, 2, D))
    V[1:], W[1:] = V[0], W[0]
    given = {"V": V, "W": W, "V_star": teacher[:1], "W_star": teacher[1:], "time": np.arange(5.0) / 10}
    seen = observe("liao", given)
    start = {name: values[0] if name in ("V", "W") else values for name, values in given.items() if name != "time"}
    flow = odesim.integrate("liao", initial=start, until=0.4, save_points=41)
    found = compare(flow, seen)
    assert {"gamma1", "gamma2"} <= set(found.distance)
    assert max(values[0, 0] for values in found.distance.values()) < 1e-12  # the same start
    assert found.overall[0] > 1e-4  # and these weights did not follow the flow
    assert abs(seen["loss"][0] - flow["loss"][0]) < 1e-10 * flow["loss"][0]


def test_online_sgd_written_by_hand_lies_on_the_flow_of_its_declaration():
    """A soft committee at d = 2000: deviations are of order 1/sqrt(d) = .02, and the overlaps move by .2."""
    from scipy.special import erf

    d, eta, until, count = 2000, 0.5, 4.0, 9
    tables = {
        "student": {"unit": "erf(w/sqrt(2))", "units": 2},
        "teacher": {"unit": "erf(w/sqrt(2))", "units": 2, "noise": 0.1},
        "training": {"limit": "online", "step": eta},
    }
    declared = system.system(reading.declaration(tables, name="online"))
    rng = np.random.default_rng(0)
    teacher = np.eye(d)[:2]
    w = 0.4 * teacher + 0.5 * rng.normal(size=(2, d)) / np.sqrt(d)
    saved = [w.copy()]
    steps = round(until * d)
    for k in range(1, steps + 1):
        x = rng.normal(size=d)
        y = erf(teacher @ x / np.sqrt(2)).sum() + 0.1 * rng.normal()
        z = w @ x
        slope = np.sqrt(2 / np.pi) * np.exp(-z * z / 2)
        w -= eta / d * ((erf(z / np.sqrt(2)).sum() - y) * slope)[:, None] * x
        if k % (steps // (count - 1)) == 0:
            saved.append(w.copy())
    given = {"w": np.array(saved), "w_star": teacher, "time": np.linspace(0.0, until, count)}
    seen = observe(declared, given)
    flow = odesim.integrate(declared, initial={"w": saved[0], "w_star": teacher}, until=until, save_points=count)
    found = compare(flow, seen)
    assert set(found.distance) == {"Q_ww", "M_ww"}
    assert found.overall[0] < 0.05
    assert np.ptp(flow["M_ww"], axis=0).max() > 0.15
    assert np.abs(seen["loss"] - flow["loss"]).max() < 0.02


def test_observed_weights_are_called_so_and_their_seed_which_means_nothing_is_not_named():
    system = odesim.declare(student={"unit": "erf(w)"}, teacher={})
    run = odesim.observe(system, {"w": np.ones((3, 1, 4)), "w_star": np.eye(4)[:1], "time": [0.0, 1.0, 2.0]})
    assert repr(run).splitlines()[0].endswith("stage train, observed weights")
    assert "exact by flow, seed 0" in repr(odesim.integrate(system, until=0.1, save_points=2))


def test_a_log_without_times_is_not_compared_with_a_flow():
    weights = {"w": np.random.default_rng(0).normal(size=(3, 2, 10)), "w_star": np.eye(10)[:1]}
    model = odesim.declare(student={"unit": "erf(w)", "units": 2}, teacher={})
    theory = odesim.integrate(model, initial={"w": weights["w"][0], "w_star": weights["w_star"]}, until=3)
    with pytest.raises(UsageError, match=r"the clocks differ.*number of the snapshot.*observe the log with its times"):
        odesim.compare(theory, odesim.observe(model, weights))
    timed = odesim.observe(model, {**weights, "time": np.arange(3.0)})
    assert odesim.compare(theory, timed).summary()["band"].startswith("no band: compare computes one only for SGD")
