"""SGD by episodes: explicit against compressed in law at twelve dimensions, and both beside their limit."""

import numpy as np
import pytest

import odesim
from odesim.sgd import bind, scalar_traced
from tests.derivations.declare import judged

T, D, STEPS = 5, 12, 6
REWARDS = {"all right": "step(n - T + 0.5)", "four of five": "step(n - 3.5)", "share": "n/T"}
RULE = "-(1.3*R - 0.3)*sign(w)"


def perceptron(reward, rule=RULE, **training):
    own = {"samples": T, "success": "step(f*y)", "reward": REWARDS[reward]}
    return odesim.declare(
        name="rewarded", student={"unit": "sign(w)"}, start={"norm": 1.0, "overlap": 0.0},
        training={"limit": "online", "episode": own, "rule": rule, **training},
    )  # fmt: skip


def committee(**training):
    """Two units with readouts and biases, noisy labels, a rule that is not linear in the reward."""
    own = {"samples": 3, "success": "step(0.8 - abs(f - y))", "reward": "n^2/T - 1"}
    return odesim.declare(
        name="committee", student={"units": 2, "unit": "tanh(w + b)", "output": "trained"},
        teacher={"unit": "tanh(2*w)", "noise": 0.3}, parameters={"b": {"default": 0.1, "per": "unit"}},
        start={"Q_ww": [[0.5, 0.1], [0.1, 0.6]], "M_ww": [[0.2], [-0.1]]},
        training={"limit": "online", "episode": own, "rule": {"w": "tanh(R)*dl*df - 0.3*R*w", "a": "R*grad"},
                  "trained": ["w", "a", "b"], "step": 1.5, "decay": 0.05, **training},
    )  # fmt: skip


MODELS = {"all right": (perceptron("all right", step=2.0), 1), "share": (perceptron("share", weights="sphere"), 2),
          "committee": (committee(), 2)}  # fmt: skip


def ends(model, method, seed, replicas, **more):
    """Order parameters (replicas, numbers) after a few steps."""
    run = odesim.simulate(
        model,
        method=method,
        d=D,
        until=STEPS / D,
        save_points=2,
        seeds=replicas,
        seed=seed,
        **{"backend": "jax", **more},
    )
    names = [name for name in run.state if name.split("_")[0] in ("Q", "M", "a", "b")]
    return np.concatenate([np.asarray(run[name])[:, -1].reshape(replicas, -1) for name in names], axis=1)


@pytest.fixture
def by_itself(monkeypatch):
    """Compressed SGD in JAX, wrongly with a reward of each sample by itself: as if all others did as it does."""
    right = bind.bind_jax

    def wrong(model):
        found = right(model)
        found["coefficients"].__globals__["successes"] = lambda hits, samples: samples * hits
        return found

    def break_it():
        scalar_traced.compressed.cache_clear()
        monkeypatch.setattr(scalar_traced.bind, "bind_jax", wrong)

    yield break_it
    scalar_traced.compressed.cache_clear()


def assert_one_law(name, replicas, by_itself):
    model, batch = MODELS[name]
    explicit = ends(model, "explicit", 0, replicas, batch=batch, precision="float64")
    for backend in ("numba", "jax"):
        compressed = ends(model, "compressed", 1, replicas, batch=batch, backend=backend)
        assert np.abs(judged.z_of_laws(explicit, compressed)).max() < 4.5
    by_itself()
    assert np.abs(judged.z_of_laws(explicit, ends(model, "compressed", 1, replicas, batch=batch))).max() > 4.5


def test_explicit_and_compressed_have_one_law_at_few_replicas(by_itself):
    assert_one_law("all right", 2_000, by_itself)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_explicit_and_compressed_have_one_law(name, by_itself):
    assert_one_law(name, 20_000, by_itself)


TIMES = [0, 2, 5, 10, 20]
GROUPS = 20
OPTIONS = [
    ("share", "compressed", {"d": 3000}),
    pytest.param("all right", "compressed", {"d": 3000}, marks=pytest.mark.slow),
    pytest.param("four of five", "compressed", {"d": 3000}, marks=pytest.mark.slow),
    pytest.param("all right", "explicit", {"d": 1000, "precision": "float32"}, marks=pytest.mark.slow),
    pytest.param("four of five", "explicit", {"d": 1000, "precision": "float32"}, marks=pytest.mark.slow),
    pytest.param("share", "explicit", {"d": 1000, "precision": "float32"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("reward", "method", "options"), OPTIONS)
def test_sgd_follows_its_limit(reward, method, options):
    """The root mean square of z over groups of replicas, whose means scatter by themselves."""
    model, each = perceptron(reward), 10
    flow = odesim.integrate(model, save_at=TIMES)
    assert flow.summary["tier"] == "exact"
    run = odesim.simulate(model, method=method, seeds=GROUPS * each, save_at=TIMES, backend="jax", **options)
    every = {name: np.asarray(run[name]) for name in ("Q_ww", "M_ww")}
    z = [
        judged.z_of_runs({name: values[k::GROUPS] for name, values in every.items()}, flow, list(every))
        for k in range(GROUPS)
    ]
    assert 0.7 < judged.root_mean_square(z) < 1.3
    assert np.abs(judged.z_of_runs(every, flow, list(every))).max() < 4.5
    # Of samples that are rewarded by themselves the limit is another.
    other = odesim.integrate(perceptron(reward), save_at=TIMES, episode_samples=4)
    assert np.abs(judged.z_of_runs(every, other, list(every))).max() > 6
