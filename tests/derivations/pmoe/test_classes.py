"""Several classes: the softmax loss against differences and autodiff, levels against each other and a closed form."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import odesim
from derivations.pmoe import initial, model, multiclass, router, tiers, truth, world
from derivations.pmoe.classes import model as several
from derivations.pmoe.parameters import Parameters, settle
from odesim.flow.problem import compile_functions

ENTER = {"joint": initial.enter_joint, "experts": initial.enter_experts, "router": initial.enter_router}


def weights(seed=0, k=3, each=4, d=9, p=3, n=6, size=30, classes=3) -> dict:
    """Arrays of an initial file: random unit patterns, weights of order one, samples with one class pattern each."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((p + classes, d))
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    y = rng.integers(1, classes + 1, size)
    index = rng.integers(classes, p + classes, (size, n))
    index[:, 0] = y - 1
    return {
        "patterns": patterns,
        "hidden": rng.standard_normal((k, each, d)) / np.sqrt(k * each),
        "out": rng.standard_normal((k, each, classes)),
        "router": 0.3 * rng.standard_normal((k, d)),
        "index": index,
        "y": y,
    }


def network(arrays: Mapping[str, Any], row: np.ndarray, taken: int, softmax: bool) -> np.ndarray:
    """f_1..f_c of one sample, patch by patch."""
    x, f = arrays["patterns"][row], 0.0
    for w, neurons, out in zip(arrays["router"], arrays["hidden"], arrays["out"], strict=True):
        g = x @ w
        top = np.argsort(-g, kind="stable")[:taken]
        share = np.exp(g[top]) / np.exp(g[top]).sum() if softmax else np.ones(taken)
        f = f + share @ np.maximum(x[top] @ neurons.T, 0) @ out / taken
    return np.asarray(f)


def loss(arrays: Mapping[str, Any], taken: int, softmax: bool) -> float:
    """Equation (24): the mean of log(sum_i e^(f_i)) - f_y."""
    total = 0.0
    for row, y in zip(arrays["index"], arrays["y"], strict=True):
        f = network(arrays, row, taken, softmax)
        total += np.log(np.exp(f).sum()) - f[y - 1]
    return total / len(arrays["y"])


def differences(arrays: Mapping[str, Any], name: str, taken: int, softmax: bool, size: float = 1e-6) -> np.ndarray:
    """Central differences of the loss with respect to `hidden` or `router`."""
    found = np.zeros_like(arrays[name])
    for entry in np.ndindex(found.shape):
        ends = []
        for sign in (1, -1):
            moved = arrays[name].copy()
            moved[entry] += sign * size
            ends.append(loss({**arrays, name: moved}, taken, softmax))
        found[entry] = (ends[0] - ends[1]) / (2 * size)
    return found


def compiled(parameters: Parameters, stage: str, tier: str, backend: str, rng=0):
    """(functions, flat start, arguments, initial condition) of a tier."""
    p = settle(parameters, stage)
    start = ENTER[stage](p, None, np.random.default_rng(rng))
    equations = {"joint": tiers.joint, "experts": tiers.experts}[stage](start.parameters, tier)
    functions = compile_functions(equations, backend)
    return equations, functions, equations.start(start), equations.arguments(start), start


@pytest.mark.parametrize(("mode", "taken"), [("joint", 3), ("cnn", 6)])
def test_one_step_is_the_gradient_of_the_d_dimensional_softmax_loss(mode, taken):
    arrays = weights(k=1 if mode == "cnn" else 3)
    run = odesim.integrate("pmoe", initial=arrays, mode=mode, l=taken, lam=0.05, step=0.1, until=0.1, save_points=2)
    eta = 0.1 / run["pre"][0].shape[0] / run["pre"][0].shape[1]
    hidden = arrays["hidden"] - eta * differences(arrays, "hidden", taken, mode == "joint")
    assert np.abs(hidden @ arrays["patterns"].T - run["pre"][-1]).max() < 1e-10
    assert np.abs(run["pre"][-1] - run["pre"][0]).max() > 1e-3
    assert run["loss"][0] == pytest.approx(loss(arrays, taken, mode == "joint"), rel=1e-13)
    if mode == "joint":
        router_ = arrays["router"] - 0.05 * 0.1 * differences(arrays, "router", taken, True)
        assert np.abs(router_ @ arrays["patterns"].T - run["route"][-1]).max() < 1e-10
        assert np.abs(run["route"][-1] - run["route"][0]).max() > 1e-5


@pytest.mark.parametrize("size", [1.0, 40.0, 800.0])
def test_pushes_are_minus_the_gradient_by_autodiff_at_every_scale(size):
    import jax
    import jax.numpy as jnp

    f = size * np.random.default_rng(1).standard_normal((5, 7))
    y = np.array([1.0, 2, 3, 4, 5, 1, 2])

    def cost(outputs):
        chosen = outputs[y.astype(int) - 1, jnp.arange(7)]
        return jax.scipy.special.logsumexp(outputs, axis=0) - chosen

    push, ahead, value = several.pushes(f, y)
    np.testing.assert_allclose(push, -jax.grad(lambda x: cost(x).sum())(f), atol=1e-14)
    np.testing.assert_allclose(value, cost(f), atol=1e-12 * size)
    own = (y.astype(int) - 1, np.arange(7))
    rest = f.copy()
    rest[own] = -np.inf
    assert np.array_equal(ahead, f[own] - rest.max(axis=0))
    # the loss near zero is that of log(1 + rest), not the difference of numbers of order one
    tiny = np.array([[40.0], [0.0], [1.0]])
    assert several.pushes(tiny, np.array([1.0]))[2][0] == pytest.approx(np.exp(-40) + np.exp(-39), rel=1e-12)


@pytest.mark.parametrize("tier", ["L0", "L1", "L2"])
def test_flows_descend_their_own_loss_by_autodiff(tier):
    """dphi = -metric dL/dphi, dg = -lam Gam dL/dg; every patch is routed, so that nothing jumps."""
    import jax

    p = Parameters(mode="joint", classes=3, n=4, p=3, k=2, l=4, m=12, d=8, delta_d=0.3, lam=0.2, sigma_r=0.5)
    equations, functions, y, arguments, start = compiled(p, "joint", tier, "jax")
    gram = start.constants["gram"]
    slope = equations.unpack(np.asarray(jax.grad(lambda x: functions["loss"](x, *arguments))(y)))
    moved = equations.unpack(np.asarray(functions["flow"](0.0, y, *arguments)))
    np.testing.assert_allclose(moved["route"], -0.2 * slope["route"] @ gram, atol=1e-14)
    if tier == "L0":
        np.testing.assert_allclose(moved["pre"], -slope["pre"] @ gram / 12, atol=1e-14)
    elif tier == "L1":
        active = (start.state["pre"] >= 0)[:, :, None] * start.constants["out"][..., None]
        metric = gram * np.einsum("smiz,smjw->sijzw", active, active) / 12
        np.testing.assert_allclose(
            moved["response"], -np.einsum("sijzw,sjw->siz", metric, slope["response"]), atol=1e-14
        )
    else:
        kernel = gram * (0.25 + np.arcsin(np.clip(gram, -1, 1)) / (2 * np.pi))
        np.testing.assert_allclose(moved["response"], -slope["response"] @ kernel / 2, atol=1e-14)
    assert np.abs(moved["route"]).max() > 1e-4


RULES: list[dict[str, Any]] = [
    {"gate": "uniform"}, {"gate": "sharp"}, {"tie_rule": "fractional"}, {"tie_rule": "jitter", "jitters": 3}, {}
]  # fmt: skip


@pytest.mark.parametrize("tier", ["L0", "L1", "L2"])
def test_loops_and_arrays_agree(tier):
    for extra in RULES:
        p = Parameters(
            mode="joint", classes=4, n=6, p=2, k=5, l=3, m=15, d=8, delta_d=0.3, lam=0.2, softness=0.05, sigma_r=0.5,
            **extra,
        )  # fmt: skip
        _, loops, y, arguments, _ = compiled(p, "joint", tier, "numba")
        _, arrays, _, _, _ = compiled(p, "joint", tier, "numpy")
        tight = 1e-13 if "fractional" not in extra.values() else 1e-8  # bisection against Newton for the soft threshold
        found, other = (f["flow"](0.0, y, *arguments) for f in (loops, arrays))
        assert np.abs(found - other).max() < tight
        assert np.abs(found).max() > 1e-3
        assert loops["loss"](y, *arguments) == pytest.approx(arrays["loss"](y, *arguments), rel=1e-9)
        assert np.allclose(loops["watch"](y, *arguments), arrays["watch"](y, *arguments), atol=1e-9)


def test_observables_by_going_through_all_samples():
    run = odesim.integrate("pmoe", classes=3, mode="joint", k=4, n=4, p=2, l=2, m=12, d=6, sigma_r=1.0, until=1.0,
                           save_points=2)  # fmt: skip
    route, response, gram = run["route"][0], run["response"][0], run["gram"]
    assert gram.shape == (5, 5)
    error, v, routed, finds, best = 0.0, np.zeros(3), np.zeros((4, 5)), np.zeros((3, 4)), np.ones((3, 4), bool)
    for y, rest in itertools.product(range(3), itertools.product((3, 4), repeat=3)):
        patches, chance, f = np.array([y, *rest]), 1 / 24, np.zeros(3)
        for s in range(4):
            top = patches[np.argsort(-route[s, patches], kind="stable")[:2]]
            share = np.exp(route[s, top]) / np.exp(route[s, top]).sum()
            f += response[s][:, top] @ share / 2
            np.add.at(routed[s], top, chance)
            finds[y, s] += 3 * chance * (y in top)
            best[y, s] &= y == top[0]
        v[y] += 3 * chance * (1 - np.exp(f[y]) / np.exp(f).sum())
        error += chance * (f[y] <= np.delete(f, y).max())
    np.testing.assert_allclose(run["v"][0], v, atol=1e-14)
    np.testing.assert_allclose(run["routed"][0], routed, atol=1e-14)
    np.testing.assert_allclose(run["finds"][0], finds, atol=1e-14)
    assert run["error"][0] == pytest.approx(error, abs=1e-14)
    assert run["assumption"][0] == float(best.any(axis=1).all())
    assert 0 < error < 1


def two_outputs(arrays: dict) -> dict:
    """A logistic network a as a softmax network of the outputs a/2 and -a/2: f_1 - f_2 is its f."""
    out = np.stack([arrays["out"] / 2, -arrays["out"] / 2], axis=-1)
    found = {**arrays, "out": out}
    return {**found, "y": np.where(arrays["y"] > 0, 1, 2)} if "y" in arrays else found


def logistic_weights(**sizes) -> dict:
    arrays = weights(classes=2, **sizes)
    return {**arrays, "out": arrays["out"][..., 0], "y": np.where(arrays["y"] == 1, 1, -1)}


@pytest.mark.parametrize("tier", ["L0", "L1"])
def test_two_opposite_outputs_are_the_logistic_network(tier):
    arrays = logistic_weights()
    request = {"mode": "joint", "l": 3, "lam": 0.05, "tier": tier, "until": 60.0, "save_points": 7}
    one = odesim.integrate("pmoe", initial=arrays, **request)
    two = odesim.integrate("pmoe", initial=two_outputs(arrays), **request)
    assert (one.origin.parameters["loss"], two.origin.parameters["loss"]) == ("logistic", "softmax")
    np.testing.assert_allclose(two["response"][:, :, 0] - two["response"][:, :, 1], one["response"], atol=1e-11)
    np.testing.assert_allclose(two["route"], one["route"], atol=1e-12)
    for name in ("loss", "error", "assumption"):
        np.testing.assert_allclose(two[name], one[name], atol=1e-12)
    np.testing.assert_allclose(two["v"], np.stack([one["v1"], one["v2"]], axis=1), atol=1e-12)
    assert one["loss"][-1] < 0.96 * one["loss"][0]


def test_at_infinite_width_two_outputs_are_the_logistic_network_twice_as_fast():
    """phi_1 - phi_2 gains (1/k) K (c_1 - c_2) = (2/k) K c: both outputs move."""
    arrays = logistic_weights(k=2)
    request = {"mode": "separate", "l": 3, "tier": "L2", "save_points": 7, "rtol": 1e-11}
    one = odesim.integrate("pmoe", initial=arrays, until=60.0, **request)
    two = odesim.integrate("pmoe", initial=two_outputs(arrays), until=30.0, **request)
    np.testing.assert_allclose(two["response"][:, :, 0] - two["response"][:, :, 1], one["response"], atol=1e-8)
    assert np.abs(one["response"][-1] - one["response"][0]).max() > 0.5


@pytest.mark.parametrize(("c", "taken"), [(2, 3), (4, 2), (6, 3)])
def test_perfectly_routed_experts_reach_the_closed_forms_level(c, taken):
    """One irrelevant pattern, orthonormal, zero responses at the start: `multiclass.flow_to`, another program."""
    goal = multiclass.flow_to(0.3, c, taken)
    request = {"n": taken + 2, "composition": "deterministic", "counts": (taken + 1,), "routers": "perfect"}
    run = odesim.integrate("pmoe", classes=c, loss="softmax", mode="separate", init="paired", l=taken, p=1, m=4 * c,
                           tier="L2", until=goal, save_points=3, rtol=1e-10, **request)  # fmt: skip
    np.testing.assert_allclose(run["v"][-1], 0.3, atol=1e-7)
    np.testing.assert_allclose(run["v"][0], 1 - 1 / c, atol=1e-14)


def test_the_levels_approach_each_other_with_width():
    """From the same neurons: the rms difference of responses at m = 100 and 6400 falls like m^(-1/2), a factor of 8."""

    def gap(m: int, first: str, second: str) -> float:
        request = {"classes": 4, "n": 6, "p": 3, "d": 12, "delta_d": 0.2, "irrelevant": "random", "step": 0.25}
        runs = [
            odesim.integrate("pmoe", tier=tier, m=m, until=40.0, save_points=5, **request) for tier in (first, second)
        ]
        return float(np.sqrt(((runs[0]["response"] - runs[1]["response"]) ** 2).mean()))

    assert 3 < gap(100, "L0", "L1") / gap(6400, "L0", "L1") < 20
    assert 3 < gap(100, "L1", "L2") / gap(6400, "L1", "L2") < 20


@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize("irrelevant", ["orthogonal", "random"])
def test_patterns_have_the_products_asked_for(c, irrelevant):
    for delta_d in (0.4, 0.0, -1 / (c - 1)):
        if c == 2 and delta_d == -1:
            continue
        for b in ({}, {"b1": (0.2,), "b2": (-0.2,)}):
            p = Parameters(classes=c, p=3, n=4, d=9, delta_d=delta_d, irrelevant=irrelevant, **b)
            gram = world.gram_of(p)
            assert gram.shape == (c + 3, c + 3)
            assert np.allclose(gram[:c, :c], np.where(np.eye(c) > 0, 1.0, delta_d), atol=1e-12)
            assert np.linalg.eigvalsh(gram).min() > -1e-12
            if b:
                assert np.allclose(gram[c:, :c], [0.2, -0.2, *[0.0] * (c - 2)], atol=1e-12)


def test_the_population_is_all_samples_of_all_classes():
    p = Parameters(classes=3, p=2, n=4, pi=(0.3, 0.7))
    counts, label, weight = world.population(p)
    assert weight.sum() == pytest.approx(1)
    chance = {}
    for y, rest in itertools.product((1, 2, 3), itertools.product((0, 1), repeat=3)):
        row = np.bincount([y - 1, *(3 + q for q in rest)], minlength=5)
        key = (y, *row)
        chance[key] = chance.get(key, 0.0) + np.prod([p.pi[q] for q in rest]) / 3
    found = {(int(y), *map(int, row)): w for y, row, w in zip(label, counts, weight, strict=True)}
    assert found.keys() == chance.keys()
    assert all(found[key] == pytest.approx(chance[key], rel=1e-12) for key in chance)
    drawn, labels = world.sample(p, np.random.default_rng(0), 9, balanced=True)
    assert np.array_equal(np.bincount(labels.astype(int)), [0, 3, 3, 3])
    assert (drawn[np.arange(9), labels.astype(int) - 1] == 1).all()


def test_routers_of_pairs_move_along_the_difference_of_their_patterns():
    request = {"classes": 4, "p": 2, "n": 4, "m": 8, "delta_d": 0.3, "b1": (0.5, 0.0), "stage": "router"}
    run = odesim.integrate("pmoe", until=2.0, save_points=3, **request)
    moved, gram = run["route"][-1] - run["route"][0], run["gram"]
    for i, j in ((0, 1), (2, 3)):
        np.testing.assert_allclose(moved[i], gram[i] - gram[j], atol=1e-9)  # 2 times (o_i - o_j)/2
        np.testing.assert_allclose(moved[j], -moved[i], atol=1e-12)
    inner = {(i, j): moved[i, j] for i in (0, 1) for j in (2, 3)}  # a class of another pair is as an irrelevant pattern
    np.testing.assert_allclose(list(inner.values()), 0.0, atol=1e-9)
    drop = np.diff(run["router_loss"], axis=0)
    np.testing.assert_allclose(drop, -2 * (gram[0, 0] - gram[0, 1]) / 2, atol=1e-9)  # -2 |(o_i - o_j)/2|^2 per unit
    assert run.invariants["router_sum"] < 1e-12


@pytest.mark.parametrize("balanced", [False, True])
def test_the_means_of_pairs_have_the_law_of_samples_one_by_one(balanced):
    p = settle(Parameters(classes=4, m=8, n=5, p=2, N_r=41, pi=(0.3, 0.7), balanced=balanced), "router")
    rng = np.random.default_rng(0)
    sums = np.array([router.pair_means(p, rng) for _ in range(6000)])
    each = []
    for _ in range(6000):
        counts, y = world.sample(p, rng, 41, balanced)
        each.append([
            ((y - 1) // 2 == pair) * np.where(y % 2 == 1, 1, -1) @ counts / max(((y - 1) // 2 == pair).sum(), 1)
            for pair in range(2)
        ])  # fmt: skip
    flat, other = sums.reshape(6000, -1), np.array(each).reshape(6000, -1)
    spread = np.sqrt((flat.var(axis=0) + other.var(axis=0)) / 6000)
    assert (np.abs(flat.mean(axis=0) - other.mean(axis=0)) <= 4.5 * spread + 1e-12).all()
    covariance, expected = np.cov(flat.T), np.cov(other.T)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert (np.abs(covariance - expected) <= 6 * np.sqrt(2 / 6000) * scale + 1e-12).all()
    if not balanced:  # 41 samples are not as many of every class
        np.testing.assert_allclose(flat.mean(axis=0), router.pair_population(p).ravel(), atol=5 * spread.max())


REFUSED = [
    ({"tier": "L3"}, "tier L3 follows the margins of two samples"),
    ({"composition": "bounded_close"}, "Definition D.3"),
    ({"loss": "logistic"}, "logistic loss is for two classes"),
    ({"delta_d": -0.5}, "at least -1/"),
    ({"classes": 3, "m": 300, "mode": "separate"}, "classes = 3 is odd"),
    ({"mode": "separate", "k": 2}, "k = 4 experts, one per class"),
    ({"mode": "joint", "k": 2, "routers": "single"}, "k >= 4"),
    ({"mode": "joint", "k": 2, "routers": "trained"}, "law of 4 routers"),
    ({"irrelevant": "random", "d": 3}, "span 4 dimensions"),
]


@pytest.mark.parametrize(("given", "sentence"), REFUSED)
def test_what_several_classes_do_not_have_is_refused(given, sentence):
    with pytest.raises(odesim.UsageError, match=sentence):
        odesim.integrate("pmoe", **{"classes": 4, "until": 1.0, **given})
    if "tier" in given:
        with pytest.raises(odesim.UsageError, match=sentence):
            odesim.derive("pmoe", classes=4, **given)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": np.array([0])}, "from 1 to 3"),
        ({"out": np.ones((3, 4, 2, 1))}, "3 dimensions|2 dimensions"),
        ({"out": np.ones((3, 4))}, "must be \\+1 or -1"),
        ({"patterns": np.eye(9)[:2]}, "with o1, o2, o3 and the irrelevant patterns"),
    ],
)
def test_files_that_do_not_fit_are_refused(change, sentence):
    arrays = weights() | change
    if "y" in change:
        arrays["y"] = np.zeros(30)
    with pytest.raises(odesim.UsageError, match=sentence):
        odesim.integrate("pmoe", initial=arrays, mode="joint", l=3, until=1.0)


def test_a_file_says_how_many_classes_there_are():
    run = odesim.integrate("pmoe", initial=weights(), mode="joint", l=3, until=0.5, step=0.5, save_points=2)
    assert (run.origin.parameters["classes"], run.origin.parameters["loss"]) == (3, "softmax")
    with pytest.raises(odesim.UsageError, match="classes = 3"):
        odesim.integrate("pmoe", initial=weights(), mode="joint", l=3, classes=4, until=0.5)
    with pytest.raises(odesim.UsageError, match="loss=logistic disagrees"):
        odesim.integrate("pmoe", initial=weights(), mode="joint", l=3, loss="logistic", until=0.5)
    with pytest.raises(odesim.UsageError, match="out is \\(k, M\\)"):
        odesim.integrate("pmoe", initial=logistic_weights(), mode="joint", l=3, loss="softmax", until=0.5)


@pytest.mark.parametrize("tier", ["L0", "L2"])
def test_predictions_are_those_of_the_network(tier):
    arrays = {name: values for name, values in weights(n=4).items() if name not in ("index", "y")}
    run = odesim.integrate("pmoe", initial=arrays, mode="joint", tier=tier, n=4, l=2, until=1.0, save_points=2)
    index = np.array(list(itertools.product(range(6), repeat=4)))[::7]
    y = 1 + np.arange(len(index)) % 3
    found = odesim.predict(run, {"index": index, "y": y}, time=0.0)
    expected = np.array([network(arrays, row, 2, True) for row in index]).T
    assert found["output"].dims == ("class", "sample")
    np.testing.assert_allclose(found["output"].values, expected, atol=1e-12)
    assert np.array_equal(found["answer"].values, 1 + expected.argmax(axis=0))
    margin = [f[i - 1] - np.delete(f, i - 1).max() for f, i in zip(expected.T, y, strict=True)]
    np.testing.assert_allclose(found["margin"].values, margin, atol=1e-12)
    with pytest.raises(odesim.UsageError, match="a class from 1 to 3"):
        odesim.predict(run, {"index": index, "y": y - 1})


def test_many_classes_follow_every_neuron_and_refuse_a_metric_that_cannot_be_held():
    request = {"classes": 64, "mode": "joint", "k": 8, "n": 3, "p": 2, "m": 64, "d": 70, "until": 0.5, "step": 0.5}
    run = odesim.integrate("pmoe", tier="L2", save_points=2, backend="jax", **request)
    assert run["loss"][0] == pytest.approx(np.log(64), rel=0.2)
    with pytest.raises(odesim.UsageError, match="k c\\^2 P\\^2"):
        odesim.integrate("pmoe", tier="L1", **{**request, "classes": 250, "d": 256})


def test_the_default_is_the_logistic_network_of_one_output():
    p = settle(Parameters())
    assert (p.classes, p.loss, p.width) == (2, "logistic", 8)
    assert truth.experts(p) is model.EXPERTS
    assert truth.experts(settle(Parameters(loss="softmax"))) is several.EXPERTS
