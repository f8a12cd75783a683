"""Groups of symmetries: their orders, actions, and the directions in which they are broken."""

import numpy as np
import pytest

import odesim
from odesim.machine import device
from odesim.request.case import Case
from odesim.study.symmetry import Symmetries, random_point, symmetries
from odesim.study.vector_field import VectorField


def erf(units, **more):
    return {"unit": "erf(w/sqrt(2))", "units": units, **more}


CASES = [
    ({"student": erf(3), "teacher": {"units": 3}}, 36),
    ({"student": erf(2), "teacher": {"units": 3, "output": "1/j"}}, 2),
    ({"student": erf(2, output="trained"), "teacher": {"units": 2}}, 16),  # flips of vector and readout together
    ({"student": {"unit": "w^2", "units": 2}, "teacher": {"units": 2}}, 64),  # every vector has a flip
    ({"student": {"unit": "w^2", "units": 2}, "teacher": {"units": 2, "gram": 0.3}}, 16),  # oblique teachers have none
    ({"student": erf(2), "teacher": {"units": 2, "gram": [[1.0, 0.2], [0.2, 2.0]]}}, 2),
    ({"student": erf(2), "teacher": {"units": 2}, "training": {"limit": "online", "step": 0.5}}, 4),
    ({"student": {"unit": "erf((w + b)/sqrt(2))", "units": 2}, "teacher": {"unit": "erf(w/sqrt(2))", "units": 1},
      "parameters": {"b": {"default": 0.3, "per": "unit"}}}, 2),
]  # fmt: skip


@device.in_double
@pytest.mark.parametrize(("tables", "order"), CASES)
def test_the_group_has_the_order_that_the_model_says_and_commutes_with_the_field(tables, order):
    field = VectorField(Case.build(odesim.declare(**tables)))
    values = field.values()
    group = symmetries(field, values)
    assert group.order == order == len(group.places)
    x = random_point(field, values, np.random.default_rng(5), 0.8)
    f = np.asarray(field.evaluate(x, values)[0])
    for place, sign in zip(group.places, group.signs, strict=True):
        moved = np.asarray(field.evaluate(sign * x[place], values)[0])
        np.testing.assert_allclose(moved, sign * f[place], atol=1e-12)
        assert field.loss(sign * x[place], values) == pytest.approx(field.loss(x, values), abs=1e-12)
    elements = {(*place, *sign) for place, sign in zip(group.places.tolist(), group.signs.tolist(), strict=True)}
    for place, sign in zip(group.places, group.signs, strict=True):  # products are elements
        other = group.places[-1]
        assert (*place[other], *(group.signs[-1] * sign[other])) in elements


@device.in_double
def test_a_group_that_is_too_large_is_counted_and_not_listed():
    field = VectorField(Case.build(odesim.declare(student=erf(8), teacher={"units": 8})))
    group = symmetries(field, field.values())
    assert group.order == 40320**2 and not group.complete and len(group.places) == 1


def cyclic():
    places = np.array([np.roll(np.arange(3), k) for k in range(3)])
    return Symmetries(places, np.ones((3, 3)), 3)


def test_fixed_points_and_stabilisers():
    group = cyclic()
    x = np.array([1.0, 1.0, 1.0 + 1e-4])
    assert group.stabiliser(x, 1e-3).order == 3 and group.stabiliser(x, 1e-6).order == 1
    np.testing.assert_allclose(group.fixed_space(), np.full((3, 1), 3**-0.5) * np.sign(group.fixed_space()[0, 0]))
    assert group.same(np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 1.0]), 1e-12)
    assert not group.same(np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 3.0]), 1e-12)


def test_axes_are_the_directions_that_an_element_alone_keeps():
    # The permutations of three points act on the plane orthogonal to (1, 1, 1): an exchange keeps one axis.
    import itertools

    places = np.array(list(itertools.permutations(range(3))))
    group = Symmetries(places, np.ones((6, 3)), 6)
    plane = np.linalg.svd(np.ones((1, 3)))[2][1:].T
    axes = group.axes(plane)
    assert len(axes) == 1
    np.testing.assert_allclose(np.sort(np.abs(axes[0])), np.array([1, 1, 2]) / 6**0.5, atol=1e-12)
