"""Continuation against curves and bifurcations that are known in closed form."""

import math

import numpy as np
import pytest

from odesim.study.bifurcation import SpecialPoint, classify
from odesim.study.continuation import Curve, Steps
from odesim.study.parameter_curve import parameter_curve
from odesim.study.zero_curve import Derivatives


def curve(f, jacobian, by_parameter, **more):
    """The curve of F(y, p) from functions of (y, p)."""

    def derivatives(y, p):
        return Derivatives(*(np.array(g(y, p), float) for g in (f, jacobian, by_parameter)))

    return Curve(derivatives, **more)


def kinds(branch):
    return [special.kind for special in branch.special]


def brusselator():
    """x' = 1 - (b + 1) x + x^2 y, y' = b x - x^2 y: rest at (1, b), Hopf at b = 2 with frequency 1."""
    return curve(
        lambda y, b: [1 - (b + 1) * y[0] + y[0] ** 2 * y[1], b * y[0] - y[0] ** 2 * y[1]],
        lambda y, b: [[-(b + 1) + 2 * y[0] * y[1], y[0] ** 2], [b - 2 * y[0] * y[1], -(y[0] ** 2)]],
        lambda y, b: [-y[0], y[0]],
    )


def test_a_fold_is_passed_and_located():
    fold = curve(lambda y, p: y**2 + p, lambda y, p: [[2 * y[0]]], lambda y, p: [1.0])
    branch = fold.follow(np.array([1.0]), -1.0, Steps((-1.0, 1.0)))
    assert kinds(branch) == ["fold"] and branch.end == "range"
    assert abs(branch.special[0].p) < 1e-12
    assert branch.points[-1].p == -1.0 and branch.points[-1].y[0] == pytest.approx(-1.0, abs=1e-12)
    assert {point.index for point in branch.points} == {0, 1}


def test_the_hopf_point_of_the_brusselator_is_at_two():
    branch = brusselator().follow(np.array([1.0, 1.5]), 1.5, Steps((0.0, 3.0)))
    assert kinds(branch) == ["Hopf"]
    assert branch.special[0].p == pytest.approx(2.0, abs=1e-10)
    assert branch.special[0].frequency == pytest.approx(1.0, abs=1e-10)
    assert branch.special[0].multiplicity == 2


@pytest.mark.parametrize(("cubic", "kind"), [(True, "pitchfork"), (False, "transcritical")])
def test_branch_points_are_located_told_apart_and_left(cubic, kind):
    power = 3 if cubic else 2
    model = curve(lambda y, p: p * y - y**power, lambda y, p: [[p - power * y[0] ** (power - 1)]], lambda y, p: [y[0]])
    branch = model.follow(np.array([0.0]), -1.0, Steps((-1.0, 1.0)))
    assert kinds(branch) == ["branch point"]
    special = branch.special[0]
    assert abs(special.p) < 1e-12
    points = list(model.switch(special, np.append(special.null[:, 0], 0.0), 1e-2))
    shifts = {point.y[0]: point.p for point in points}
    assert len(points) == 2 and classify(special, shifts) == kind
    for point in points:
        other = model.follow_on(point, Steps((-1.0, 1.0)))
        assert all(abs(q.p - q.y[0] ** (power - 1)) < 1e-11 for q in other.points)
        assert abs(other.points[-1].p) == 1.0


def test_a_branch_of_mirror_images_knows_the_pitchfork_from_a_fold():
    model = curve(lambda y, p: p * y - y**3, lambda y, p: [[p - 3 * y[0] ** 2]], lambda y, p: [y[0]])
    branch = model.follow(np.array([1.0]), 1.0, Steps((-1.0, 1.0)), toward=-1.0)
    assert kinds(branch) == ["pitchfork"]
    (other,) = branch.special[0].other
    np.testing.assert_allclose(np.abs(other), [0.0, 1.0], atol=1e-6)
    assert branch.points[-1].y[0] == pytest.approx(-1.0, abs=1e-12)


def test_eigenvalues_that_cross_together_are_counted():
    # The determinant p^2 keeps its sign; the number of positive eigenvalues does not.
    model = curve(lambda y, p: p * y - y * (y @ y), lambda y, p: p * np.eye(2) - (y @ y) * np.eye(2)
                  - 2 * np.outer(y, y), lambda y, p: y)  # fmt: skip
    branch = model.follow(np.zeros(2), -1.0, Steps((-1.0, 1.0)))
    (special,) = branch.special
    assert special.kind == "branch point" and special.multiplicity == 2
    assert special.null.shape == (2, 2) and abs(special.p) < 1e-12


def test_two_crossings_within_one_step_are_two_points():
    rates = np.array([0.0, 1e-3])
    model = curve(lambda y, p: (p - rates) * y, lambda y, p: np.diag(p - rates), lambda y, p: y)
    branch = model.follow(np.zeros(2), -1.0, Steps((-1.0, 1.0), largest=0.1))
    assert [round(s.p, 9) for s in branch.special] == [0.0, 0.001]
    assert [s.multiplicity for s in branch.special] == [1, 1]


def test_a_closed_branch_ends_where_it_began():
    circle = curve(lambda y, p: y**2 + p**2 - 1, lambda y, p: [[2 * y[0]]], lambda y, p: [2 * p])
    branch = circle.follow(np.array([1.0]), 0.0, Steps((-2.0, 2.0)))
    assert branch.end == "closed" and kinds(branch) == ["fold", "fold"]
    assert sorted(round(s.p, 10) for s in branch.special) == [-1.0, 1.0]


def test_a_branch_stops_where_it_leaves_its_domain():
    line = curve(lambda y, p: y - p, lambda y, p: [[1.0]], lambda y, p: [-1.0], domain=lambda y, p: 0.3 - y[0])
    branch = line.follow(np.array([0.0]), 0.0, Steps((-1.0, 1.0)))
    assert branch.end == "boundary" and kinds(branch) == ["boundary"]
    assert branch.special[0].p == pytest.approx(0.3, abs=2e-8)
    assert all(point.y[0] <= 0.3 for point in branch.points)


def test_a_branch_ends_on_the_bound_of_the_parameter():
    # All of F vanishes at p = 0, as the equations of an online limit do at step 0.
    model = curve(lambda y, p: p * (y - 2), lambda y, p: [[p]], lambda y, p: y - 2)
    branch = model.follow(np.array([2.0]), 1.0, Steps((1e-3, 1.0)), toward=-1.0)
    assert branch.end == "range" and branch.points[-1].p == 1e-3
    assert branch.points[-1].y[0] == pytest.approx(2.0, abs=1e-10)


def test_newton_steps_to_where_f_is_not_finite_are_rejected():
    def root(y, p):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(y) - p

    def slope(y, p):
        with np.errstate(invalid="ignore", divide="ignore"):
            return [[0.5 / np.sqrt(y[0])]]

    model = curve(root, slope, lambda y, p: [-1.0])
    assert model.at_parameter(np.array([-1.0]), 0.5) is None
    branch = model.follow(np.array([1.0]), 1.0, Steps((-1.0, 1.0)), toward=-1.0)
    assert branch.end in ("no further point", "boundary", "range", "points")
    assert all(np.isfinite(point.y).all() and point.y[0] > 0 for point in branch.points)
    assert branch.points[-1].p > 0


def test_a_branch_to_infinity_ends():
    model = curve(lambda y, p: y * p - 1, lambda y, p: [[p]], lambda y, p: y)
    assert model.follow(np.array([1.0]), 1.0, Steps((0.0, 1.0)), toward=-1.0).end == "infinity"


def test_a_branch_is_followed_among_the_points_of_its_symmetry():
    # y_1 - y_2 has the eigenvalue 0 for every p, as norms of equal units have on a plateau: among all points the zeros
    # are no curve, among those with y_1 = y_2 they are (sqrt(p), sqrt(p)).
    model = curve(
        lambda y, p: np.full(2, y.sum() ** 2 / 4 - p) + np.array([1, -1]) * (y[0] - y[1]) ** 3,
        lambda y, p: y.sum() / 2 * np.ones((2, 2)) + 3 * (y[0] - y[1]) ** 2 * np.array([[1, -1], [-1, 1]]),
        lambda y, p: [-1.0, -1.0],
    )
    space = np.full((2, 1), 2**-0.5)
    assert not model.is_regular(np.ones(2), 1.0) and model.within(space).is_regular(np.ones(2), 1.0)
    branch = model.within(space).follow(np.ones(2), 1.0, Steps((0.2, 1.0)), toward=-1.0)
    assert branch.end == "range" and branch.special == []
    for point in branch.points:
        np.testing.assert_allclose(point.y, point.p**0.5, atol=1e-11)


def test_a_manifold_of_zeros_at_one_parameter_is_left():
    # At p = 0 every y is a zero.
    model = curve(lambda y, p: [p * (y[0] - 3)], lambda y, p: [[p]], lambda y, p: [y[0] - 3])
    branch = model.follow(np.array([0.0]), 0.0, Steps((-1.0, 1.0)))
    assert branch.end == "manifold"


def test_a_start_without_a_zero_is_refused():
    empty = curve(lambda y, p: y**2 + 1, lambda y, p: [[2 * y[0]]], lambda y, p: [0.0])
    with pytest.raises(ValueError, match="no zero near"):
        empty.follow(np.array([0.3]), 0.0, Steps((-1.0, 1.0)))


def test_one_direction_says_nothing_of_the_kind():
    special = SpecialPoint("branch point", 0.0, np.zeros(1), np.zeros(2))
    assert classify(special, {0.01: 0.1}) == "branch point"


def test_curves_of_two_parameters_follow_their_law_to_the_edges():
    found = parameter_curve(
        lambda p, q: 4 * p * (1 - 6 * p) - 2 * p**2 * q**2, (0.165, 0.3), 0.04, ((0.05, 0.3), (0, 2.5))
    )
    assert np.abs(found[:, 0] - 2 / (12 + found[:, 1] ** 2)).max() < 1e-12
    assert found[:, 1].min() == pytest.approx(0.0, abs=1e-9) and found[:, 1].max() == pytest.approx(2.5, abs=1e-9)


def test_a_curve_that_does_not_exist_is_empty():
    assert parameter_curve(lambda p, q: math.nan, (0.5, 0.5), 0.1, ((0, 1), (0, 1))).shape == (0, 2)
