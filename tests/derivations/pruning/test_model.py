"""The microscopic model: gradients, routing, samples, the drift, and the two simulators."""

import dataclasses
import importlib

import numpy as np
import pytest

import odesim
from derivations.alphabet.frame import Samples
from derivations.contract import load
from derivations.pruning import initial, population
from derivations.pruning.parameters import Parameters
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions
from odesim.request.case import find_system
from odesim.sgd.frame import FrameChains
from odesim.sgd.frame_step import numpy_library, step_of

SYSTEM = find_system("pruning")
MODEL = load(SYSTEM.stages[0].model)
FUNCTIONS = importlib.import_module(MODEL.module)


def gradients(start, batch):
    """Minus the mean gradients along the patterns: of routers (k, d) and of neurons (k, m, d)."""
    step = step_of(MODEL, start, 1.0, numpy_library(MODEL))
    neurons, routers = step.along((start.state["u"], start.state["h"]), np.ones(start.state["u"].shape[:2]), batch)
    return routers, neurons


def drawn(start, rng, count):
    """Inputs from a generator."""
    return Samples(*FUNCTIONS.draw(rng.random((MODEL.uniforms(start), count)), *MODEL.law(start)))


def small(seed=0, routing="expert_choice", loss="linear", data="iid", n=6, **more):
    """Four experts on eight patterns."""
    rng = np.random.default_rng(seed)
    p = Parameters(d=8, n=n, k=4, l=3, m=3, data=data, eta_r=0.02, eta_e=0.05, loss=loss, routing=routing, **more)
    h, u = rng.standard_normal((4, 8)), 0.4 * rng.standard_normal((4, 3, 8))
    return initial.from_alignments(p, h, u, initial.signs(4))


def plain_loss(tokens, y, w, W, a, l, routing, loss):
    """The loss of one input by the formulas of the paper, with explicit loops."""
    n, k = len(tokens), len(a)
    x = np.eye(w.shape[1])[tokens]
    g = x @ w.T
    sigma = np.maximum(np.einsum("jd,krd->jkr", x, W), 0).sum(-1)
    f = 0.0
    if routing == "expert_choice":
        for s in range(k):
            kept = np.argsort(-g[:, s], kind="stable")[:l]
            gate = np.exp(g[kept, s]) / np.exp(g[kept, s]).sum()
            f += a[s] * (gate * sigma[kept, s]).sum()
    else:
        for j in range(n):
            kept = np.argsort(-g[j], kind="stable")[:l]
            gate = np.exp(g[j, kept]) / np.exp(g[j, kept]).sum()
            f += (gate * a[kept] * sigma[j, kept]).sum()
    return 1 - y * f if loss == "linear" else max(1 - y * f, 0.0)


@pytest.mark.parametrize("loss", ["linear", "hinge"])
@pytest.mark.parametrize("routing", ["expert_choice", "token_choice"])
def test_gradients_equal_finite_differences_of_the_full_model(routing, loss):
    rng = np.random.default_rng(1)
    start = small(routing=routing, loss=loss)
    h, u, a = start.state["h"], start.state["u"], start.constants["a"]
    worst = 0.0
    for tokens, y in (([0, 3, 5, 3, 7, 2], 1.0), ([1, 4, 6, 2, 2, 5], -1.0), ([0, 2, 3, 4, 5, 6], 1.0)):
        batch = Samples(np.array(tokens)[:, None], np.ones((6, 1)), np.array([y]))
        on_h, on_u = gradients(start, batch)
        for _ in range(12):
            v, V = rng.standard_normal(h.shape), rng.standard_normal(u.shape)
            step = 1e-6
            ends = [plain_loss(tokens, y, h + s * v, u + s * V, a, 3, routing, loss) for s in (step, -step)]
            slope = -(ends[0] - ends[1]) / (2 * step)
            worst = max(worst, abs(slope - (on_h * v).sum() - (on_u * V).sum()))
    assert worst < 1e-8


def test_the_reference_instance_passes_the_hinge_and_is_masked_by_it():
    # An expert with a large activation answers with y f > 1: no gradient under the hinge, one under the linear loss.
    start = small(loss="hinge")
    big = dataclasses.replace(
        start, state={**start.state, "u": start.state["u"] + 50.0 * (np.arange(4) == 0)[:, None, None]}
    )
    batch = Samples(np.array([0, 2, 3, 4, 5, 6])[:, None], np.ones((6, 1)), np.array([1.0]))
    assert (gradients(big, batch)[1] == 0).all()
    linear = dataclasses.replace(big, parameters=small().parameters)
    assert (gradients(linear, batch)[1] != 0).any()


@pytest.mark.parametrize(("data", "copies"), [("single", 1), ("multi_copy", 2), ("iid", 1), ("distinct", 1)])
def test_the_mean_gradient_of_the_model_is_the_population_slope(data, copies):
    start = small(data=data, n=5 if data != "multi_copy" else 8, copies=copies)
    equations = population.equations(start.parameters, "recursion")
    functions, y = compile_functions(equations, "numba"), equations.start(start)
    slope = equations.unpack(functions["flow"](0.0, y, *equations.arguments(start)))
    p = start.parameters
    listed = MODEL.inputs(start)
    if listed is not None:
        on_h, on_u = gradients(start, listed)
        assert np.abs(p.router_rate * on_h - slope["h"]).max() < 1e-15
        assert np.abs(p.eta_e * on_u - slope["u"]).max() < 1e-15
        return
    rng, means = np.random.default_rng(2), []
    for _ in range(40):
        means.append(np.concatenate([g.ravel() for g in gradients(start, drawn(start, rng, 4000))]))
    expected = np.concatenate([slope["h"].ravel() / p.router_rate, slope["u"].ravel() / p.eta_e])
    error = np.std(means, axis=0, ddof=1) / np.sqrt(40)
    z = (np.mean(means, axis=0) - expected)[error > 0] / error[error > 0]
    assert np.abs(z).max() < 4.5  # entries share the imbalance of the labels: their z-scores are correlated
    assert np.abs((np.mean(means, axis=0) - expected)[error == 0]).max(initial=0.0) < 1e-14


def test_samples_have_one_task_token_and_n_minus_one_others():
    rng = np.random.default_rng(3)
    for data, copies in (("single", 1), ("multi_copy", 3), ("iid", 1), ("distinct", 1)):
        start = small(data=data, n=6, copies=copies)
        batch = drawn(start, rng, 500)
        tokens, number, labels = batch.tokens, batch.copies, batch.labels
        assert ((tokens[0] == 0) == (labels > 0)).all() and (tokens[1:] >= 2).all() and (tokens < 8).all()
        assert (number.sum(axis=0) == 6).all()
        if data == "distinct":
            assert all(len(set(column)) == 6 for column in tokens.T)


def test_the_tokens_that_are_kept_are_those_of_a_sort_with_copies_written_out():
    rng = np.random.default_rng(4)
    logits = rng.standard_normal((3, 4, 50)).round(1)  # with ties
    copies = rng.integers(1, 4, (4, 50)).astype(float)
    taken = FUNCTIONS.top_l(logits, copies, 3)
    for s in range(3):
        for b in range(50):
            written = np.repeat(np.arange(4), copies[:, b].astype(int))
            kept = written[np.argsort(-logits[s, written, b], kind="stable")[:3]]
            assert (np.bincount(kept, minlength=4) == taken[s, :, b]).all()


@pytest.mark.parametrize("data", ["single", "iid"])
def test_explicit_training_in_a_rotated_dictionary_equals_training_in_its_coordinates(data):
    rng = np.random.default_rng(6)
    start = small(data=data, n=6)
    P = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    w, W = start.state["h"] @ P, start.state["u"] @ P
    arrays = {"w": w, "W": W, "a": start.constants["a"], "P": P}
    options = {"batch": 16, "step_size": 0.05, "seed": 0}
    explicit = FrameChains(MODEL, [start], arrays, compressed=False, **options)
    inside = FrameChains(MODEL, [start], None, compressed=False, **options)
    for engine in (explicit, inside):
        engine.advance(50)
    tables = [engine.move.tables(engine.moving[0]) for engine in (explicit, inside)]
    assert all(np.abs(one - other).max() < 1e-12 for one, other in zip(*tables, strict=True))
    assert np.abs(explicit.moving[0][0] - inside.moving[0][0]).max() > 0.1


def test_jax_steps_as_numpy_does_on_the_same_samples():
    import jax
    import jax.numpy as jnp

    from odesim.sgd.frame_traced import FrameReplicas

    for routing in ("expert_choice", "token_choice"):
        start = small(routing=routing)
        options = {"compressed": True, "batch": 32, "step_size": 0.05, "seed": 5}
        traced = FrameReplicas(MODEL, [start], None, **options)
        plain = FrameChains(MODEL, [start], None, **options)
        weights, key = plain.moving[0], traced.keys[0]
        for i in range(3):
            uniform = np.asarray(jax.random.uniform(jax.random.fold_in(key, i), (6, 32), jnp.float64))
            batch = Samples(*FUNCTIONS.draw(uniform, *MODEL.law(start)))
            weights = plain.move.on_frame(weights, plain.out[0], batch)
        traced.advance(3)
        for one, other in zip(traced.moving[0], weights, strict=True):
            assert np.abs(one - other).max() < 1e-14


def test_counted_batches_have_the_law_of_drawn_ones():
    # The same state after one step: mean and variance of a router entry over many replicas.
    start = small(data="single", n=6)
    entries = []
    for compressed in (True, False):
        engine = FrameChains(
            MODEL, [start] * 1500, None, compressed=compressed, batch=5, step_size=0.05, seed=int(compressed)
        )
        engine.advance(1)
        entries.append(np.array([routers[0] - start.state["h"][0] for _, routers in engine.moving]))
    spread = np.sqrt((entries[0].var(0) + entries[1].var(0)) / 1500)
    used = spread > 0
    assert (np.abs(entries[0].mean(0) - entries[1].mean(0))[used] < 4.5 * spread[used]).all()
    ratio = entries[0].var(0)[used] / entries[1].var(0)[used]
    assert (np.abs(ratio - 1) < 0.3).all()


def test_training_approaches_the_recursion_as_the_batch_grows():
    run = odesim.integrate(SYSTEM, preset="theory-sgd", d=40, save_points=2)
    errors = []
    for batch in (10, 1000, 100000):
        sgd = odesim.simulate(
            SYSTEM, method="compressed", step_size=2.0, batch=batch, seeds=4, d=40, save_points=2, preset="theory-sgd"
        )
        errors.append(np.abs(sgd["h"][:, -1] - run["h"][-1]).max(axis=(1, 2)).mean())
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert sgd["f_error"][:, -1].max() == run["f_error"][-1] == 0.0


def test_the_shift_and_mass_invariants_hold_along_sgd():
    start = small(data="iid")
    engine = FrameChains(MODEL, [start], None, compressed=True, batch=7, step_size=0.05, seed=0)
    engine.advance(300)
    neurons, routers = engine.moving[0]
    assert np.abs(routers.sum(-1) - start.state["h"].sum(-1)).max() < 1e-12
    off = start.state["u"] < 0
    assert np.array_equal(neurons[off], start.state["u"][off])


def test_the_step_size_stands_for_the_rate_of_the_neurons():
    with pytest.raises(odesim.UsageError, match="omit eta_e"):
        odesim.simulate(SYSTEM, method="compressed", step_size=1.0, batch=1, eta_e=2.0)
    run = odesim.simulate(SYSTEM, method="compressed", step_size=2.0, batch=10, d=40, save_points=2)
    # T = K l^2 C_2/eta_e sqrt(log l/C_p) with eta_e = 2, one unit of time per step
    assert run.time[-1] == run.step[-1] == int(6 * 25 / 2 * np.sqrt(np.log(5) * 40))


def test_the_lab_measures_the_mean_descent():
    lab = Laboratory(SYSTEM)
    start = lab.initial(d=20)
    mean = lab.descent(start, batch=20000, repeats=8).mean(axis=0)
    slope = lab.functions(start, "recursion").flow(start.state)
    p = start.parameters
    assert np.abs(mean[:, -1] - slope["h"] / p.router_rate).max() < 0.01
    assert np.abs(mean[:, :-1] - slope["u"] / p.eta_e).max() < 0.02
