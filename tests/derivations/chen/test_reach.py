"""Dispatch in the flow, residual norms, own noise and biases, own data sets, and a norm for each tensor."""

import numpy as np
import pytest

import odesim
from derivations.chen import model
from derivations.chen.parameters import Parameters
from derivations.contract import UsageError
from odesim.sgd.patterns import PatternChains

SIZES = {"M": 3, "J": 2, "K": 2}


def weights(d=9, M=3, J=2, K=2, seed=0, scale=0.4):
    """Random weights beside orthonormal signals, as a file would hold them."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(d, 2 * K)))[0].T
    return {
        "W": scale * rng.normal(size=(M, J, d)),
        "Theta": scale * rng.normal(size=(d, M)),
        "V": frame[:K],
        "C": frame[K:],
    }


@pytest.mark.parametrize("tier", ["p3", "full"])
def test_the_dispatch_of_the_flow_is_that_of_many_examples(tier):
    start, more = weights(), {"P": 5, "points": 1024} if tier == "full" else {}
    run = odesim.integrate("chen", initial=start, tier=tier, until=1e-4, save_points=2, **SIZES, **more)
    table = run["dispatch"][0]
    assert run.state["dispatch"].dims == ("time", "feature", "expert")
    np.testing.assert_allclose(table.sum(axis=0), run["load"][0], atol=1e-12)
    np.testing.assert_allclose(table.sum(axis=1), 1 / 2, atol=1e-9)
    load = table.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(table > 0, -table * np.log(table / load), 0.0)
    assert terms.sum() == pytest.approx(run["entropy_noisy"][0], abs=1e-12)
    sgd = odesim.simulate(
        "chen", method="explicit", step_size=1e-3, batch=4, until=1e-3, initial=start, n_test=200_000, save_points=2,
        **SIZES, **more,
    )  # fmt: skip
    error = np.sqrt(table * (1 - table) / 200_000)
    assert (np.abs(sgd["dispatch"][0, 0] - table) < 4.5 * error + 2e-3 * (tier == "full")).all()


@pytest.mark.slow
def test_jax_and_numba_agree_on_the_dispatch():
    start = weights()
    runs = [
        odesim.integrate("chen", initial=start, until=1e-4, save_points=2, backend=backend, **SIZES)
        for backend in ("numba", "jax")
    ]
    np.testing.assert_allclose(runs[0]["dispatch"], runs[1]["dispatch"], atol=1e-9)


def test_residual_norms_and_training_entropy_are_those_of_the_weights():
    start = weights(d=12)
    rng = np.random.default_rng(3)
    signs = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    x = np.stack([signs[:, None] * start["V"][np.arange(40) % 2], start["C"][np.arange(40) % 2],
                  rng.normal(size=(40, 12))], axis=1)  # fmt: skip
    run = odesim.simulate(
        "chen", method="explicit", step_size=1e-3, batch=40, until=1e-3, initial={**start, "X": x, "y": signs},
        save_points=2,
    )  # fmt: skip
    frame = np.vstack([start["V"], start["C"]])
    rest = start["W"] - start["W"] @ frame.T @ frame
    np.testing.assert_allclose(run["rest_filter"][0, 0], np.linalg.norm(rest, axis=-1), atol=1e-12)
    theta = start["Theta"].T
    np.testing.assert_allclose(
        run["rest_router"][0, 0], np.linalg.norm(theta - theta @ frame.T @ frame, axis=-1), atol=1e-12
    )
    chosen = (x.sum(axis=1) @ start["Theta"]).argmax(axis=1)
    cluster = np.abs(x @ start["C"].T).max(axis=1).argmax(axis=1)
    expected = 0.0
    for m in range(3):
        for k in range(2):
            share = ((chosen == m) & (cluster == k)).mean()
            if share:
                expected -= share * np.log(share / (chosen == m).mean())
    assert run["train_entropy"][0, 0] == pytest.approx(expected, abs=1e-12)
    compressed = odesim.simulate("chen", method="compressed", step_size=1e-3, batch=20, until=2e-3, save_points=2)
    assert "rest_filter" not in compressed.state and "train_entropy" in compressed.state


def test_counted_training_entropy_is_that_of_the_examples():
    request = {"laws": "points", "alpha": (0.5, 2.0), "beta": (1.0,), "gamma": (1.0,), "data": "fixed", "seed": 2,
               "sigma_0": 0.3, "n_test": 10, "rho": 30.0, **SIZES}  # fmt: skip
    runs = [
        odesim.simulate("chen", method=method, step_size=0.05, batch=300, until=0.05, save_points=2, **request)
        for method in ("compressed", "explicit")
    ]
    for name in ("train_entropy", "train_loss", "train_accuracy"):
        assert runs[0][name][0, 0] == pytest.approx(runs[1][name][0, 0], abs=1e-12)
    assert runs[0].summary["batches"].startswith("counts")


def test_own_routing_noise_is_used_step_by_step():
    start = weights()
    rng = np.random.default_rng(5)
    noise = rng.random((4, 3, 30))
    request = {"method": "explicit", "step_size": 0.05, "batch": 30, "until": 0.2, "save_points": 2, "n_test": 10}
    run = odesim.simulate("chen", initial={**start, "noise": noise}, **request)
    chain = PatternChains(model.MODEL, [odesim_start(start)], start, compressed=False, batch=30, step_size=0.05, seed=0)
    for step in range(4):
        w = chain.weights[0]
        filters, _, routers, *_ = chain.pass_over(w, chain.training, chain.total, noise[step])
        scale = 1 / np.sqrt((filters**2).sum((1, 2)))
        chain.weights[0] = type(w)(
            w.filters + 0.05 * scale[:, None, None] * filters, w.bias, w.routers + 0.05 * 64 * routers, w.frame
        )
    np.testing.assert_allclose(run["feat"][0, -1], chain.weights[0].filters @ start["V"].T, atol=1e-12)
    other = odesim.simulate("chen", initial={**start, "noise": noise[::-1]}, **request)
    assert np.abs(other["feat"] - run["feat"]).max() > 1e-4
    with pytest.raises(UsageError, match="numbers for 4 steps, but the run has 5"):
        odesim.simulate("chen", initial={**start, "noise": noise}, **{**request, "until": 0.25})
    with pytest.raises(UsageError, match="the three must agree"):
        odesim.simulate("chen", initial={**start, "noise": noise}, **{**request, "batch": 20})
    with pytest.raises(UsageError, match="JAX draws its own"):
        odesim.simulate("chen", initial={**start, "noise": noise}, backend="jax", **request)
    with pytest.raises(UsageError, match="shape \\(steps, M = 3, n\\)"):
        odesim.simulate("chen", initial={**start, "noise": noise[:, :2]}, **request)


def odesim_start(arrays):
    """The initial condition of a file."""
    from odesim.flow.problem import initial_condition
    from odesim.request.case import Case

    return initial_condition(Case.build("chen", {"n_test": 10}, initial=arrays))


def test_own_biases_are_the_start_of_the_released_protocol():
    start = {**weights(), "bias": np.random.default_rng(1).normal(size=(3, 2))}
    request = {"variant": "released", "n_test": 10, "M": 3, "J": 2, "K": 2}
    p = Parameters(d=9, **request)
    placed = model.place(odesim_start_of(start, request), start, np.random.default_rng(0), False)
    assert np.array_equal(placed.bias, start["bias"]) and p.J == 2
    runs = [
        odesim.simulate("chen", method="explicit", step_size=0.01, batch=20, until=0.01, save_points=2,
                        initial={**start, "bias": factor * start["bias"]}, **request)
        for factor in (0.0, 1.0)
    ]  # fmt: skip
    assert np.abs(runs[0]["train_loss"][:, 0] - runs[1]["train_loss"][:, 0]).max() > 1e-3
    with pytest.raises(UsageError, match="give variant=released"):
        odesim.simulate("chen", method="explicit", step_size=0.01, batch=20, until=0.01, initial=start)
    with pytest.raises(UsageError, match=r"bias must have shape \(M, J\)"):
        odesim.simulate("chen", method="explicit", step_size=0.01, batch=20, until=0.01,
                        initial={**start, "bias": np.zeros(3)[:, None]}, variant="released")  # fmt: skip


def odesim_start_of(arrays, request):
    """The initial condition of a file with parameters."""
    from odesim.flow.problem import initial_condition
    from odesim.request.case import Case

    return initial_condition(Case.build("chen", request, initial=arrays))


@pytest.mark.parametrize("backend", ["numba", pytest.param("jax", marks=pytest.mark.slow)])
def test_replicas_with_sets_of_their_own_differ_and_share_otherwise(backend):
    request = {"method": "explicit", "step_size": 0.01, "batch": 25, "until": 0.01, "save_points": 2, "n_test": 10,
               "seeds": 3, "backend": backend, "noise": False, **SIZES}  # fmt: skip
    shared, own = (odesim.simulate("chen", sets=sets, **request) for sets in ("shared", "own"))
    # One start for all replicas, no routing noise, full batches: only the training sets can differ.
    assert np.abs(shared["feat"] - shared["feat"][:1]).max() < 1e-15
    assert np.abs(own["feat"][1:, -1] - own["feat"][:1, -1]).max() > 1e-5
    assert np.abs(own["feat"][0] - shared["feat"][0]).max() < 1e-15
    assert len(set(own["train_loss"][:, 0])) == 3
    again = odesim.simulate("chen", sets="own", **{**request, "seeds": 2})
    assert np.abs(again["feat"] - own["feat"][:2]).max() < 1e-15


def test_counted_replicas_have_sets_of_their_own():
    request = {"method": "compressed", "step_size": 0.01, "batch": 200, "until": 0.01, "save_points": 2, "n_test": 10,
               "seeds": 2, "noise": False, "laws": "points", "alpha": (0.5, 2.0), "beta": (1.0,), "gamma": (1.0,),
               **SIZES}  # fmt: skip
    own = odesim.simulate("chen", sets="own", **request)
    drawn = odesim.simulate("chen", sets="own", **{**request, "method": "explicit"})
    assert own.summary["batches"].startswith("counts") and len(set(own["train_loss"][:, 0])) == 2
    np.testing.assert_allclose(own["feat"][:, -1], drawn["feat"][:, -1], atol=1e-12)


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_a_norm_for_each_tensor_moves_weights_and_biases_by_the_step(backend):
    request = {"method": "explicit", "step_size": 0.01, "batch": 25, "until": 0.01, "save_points": 2, "n_test": 10,
               "variant": "released", "d": 4, "backend": backend, **SIZES}  # fmt: skip
    moved = {}
    for normaliser in ("expert", "tensor"):
        run = odesim.simulate("chen", normaliser=normaliser, **request)
        change = [run[name][0, -1] - run[name][0, 0] for name in ("feat", "cen")]  # d = 2 K: nothing else moves
        moved[normaliser] = np.sqrt(sum((part**2).sum((1, 2)) for part in change))
    np.testing.assert_allclose(moved["tensor"], 0.01, rtol=1e-9)
    assert (moved["expert"] < 0.01 * (1 - 1e-3)).all()


def test_rates_are_norms_of_tensors():
    numbers = model.numbers(Parameters(variant="released", normaliser="tensor", **SIZES))
    first, second, rho = model.rates(np.array([4.0, 0.0]), np.array([0.25, 1.0]), *numbers)
    assert first.tolist() == [0.5, 0.0] and second.tolist() == [2.0, 1.0] and rho == 64.0
    numbers = model.numbers(Parameters(variant="released", **SIZES))
    first, second, _ = model.rates(np.array([4.0]), np.array([0.25]), *numbers)
    assert first[0] == second[0] == 0.4


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"normaliser": "tensor"}, "give variant=released"),
        ({"normaliser": "tensor", "variant": "released", "normalise": False}, "omit one of the two"),
        ({"sets": "own", "data": "online"}, "data=online has no training set"),
    ],
)
def test_options_without_meaning_are_refused(parameters, sentence):
    with pytest.raises(UsageError, match=sentence):
        odesim.simulate("chen", method="explicit", step_size=0.01, batch=5, until=0.01, **parameters)
