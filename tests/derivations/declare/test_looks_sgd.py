"""SGD with looks and `gnorm`: explicit against compressed in law at seven dimensions, and both beside their limit."""

import numpy as np
import pytest

import odesim
from odesim.sgd import bind, length_traced
from tests.derivations.declare import judged

START = {"Q_ww": [[0.5, 0.1], [0.1, 0.6]], "M_ww": [[0.2], [-0.1]]}
FORMS = {
    "last": {"look": {"size": 3.0}},
    "sum": {"look": {"size": 1.5, "use": "sum", "times": 2}},
    "gnorm": {"rule": {"w": "3*grad/(1 + 4*gnorm^2)"}},
    "ruled": {"look": {"size": -2.0}, "rule": {"w": "clip(dl, 0.5)*df/(1 + gnorm)"}, "weights": "sphere"},
}
REPLICAS, STEPS, D = 6_000, 5, 7


def declared(form, **more):
    start, sphere = dict(START), FORMS[form].get("weights") == "sphere"
    if sphere:
        start = {"Q_ww": [[1.0, 0.2], [0.2, 1.0]], "M_ww": [[0.3], [-0.2]]}
    return odesim.declare(
        name="law", student={"units": 2, "unit": "tanh(w)", "output": "trained"}, start=start,
        teacher={"unit": "tanh(2*w)", "noise": 0.2},
        training={"limit": "online", "step": 1.5, "rates": {"a": 0.5}, **({} if sphere else {"decay": 0.05}),
                  **FORMS[form], **more},
    )  # fmt: skip


def ends(model, method, seed, replicas=REPLICAS, **more):
    """Order parameters (replicas, numbers) after a few steps."""
    options = {"backend": "jax", **more}
    run = odesim.simulate(
        model, method=method, d=D, until=STEPS / D, save_points=2, seeds=replicas, seed=seed, **options
    )
    names = [name for name in run.state if name.split("_")[0] in ("Q", "M", "a")]
    return np.concatenate([np.asarray(run[name])[:, -1].reshape(replicas, -1) for name in names], axis=1)


@pytest.fixture
def of_length_one(monkeypatch):
    """Compressed SGD in JAX, wrongly with samples of length 1."""
    right = bind.bind_jax

    def wrong(model):
        import jax.numpy as jnp

        found = right(model)
        given = found["coefficients"]
        return {**found, "coefficients": lambda z, y, lengths, *rest: given(z, y, jnp.ones_like(lengths), *rest)}

    def break_it():
        length_traced.compressed.cache_clear()
        monkeypatch.setattr(length_traced.bind, "bind_jax", wrong)

    yield break_it
    length_traced.compressed.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_explicit_and_compressed_have_one_law(form, batch, of_length_one):
    model = declared(form)
    explicit = ends(model, "explicit", 0, batch=batch, precision="float64")
    for backend in ("numba", "jax"):
        compressed = ends(model, "compressed", 1, batch=batch, backend=backend)
        assert np.abs(judged.z_of_laws(explicit, compressed)).max() < 4.5
    of_length_one()
    assert np.abs(judged.z_of_laws(explicit, ends(model, "compressed", 1, batch=batch))).max() > 4.5


@pytest.mark.slow
def test_compressed_sgd_is_one_law_on_both_back_ends_at_few_replicas():
    model = declared("last")
    one = ends(model, "compressed", 0, 1500, batch=3, backend="numba")
    assert np.abs(judged.z_of_laws(one, ends(model, "compressed", 1, 1500, batch=3))).max() < 4.5


TIMES = [0, 1, 2, 4]
OPTIONS = [
    ("last", "compressed", {"d": 2000}, 64),
    ("gnorm", "compressed", {"d": 2000, "batch": 3, "backend": "jax"}, 48),
    pytest.param("sum", "compressed", {"d": 4000, "batch": 3}, 64, marks=pytest.mark.slow),
    pytest.param("ruled", "explicit", {"d": 400}, 48, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("form", "method", "options", "count"), OPTIONS)
def test_sgd_follows_its_limit(form, method, options, count):
    model = declared(form, step=0.8)
    flow = odesim.integrate(model, save_at=TIMES, batch=options.get("batch", 1), points=2**15)
    run = odesim.simulate(model, method=method, seeds=count, save_at=TIMES, **options)
    z = judged.z_of_runs(run, flow, ["Q_ww", "M_ww", "a"])
    # The numbers of the same replicas: their root mean square scatters.
    assert judged.root_mean_square(z) < 1.6 and np.abs(z).max() < 4.5
    if "look" in FORMS[form]:
        other = odesim.integrate(model, save_at=TIMES, batch=options.get("batch", 1), points=2**15, look_size=0.0)
        assert np.abs(judged.z_of_runs(run, other, ["Q_ww", "M_ww", "a"])).max() > 6


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_length_of_a_sample_is_that_of_its_outside_part(batch, backend):
    """Readouts that move by gnorm^2 of f = w, y = 0: E[r z^2] = |w|^2 (1 + 2/d), by E[|x|^2 z^2] = (d + 2) |w|^2."""
    d, count, square = 4, 3_000, 0.5
    model = odesim.declare(
        name="length", student={"unit": "w", "output": "trained"}, teacher={"output": "0*j"},
        start={"Q_ww": [[square]], "M_ww": [[0.1]]},
        training={"limit": "online", "step": 1.0, "rule": {"w": "0", "a": "gnorm^2"}},
    )  # fmt: skip
    run = odesim.simulate(
        model, method="compressed", d=d, until=1 / d, save_points=2, seeds=count, batch=batch, backend=backend
    )
    moved = d * (1.0 - np.asarray(run["a"])[:, -1, 0])
    assert abs(moved.mean() - square * (1 + 2 / d)) < 4.5 * moved.std() / np.sqrt(count)
    assert abs(moved.mean() - square) > 4.5 * moved.std() / np.sqrt(count)
