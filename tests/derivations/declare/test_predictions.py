"""Predictions that are no sums: derivatives beside automatic ones, sums as a special case, SGD, and refusals."""

import numpy as np
import pytest

import odesim
from derivations.contract import UsageError
from derivations.declare.claims import generated
from derivations.declare.parameter_class import rows
from derivations.declare.tiers import settled
from odesim.evidence.laboratory import Laboratory
from tests.derivations.declare import judged

ERF = {"units": 2, "unit": "erf(w)"}
ONLINE = {"limit": "online", "step": 0.5}
MODELS = {
    "product": {
        "student": {
            "prediction": "fast*slow", "fast": {**ERF, "output": "trained"}, "slow": {"units": 1, "unit": "tanh(w)"},
        },
        "teacher": {
            "prediction": "one + 0.5*one*two", "noise": 0.2, "one": {"unit": "erf(w)"}, "two": {"unit": "w"},
        },
        "training": ONLINE,
    },
    "bounded": {
        "student": {**ERF, "output": "trained", "prediction": "tanh(scale*f)"},
        "teacher": {"units": 2, "prediction": "sign(y)"}, "parameters": {"scale": 1.5}, "training": ONLINE,
    },
    "heads": {
        "student": {
            "prediction": {"one": "tanh(fast)*slow"},
            "fast": {**ERF, "output": {"one": "trained", "two": "sum"}},
            "slow": {"unit": "tanh(w + b)", "output": {"one": "sum", "two": "trained"}},
        },
        "teacher": {"prediction": {"two": "y^2"}, "one": {"unit": "w"}, "two": {"unit": "tanh(w)"}},
        "parameters": {"b": {"default": 0.2, "per": "unit"}},
        "training": {**ONLINE, "loss": "log(1 + (f - y)^2)"},
    },
    "share": {
        "student": {"units": 3, "unit": "softmax(w)*w", "output": "trained", "prediction": "tanh(f)"},
        "teacher": {"units": 2, "unit": "tanh(w)"}, "training": ONLINE,
    },
    "timed": {
        "student": {**ERF, "prediction": "f + f^3"}, "teacher": {"units": 2},
        "training": {**ONLINE, "momentum": {"time": 1.0}},
    },
}  # fmt: skip


def declared(name):
    return odesim.declare(**MODELS[name], name=name)


@pytest.mark.parametrize("name", MODELS)
def test_at_every_point_the_motion_is_that_by_automatic_differentiation(name):
    system = declared(name)
    assert settled(system.parameters()) == "sampled"
    assert generated.own_points(Laboratory(system), {}, 1) < 1e-8


@pytest.mark.parametrize(("name", "backend"), [("product", "jax"), ("heads", "numba"), ("share", "jax")])
def test_sgd_follows_its_limit(name, backend):
    model, d, count = declared(name), 6000, 32
    flow = odesim.integrate(model, d=d, save_at=[0, 1], points=2**16)
    run = odesim.simulate(model, method="compressed", d=d, seeds=count, save_at=[0, 1], backend=backend)
    z = judged.z_of_runs(run, flow, [part.name for part in rows(model.parameters()).layout.parts])
    # Some ten numbers of the same replicas: their root mean square scatters by a third.
    assert np.sqrt((z**2).mean()) < 1.8 and np.abs(z).max() < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["product", "heads"])
def test_explicit_and_compressed_move_alike(name):
    assert judged.answer(declared(name), "microscope") == "confirmed"


def test_a_sum_is_the_sum():
    tables = {
        "student": {"fast": {**ERF, "output": "trained"}, "slow": {"unit": "tanh(w)"}},
        "teacher": {"one": {"unit": "erf(w)"}, "two": {"unit": "w"}}, "training": ONLINE,
    }  # fmt: skip
    student = {"prediction": "fast + slow", **tables["student"]}
    teacher = {"prediction": "y", **tables["teacher"]}
    options = {"until": 1, "save_points": 3, "points": 2**12, "tier": "sampled"}
    one = odesim.integrate(odesim.declare(**tables, name="sum"), **options)
    other = odesim.declare(**{**tables, "student": student, "teacher": teacher}, name="sum")
    two = odesim.integrate(other, **options)
    for name in ("fast_Q_ww", "fast_slow_Q_ww", "fast_a", "error"):
        assert np.asarray(one[name]) == pytest.approx(np.asarray(two[name]), rel=1e-7, abs=1e-10)
    assert odesim.declare(**tables, name="sum").digest != other.digest


def test_the_page_says_what_is_predicted():
    text = odesim.derive(declared("product"), format="text")
    assert "f := fast slow" in text and "f* := one + 0.5 one two" in text
    assert "d/dt fast_a_i = -eta E[dl/d fast_a_i]" in text
    assert "the prediction 'fast*slow' is not a sum of units" in text


REFUSED = [
    ({"student": {"prediction": "fats*slow", "fast": ERF, "slow": ERF}}, "fats"),
    ({"student": {**ERF, "prediction": "1 + 2"}}, "depends on no group"),
    ({"student": {**ERF, "prediction": 3}}, "prediction is an expression such as 'f', not 3"),
    ({"student": {**ERF, "prediction": {"one": "f"}}}, "the network has one output"),
    ({"student": {**ERF, "output": {"one": "sum"}, "prediction": "f"}, "teacher": {"one": {}}}, "prediction = {one"),
    (
        {"student": {**ERF, "output": {"one": "sum"}, "prediction": {"tow": "f"}}, "teacher": {"one": {}}},
        "no head is called 'tow'",
    ),
    ({"student": {**ERF, "prediction": "softmax(f)"}}, "softmax"),
    ({"student": {**ERF, "prediction": "f^2"}, "training": {"rule": "dl*df"}}, "prediction and rule cannot be"),
    ({"teacher": {"prediction": "y", "one": {}, "two": {}}, "training": {"teacher": ["one"]}}, "teacher = [..]"),
    ({"student": {**ERF, "prediction": "log(f)"}}, "log"),
    ({"student": {"prediction": "scale*fast", "fast": ERF}, "parameters": {"fast": 1.0}}, "fast"),
]  # fmt: skip


@pytest.mark.parametrize(("tables", "said"), REFUSED, ids=[said[:30] for _, said in REFUSED])
def test_refusals(tables, said):
    with pytest.raises(UsageError) as caught:
        odesim.declare(**{"name": "p", "student": ERF, "teacher": {"unit": "erf(w)"}, **tables})
    assert said in str(caught.value) and "\n" not in str(caught.value)
