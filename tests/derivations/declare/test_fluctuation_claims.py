"""The generated claims on fluctuations: they hold, their controls are refuted, and a wrong covariance is seen."""

import pytest

import odesim
from derivations.declare import growth
from derivations.declare.claims import fluctuations
from derivations.declare.parameter_class import numbers
from odesim.sgd.increments import Increments
from tests.derivations.declare.judged import answer, control

LINE = {"student": {"unit": "w"}, "teacher": {"noise": 0.5}}
ONLINE = {**LINE, "training": {"limit": "online", "step": 0.5}}
ERF = {"student": {"unit": "erf(w/sqrt(2))", "units": 2}, "teacher": {"units": 2, "noise": 0.1}}
SADDLE = {
    "student": {"unit": "He(2, w)"}, "teacher": {"noise": 0.3},
    "training": {"limit": "online", "step": 0.05, "weights": "sphere"},
}  # fmt: skip
SIMPLE = ["gradient-differences", "covariance", "band"]


def names(**tables):
    return [claim.id for claim in fluctuations.claims(odesim.declare(**tables))]


@pytest.mark.parametrize("name", SIMPLE)
def test_a_model_with_linear_units_is_confirmed_and_its_control_refuted(name):
    system = odesim.declare(**ONLINE)
    assert answer(system, name) == "confirmed"
    assert answer(system, name, control) == "refuted"


@pytest.mark.slow
@pytest.mark.parametrize("tables", [LINE, ERF, {**ERF, "training": {"limit": "online", "step": 1.0, "batch": 3}}])
@pytest.mark.parametrize("name", SIMPLE)
def test_flows_committees_and_batches_are_confirmed(name, tables):
    system = odesim.declare(**tables)
    assert answer(system, name) == "confirmed"
    assert answer(system, name, control) == "refuted"


@pytest.mark.slow
def test_the_law_of_escapes_is_confirmed_and_its_control_refuted():
    system = odesim.declare(**SADDLE)
    assert answer(system, "escape") == "confirmed"
    assert answer(system, "escape", control) == "refuted"


def test_increments_of_another_step_size_are_refuted(monkeypatch):
    system = odesim.declare(**{**LINE, "training": {"limit": "online", "step": 0.5}})
    whole = Increments.of_step

    def half(self, initial, d, step_size, count):
        return whole(self, initial, d, 0.8 * step_size, count)

    monkeypatch.setattr(Increments, "of_step", half)
    assert answer(system, "covariance") == "refuted"
    assert answer(system, "band") == "refuted"


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (ONLINE, SIMPLE),
        (SADDLE, [*SIMPLE, "escape"]),
        ({"student": {"unit": "He(3, w)"}, "teacher": {}, "training": {"loss": "correlation", "weights": "sphere"}},
         ["gradient-differences"]),
        ({**LINE, "training": {"momentum": 0.5}}, []),
        ({**LINE, "training": {"limit": "batch", "step": 0.5, "batch": "3*d"}}, []),
        ({"student": {"unit": "tanh(w)"}, "teacher": {}}, ["covariance", "band"]),
    ],
)  # fmt: skip
def test_claims_are_generated_where_bands_are_derived(tables, expected):
    assert names(**tables) == expected


@pytest.mark.parametrize(
    ("tables", "degree"),
    [
        (LINE, 2.0),
        ({"student": {"unit": "erf(w)"}, "teacher": {}}, 1.0),
        ({"student": {"unit": "w^2"}, "teacher": {}}, 4.0),
        ({"student": {"unit": "relu(w)"}, "teacher": {"unit": "He(4, w)"}}, 5.0),
        ({"student": {"unit": "relu(w)"}, "teacher": {"unit": "He(4, w)"}, "training": {"loss": "logistic"}}, 1.0),
    ],
)
def test_the_degree_of_the_motion_by_a_sample(tables, degree):
    parameters = odesim.declare(**tables).parameters()
    declared = parameters.declaration
    values = dict(zip(declared.names, numbers(parameters), strict=True))
    assert growth.of_step(declared, values, parameters.noise) == degree
