"""Velocities as order parameters: beside samples, in every tier, with frozen slots, schedules, memories and rules."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.declare.claims import sample_gradient
from derivations.declare.claims.states import quieted, state
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import equations, settled
from odesim.flow.problem import compile_functions
from tests.derivations.declare import judged

TIME = {"limit": "online", "momentum": {"time": 1.5}}
BIAS = {"b": {"default": 0.2, "per": "unit"}}
ERF = {"units": 2, "unit": "erf(w/sqrt(2))", "output": "trained"}
MODELS = {
    "readouts": {
        "student": {**ERF, "units": 3}, "teacher": {"units": 2, "noise": 0.2},
        "training": {**TIME, "decay": 0.1, "rates": {"a": 0.5}},
    },
    "flow with biases": {
        "student": {**ERF, "unit": "erf(w + b)"}, "teacher": {"unit": "erf(w)"}, "parameters": BIAS,
        "training": {"momentum": {"time": 2.0}, "decay": 0.1},
    },
    "frozen, sampled": {"student": {"units": 2, "unit": "logistic(v)*w"}, "training": {**TIME, "trained": ["w"]}},
    "frozen": {
        "student": {"units": 2, "unit": "v*w"}, "teacher": {"noise": 0.1}, "training": {**TIME, "trained": ["w"]},
    },
    "groups": {
        "student": {"fast": {"unit": "erf(w)", "units": 2, "output": "trained"}, "slow": {"unit": "2*erf(w)"}},
        "teacher": {"unit": "erf(w)"}, "training": {**TIME, "rates": {"fast_w": 2.0}},
    },
    "mixed": {
        "student": {"units": 2, "unit": "relu(w)", "output": "trained"}, "teacher": {"unit": "relu(w)"},
        "training": TIME,
    },
    "memory and pairs": {
        "student": ERF, "teacher": {}, "memory": {"b2": {"start": 0.3, "rate": "g2"}},
        "training": {**TIME, "step": [[0, "1/sqrt(b2)"], [0.5, "0.5/sqrt(b2)"]], "decay": "0.1*exp(-t)"},
    },
    "rule": {
        "student": ERF, "teacher": {}, "parameters": {"F": {"default": "2.6 - 1.6*j", "per": "unit"}},
        "training": {**TIME, "rule": {"w": "F*dl*dphi"}},
    },
    "sampled rule": {
        "student": {"units": 2, "unit": "tanh(w)"}, "teacher": {"noise": 0.3},
        "training": {**TIME, "rule": "clip(dl, 0.5)*df", "batch": 3},
    },
    "polynomial rule": {"student": {"unit": "He(3, w)"}, "training": {**TIME, "rule": "0.01*dl^3*df"}},
    "Wick powers": {"student": {"units": 2, "unit": "wick(2, w)"}, "teacher": {"noise": 0.1}, "training": TIME},
    "logistic": {"student": {"unit": "w"}, "training": {**TIME, "loss": "logistic"}},
}  # fmt: skip
SAMPLED = ("frozen, sampled", "mixed", "sampled rule", "logistic")


def declared(name):
    return odesim.declare(name="pushed", **{"teacher": {}, **MODELS[name]})


def mean_square(initial):
    """E[c^2] of the polynomial rule c = .01 (f - y)^3 f' by Gauss-Hermite nodes, which are exact."""
    q, m = (float(np.asarray(initial.state[name]).item()) for name in ("Q_ww", "M_ww"))
    x, w = np.polynomial.hermite_e.hermegauss(20)
    teacher, rest = np.meshgrid(x, x)
    student = m * teacher + np.sqrt(q - m * m) * rest

    def unit(z):
        return z**3 - 3 * z

    c = 0.01 * (unit(student) - unit(teacher)) ** 3 * (3 * student**2 - 3)
    return float((np.outer(w, w) / w.sum() ** 2 * c * c).sum())


def slope(initial, tier, backend="numba"):
    """The motion of every order parameter by a tier."""
    found = equations(initial.parameters, tier)
    flow = compile_functions(found, backend)["flow"]
    y = np.asarray(flow(0.0, found.start(initial), *found.arguments(initial)))
    return rows(initial.parameters).layout.unpack(y)


def finer(initial, points=2**15, **more):
    return dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, points=points, **more))


@pytest.mark.parametrize("name", MODELS)
def test_tiers_and_back_ends_agree(name):
    initial = state(declared(name).parameters, 2)
    tier = settled(initial.parameters)
    one, two, three = slope(initial, tier), slope(initial, tier, "jax"), slope(finer(initial), "sampled")
    size = max(float(np.abs(value).max()) for value in one.values())
    assert any("VV" in key.split("_") for key in one)
    for key, values in one.items():
        assert np.asarray(two[key]) == pytest.approx(values, abs=1e-12 * size), key
        assert np.asarray(three[key]) == pytest.approx(values, abs=(2e-2 if name in SAMPLED else 6e-3) * size), key


@pytest.mark.parametrize(
    "name", [name if k < 2 else pytest.param(name, marks=pytest.mark.slow) for k, name in enumerate(MODELS)]
)
def test_velocities_move_as_those_of_samples(name):
    """All rows move in a frame, by automatic differentiation of the losses of independent samples."""
    initial = quieted(finer(state(declared(name).parameters, 2), 2**16))
    wanted = slope(initial, settled(initial.parameters))
    made = sample_gradient.moments(initial, 2)
    for key, batches in sample_gradient.drift_of(made, initial).items():
        error = batches.std(0, ddof=1) / np.sqrt(len(batches))
        margin = 6 * error + (1e-2 if name in SAMPLED else 1e-9)
        assert (np.abs(batches.mean(0) - wanted[key]) < margin).all(), key
    if initial.parameters.declaration.limit == "flow":
        return
    noisy = dataclasses.replace(initial, parameters=dataclasses.replace(initial.parameters, batch=2))
    more = slope(noisy, settled(initial.parameters))
    second = sample_gradient.second_of(made, noisy)
    assert set(second) == {key for key in wanted if "VV" in key.split("_")}
    for key, values in wanted.items():
        if key not in second:  # batches have no part in the rest
            if key != "b2":
                assert np.asarray(more[key]) == pytest.approx(np.asarray(values), abs=1e-9), key
            continue
        if name == "polynomial rule":  # a polynomial of degree 22, whose mean samples do not know
            assert np.asarray(more[key] - values).item() == pytest.approx(mean_square(initial) / 2 / 1.5**2, rel=1e-9)
            continue
        error = second[key].std(0, ddof=1) / np.sqrt(len(second[key]))
        margin = 6 * error + (2e-2 if name in SAMPLED else 1e-9)
        assert (np.abs(second[key].mean(0) - (more[key] - values)) < margin).all(), key


@pytest.mark.parametrize("name", ["frozen", "frozen, sampled"])
def test_what_is_frozen_has_no_velocity(name):
    model = declared(name)
    run = odesim.integrate(model, d=30, until=1.0, save_points=3)
    names = {key for key in run.state if key.startswith("V")}
    assert names == {"VV_ww", "VQ_wv", "VQ_ww", "VM_wv", "VM_ww"}
    assert np.ptp(np.asarray(run["Q_vv"]), axis=0).max() == 0 and np.ptp(np.asarray(run["Q_ww"]), axis=0).max() > 1e-4
    for method in ("compressed", "explicit"):
        sgd = odesim.simulate(model, method=method, d=30, until=0.2, save_points=2, seeds=2)
        assert {key for key in sgd.state if key.startswith("V")} == names
        assert np.ptp(np.asarray(sgd["Q_vv"]), axis=1).max() < 1e-5 and np.asarray(sgd["VV_ww"])[:, -1].max() > 0
    # Another declaration that trains the other slot has equations of its own.
    other = odesim.declare(**{**MODELS[name], "training": {**TIME, "trained": ["v"]}}, name="pushed")
    assert {key for key in odesim.integrate(other, d=30, until=0.1).state if key.startswith("VV")} == {"VV_vv"}


@pytest.mark.parametrize("name", ["readouts", "memory and pairs", "frozen"])
def test_a_run_goes_on_with_its_velocities(name):
    model, options = declared(name), {"d": 200, "rtol": 1e-9}
    whole = odesim.integrate(model, until=2.4, save_points=3, **options)
    first = odesim.integrate(model, until=1.2, save_points=3, **options)
    second = odesim.integrate(model, after=first, until=2.4, save_points=3, **options)[-1]
    for key in whole.state:
        assert np.asarray(second[key])[-1] == pytest.approx(np.asarray(whole[key])[-1], abs=1e-6), key


@pytest.mark.parametrize("name", ["memory and pairs", "rule", "sampled rule"])
def test_sgd_follows_its_limit(name):
    model, times = declared(name), [0, 0.8, 1.6]
    options = {"save_at": times, "d": 1500, "overlap": 0.3}
    flow = odesim.integrate(model, points=2**15, **options)
    run = odesim.simulate(model, method="compressed", seeds=48, **options)
    names = [key for key in flow.state if key.split("_")[0] in ("Q", "M", "VV", "VQ", "VM", "a", "velocity", "b2")]
    z = judged.z_of_runs(run, flow, names)
    assert judged.root_mean_square(z) < 1.8 and np.abs(z).max() < 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["readouts", "frozen, sampled"])
def test_generated_claims_hold_and_controls_fail(name):
    from derivations.declare.claims import claims

    system = declared(name)
    for claim in claims(system):
        assert judged.answer(system, claim.id) == "confirmed", claim.id
        assert judged.answer(system, claim.id, judged.control) == "refuted", claim.id


@pytest.mark.slow
def test_the_claim_of_a_fixed_momentum_holds_and_its_control_fails():
    for training in ({"limit": "online", "step": 0.1, "momentum": 0.9}, {"momentum": 0.8, "nesterov": True}):
        system = odesim.declare(student=ERF, teacher={"units": 2, "noise": 0.2}, training=training)
        assert judged.answer(system, "momentum") == "confirmed"
        assert judged.answer(system, "momentum", judged.control) == "refuted"
