"""`classification_error` of hinge and logistic losses: the arccosine, and independent samples where there is none."""

import numpy as np
import pytest
from scipy import special

import odesim

HINGE = """
title = "hinge loss perceptron, margin 1, teacher sign, lr 0.1"
[student]
unit = "w"
[teacher]
unit = "w"
[training]
loss = "hinge"
limit = "online"
step = 0.1
[start]
norm = 0.5
overlap = 0.1
"""
LARGEST_Z = 4.5
SAMPLES = 1_000_000


def angle(run):
    """arccos(M / sqrt(Q)) / pi of a perceptron with a teacher of norm 1, by the run's own overlaps (time,)."""
    M, Q = run["M_ww"][:, 0, 0], run["Q_ww"][:, 0, 0]
    return np.arccos(M / np.sqrt(Q)) / np.pi


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_a_perceptron_has_the_arccosine(tmp_path, backend):
    path = tmp_path / "hinge.toml"
    path.write_text(HINGE)
    run = odesim.integrate(str(path), until=5.0, save_points=6, backend=backend)
    values = run["classification_error"]
    assert values == pytest.approx(angle(run), abs=1e-12)
    assert values[0] == pytest.approx(np.arccos(0.1) / np.pi, abs=1e-12)
    assert values[-1] < 0.35 < values[0]
    assert run.summary["classification_error_final"] == values[-1]
    assert run.summary["classification_sampling_error"] == 0.0


@pytest.mark.parametrize("weights", ["free", "normalised"])
@pytest.mark.parametrize("teacher", ["tanh(w)", "sign(w)"])
def test_two_linear_units_and_the_sign_of_one_field(teacher, weights):
    model = odesim.declare(
        student={"unit": "w", "units": 2, "output": "mean"},
        teacher={"unit": teacher, "units": 1},
        training={"loss": "logistic", "limit": "online", "weights": weights},
        start={"norm": 2.0},
    )
    start = {"Q_ww": [[4.0, 0.6], [0.6, 1.0]], "M_ww": [[0.9], [0.2]]}
    run = odesim.integrate(model, initial=start, until=0.1, save_points=2)
    Q, M = np.array(start["Q_ww"]), np.array(start["M_ww"])[:, 0]
    c = 1 / np.sqrt(np.diag(Q)) if weights == "normalised" else np.ones(2)
    expected = np.arccos(c @ M / np.sqrt(c @ Q @ c)) / np.pi
    assert run["classification_error"][0] == pytest.approx(expected, abs=1e-12)


UNITS = {
    "relu": ("relu(w)-0.4", "He(3, w)", lambda z: np.maximum(z, 0) - 0.4, lambda z: z**3 - 3 * z),
    "erf": ("erf(w)", "w^2-0.5", special.erf, lambda z: z**2 - 0.5),
}


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_other_units_agree_with_independent_samples(name, loss):
    unit, teacher, student, target = UNITS[name]
    model = odesim.declare(
        student={"unit": unit, "units": 2},
        teacher={"unit": teacher, "units": 1},
        training={"loss": loss, "limit": "online", "step": 0.3},
        start={"norm": 1.0},
    )
    run = odesim.integrate(model, until=1.0, save_points=2, d=20, seed=3, overlap=0.3)
    G = np.block([[run["Q_ww"][-1], run["M_ww"][-1]], [run["M_ww"][-1].T, np.ones((1, 1))]])
    z = np.random.default_rng(8).normal(size=(SAMPLES, 3)) @ np.linalg.cholesky(G).T
    share = np.mean(np.sign(student(z[:, :2]).sum(1)) != np.sign(target(z[:, 2])))
    found, error = run["classification_error"][-1], run.summary["classification_sampling_error"]
    assert 0.05 < share < 0.95 and 0 < error < 0.01
    assert abs(found - share) / np.hypot(error, np.sqrt(share * (1 - share) / SAMPLES)) < LARGEST_Z


def test_losses_of_numbers_have_none():
    model = odesim.declare(student={"unit": "erf(w)"}, teacher={}, training={"limit": "online"})
    run = odesim.integrate(model, until=0.2, save_points=2)
    assert "classification_error" not in run and "error" in run
