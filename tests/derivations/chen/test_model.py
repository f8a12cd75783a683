"""The microscopic model: its gradient is that of the loss, its compilers agree, and its mean is the flow."""

import numpy as np
import pytest

from derivations.alphabet.patterns import Examples
from derivations.chen import initial, model
from derivations.chen.parameters import Parameters
from odesim import simulate
from odesim.errors import UsageError
from odesim.sgd.patterns import PatternChains, sample


def make(compressed=False, batch=64, seed=0, rows=0.5, **parameters):
    """An engine of one replica with sizeable random weights, its examples and a fixed routing noise."""
    p = Parameters(**{"M": 3, "J": 2, "K": 2, "P": 4, "d": 7, "sigma_0": rows, "n_test": 8, **parameters})
    rng = np.random.default_rng(seed)
    start = initial.random(p, rng)
    start = initial.from_overlaps(p, start.state["feat"], start.state["cen"], *(0.4 * rng.normal(size=(2, p.M, p.K))))
    engine = PatternChains(model.MODEL, [start], None, compressed=compressed, batch=batch, step_size=0.1, seed=seed)
    return engine, rng.random((p.M, batch))


def naive_loss(w, x, y, noise, p, expert):
    """The mean loss of dense patches x (n, P, d), example by example, straight from the definition."""
    sigma = {"cubic": lambda z: z**3, "linear": lambda z: z, "tanh": np.tanh}[p.activation]
    total = 0.0
    for i in range(len(y)):
        h = w.routers @ x[i].sum(axis=0)
        m = expert[i]
        signs = np.ones(p.J)
        if p.variant == "released":
            signs[: p.J // 2] = -1
        f = (signs[:, None] * sigma(w.filters[m] @ x[i].T + w.bias[m][:, None])).sum()
        if p.variant == "released":
            u = y[i] * (h[m] + noise[m, i]) * f
            logits = np.array([0.0, u])  # two logits whose difference is u, a softmax, and a cross-entropy on top
            first = np.exp(logits) / np.exp(logits).sum()
            total += np.log(np.exp(first).sum()) - first[1]
        else:
            total += np.log1p(np.exp(-y[i] * f * np.exp(h[m]) / np.exp(h).sum()))
    return total / len(y)


@pytest.mark.parametrize(
    ("variant", "activation"), [("paper", "cubic"), ("paper", "tanh"), ("released", "cubic"), ("released", "linear")]
)
def test_the_pass_descends_the_loss_of_the_selected_branch(variant, activation):
    scale = 0.05 if variant == "released" else 0.5
    engine, noise = make(variant=variant, activation=activation, batch=16, rows=scale)
    w, e = engine.weights[0], engine.training
    w.bias[:] = 0.1 * np.random.default_rng(3).normal(size=w.bias.shape)
    if variant == "released":
        w.filters[:] = scale * np.random.default_rng(4).normal(size=w.filters.shape)
    signals = e.amplitudes.T[..., None] * w.frame[e.atoms.T]
    x = np.concatenate([signals, e.dense], axis=1)
    G, g, R, loss, expert, _ = engine.pass_over(w, e, engine.total, noise)
    assert loss == pytest.approx(naive_loss(w, x, e.labels, noise, engine.parameters, expert), rel=1e-12)
    assert (expert == (w.routers @ x.sum(axis=1).T + noise).argmax(axis=0)).all()
    step = 1e-6
    for array, descent in ((w.filters, G), (w.bias, g), (w.routers, R)):
        for index in np.ndindex(array.shape):
            kept, ends = array[index], []
            for sign in (1, -1):
                array[index] = kept + sign * step
                ends.append(naive_loss(w, x, e.labels, noise, engine.parameters, expert))
            array[index] = kept
            # Central differences: round-off 1e-16/1e-6 over losses of order 1.
            assert descent[index] == pytest.approx(-(ends[0] - ends[1]) / (2 * step), abs=2e-9, rel=1e-6)


def test_dense_examples_of_a_file_are_the_signals_they_are_made_of():
    engine, noise = make()
    w, e = engine.weights[0], engine.training
    signals = e.amplitudes.T[..., None] * w.frame[e.atoms.T]
    x = np.concatenate([signals, e.dense], axis=1)
    arrays = {"X": x, "y": e.labels, "C": w.frame[2:]}
    dense = model.given(engine.parameters, arrays)
    assert isinstance(dense, Examples) and (dense.cluster == e.cluster).all()
    first = engine.pass_over(w, e, engine.total, noise)
    second = engine.pass_over(w, dense, x.sum(axis=1), noise)
    for a, b in zip(first, second, strict=True):
        assert np.allclose(a, b, atol=1e-13)


@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("activation", ["cubic", "gelu"])
def test_numba_and_jax_make_the_same_pass(variant, activation):
    from odesim.sgd.bind import bind_jax
    from odesim.sgd.pattern_traced import ROLES, descend

    engine, noise = make(variant=variant, activation=activation, balance=0.01, batch=64)
    w, e = engine.weights[0], engine.training
    ours = engine.pass_over(w, e, engine.total, noise)[:4]
    batch = (e.atoms, e.amplitudes, e.dense, e.labels)
    theirs = descend(
        bind_jax(model.MODEL, ROLES), engine.numbers, (w.filters, w.bias, w.routers, w.frame), batch, noise
    )
    for a, b in zip(ours, theirs, strict=True):
        assert np.allclose(a, b, rtol=1e-10, atol=1e-13)


def test_the_activations_are_those_that_sympy_differentiates():
    from derivations.chen import kernels
    from derivations.chen.parameters import ACTIVATIONS
    from derivations.equations.arrays import Arrays
    from derivations.equations.program import Ranges

    z = np.array([-2.1, -0.4, 0.0, 0.3, 1.7])  # at a kink the slope is the mean of both sides
    for kind, name in enumerate(ACTIVATIONS):
        formulas = Arrays(Ranges({}, {}), {kernels.Z.name: z, kernels.POWER.name: 2.5})
        symbolic = [formulas.value(of(name), ()) for of in (kernels.activation, kernels.slope)]
        for a, b in zip(model.activation(z, kind, 2.5), symbolic, strict=True):
            assert np.allclose(a, b, rtol=1e-13)


def test_compressed_and_explicit_training_are_the_same_chain_for_three_patches():
    size = {"M": 4, "J": 3, "K": 3, "d": 11, "step_size": 0.02, "batch": 300, "until": 1.0, "save_points": 3}
    for extra in ({}, {"n": 700}, {"data": "online"}):
        runs = [simulate("chen", method=method, **size, **extra) for method in ("explicit", "compressed")]
        for name in ("feat", "gcen", "accuracy"):
            first, second = (run[name] for run in runs)
            if name != "accuracy":
                # The explicit weights also normalise by their part outside the signals, whose gradient vanishes.
                assert np.abs(first - second).max() < 1e-9, (extra, name)
        assert runs[0]["feat"][0, -1].max() > 0.5


def test_the_mean_pass_is_the_population_flow():
    from odesim.evidence.laboratory import Laboratory
    from odesim.request.case import find_system

    p = Parameters(M=4, J=2, K=3, d=6, rho=1.0, nodes=10, n_test=8)
    rng = np.random.default_rng(7)
    start = initial.from_overlaps(p, *(0.5 * rng.normal(size=(2, 4, 2, 3))), *(0.4 * rng.normal(size=(2, 4, 3))))
    flow = Laboratory(find_system("chen")).functions(start, "p3").flow(start.state)
    engine = PatternChains(model.MODEL, [start], None, compressed=True, batch=10, step_size=1.0, seed=0)
    means = []
    for _ in range(20):
        e = sample(model.MODEL, p, rng, 20_000, 6)
        G, _, R, *_ = engine.pass_over(engine.weights[0], e, e.dense.sum(axis=1), rng.random((4, 20_000)))
        means.append(np.concatenate([G.ravel(), R.ravel()]))
    mean, error = np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))
    expert = np.concatenate([flow["feat"], flow["cen"]], axis=-1)
    router = np.concatenate([flow["gfeat"], flow["gcen"]], axis=-1)
    size = np.sqrt((mean[:48].reshape(4, -1) ** 2).sum(axis=1))
    predicted = np.concatenate([(expert * size[:, None, None]).ravel(), router.ravel()])
    z = (mean - predicted) / error
    # 72 entries with 19 degrees of freedom: |t| > 4.5 in one run of 50, and the seed is fixed.
    assert np.abs(z).max() < 4.5 and 0.5 < np.sqrt((z**2).mean()) < 1.6


def test_an_expert_without_examples_rests():
    p = Parameters(M=3, J=2, K=2, d=4, n_test=8)
    gcen = np.zeros((3, 2))
    gcen[2] = -5.0  # more than one below the others at every centre strength: never selected
    rng = np.random.default_rng(0)
    start = initial.from_overlaps(p, *rng.normal(size=(2, 3, 2, 2)), gcen, np.zeros((3, 2)))
    engine = PatternChains(model.MODEL, [start], None, compressed=True, batch=200, step_size=0.05, seed=0)
    before = engine.weights[0].filters.copy()
    assert engine.advance(5)
    after = engine.weights[0].filters
    assert (after[2] == before[2]).all() and (after[:2] != before[:2]).any()
    assert np.linalg.norm(after[0] - before[0]) <= 5 * 0.05 * (1 + 1e-12)  # unit speed


def test_router_gradients_cancel_in_algorithm_1_and_not_in_the_released_protocol():
    sums = {}
    for variant in ("paper", "released"):
        engine, noise = make(variant=variant, batch=128, rows=0.3)
        R = engine.pass_over(engine.weights[0], engine.training, engine.total, noise)[2]
        sums[variant] = np.abs(R.sum(axis=0)).max() / np.abs(R).max()
    assert sums["paper"] < 1e-14 and sums["released"] > 0.1


def test_a_resumed_run_is_an_uninterrupted_one():
    first, _ = make()
    first.advance(6)
    second, _ = make()
    second.advance(2)
    stored = second.state()
    third, _ = make()
    third.restore(stored)
    third.advance(4)
    assert (third.weights[0].filters == first.weights[0].filters).all()


def test_the_released_code_stops_only_where_the_loss_is_no_new_minimum():
    assert not model.halt(0.30, 0.31, None) and model.halt(0.3135, 0.3132, None)
    assert model.halt(0.52, 0.49, None) and not model.halt(0.50, 0.49, None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "compressed", "P": 4}, "1 noise patch drawn separately"),
        ({"method": "explicit", "n": 10}, "batch=20 is more than"),
        ({"method": "explicit", "M": 0}, "at least 1"),
        ({"method": "explicit", "K": 1}, "at least 2"),
        ({"method": "explicit", "P": 2}, "at least 3"),
        ({"method": "explicit", "alpha": ()}, "empty"),
        ({"method": "explicit", "alpha": (2.0, 1.0)}, "above"),
        ({"method": "explicit", "d": 7}, "2 K"),
        ({"method": "explicit", "precision": "float32", "backend": "numba"}, "float64"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_a_reason(options, words):
    with pytest.raises(UsageError, match=words):
        simulate("chen", step_size=0.01, batch=20, until=0.1, **options)
