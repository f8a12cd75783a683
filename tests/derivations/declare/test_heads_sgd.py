"""SGD of several heads: explicit against compressed in law at nine dimensions, and both against the online limit."""

import numpy as np
import pytest

import odesim
from derivations.declare.parameter_class import rows
from tests.derivations.declare import judged

BOTH = {"one": "trained", "two": "trained"}
MODELS = {
    "squared": {
        "student": {"units": 2, "unit": "erf(w)", "output": BOTH},
        "teacher": {"noise": 0.3, "gram": 0.3, "one": {}, "two": {}},
        "training": {"rates": {"a": 0.5}, "decay": 0.01},
    },
    "one in force": {
        # Bounded units: single replicas of a quadratic unit run away, so that variances have no z.
        "student": {"units": 2, "unit": "erf(w)", "output": BOTH}, "teacher": {"one": {"unit": "w^2"}, "two": {}},
        "training": {"head": "two"},
    },
    "softmax": {
        "student": {"units": 2, "unit": "tanh(w)", "output": BOTH}, "teacher": {"noise": 0.2, "one": {}, "two": {}},
        "training": {"loss": "softmax", "weights": "sphere"},
    },
    "together": {
        "student": {
            "left": {"units": 1, "unit": "tanh(w + b)", "output": {"one": "trained"}},
            "right": {"units": 2, "unit": "softmax(w)*w", "output": {"one": "sum", "two": "mean"}},
        },
        "teacher": {"one": {"unit": "tanh(w)"}, "two": {"unit": "w"}},
        "parameters": {"b": {"default": 0.1, "per": "unit"}},
        "training": {"loss": "(f_one - y_one)^2/2 + (f_two - y_two)^2/2 + 0.2*f_one*f_two", "trained": ["w", "b"]},
    },
}  # fmt: skip
REPLICAS, STEPS, STEP = 20_000, 4, 0.8


START = {
    "Q_ww": [[1.0, 0.1], [0.1, 1.0]], "one_M_ww": [[0.3], [-0.1]], "two_M_ww": [[-0.2], [0.25]],
    "a_one": [0.6, -0.4], "a_two": [-0.2, 0.5],
}  # fmt: skip
"""Units that differ: those of one start stay equal in the limit, and no softmax holds them there in SGD."""


def declared(name, start=None, **more):
    tables = {**MODELS[name], "name": name.replace(" ", "-"), **({"start": start} if start else {})}
    training = {"limit": "online", "step": STEP, **tables.pop("training"), **more}
    return odesim.declare(**tables, training=training)


def numbers(model):
    """The names of overlaps, readouts and numbers of units."""
    return [part.name for part in rows(model.parameters()).layout.parts]


def ends(model, method, d, batch, seed=0):
    """Order parameters (replicas, numbers) after a few steps from one start."""
    options = {"precision": "float64"} if method == "explicit" else {}
    run = odesim.simulate(
        model, method=method, backend="jax", d=d, until=STEPS / d, save_points=2, seeds=REPLICAS, seed=seed,
        batch=batch, overlap=0.3, **options,
    )  # fmt: skip
    return np.concatenate([np.asarray(run[key])[:, -1].reshape(REPLICAS, -1) for key in numbers(model)], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_explicit_and_compressed_have_one_law(name, batch):
    model = declared(name)
    explicit, compressed = ends(model, "explicit", 9, batch), ends(model, "compressed", 9, batch, seed=10**6)
    assert np.abs(judged.z_of_laws(explicit, compressed)).max() < 4.5
    # A step that is a twentieth larger is seen.
    other = ends(declared(name, step=1.05 * STEP), "compressed", 9, batch, seed=7)
    assert np.abs(judged.z_of_laws(explicit, other)).max() > 4.5


@pytest.mark.parametrize(
    ("method", "options", "count"),
    [
        ("compressed", {"d": 3000, "backend": "numba"}, 48),
        ("compressed", {"d": 3000, "backend": "jax", "batch": 3}, 48),
        pytest.param("explicit", {"d": 500}, 48, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ["squared", "softmax"])
def test_sgd_of_heads_follows_its_limit(name, method, options, count):
    model, times = declared(name, start=START), [0, 1, 3]
    flow = odesim.integrate(model, save_at=times, batch=options.get("batch", 1), points=2**16)
    run = odesim.simulate(model, method=method, seeds=count, save_at=times, **options)
    z = judged.z_of_runs(run, flow, numbers(model))
    # Twenty numbers of the same replicas: their root mean square scatters by a third.
    assert np.sqrt((z**2).mean()) < 1.8 and np.abs(z).max() < 4.5


def test_a_head_that_is_not_in_force_rests():
    model = declared("one in force")
    for backend in ("numba", "jax"):
        run = odesim.simulate(model, method="compressed", d=50, until=0.2, save_points=3, seeds=2, backend=backend)
        assert np.ptp(np.asarray(run["a_one"]), axis=1) == pytest.approx(0.0)
        assert np.ptp(np.asarray(run["a_two"]), axis=1).min() > 1e-4
