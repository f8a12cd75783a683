"""Training with an output per class: explicit, compressed and full-batch are one; its mean step is the flow."""

import numpy as np
import pytest

import odesim
from derivations.alphabet.frame import Samples
from derivations.pmoe import initial, model, router, tiers
from derivations.pmoe.classes import model as several
from derivations.pmoe.parameters import Parameters, settle
from odesim.flow.problem import compile_functions
from odesim.sgd.frame import atoms_of
from odesim.sgd.frame_step import counted, pushed

from .test_classes import logistic_weights, two_outputs, weights


def test_what_moves_a_neuron_is_the_sum_over_its_outputs():
    rng = np.random.default_rng(0)
    out, experts = rng.standard_normal((2, 3, 4)), rng.standard_normal((2, 4, 5, 6))
    np.testing.assert_allclose(pushed(out, experts), np.einsum("kmi,kisb->kmsb", out, experts), atol=1e-14)
    fields = rng.standard_normal((2, 3, 5, 6))
    expected = np.einsum("kmi,kmsb->kisb", out, np.maximum(fields, 0))
    np.testing.assert_allclose(model.respond(out, np.maximum(fields, 0.0)), expected, atol=1e-14)


@pytest.mark.parametrize(("mode", "k"), [("separate", 0), ("joint", 3), ("cnn", 0)])
@pytest.mark.parametrize("data", ["online", "fixed"])
def test_training_on_counts_is_training_on_vectors(mode, k, data):
    request = {"mode": mode, "k": k, "classes": 4, "m": 24, "n": 5, "p": 3, "d": 9, "delta_d": 0.2, "b1": (0.2,)}
    request |= {"data": data, "N": 40 if data == "fixed" else 0, "step_size": 0.02, "batch": 16, "seed": 1}
    explicit, compressed = (
        odesim.simulate("pmoe", method=method, until=9.6, save_points=5, **request)
        for method in ("explicit", "compressed")
    )
    for name in explicit.state:
        assert np.abs(explicit[name] - compressed[name]).max() < 1e-12, name
    assert np.abs(explicit["pre"][:, -1] - explicit["pre"][:, 0]).max() > 1e-3


@pytest.mark.parametrize(("mode", "k", "taken"), [("joint", 3, 3), ("separate", 4, 3), ("cnn", 1, 6)])
def test_full_batches_of_a_file_are_the_recursion(mode, k, taken):
    arrays = weights(k=k, classes=4)
    m = 4 * k
    request = {"initial": arrays, "mode": mode, "l": taken, "until": 100 * 0.02 * m, "save_points": 11}
    if mode == "joint":
        request["lam"] = 0.05
    sgd = odesim.simulate("pmoe", method="explicit", step_size=0.02, batch=30, **request)
    flow = odesim.integrate("pmoe", step=0.02 * m, **request)
    for name in ("pre", "route", "response", "loss", "error", "v"):
        assert np.abs(sgd[name][0] - flow[name]).max() < 1e-9, name
    assert np.abs(sgd["pre"][0, -1] - sgd["pre"][0, 0]).max() > 0.02
    assert sgd["loss"][0, -1] < sgd["loss"][0, 0]


@pytest.mark.parametrize(("mode", "k"), [("joint", 3), ("separate", 4), ("cnn", 1)])
def test_the_mean_step_is_the_population_flow(mode, k):
    """200000 samples drawn by the model: drives of experts and routers within 4.5 standard errors, batch by batch."""
    p = Parameters(mode=mode, classes=4, k=k, n=6, p=3, delta_d=0.2, m=24, d=9, sigma_r=0.4, routers="random", lam=1.0)
    stage = "joint" if mode == "joint" else "experts"
    p = settle(p, stage)
    start = {"joint": initial.enter_joint, "experts": initial.enter_experts}[stage](p, None, np.random.default_rng(5))
    equations = {"joint": tiers.joint, "experts": tiers.experts}[stage](p, "L0")
    flow = compile_functions(equations, "numpy")["flow"]
    moved = equations.unpack(flow(0.0, equations.start(start), *equations.arguments(start)))
    truth = {"joint": several.JOINT, "experts": several.EXPERTS}[stage]
    s, c, rng, found = start.state, start.constants, np.random.default_rng(6), []
    weigh = getattr(several, truth.weigh)
    for _ in range(40):
        samples = Samples(*several.draw(rng.random((6, 5000)), *truth.law(start)))
        assert samples.tokens is not None
        assert (samples.tokens[0] + 1 == samples.labels).all()
        value, slope = model.activate(s["pre"])
        phi, counts = model.respond(c["out"], value)[..., None], counted(samples, 7).copies
        experts, routers, _ = weigh(s["route"][..., None], phi, counts, samples.labels, *truth.numbers(start))
        pull = pushed(c["out"], experts.mean(axis=-1)) * slope
        found.append(
            np.concatenate([(pull / p.m @ c["gram"]).ravel(), (p.lam * routers.mean(axis=-1) @ c["gram"]).ravel()])
        )
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(40)
    expected = np.concatenate([moved["pre"].ravel(), moved["route"].ravel()])
    z = np.abs(mean - expected) / (error + 1e-15)
    assert z.max() < 4.5
    assert np.abs(expected).max() > 100 * error.max() / 40


def test_runs_scatter_around_the_recursion_by_their_own_spread():
    """24 runs of small batches: the mean of every response within 4.5 standard errors of the recursion (plus bias).

    A step of eta m = 0.24 with batches of 50: the second-order bias is far below the spread of a mean of 24.
    """
    request = {"classes": 3, "mode": "joint", "k": 2, "n": 4, "p": 2, "l": 2, "m": 24, "d": 9, "until": 4.8}
    request |= {"save_points": 5, "lam": 0.1, "sigma_r": 0.5}
    arrays = {name: values for name, values in weights(k=2, each=12, p=2, n=4).items() if name not in ("index", "y")}
    flow = odesim.integrate("pmoe", initial=arrays, step=0.24, **request)
    sgd = odesim.simulate("pmoe", initial=arrays, method="compressed", step_size=0.01, batch=50, seeds=24, **request)
    for name in ("response", "route"):
        values = sgd[name][:, -1]
        error = values.std(axis=0, ddof=1) / np.sqrt(24)
        moved = error > 1e-9
        z = np.abs(values.mean(axis=0) - flow[name][-1])[moved] / error[moved]
        assert moved.any()
        assert z.max() < 4.5, name
        assert np.abs(flow[name][-1] - flow[name][0])[moved].max() > 5 * error.max()


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_two_opposite_outputs_train_as_the_logistic_network(method):
    """The same seed draws the same samples: 1 for +1 and 2 for -1."""
    arrays = {name: values for name, values in logistic_weights().items() if name not in ("index", "y")}
    request = {"method": method, "mode": "joint", "n": 6, "l": 3, "lam": 0.05, "until": 12.0, "step_size": 0.02}
    request |= {"batch": 20, "save_points": 4, "seed": 3}
    one = odesim.simulate("pmoe", initial=arrays, **request)
    two = odesim.simulate("pmoe", initial=two_outputs(arrays), **request)
    for name in ("pre", "route", "loss", "error"):
        np.testing.assert_allclose(two[name], one[name], atol=1e-12)
    np.testing.assert_allclose(two["v"], np.stack([one["v1"], one["v2"]], axis=-1), atol=1e-12)
    assert np.abs(one["pre"][0, -1] - one["pre"][0, 0]).max() > 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["joint", "router"])
@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_jax_trains_as_numpy_does(method, stage):
    arrays = weights(k=4, classes=4)
    request = {"initial": arrays, "l": 3, "until": 5.0 if stage == "joint" else 0.1, "stage": stage, "batch": 30}
    request |= {"lam": 0.05, "mode": "joint"} if stage == "joint" else {"mode": "separate"}
    first = odesim.simulate("pmoe", method=method, step_size=0.02, **request)
    second = odesim.simulate("pmoe", method=method, step_size=0.02, backend="jax", **request)
    for name in set(first.state) & {"pre", "route"}:
        assert np.abs(first[name] - second[name]).max() < 1e-12


def test_routers_of_pairs_step_on_the_samples_of_their_own_classes():
    """Full batches of a file: every step moves w_i by eta_r times the mean of +-sum_j x_j over classes i and i + 1."""
    arrays = weights(k=4, classes=4, size=31)
    request = {"initial": arrays, "mode": "separate", "stage": "router", "l": 3, "until": 0.5, "save_points": 3}
    flow = odesim.integrate("pmoe", **request)
    request |= {"step_size": 0.05, "batch": 31}
    runs = [odesim.simulate("pmoe", method=method, **request) for method in ("explicit", "compressed")]
    x, y = arrays["patterns"], arrays["y"]
    moved = np.zeros((4, 9))
    for i in (1, 3):
        pair = [(1 if label == i else -1) * x[row].sum(axis=0) for row, label in zip(arrays["index"], y, strict=True)
                if label in (i, i + 1)]  # fmt: skip
        moved[i - 1], moved[i] = np.mean(pair, axis=0), -np.mean(pair, axis=0)
    expected = (arrays["router"] + 0.5 * moved) @ x.T
    for route in (flow["route"][-1], *(run["route"][0, -1] for run in runs)):
        np.testing.assert_allclose(route, expected, atol=1e-9)


def test_fresh_samples_of_routers_are_as_many_of_every_pair():
    p = settle(Parameters(classes=6, m=12, n=3, p=2), "router")
    start, rng = initial.enter_router(p, None, np.random.default_rng(1)), np.random.default_rng(0)
    atoms, _, labels = several.draw(rng.random((several.ROUTER.uniforms(start), 4000)), *several.ROUTER.law(start))
    assert atoms.shape == (3, 12_000)
    assert (atoms[0] + 1 == labels).all()
    assert ((atoms[1:] >= 6) & (atoms[1:] < 8)).all()
    counted = np.bincount(labels.astype(int), minlength=7)[1:]
    assert np.array_equal(counted.reshape(3, 2).sum(axis=1), [4000] * 3)
    assert np.abs(counted - 2000).max() < 4.5 * np.sqrt(1000)


def test_the_mean_of_router_runs_is_the_population_flow():
    request = {"stage": "router", "classes": 4, "m": 8, "n": 5, "p": 2, "until": 1.0, "save_points": 2, "sigma_r": 0.1}
    flow = odesim.integrate("pmoe", **request)
    start = {"gram": flow["gram"], "route": flow["route"][0], "out": flow["out"], "pre": np.zeros((4, 2, 6))}
    request = {name: value for name, value in request.items() if name not in ("classes", "m", "p")}
    sgd = odesim.simulate("pmoe", initial=start, method="compressed", step_size=0.1, batch=20, seeds=60, **request)
    values = sgd["route"][:, -1]
    error = values.std(axis=0, ddof=1) / np.sqrt(60)
    z = np.abs(values.mean(axis=0) - flow["route"][-1]) / np.maximum(error, 1e-12)
    assert z.max() < 4.5
    # one pass over 200 samples of each pair has the spread of the exact law at N_r = 400
    p = settle(Parameters(classes=2, n=5, p=2, N_r=200), "router")
    law = np.sqrt(np.diag(router.covariance(p)) / 200)
    np.testing.assert_allclose(values.std(axis=0)[0][[0, 1, 4, 5]], law, rtol=0.35)


def test_samples_of_a_training_set_have_labels_from_one_to_c():
    p = settle(Parameters(classes=3, m=12, n=4, p=2, mode="joint", data="fixed", N=12, balanced=True), "joint")
    bags = several.JOINT.data(initial.enter_joint(p, None, np.random.default_rng(0)), 12)
    assert bags is not None
    assert np.array_equal(np.bincount(bags.labels.astype(int)), [0, 4, 4, 4])
    assert (atoms_of(bags.copies) < 5).all()


def test_balls_keep_the_patterns_of_all_classes_as_points():
    from odesim.sgd.frame import FrameChains

    p = settle(Parameters(mode="joint", classes=3, n=4, p=2, m=8, k=2, l=2, d=6, rho=0.3), "joint")
    start = [initial.enter_joint(p, None, np.random.default_rng(0))]
    engine = FrameChains(several.JOINT, start, None, compressed=False, batch=50, step_size=0.1, seed=3)
    batch = engine.draw(np.random.default_rng(1))
    frame = engine.move.frame
    patches = engine.move.patches(batch.tokens, np.random.default_rng(2).standard_normal((4, 50, 6)))
    moved = np.abs(patches - frame[batch.tokens]).max(axis=-1)
    assert (moved[0] == 0).all()
    assert (moved[1:] > 1e-3).all()


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_samples_of_one_patch_are_the_patterns_of_the_classes(method):
    request = {"classes": 3, "mode": "joint", "p": 0, "n": 1, "k": 3, "m": 12, "save_points": 2}
    sgd = odesim.simulate("pmoe", method=method, step_size=0.05, batch=2000, until=5.4, **request)
    flow = odesim.integrate("pmoe", step=0.6, until=5.4, **request)
    assert flow["response"].shape[1:] == (3, 3, 3)
    assert np.abs(sgd["response"][0, -1] - flow["response"][-1]).max() < 0.05
    assert flow["loss"][-1] < 0.9 * flow["loss"][0]


def test_two_outputs_have_the_routers_of_the_logistic_network():
    """Stage router does not know of outputs: the same samples, the same steps (the starts are other draws)."""
    request = {"stage": "router", "n": 4, "p": 2, "until": 1.0, "save_points": 3}
    flows = [odesim.integrate("pmoe", N_r=20, loss=loss, **request) for loss in ("logistic", "softmax")]
    moved = [run["route"] - run["route"][0] for run in flows]
    np.testing.assert_allclose(moved[1], moved[0], atol=1e-12)
    fallen = [run["router_loss_samples"] - run["router_loss_samples"][0] for run in flows]
    np.testing.assert_allclose(fallen[1][:, 0], fallen[0], atol=1e-12)
    request |= {"method": "compressed", "step_size": 0.1, "batch": 10, "seed": 2}
    runs = [odesim.simulate("pmoe", loss=loss, **request) for loss in ("logistic", "softmax")]
    moved = [run["route"][0] - run["route"][0, 0] for run in runs]
    np.testing.assert_allclose(moved[1], moved[0], atol=1e-12)
    assert np.abs(moved[0][-1]).max() > 0.3
