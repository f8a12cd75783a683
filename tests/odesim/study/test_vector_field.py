"""The vector field of a declared model against the committee's own arcsine law, differences, and its flow; refusals."""

import dataclasses

import numpy as np
import pytest

import derivations
import odesim
from derivations.contract import UsageError
from odesim.machine import device
from odesim.request.case import Case
from odesim.study.vector_field import VectorField
from tests.odesim.study import erf_committee

ERF = {"unit": "erf(w/sqrt(2))", "units": 2}


def field_of(**tables):
    return VectorField(Case.build(odesim.declare(**tables)))


@device.in_double
def test_f_is_the_gradient_in_vectors_and_has_their_hessian_within_and_out_of_the_span():
    field = field_of(student={**ERF, "units": 3}, teacher={"units": 2})
    values = field.values()
    u = np.random.default_rng(0).normal(size=(3, 2))
    f, j = field.evaluate(u.ravel(), values)
    np.testing.assert_allclose(np.asarray(f).reshape(3, 2), -erf_committee.gradient(u, 2), atol=1e-14)
    np.testing.assert_allclose(np.asarray(j), -erf_committee.hessian(u, 2), atol=1e-10)
    np.testing.assert_allclose(field.outside(u.ravel(), values), -erf_committee.curvature_outside(u, 2), atol=1e-10)
    assert field.loss(u.ravel(), values) == pytest.approx(erf_committee.loss(u, 2), abs=1e-14)


@device.in_double
def test_overlaps_with_oblique_teachers_are_coordinates_of_vectors():
    # du/dt of SGD's flow by the loss alone, with teachers of overlap 0.4, along M = U T^T.
    field = field_of(student=ERF, teacher={"units": 2, "gram": 0.4})
    values = field.values()
    frame = np.linalg.cholesky(np.array([[1.0, 0.4], [0.4, 1.0]]))
    u = np.random.default_rng(1).normal(size=(2, 2))

    def loss(flat):
        return field.loss((flat.reshape(2, 2) @ frame.T).ravel(), values)

    h = 1e-5
    gradient = np.array([(loss(u.ravel() + h * e) - loss(u.ravel() - h * e)) / (2 * h) for e in np.eye(4)]).reshape(
        2, 2
    )
    f = np.asarray(field.evaluate((u @ frame.T).ravel(), values)[0]).reshape(2, 2)
    np.testing.assert_allclose(f, -gradient @ frame.T, atol=1e-9)


@device.in_double
def test_on_spheres_norms_are_no_unknowns_and_the_jacobian_is_regular():
    # The flat state of one unit is (Q, M): y[0] is Q, whose row of the Jacobian is zero.
    case = Case.build("arnaboldi_2023")
    field = VectorField(case)
    assert field.size == 1 and field.pairs.tolist() == [[0, 1]]
    state = odesim.linearise(case, state={"Q_ww": np.ones((1, 1)), "M_ww": np.zeros((1, 1))})
    assert state.problem.start[0] == 1.0 and np.abs(state.jacobian[0]).max() < 1e-10
    _, jacobian = field.evaluate(np.zeros(1), field.values())
    assert abs(np.asarray(jacobian)[0, 0]) > 1e-3
    found = odesim.atlas("arnaboldi_2023", starts=40)
    assert found["null"].max() == 0


@device.in_double
def test_in_a_flow_on_spheres_the_spectrum_is_that_along_the_sphere():
    # L = -sum_j (u.t_j)^3 has at u = t_1 the radial derivative -3 and no second derivatives across: along the sphere
    # the Hessian is 3 for every direction, He_3 of unit norm has loss -6 m^3 and the rate -18 there.
    field = field_of(
        student={"unit": "He(3, w)"}, teacher={"unit": "He(3, w)", "units": 3},
        training={"loss": "correlation", "weights": "sphere"},
    )  # fmt: skip
    values = field.values()
    x = np.array([1.0, 0.0, 0.0])
    f, j = field.evaluate(x, values)
    np.testing.assert_allclose(np.asarray(f), 0, atol=1e-14)
    np.testing.assert_allclose(field.spectrum(x, values, np.asarray(j)), [-18.0, -18.0], atol=1e-10)
    np.testing.assert_allclose(field.outside(x, values), [[-18.0]], atol=1e-10)
    # Off the sphere the zeros of F stay isolated: the norm is pulled back.
    assert np.asarray(field.evaluate(1.1 * x, values)[0])[0] < -0.1


@device.in_double
def test_trained_readouts_and_their_signs_are_unknowns():
    field = field_of(student={**ERF, "output": "trained"}, teacher={"units": 2})
    assert field.size == 6 and (field.pairs[-2:, 1] == -1).all()
    values = field.values()
    x = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    assert np.linalg.norm(np.asarray(field.evaluate(x, values)[0])) < 1e-14
    flipped = x * [-1, -1, 1, 1, -1, 1]
    assert np.linalg.norm(np.asarray(field.evaluate(flipped, values)[0])) < 1e-14
    assert field.loss(flipped, values) == pytest.approx(0.0, abs=1e-14)


@device.in_double
def test_values_and_their_derivatives_follow_every_parameter():
    field = VectorField(Case.build("simsek_2025"))
    x = np.random.default_rng(2).normal(size=5)
    tangent = field.derivative({"gram": 0.3}, "gram")
    h = 1e-5
    ahead, behind = (np.asarray(field.evaluate(x, field.values({"gram": 0.3 + s * h}))[0]) for s in (1, -1))
    slope = np.asarray(field.by_values(x, field.values({"gram": 0.3}), tangent))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * h), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(tangent["teachers"], 1 - np.eye(5), atol=1e-12)


@device.in_double
def test_zeros_of_the_online_field_are_rests_of_the_flow():
    field = field_of(student=ERF, teacher={"units": 2}, training={"limit": "online", "step": 0.5})
    y = field.problem.start
    f = np.asarray(field.evaluate(y[field.places], field.values())[0])
    slope = field.problem.slope()(0.0, y)
    np.testing.assert_allclose(f, slope[field.places], atol=1e-14)
    assert field.size == y.size


@pytest.mark.parametrize(
    ("tables", "parameters", "words"),
    [
        ({"training": {"limit": "batch", "step": 0.5, "batch": "3*d"}}, {}, "giant steps follow a map"),
        ({"training": {"limit": "online", "step": "0.5/(1 + t)"}}, {}, "time-dependent values"),
        (
            {"training": {"limit": "online", "step": "0.5/(1 + age)"}, "memory": {"age": {"start": 0.0, "rate": 1}}},
            {},
            "time-dependent values",
        ),
        ({"training": {"limit": "online", "step": 1.0, "momentum": {"time": 2.0}}}, {}, "adds velocities to the state"),
        ({"student": {"unit": "relu(w)", "units": 2}}, {}, "kink or a jump"),
        ({"student": {"unit": "tanh(w)", "units": 2}}, {}, "random points"),
        ({"inputs": {"blocks": [[1.5, 0.5], [0.5, 0.5]]}}, {}, "supports only isotropic inputs"),
        ({"teacher": {"units": 3, "gram": -0.5}}, {}, "linearly dependent"),
        (
            {"student": {"unit": "erf(w/sqrt(2))", "units": 2, "output": "trained"}, "training": {"rates": {"w": 0.0}}},
            {},
            "are not trained",
        ),
        (
            {
                "student": {"unit": "He(2, w)"}, "teacher": {"unit": "He(2, w)"},
                "training": {"loss": "correlation", "weights": "sphere"},
            },
            {"tier": "leading"},
            "tier leading describes small overlaps",
        ),
    ],
)  # fmt: skip
def test_models_without_stationary_vectors_are_refused_in_one_sentence(tables, parameters, words):
    model = odesim.declare(**{"student": ERF, "teacher": {"units": 2}, **tables})
    with pytest.raises(UsageError, match=words) as error:
        odesim.atlas(model, **parameters)
    assert str(error.value).startswith("atlas: ") and "\n" not in str(error.value)


@pytest.mark.parametrize("name", derivations.names())
def test_the_systems_of_the_papers_are_refused(name):
    with pytest.raises(UsageError, match="atlas takes only declared models"):
        odesim.atlas(name)


def test_memories_without_schedules_are_refused():
    model = odesim.declare(
        student=ERF, teacher={"units": 2}, training={"limit": "online", "step": "0.5/(1 + age)"},
        memory={"age": {"start": 0.0, "rate": 1}},
    )  # fmt: skip
    with pytest.raises(UsageError, match="memories change continually"):
        odesim.atlas(model, step=0.5)


def test_a_schedule_that_a_number_replaces_has_stationary_points():
    model = odesim.declare(
        student={"unit": "erf(w/sqrt(2))"}, teacher={"units": 1}, training={"limit": "online", "step": "0.5/(1 + t)"}
    )
    found = odesim.atlas(model, step=0.5, starts=40)
    assert found["loss"] == pytest.approx([0.0], abs=1e-12)


def test_a_unit_over_a_grid_of_two_variables_is_taken():
    # Means of tanh have no closed form, but two fields leave a grid whose error is rounding.
    model = odesim.declare(student={"unit": "tanh(w)"}, teacher={"units": 1})
    found = odesim.atlas(model, starts=4, points=256)
    assert found["loss"][0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found["M_ww"][0], [[1.0]], atol=1e-9)


@device.in_double
def test_a_field_takes_the_case_of_another_back_end():
    case = Case.build("arnaboldi_2023")
    assert case.backend == "numba"
    assert dataclasses.replace(VectorField(case).case, backend="numba").digest == case.digest
