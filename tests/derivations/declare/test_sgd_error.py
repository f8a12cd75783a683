"""SGD runs and observed weights of a declared model keep `error`, and `classification_error`, beside `loss`."""

import numpy as np
import pytest

import odesim

SEEDS = 16
LARGEST_T = 5.0
"""Of a mean over 16 replicas: Student's t with 15 degrees of freedom passes it once in 6,000."""


def committee(noise=0.0):
    return odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 2},
        teacher={"units": 2, "noise": noise},
        training={"limit": "online", "step": 0.5},
    )


@pytest.mark.parametrize("method", ["compressed", "explicit"])
def test_the_error_of_sgd_is_that_of_the_flow_at_large_d(method):
    asked = {"until": 3.0, "save_points": 4, "seed": 1, "overlap": 0.3}
    d = 2000 if method == "compressed" else 400
    flow = odesim.integrate(committee(), d=d, **asked)
    run = odesim.simulate(committee(), method=method, seeds=SEEDS, d=d, **asked)
    error = run["error"]
    assert run.state["error"].dims == ("seed", "time") and error.shape == (SEEDS, 4)
    assert error[:, 0] == pytest.approx(flow["error"][0], rel=1e-9)
    assert flow["error"][-1] < 0.95 * flow["error"][0]
    spread = error[:, 1:].std(axis=0, ddof=1) / np.sqrt(SEEDS)
    # What is left at finite d is of order 1/d, relative to an error of order 1.
    assert (np.abs(error[:, 1:].mean(axis=0) - flow["error"][1:]) < LARGEST_T * spread + 1 / d).all()
    assert run.summary["median_final_error"] == pytest.approx(np.median(error[:, -1]))


def test_loss_is_half_the_error_and_half_the_noise_squared():
    run = odesim.simulate(committee(noise=0.4), method="compressed", seeds=2, until=1.0, save_points=3, d=100)
    assert run["loss"] == pytest.approx(run["error"] / 2 + 0.4**2 / 2, rel=1e-9)


def test_sgd_of_a_hinge_loss_keeps_the_share_of_wrong_labels():
    model = odesim.declare(
        student={"unit": "w"}, teacher={"unit": "w"}, training={"loss": "hinge", "limit": "online", "step": 0.1}
    )
    run = odesim.simulate(model, method="compressed", seeds=3, until=4.0, save_points=5, d=100, overlap=0.2)
    M, Q = run["M_ww"][..., 0, 0], run["Q_ww"][..., 0, 0]
    assert run["classification_error"] == pytest.approx(np.arccos(M / np.sqrt(Q)) / np.pi, abs=1e-12)
    assert (run["classification_error"][:, -1] < run["classification_error"][:, 0]).all()


def test_observed_weights_have_an_error():
    rng = np.random.default_rng(4)
    teacher = np.eye(6)[:1]
    w = rng.normal(size=(3, 1, 6))
    model = odesim.declare(student={"unit": "w"}, teacher={"unit": "w"}, training={"limit": "online"})
    run = odesim.observe(model, {"w": w, "w_star": teacher, "time": [0.0, 1.0, 2.0]})
    assert run.state["error"].dims == ("time",)
    assert run["error"] == pytest.approx(((w - teacher) ** 2).sum(axis=(1, 2)), rel=1e-9)
