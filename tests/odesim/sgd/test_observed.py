"""Hitting times and losses that SGD stores, for every system, against the flow at tiny steps."""

import numpy as np
import pytest

import derivations
import odesim
from odesim.evidence.laboratory import Laboratory

Z = 4.5
TUNED = {"d": 9, "n": 12, "l": 4, "k": 6, "m": 6, "important": 1, "seed": 1}


def test_hitting_times_and_loss_of_pruning_are_those_of_the_recursion():
    """One step of the recursion is one of SGD: 4 million inputs a step, saved at every fifth of 1000."""
    flow = odesim.integrate("pruning", eta_e=0.3, until=1000.0, save_points=201, **TUNED)
    run = odesim.simulate(
        "pruning", method="compressed", step_size=0.3, batch=4_000_000, until=1000.0, save_points=201, **TUNED
    )
    for name in ("T_selected", "T_gap"):
        expected, found = flow.extras[name].values, run.extras[name].values[0]
        assert np.array_equal(np.isfinite(expected), np.isfinite(found)), name
        finite = np.isfinite(expected)
        assert finite.any(), name
        assert (np.abs(found[finite] - expected[finite]) <= 10).all(), name
    assert np.abs(run.state["loss"].values[0] - flow.state["loss"].values).max() < 0.03


def test_the_hitting_times_of_pruning_are_first_saved_times():
    run = odesim.simulate("pruning", method="compressed", step_size=0.3, batch=50, seeds=3, until=400.0, **TUNED)
    h, a, times = run.state["h"].values, run.extras["a"].values, run.time
    for name, level in (("T_selected", 0.0), ("T_gap", np.log(4))):
        found = run.extras[name].values
        assert found.shape == (3, 6)
        for seed in range(3):
            for s in range(6):
                own = 0 if a[s] > 0 else 1
                past = h[seed, :, s, own] - h[seed, :, s, 2:].max(axis=-1) >= level
                assert found[seed, s] == (times[past.argmax()] if past.any() else np.inf)


def test_hitting_times_and_loss_of_chen_are_those_of_the_flow():
    options = {"M": 2, "J": 2, "K": 2, "d": 10, "seed": 1, "until": 2.0, "nodes": 2}
    flow = odesim.integrate("chen", save_points=41, **options)
    run = odesim.simulate(
        "chen", method="compressed", step_size=5e-3, batch=5000, save_points=41, population_loss=True, **options
    )
    expected, found = flow.extras["T_feat"].values, run.extras["T_feat"].values[0]
    assert np.array_equal(np.isfinite(expected), np.isfinite(found))
    finite = np.isfinite(expected)
    assert finite.any()
    assert (np.abs(found[finite] - expected[finite]) < 0.1).all()
    assert np.abs(run.state["loss"].values[0] - flow.state["loss"].values).max() < 0.02


def test_a_costly_loss_is_saved_on_request_and_refused_where_it_would_be_wrong():
    options = {"method": "compressed", "step_size": 0.01, "batch": 100, "until": 0.02, "M": 2, "J": 2, "K": 2, "d": 50}
    assert "loss" not in odesim.simulate("chen", **options).state
    with pytest.raises(odesim.UsageError, match="noise patch"):
        odesim.simulate("chen", population_loss=True, **{**options, "method": "explicit", "P": 4})


def test_training_without_a_flow_has_no_hitting_times():
    """Under token choice experts are coupled, and no population equations are there for them."""
    run = odesim.simulate(
        "pruning", method="compressed", routing="token_choice", step_size=0.3, batch=50, until=5.0, **TUNED
    )
    assert run.outcome.kind == "completed"
    assert set(run.extras) == {"a"}


@pytest.mark.parametrize(("stage", "mode"), [("joint", "joint"), ("experts", "separate"), ("experts", "cnn")])
def test_the_mean_descent_of_pmoe_is_the_slope_of_its_flow(stage, mode):
    """200,000 samples in 40 batches: coefficients along the frame, times its Gram matrix and the rates."""
    from derivations.pmoe.parameters import Parameters, settle

    p = settle(Parameters(mode=mode, n=8, p=3, delta_d=0.2, m=24, d=6, sigma_r=0.4, routers="random", lam=1.0))
    asked = {f: getattr(p, f) for f in ("n", "p", "delta_d", "m", "d", "sigma_r", "routers", "lam")}
    lab = Laboratory(derivations.system("pmoe"))
    start = lab.initial(stage=stage, mode=mode, seed=5, **asked)
    found = lab.descent(start, 5000, 40, stage=stage)
    q, gram = start.parameters, start.constants["gram"]
    moved = lab.functions(start, "L0", stage).flow(start.state)
    drive = found @ gram
    for name, rows in (("pre", drive[:, :, :-1] / q.m), ("route", q.lam * drive[:, :, -1])):
        mean, error = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        assert (np.abs(mean - moved[name]) <= Z * error + 1e-15).all(), name
    assert np.abs(moved["pre"]).max() > 1e-4


def test_the_drift_of_an_alphabet_is_its_mean_descent():
    lab = Laboratory(derivations.system("pruning"))
    start = lab.initial(d=20)
    mean, error = lab.drift(start, 50_000)
    slope = lab.functions(start, "recursion").flow(start.state)
    assert mean.shape == (start.parameters.k, start.parameters.m + 1, 20)
    assert (np.abs(mean[:, -1] - slope["h"] / start.parameters.router_rate) <= Z * error[:, -1] + 1e-12).all()


def test_the_descent_of_gaussian_inputs_points_along_the_drift():
    """liao on the sphere: the Gram matrix moves by the gradient without its part along the vector."""
    lab = Laboratory(derivations.system("liao"))
    start = lab.initial(m=2, m_star=1, d=30)
    found = lab.descent(start, 20_000, 10)
    assert found.shape[0] == 10
    assert found.shape[2] > found.shape[1] > 0
    assert np.isfinite(found).all()
    assert not np.array_equal(found[0], found[1])
    same = lab.descent(start, 50, 2, fresh=False)
    assert np.array_equal(same[0], same[1])
