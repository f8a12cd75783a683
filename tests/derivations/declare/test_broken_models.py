"""Breaks of declared models, in tier `sampled` and in closed forms: the generated claims refute every one."""

import dataclasses

import numpy as np
import pytest

import odesim
from derivations.declare import arrays
from derivations.declare.samples import Sampler
from odesim.evidence.laboratory import Laboratory
from tests.derivations.declare.judged import answer

SAMPLED = {"student": {"unit": "tanh(w)", "units": 2}, "teacher": {"units": 2, "unit": "softplus(w)"}}
READOUTS = {**SAMPLED, "student": {"unit": "tanh(w + b)", "units": 2, "output": "trained"},
            "parameters": {"b": {"default": 0.2, "per": "unit"}}}  # fmt: skip
ROUTED = {
    "student": {"unit": "softmax(v)*He(2, w)", "units": 2},
    "teacher": {"units": 2},
    "training": {"weights": "normalised"},
}
CLUSTERS = {
    **SAMPLED,
    "inputs": {
        "blocks": [[1.5, 0.3], [0.5, "rest"]],
        "means": {"mu": {"norm": 1.5, "teacher": [0.5, 0.2]}},
        "cluster": [{"p": 0.3, "mean": "mu"}, {"p": 0.7, "mean": "-0.5*mu", "eigenvalues": [0.4, 1.2]}],
    },
}
ONLINE = {**SAMPLED, "training": {"limit": "online", "step": 0.4}}
CLOSED = {"student": {"unit": "erf(w/sqrt(2))", "units": 2, "output": "trained"}, "teacher": {"units": 2, "noise": 0.2},
          "training": {"limit": "online", "step": 0.4}}  # fmt: skip


def of_gradients(change):
    """A break of the derivatives of a sample: `change` sees the coefficients c, the norm parts e and the scalars."""
    real = Sampler._gradients

    def broken(self, seen, slope, weights, q):
        return change(*real(self, seen, slope, weights, q))

    return "_gradients", broken


def scalar(number, factor):
    def change(c, e, scalars):
        return c, e, [factor * part if k == number else part for k, part in enumerate(scalars)]

    return change


def routers(factor):
    """The routers' rows (the first two, slot v) by a factor: the gradient of the softmax."""

    def change(c, e, scalars):
        rows = np.where(np.arange(len(c)) < 2, factor, 1.0)
        return c * rows[:, None], e * rows, scalars

    return change


def of_means(change):
    """A break of the means: `change` is given them."""
    real = Sampler.means

    def broken(self, at, points, weights):
        return change(real(self, at, points, weights))

    return "means", broken


def of_spaces(change):
    """A break of the way from the means in every cluster to the drift in every eigenspace: `change` is given them."""
    real = arrays.by_spaces

    def broken(view, found, a):
        return real(view, *change(found, a))

    return broken


BREAKS = {
    "unit derivatives a fifth too large": (SAMPLED, "own-points", of_gradients(lambda c, e, s: (1.2 * c, e, s))),
    "unit derivatives a twentieth too small": (SAMPLED, "own-points", of_gradients(lambda c, e, s: (0.95 * c, e, s))),
    "the first unit of the wrong sign": (
        SAMPLED, "own-points", of_gradients(lambda c, e, s: (c * np.array([[-1.0], [1.0]]), e, s)),
    ),
    "readouts learn a tenth too fast": (READOUTS, "own-points", of_gradients(scalar(0, 1.1))),
    "biases learn in the wrong direction": (READOUTS, "own-points", of_gradients(scalar(1, -1.0))),
    "biases do not learn": (READOUTS, "own-points", of_gradients(scalar(1, 0.0))),
    "the gradient of the softmax of the wrong sign": (ROUTED, "own-points", of_gradients(routers(-1.0))),
    "the gradient of the softmax a tenth too small": (ROUTED, "own-points", of_gradients(routers(0.9))),
    "a second-order term a tenth too large": (
        ONLINE, "second-order", of_means(lambda m: m._replace(second=1.1 * m.second)),
    ),
    "no cross terms of second order": (
        ONLINE, "second-order", of_means(lambda m: m._replace(second=m.second * np.eye(len(m.second)))),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_of_a_sampled_model_is_refuted(name, monkeypatch):
    tables, claim, (method, broken) = BREAKS[name]
    monkeypatch.setattr(Sampler, method, broken)
    assert answer(odesim.declare(**tables), claim) == "refuted"


SPACES = {
    "no drift along the means of clusters": lambda f, a: ([m._replace(first=0 * m.first) for m in f], a),
    "eigenvalues of the first cluster for all": lambda f, a: (f, a._replace(eigenvalue=a.eigenvalue[:1].repeat(2, 0))),
    "clusters of equal probability": lambda f, a: (f, a._replace(probability=np.array([0.5, 0.5]))),
    "a mean of the wrong sign": lambda f, a: (f, a._replace(mean_weights=-a.mean_weights)),
    "curvatures of another cluster": lambda f, a: (
        [m._replace(drift=o.drift) for m, o in zip(f, f[::-1], strict=True)], a,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [n if "mean" in n else pytest.param(n, marks=pytest.mark.slow) for n in SPACES])
def test_a_break_of_eigenspaces_and_clusters_is_refuted(name, monkeypatch):
    monkeypatch.setattr(arrays, "by_spaces", of_spaces(SPACES[name]))
    assert answer(odesim.declare(**CLUSTERS), "own-points") == "refuted"


@pytest.mark.parametrize(
    ("tables", "claim"),
    [(m, c) for m in (SAMPLED, READOUTS, ROUTED) for c in ("drift", "own-points")]
    + [(CLUSTERS, "own-points"), pytest.param(CLUSTERS, "drift", marks=pytest.mark.slow), (ONLINE, "second-order")],
)
def test_the_same_models_unbroken_are_confirmed(tables, claim):
    assert answer(odesim.declare(**tables), claim) == "confirmed"


RATES = {
    "overlaps with the teacher a twentieth too fast": ("M_ww", 1.05, "drift"),
    "overlaps among students a twentieth too slow": ("Q_ww", 0.95, "drift"),
    "readouts a twentieth too fast": ("a", 1.05, "drift"),
    "readouts of the wrong sign": ("a", -1.0, "drift"),
    "no motion of the readouts": ("a", 0.0, "drift"),
}


@pytest.mark.parametrize("name", RATES)
def test_a_wrong_rate_of_a_closed_form_is_refuted(name, monkeypatch):
    component, factor, claim = RATES[name]
    real = Laboratory.functions

    def broken(self, initial, tier=None, stage=None):
        found = real(self, initial, tier, stage)
        return type(found)(
            lambda state: {n: factor * v if n == component else v for n, v in found.flow(state).items()}, found.loss
        )

    monkeypatch.setattr(Laboratory, "functions", broken)
    assert answer(odesim.declare(**CLOSED), claim) == "refuted"


PARAMETERS = {
    "label noise half as large": ("noise", 0.1, "second-order"),
    "no label noise": ("noise", 0.0, "second-order"),
    "weight decay that is ignored": ("decay", 0.0, "drift"),
    "a step a twentieth too large": ("step", 0.42, "drift"),
    "batches of two for batches of one": ("batch", 2, "second-order"),
}
DECAYING = {**CLOSED, "training": {**CLOSED["training"], "decay": 0.3}}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_derivation_with_another_parameter_is_refuted(name, monkeypatch):
    parameter, value, claim = PARAMETERS[name]
    real = Laboratory.functions

    def broken(self, initial, tier=None, stage=None):
        if parameter == "batch" and initial.parameters.batch > 2:  # the state of which the second order is gone
            return real(self, initial, tier, stage)
        changed = dataclasses.replace(initial.parameters, **{parameter: value})
        return real(self, dataclasses.replace(initial, parameters=changed), tier, stage)

    monkeypatch.setattr(Laboratory, "functions", broken)
    assert answer(odesim.declare(**DECAYING), claim) == "refuted"


def test_the_closed_form_unbroken_is_confirmed():
    for tables in (CLOSED, DECAYING):
        for claim in ("drift", "second-order", "tiers"):
            assert answer(odesim.declare(**tables), claim) == "confirmed"
