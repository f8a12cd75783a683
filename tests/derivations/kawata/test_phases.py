"""Initial conditions, their checks, and the four phases as stages."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.kawata import gate, initial
from derivations.kawata.parameters import Parameters, check
from odesim.flow import pipeline

ONE = {"kappa": np.array([[0.1, 0.0]]), "xi": np.zeros(1), "nu": np.zeros((1, 2)), "a": np.ones(1), "b": np.zeros(1)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kappa": None}, "lacks kappa"),
        ({"extra": np.ones(1)}, "unknown arrays extra"),
        ({"xi": np.zeros(2)}, "xi must have shape"),
        ({"nu": np.full((1, 2), np.nan)}, "not finite"),
        ({"gram": 2 * np.eye(5)}, "normalise the vectors"),
        ({"kappa": np.array([[0.9, 0.9]])}, "no unit vector"),
    ],
)
def test_a_bad_initial_file_is_refused_in_words(change, words):
    arrays = {name: value for name, value in {**ONE, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=words):
        initial.read(arrays, Parameters())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (Parameters(C=2, s=(1.0,)), "one weight for each"),
        (Parameters(k_star=3, link=((0, 0, 1.0), (0, 0, 0, 1.0), (0, 0, 0, 1.0))), "information exponent 2"),
        (Parameters(link=((0, 0, 0, 1.0), (0, 0, 0, 1.0))), "C \\+ 1 = 3 lists"),
        (Parameters(link=((0.5, 0, 0, 1.0),) * 3), "constant term"),
        (Parameters(d=5), "at least 2 C \\+ 2"),
        (Parameters(bias=(1.0, -1.0)), "increasing order"),
        (Parameters(tier="R3", s=(1.0, 1.0)), "s = \\(s, -s\\)"),
        (Parameters(M=1000, J=10**6), "neurons=N"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_in_words(parameters, words):
    with pytest.raises(UsageError, match=words):
        check(parameters)


def test_a_file_that_disagrees_with_an_option_is_refused():
    with pytest.raises(UsageError, match="C = 2"):
        odesim.integrate("kawata", initial=ONE, C=3)


@pytest.mark.parametrize("d", [8, 10**9])
def test_drawn_overlaps_have_the_variance_of_a_uniform_unit_vector(d):
    start = initial.draw(Parameters(C=2, d=d, neurons=20_000), np.random.default_rng(0))
    m = initial.join(start.state)
    # Var = 1/d; the variance of 100,000 entries is known to about sqrt(2/1e5).
    assert (m**2).mean() * d == pytest.approx(1.0, abs=0.02)
    assert "directions" not in start.constants


def test_random_means_have_overlaps_of_order_one_over_root_d_and_neurons_fit_them():
    p = Parameters(C=1, d=400, neurons=50, orthogonal=False, s=(0.0,))
    grams = [initial.draw(p, np.random.default_rng(k)).constants["gram"] for k in range(300)]
    off = np.array([gram[np.triu_indices(3, 1)] for gram in grams])
    assert (off**2).mean() * 400 == pytest.approx(1.0, abs=0.15)
    start = initial.draw(p, np.random.default_rng(0))
    assert initial.outside(start.state, start.constants["gram"]).min() > 0


def test_one_expert_gets_no_gate_and_equal_experts_none_either():
    start = initial.draw(Parameters(C=2, M=1, J=4, d=100), np.random.default_rng(0))
    found = gate.gate_vectors(start, initial.full_gram(start.state, start.constants), np.random.default_rng(0))
    np.testing.assert_allclose(found["theta"], 0.0, atol=1e-18)
    arrays = {k: np.tile(v, (3,) + (1,) * (v.ndim - 1)) for k, v in ONE.items()}
    same = initial.from_arrays(Parameters(C=2, M=3, J=1, d=100), arrays)
    frame = gate.population_gradient(same)[:, :5]
    np.testing.assert_allclose(frame, np.tile(frame[:1], (3, 1)), atol=1e-18)


def test_the_sampled_gate_is_the_population_gate_on_average():
    p = Parameters(C=2, M=3, J=2, d=60, rho=3.0, k_star=3, bias=(-0.7,), gate_samples=40_000)
    start = initial.draw(p, np.random.default_rng(1))
    start.state["kappa"][:, 0] += np.array([0.5, 0, 0, 0, 0.4, 0])
    gram = initial.full_gram(start.state, start.constants)
    V = gate.population_gradient(start)
    step = (V - V.mean(axis=0)) / p.M**2
    exact = np.concatenate([step[:, 5:], step[:, :5]], axis=1) @ gram
    found = np.array([gate.sampled_gradient(start, gram, 40_000, np.random.default_rng(k))["span"] for k in range(24)])
    error = found.std(axis=0, ddof=1) / np.sqrt(24)
    assert np.abs((found.mean(axis=0) - exact) / error).max() < 4.5
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)


def test_all_phases_run_as_one_and_continue_each_other():
    request = dict(C=2, M=4, J=4, d=10**4, k_star=4, rho=6, bias="-0.5", width3=20, ridge_bias="-4,4")
    runs = pipeline.run(pipeline.build("kawata", request, "all", save_points=3, rtol=1e-6))
    assert [run.origin.stage for run in runs] == ["phase1", "phase2", "phase3", "phase4"]
    first, second, third, fourth = runs
    assert first["kappa"].shape == (3, 16, 2) and third["kappa"].shape == (3, 80, 2)
    np.testing.assert_allclose(second["theta"].sum(axis=0), 0.0, atol=1e-12)
    assert ((second["routing"] >= 0) & (second["routing"] <= 1)).all()
    np.testing.assert_allclose(third["share"], np.repeat(second["routing"], 20, axis=0), atol=1e-12)
    assert third.summary["global_reached"] > 0
    assert 0 < fourth.summary["relative_error"] < 1


def test_a_simulation_of_phase_three_behind_a_given_gate_runs():
    arrays = {**{k: np.tile(v, (2,) + (1,) * (v.ndim - 1)) for k, v in ONE.items()}, "theta": np.zeros((2, 5))}
    arrays["theta"][0, 3], arrays["theta"][1, 4] = 1.0, 1.0
    run = odesim.simulate("kawata", stage="phase3", method="compressed", initial=arrays, M=2, J=1, d=50, k_star=3,
                          rho=4.0, step_size=1e-3, batch=4, until=0.05, save_points=2)  # fmt: skip
    flow = odesim.integrate("kawata", stage="phase3", initial=arrays, M=2, J=1, d=50, k_star=3, rho=4.0, until=0.05,
                            save_points=2)  # fmt: skip
    np.testing.assert_allclose(flow["share"], [[0.99996833, 0.5], [0.5, 0.99996833]], atol=1e-7)  # Phi(4), Phi(0)
    assert run.outcome.kind == "completed" and run["kappa"].shape == (1, 2, 2, 2)


def test_many_gate_steps_begin_like_one_and_end_with_one_expert_per_cluster():
    p = Parameters(C=2, M=4, J=1, d=60, rho=3.0, k_star=3, gate_time=1e-3)
    kappa = np.array([[0.8, 0.0], [0.6, 0.0], [0.0, 0.7], [0.0, 0.3]])
    arrays = {"kappa": kappa, "xi": np.zeros(4), "nu": np.zeros((4, 2)), "a": np.ones(4), "b": np.full(4, -0.7)}
    start = initial.from_arrays(p, arrays)
    e = gate.strengths(start)
    first = gate.follow_gate(start)["theta"][:, 3:]
    # One step from zero: (rho t / (C M^2)) (e - mean e), the part along the means of the closed form.
    np.testing.assert_allclose(first, 3.0 * 1e-3 / (2 * 16) * (e - e.mean(axis=0)), rtol=1e-3)
    late = dataclasses.replace(start, parameters=dataclasses.replace(p, gate_time=1e5))
    scores = gate.follow_gate(late)["theta"][:, 3:]
    assert (scores.argmax(axis=0) == [0, 2]).all()
    np.testing.assert_allclose(scores.sum(axis=0), 0.0, atol=1e-8)
