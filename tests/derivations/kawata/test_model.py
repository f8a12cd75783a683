"""The model: data, label, one training step, its mean drift, and both simulators in law."""

import dataclasses
import math

import numpy as np
import pytest

import odesim
from derivations.kawata import model
from derivations.kawata.initial import directions_of, full_gram, join
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system
from odesim.sgd.drift import gram_drift

LAB = Laboratory(find_system("kawata"))
SIGMA = (0.0, 0.2, 0.5, 0.4)


def arguments(start, gated=model.FAIR):
    """The run-time arguments of the model's functions."""
    c = start.constants
    return (*model.numbers(start.parameters, np.eye(2), gated), c["a"], c["b"], c["sigma"])


def test_samples_have_the_law_of_the_setup():
    start = LAB.initial(C=3, M=4, J=1, d=50, rho=2.0, zeta=0.5)
    rng, n, args = np.random.default_rng(0), 60_000, arguments(start)
    labels = model.draw(rng.random((2, n)), rng.standard_normal((1, n)), *args)
    assert (labels[:3].sum(axis=0) == 1).all()
    np.testing.assert_allclose(labels[:3].mean(axis=1), 1 / 3, atol=5 * math.sqrt(2 / 9 / n))
    assert labels[4].std() == pytest.approx(0.5, rel=0.02)
    centre = model.mean(labels, *args)
    np.testing.assert_array_equal(centre[4:], 2.0 * labels[:3])
    assert (centre[:4] == 0).all()


@pytest.mark.parametrize("gated", [model.FAIR, model.GATED, model.PERFECT])
@pytest.mark.parametrize("activation", ["polynomial", "relu", "erf", "exp", "cos", "probit"])
def test_one_sample_and_a_batch_are_the_same_function(gated, activation):
    series = {"sigma": SIGMA} if activation == "polynomial" else {}
    start = LAB.initial(C=3, M=2, J=3, d=50, rho=2.0, zeta=0.5, k_star=3, bias=(0.3,), activation=activation, **series)
    rng, args = np.random.default_rng(1), arguments(start, gated)
    uniform, normal = rng.random((2, 40)), rng.standard_normal((1, 40))
    labels = model.draw(uniform, normal, *args)
    fields = rng.standard_normal((6 + 7 + (2 if gated == model.GATED else 0), 40))
    batch = model.coefficients(fields, labels, *args)
    for k in range(40):
        one = model.draw(uniform[:, k].copy(), normal[:, k].copy(), *args)
        np.testing.assert_allclose(one, labels[:, k])
        np.testing.assert_allclose(model.mean(one, *args), model.mean(labels, *args)[:, k])
        np.testing.assert_allclose(model.coefficients(fields[:, k].copy(), one, *args), batch[:, k], rtol=1e-12)


def test_the_label_is_the_local_task_of_the_cluster_and_the_weighted_global_one(tools):
    link = ((0, 0, 0, 1.0, 0.5), (0, 0, 0, -1.0), (0, 0, 0, 0.3))
    start = LAB.initial(C=2, d=50, link=link, s=(2.0, -1.0))
    args = arguments(start)
    fields = np.random.default_rng(0).standard_normal((1 + 5, 30))
    for c, s in ((0, 2.0), (1, -1.0)):
        labels = np.zeros((4, 30))
        labels[c], labels[3] = 1.0, 0.25
        expected = tools.series(link[c], fields[1 + c]) + s * tools.series(link[2], fields[3]) + 0.25
        np.testing.assert_allclose(model.label(fields, labels, 1, 2, args[0].links, args[0].s), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "polynomial", "erf", "exp", "cos", "probit"])
def test_slopes_are_derivatives_of_the_activations(name):
    from derivations.kawata.parameters import ACTIVATIONS

    kind, t, step = ACTIVATIONS.index(name), np.array([-2.1, -0.4, 0.3, 1.7]), 1e-6
    sides = [model.activation(t + h, np.array([SIGMA]), kind) for h in (step, -step)]
    np.testing.assert_allclose(model.slope(t, np.array([SIGMA]), kind), (sides[0] - sides[1]) / (2 * step), atol=1e-8)


def test_the_update_is_a_spherical_step():
    rng = np.random.default_rng(0)
    w, g, h = rng.normal(size=9), rng.normal(size=9), 0.3
    w /= np.linalg.norm(w)
    args = arguments(LAB.initial(C=2, d=50))
    a, b = model.update(np.array([w @ w]), np.array([w @ g]), np.array([g @ g]), h, *args)
    exact = w + h * (g - (g @ w) * w)
    np.testing.assert_allclose(a[0] * w + b[0] * g, exact / np.linalg.norm(exact), rtol=1e-13)


@pytest.mark.parametrize("name", ["relu", "polynomial", "erf", "exp", "cos", "probit"])
def test_the_mean_gradient_is_the_flow_in_a_frame_that_is_not_orthonormal(tools, name):
    frame, w = tools.vectors(3, 12, 4, seed=5, mix=0.2)
    links = ((0, 0, 0.5, 1.0), (0, 0, 1.0), (0, 0, -1.0, 0.3), (0, 0, 0.7, 0.5))
    start = tools.initial(frame, w, np.array([1.0, -1, 1, -1]), np.array([-0.5, 0.3, 0.0, 1.0]), M=2, J=2, rho=0.7,
                          s=(1, -0.5, -0.5), link=links, activation=name,
                          sigma=SIGMA if name == "polynomial" else ())  # fmt: skip
    mean, error = gram_drift(model.MODEL, start, 400_000, seed=3)
    flow = join(LAB.functions(start).flow(start.state))
    assert np.abs((mean[:4, 4:] - flow) / error[:4, 4:]).max() < 4.2
    np.testing.assert_allclose(np.diag(mean)[:4], 0.0, atol=1e-7)


def test_phase_three_routes_by_the_gate_or_perfectly():
    start = LAB.initial(C=2, M=2, J=1, d=50)
    fields = np.random.default_rng(0).standard_normal((2 + 5 + 2, 200))
    labels = np.zeros((4, 200))
    labels[0, :100] = labels[1, 100:] = 1.0
    selectors = {model.GATED: np.eye(2), model.PERFECT: np.eye(2)}
    expert = np.array([0.0, 1.0])
    gated = model.active(fields, labels, 2, 2, 2, model.GATED, expert, selectors[model.GATED])
    np.testing.assert_array_equal(gated, fields[7:] >= 0)
    perfect = model.active(fields, labels, 2, 2, 2, model.PERFECT, expert, selectors[model.PERFECT])
    np.testing.assert_array_equal(perfect, labels[:2])
    p = dataclasses.replace(start.parameters, routing="gate")
    assert model.sizes3(p) == (2, 7) and model.numbers3(p, np.eye(2))[0].scale == 1.0


def test_compressed_and_explicit_sgd_agree_in_law():
    request = dict(C=2, d=30, neurons=2, M=2, J=1, k_star=3, rho=1.5, zeta=0.3, bias=(-1, 0), step_size=2e-3, batch=2,
                   seeds=160, until=0.6, save_points=2)  # fmt: skip
    runs = [odesim.simulate("kawata", method=method, **request) for method in ("compressed", "explicit")]
    for name in ("kappa", "xi", "nu"):
        ends = [run[name][:, -1].reshape(160, -1) for run in runs]
        error = np.sqrt(sum(end.var(axis=0, ddof=1) for end in ends) / 160)
        assert np.abs((ends[0].mean(axis=0) - ends[1].mean(axis=0)) / error).max() < 4
        ratio = ends[0].var(axis=0) / ends[1].var(axis=0)
        assert (ratio > 0.45).all() and (ratio < 2.2).all()  # 160 heavy-tailed replicas each
    assert all(np.abs(run["norm"][:, -1] - 1).max() < 1e-10 for run in runs)


def test_sgd_follows_the_flow_when_the_step_is_small():
    request = dict(C=2, d=40, neurons=3, k_star=3, rho=1.0, bias=(-1, 0), seed=2, until=3.0, save_points=2)
    flow = odesim.integrate("kawata", **request)
    run = odesim.simulate("kawata", method="compressed", step_size=1e-3, batch=64, seeds=24, **request)
    for name in ("kappa", "xi", "nu"):
        ends = run[name][:, -1]
        error = ends.std(axis=0, ddof=1) / math.sqrt(24)
        # The contraction of a finite step is below 1e-3 of an overlap here.
        assert (np.abs(ends.mean(axis=0) - flow[name][-1]) < 4.5 * error + 1e-3).all()


def test_the_gram_matrix_of_neurons_is_rebuilt_from_its_parts():
    rng = np.random.default_rng(0)
    frame = np.linalg.qr(rng.normal(size=(9, 5)))[0].T
    w = rng.normal(size=(3, 9))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    m = w @ frame.T
    state = {"kappa": m[:, :2], "xi": m[:, 2], "nu": m[:, 3:]}
    constants = {"gram": np.eye(5), "directions": directions_of(w @ w.T, m, np.eye(5))}
    rows = np.vstack([w, frame])
    np.testing.assert_allclose(full_gram(state, constants), rows @ rows.T, atol=1e-13)
