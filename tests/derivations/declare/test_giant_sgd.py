"""SGD in giant steps: explicit against compressed in law in few dimensions, and both against the map."""

import numpy as np
import pytest

import odesim
from tests.derivations.declare import judged

START = {"Q_ww": [[0.5, 0.1], [0.1, 0.6]], "M_ww": [[0.2], [-0.1]]}
FORMS = {
    "free": {"decay": 0.1}, "sphere": {"weights": "sphere"},
    "nesterov": {"decay": 0.1, "momentum": 0.5, "nesterov": True},
}  # fmt: skip
REPLICAS, STEPS, D = 4_000, 3, 9


def declared(form, **more):
    return odesim.declare(
        name="law", student={"units": 2, "unit": "tanh(w)", "output": "trained"}, start=START,
        teacher={"unit": "tanh(2*w)", "noise": 0.2},
        training={"limit": "batch", "step": 0.9, "batch": "3*d", "rates": {"a": 0.5}, **FORMS[form], **more},
    )  # fmt: skip


NAMES = ("Q_ww", "M_ww", "a")


def ends(model, method, seed, **more):
    """Order parameters (replicas, numbers) after a few steps."""
    options = {"until": STEPS, "save_points": 2, "seeds": REPLICAS, "d": D, "precision": "float64", **more}
    run = odesim.simulate(model, method=method, seed=seed, **options)
    return np.concatenate([np.asarray(run[name])[:, -1].reshape(len(run[name]), -1) for name in NAMES], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_explicit_and_compressed_have_one_law(form):
    explicit = ends(declared(form), "explicit", 0)
    assert np.abs(judged.z_of_laws(explicit, ends(declared(form), "compressed", 1))).max() < 4.5
    # At a batch of 2 d in the place of 3 d the law is another.
    assert np.abs(judged.z_of_laws(explicit, ends(declared(form), "compressed", 1, batch=2 * D))).max() > 8


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_a_step_has_no_dimension_in_it(method):
    """Vectors that decay alone, and readouts with the slope 1/4."""
    model = odesim.declare(
        name="steps", student={"unit": "w", "output": "trained"}, teacher={}, start={"Q_ww": [[2.0]], "M_ww": [[0.5]]},
        training={"limit": "batch", "batch": "3*d", "step": 0.4, "rule": {"w": "0", "a": "0.25"}, "decay": 0.3},
    )  # fmt: skip
    run = odesim.simulate(model, method=method, d=12, until=3, save_points=4, precision="float64", a=1.0)
    assert np.asarray(run["a"])[0, :, 0] == pytest.approx([1.0, 0.9, 0.8, 0.7], abs=1e-12)
    assert np.asarray(run["M_ww"])[0, :, 0, 0] == pytest.approx(0.5 * 0.88 ** np.arange(4), abs=1e-12)
    assert list(run.time) == [0, 1, 2, 3]


OPTIONS = [
    ("free", "explicit", 400, 40),
    ("free", "compressed", 2000, 200),
    pytest.param("sphere", "explicit", 400, 40, marks=pytest.mark.slow),
    pytest.param("sphere", "compressed", 2000, 200, marks=pytest.mark.slow),
    pytest.param("nesterov", "explicit", 400, 40, marks=pytest.mark.slow),
    pytest.param("nesterov", "compressed", 2000, 100, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("form", "method", "d", "count"), OPTIONS)
def test_sgd_follows_the_map(form, method, d, count):
    model, times = declared(form), [0, 1, 2, 3]
    names = (*NAMES, *(("VV_ww", "VQ_ww", "VM_ww", "velocity_a") if form == "nesterov" else ()))
    flow = odesim.integrate(model, save_at=times, points=2**16)
    run = odesim.simulate(model, method=method, d=d, seeds=count, save_at=times, precision="float64")

    def z_of(other):
        pairs = [(np.asarray(run[name])[:, 1:], np.asarray(other[name])[1:]) for name in names]
        return np.concatenate([judged.z_scores(*pair) for pair in pairs])

    z = z_of(flow)
    # The numbers of the same replicas belong together: their root mean square scatters.
    assert 0.4 < judged.root_mean_square(z) < 1.7 and np.abs(z).max() < 4.5
    # With twice the samples, or without their noise, the map is another.
    twice = odesim.integrate(model, save_at=times, points=2**16, batch=6000)
    assert np.abs(z_of(twice)).max() > 8


@pytest.mark.slow
def test_rules_and_looks_of_a_large_batch_follow_their_maps():
    for more in ({"rule": "clip(dl, 0.5)*df"}, {"look": {"size": 0.5}}):
        model = odesim.declare(
            name="ruled", student={"units": 2, "unit": "tanh(w)"}, start=START, teacher={"noise": 0.3},
            training={"limit": "batch", "step": 0.9, "batch": "3*d", **more},
        )  # fmt: skip
        flow = odesim.integrate(model, save_at=[0, 1, 2], points=2**16)
        for method in ("explicit", "compressed"):
            run = odesim.simulate(model, method=method, d=400, seeds=40, save_at=[0, 1, 2], precision="float64")
            pairs = [(np.asarray(run[name])[:, 1:], np.asarray(flow[name])[1:]) for name in ("Q_ww", "M_ww")]
            z = np.concatenate([judged.z_scores(*pair) for pair in pairs])
            assert judged.root_mean_square(z) < 1.8 and np.abs(z).max() < 4.5


def test_a_memory_is_that_of_the_map():
    model = odesim.declare(
        name="norm", student={"units": 2, "unit": "erf(w)"}, start=START, teacher={"noise": 0.2},
        training={"limit": "batch", "step": "2/sqrt(b2)", "batch": "3*d"}, memory={"b2": {"start": 0.5, "rate": "g2"}},
    )  # fmt: skip
    flow = odesim.integrate(model, save_at=[0, 1, 2])
    run = odesim.simulate(model, method="compressed", d=2000, seeds=60, save_at=[0, 1, 2])
    pairs = [(np.asarray(run[name])[:, 1:], np.asarray(flow[name])[1:]) for name in ("Q_ww", "M_ww", "b2")]
    z = np.concatenate([judged.z_scores(*pair).ravel() for pair in pairs])
    assert 0.3 < judged.root_mean_square(z) < 1.8 and np.abs(z).max() < 4.5


CLAIMS = [
    ("free", "gradient"), ("free", "drift"), ("free", "second-order"), ("free", "tiers"), ("free", "giant-steps"),
    ("sphere", "gradient"), ("sphere", "drift"), ("sphere", "second-order"), ("nesterov", "drift"),
    ("nesterov", "second-order"), ("memory", "drift"), ("memory", "second-order"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "name"), CLAIMS)
def test_generated_claims_are_confirmed_and_their_controls_refuted(form, name):
    training = {"step": "2/sqrt(b2)"} if form == "memory" else {"step": 0.9, **FORMS[form]}
    model = odesim.declare(
        name="claimed", student={"units": 2, "unit": "erf(w)"}, start=START, teacher={"noise": 0.2},
        training={"limit": "batch", "batch": "3*d", **training},
        **({"memory": {"b2": {"start": 0.5, "rate": "g2"}}} if form == "memory" else {}),
    )  # fmt: skip
    assert judged.answer(model, name) == "confirmed"
    assert judged.answer(model, name, judged.control) == "refuted"
