"""SGD by rules: explicit against compressed in law at nine dimensions, and both against the online limit."""

import numpy as np
import pytest

import odesim
from tests.derivations.declare import judged

INITIAL = {**judged.committee(), "b": np.array([0.1, 0.0, 0.2])}
MODELS = {
    "feedback": {
        "student": {"units": 3, "unit": "erf(w/sqrt(2))", "output": "trained"},
        "teacher": {"units": 2, "noise": 0.3},
        "parameters": {"F": {"default": "1 - 0.4*j", "per": "unit"}},
        "training": {"rule": {"w": "F*dl*dphi"}, "rates": {"a": 0.3}, "decay": 0.01},
    },
    "clipped": {
        "student": {"units": 3, "unit": "tanh(w + b)", "output": "trained"},
        "teacher": {"units": 2, "unit": "tanh(w)", "noise": "-0.3*sign(xi)*log(2*probit(-abs(xi)))"},
        "parameters": {"b": {"default": 0.1, "per": "unit"}},
        "training": {
            "rule": {"w": "clip(grad, 0.5) + 0.1*l*w", "a": "clip(dl, 1)*df", "b": "dl*dphi*a"},
            "rates": {"a": 0.3}, "trained": ["w", "a", "b"],
        },
    },
    "routed": {
        "student": {"units": 3, "unit": "softmax(w)*w", "output": "trained"},
        "teacher": {"units": 2, "unit": "tanh(w)", "noise": 0.3},
        "training": {"rule": "clip(dl, 1)*df", "weights": "sphere"},
    },
    "two eigenvalues": {
        "student": {"units": 3, "unit": "tanh(w)"},
        "teacher": {"units": 2, "noise": 0.3},
        "inputs": {"blocks": [[2.0, 0.5], [0.5, 0.5]]},
        "training": {"rule": "clip(dl, 0.5)*df"},
    },
}  # fmt: skip
REPLICAS, STEPS = 20_000, 4


def declared(name, **more):
    tables = {**MODELS[name], "name": name.replace(" ", "-")}
    training = {"limit": "online", "step": 0.8, **tables.pop("training"), **more}
    return odesim.declare(**tables, training=training)


def initial(name):
    found = {key: value for key, value in INITIAL.items() if key != "b" or "b" in MODELS[name].get("parameters", {})}
    if MODELS[name]["student"].get("output") != "trained":
        found.pop("a")
    if "inputs" in MODELS[name]:
        found = {key: 0.5 * np.stack([value, value]) for key, value in found.items()}
    if MODELS[name]["training"].get("weights") == "sphere":
        found["Q_ww"], found["M_ww"] = found["Q_ww"] / 0.36, found["M_ww"] / 0.6
    return found


def ends(model, name, method, d, **options):
    """Order parameters (replicas, numbers) after a few steps."""
    run = odesim.simulate(
        model, initial=initial(name), method=method, backend="jax", d=d, until=STEPS / d, save_points=2, seeds=REPLICAS,
        **options,
    )  # fmt: skip
    names = [key for key in run if key.split("_")[0] in ("Q", "M")] + [key for key in ("a", "b") if key in run.state]
    return np.concatenate([np.asarray(run[key])[:, -1].reshape(REPLICAS, -1) for key in names], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3, 6])
@pytest.mark.parametrize("name", MODELS)
def test_explicit_and_compressed_have_one_law(name, batch):
    d = 14 if name == "two eigenvalues" else 9
    model = declared(name)
    explicit = ends(model, name, "explicit", d, batch=batch, precision="float64")
    compressed = ends(model, name, "compressed", d, batch=batch, seed=1)
    assert np.abs(judged.z_of_laws(explicit, compressed)).max() < 4.5
    # A rule that is a twentieth larger is seen.
    other = ends(declared(name, step=0.84), name, "compressed", d, batch=batch, seed=1)
    assert np.abs(judged.z_of_laws(explicit, other)).max() > 4.5


@pytest.mark.parametrize(
    ("method", "options", "count"),
    [
        ("compressed", {"d": 3000}, 64),
        ("compressed", {"d": 3000, "backend": "jax", "batch": 3}, 64),
        pytest.param("explicit", {"d": 500}, 48, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", ["feedback", "clipped"])
def test_sgd_by_rules_follows_its_limit(name, method, options, count):
    model, times = declared(name), [0, 1, 3]
    flow = odesim.integrate(
        model, initial=initial(name), save_at=times, batch=options.get("batch", 1), points=2**16, tier="sampled"
    )
    run = odesim.simulate(model, initial=initial(name), method=method, seeds=count, save_at=times, **options)
    z = judged.z_of_runs(run, flow, ("Q_ww", "M_ww", "a"))
    # Thirty numbers of the same replicas: their root mean square scatters by a third.
    assert np.sqrt((z**2).mean()) < 1.8 and np.abs(z).max() < 4.5


@pytest.mark.parametrize("method", ["explicit", "compressed"])
def test_the_first_step_is_the_rule_times_the_input(method):
    """One sample, seen in what it moves: u - h c x has the direction of x, and |du|^2 = h^2 c^2 |x|^2."""
    model = odesim.declare(
        name="first", student={"unit": "w", "output": "trained"}, teacher={"unit": "v"},
        training={"limit": "online", "step": 1.0, "rule": {"w": "2", "a": "0.25"}},
    )  # fmt: skip
    d, count = 50, 400
    run = odesim.simulate(model, method=method, d=d, until=1 / d, save_points=2, seeds=count, a=1.0)
    assert np.asarray(run["a"])[:, -1] == pytest.approx(1.0 - 0.25 / d)
    moved = np.diff(np.asarray(run["Q_ww"])[:, :, 0, 0], axis=1).ravel()
    # |u|^2 changes by -2 h 2 (u . x) + h^2 4 |x|^2: mean 4/d and variance 16 |u|^2/d^2 + 16 2/d^3.
    assert abs(moved.mean() - 4 / d) < 4.5 * moved.std() / np.sqrt(count)
    assert moved.var() == pytest.approx(16 * 0.25 / d**2 + 32 / d**3, rel=0.35)


def test_replicas_of_a_rule_are_the_same_in_pieces(tmp_path):
    model = declared("feedback")
    whole = odesim.simulate(model, method="compressed", d=50, until=1.0, save_points=5, seeds=2)
    same = odesim.simulate(model, method="compressed", d=50, until=1.0, save_points=5, seeds=2)
    assert np.asarray(whole["Q_ww"]).tolist() == np.asarray(same["Q_ww"]).tolist()
    assert np.asarray(whole["F"]).tolist() == pytest.approx([0.6, 0.2, -0.2])
