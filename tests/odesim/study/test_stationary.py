"""Classes of stationary points against an independent solution of the committee in mpmath, and by their symmetry."""

import math
import time

import mpmath
import numpy as np
import pytest

import odesim
from odesim.machine import device
from odesim.request.case import Case
from odesim.study.root_search import levenberg_marquardt
from odesim.study.stationary import polish, stationary_points
from odesim.study.symmetry import symmetries
from odesim.study.vector_field import VectorField
from tests.odesim.study import erf_committee


def committee(k):
    return odesim.declare(student={"unit": "erf(w/sqrt(2))", "units": k}, teacher={"units": k})


def plateau(k):
    """Loss of the symmetric plateau of K = M units (Saad & Solla 1995)."""
    return k / math.pi * (math.pi / 6 - k * math.asin(1 / (2 * k)))


POINTS = {
    # loss to 8 digits: (index, orbit, rows of the units, starting values of the free entries)
    0.01378925: (1, 6, ["abb", "bab", "bba"], {"a": -0.119, "b": 0.496}),
    0.01424489: (2, 18, ["pqr", "stt", "prq"], {"p": 0.409, "q": -0.135, "r": 0.649, "s": 0.061, "t": 0.344}),
    0.01563754: (3, 9, ["aba", "aba", "cdc"], {"a": 0.150, "b": 0.483, "c": 0.566, "d": -0.172}),
    0.07579898: (0, 18, ["aba", "cdc", "efe"],
                 {"a": 1.432, "b": 1.020, "c": 1.215, "d": 1.852, "e": -1.774, "f": -1.983}),
    0.07583686: (1, 18, ["abc", "ded", "cba"], {"a": 1.660, "b": 1.332, "c": 1.074, "d": -1.866, "e": -1.799}),
    0.07665940: (1, 18, ["aab", "ccd", "eef"],
                 {"a": 0.927, "b": 1.788, "c": -0.999, "d": -1.399, "e": 1.206, "f": 0.846}),
    0.07683466: (2, 18, ["aba", "cde", "edc"], {"a": -1.132, "b": -1.001, "c": 0.829, "d": 1.070, "e": 1.470}),
    0.07766955: (2, 3, ["aaa", "bbb", "bbb"], {"a": -1.980, "b": 1.298}),
}  # fmt: skip


@pytest.fixture(scope="module")
def three():
    """The atlas of K = M = 3, and how long it took."""
    begin = time.perf_counter()
    found = odesim.atlas(committee(3))
    return found, time.perf_counter() - begin


def by_loss(found, loss):
    """The number of the one class with a loss."""
    (k,) = np.flatnonzero(np.abs(found["loss"] - loss) < 1e-8)
    return k


def test_the_committee_of_two_has_the_perfect_state_and_the_plateau():
    found = odesim.atlas(committee(2))
    np.testing.assert_allclose(found["loss"], [0.0, plateau(2)], atol=1e-12)
    assert plateau(2) == pytest.approx(0.011610840313, abs=1e-12)
    assert found["index"].tolist() == [0, 1] and found["orbit"].tolist() == [2, 1]
    assert found["null"].tolist() == [0, 1] and found["null_outside"].tolist() == [0, 1]
    assert found.numbers["units"] == ["", "1 = 2"] and found.numbers["symmetries"] == 4
    np.testing.assert_allclose(found["M_ww"][1], 1 / math.sqrt(6), atol=1e-12)
    np.testing.assert_allclose(found["Q_ww"][1], 1 / 3, atol=1e-12)


def test_the_committee_of_three_has_twelve_classes(three):
    found, seconds = three
    assert len(found["loss"]) == 12 and found.numbers["stable"] == 2
    assert seconds < 60  # 6 s on one busy core of two
    assert found["residual"].max() < 1e-14
    for loss, index, orbit in ((0.0, 0, 6), (plateau(2), 1, 9), (plateau(3), 4, 1)):
        k = by_loss(found, loss)
        assert abs(found["loss"][k] - loss) < 1e-12
        assert (found["index"][k], found["orbit"][k]) == (index, orbit)


@pytest.mark.parametrize("loss", POINTS)
def test_losses_and_indices_of_the_committee_of_three_are_those_of_mpmath(three, loss):
    found, _ = three
    index, orbit, rows, start = POINTS[loss]
    exact, u, residual = erf_committee.solve([list(row) for row in rows], start)
    k = by_loss(found, loss)
    assert residual < 1e-24
    assert abs(found["loss"][k] - float(exact)) < 1e-12
    curvature = np.linalg.eigvalsh(erf_committee.hessian(u, 3))
    outside = np.linalg.eigvalsh(erf_committee.curvature_outside(u, 3))
    assert (curvature < -1e-6).sum() == index == found["index"][k]
    assert (outside < -1e-6).sum() == found["index_outside"][k]
    assert orbit == found["orbit"][k]
    np.testing.assert_allclose(np.sort(-found["eigenvalues"][k]), curvature, atol=1e-8)
    np.testing.assert_allclose(np.sort(-found["eigenvalues_outside"][k]), outside, atol=1e-8)


def test_three_opposed_units_are_one_unit_of_the_mean_teacher(three):
    # With u, u, -u the committee is one unit along (1, 1, 1)/sqrt(3); its length solves a scalar equation.
    found, _ = three

    def slope(q):  # d/dq of the loss of one unit of squared norm q whose overlap with every teacher is sqrt(q/3)
        c = mpmath.sqrt(q / 3)
        one = lambda x: (2 / mpmath.pi) * mpmath.asin(x / (1 + x)) / 2  # noqa: E731
        mixed = lambda x: (2 / mpmath.pi) * 3 * mpmath.asin(mpmath.sqrt(x / 3) / mpmath.sqrt(2 * (1 + x)))  # noqa: E731
        assert c > 0
        return mpmath.diff(lambda x: one(x) - mixed(x), q)

    q = mpmath.findroot(slope, 3.1)
    k = by_loss(found, 0.07978618)
    assert abs(found["Q_ww"][k][0, 0] - float(q)) < 1e-10
    exact = (
        mpmath.asin(q / (1 + q)) / mpmath.pi
        - (6 / mpmath.pi) * mpmath.asin(mpmath.sqrt(q / 3) / mpmath.sqrt(2 * (1 + q)))
        + mpmath.mpf(1) / 2
    )
    assert abs(found["loss"][k] - float(exact)) < 1e-12
    assert found["index"][k] == 3 and found["orbit"][k] == 3


@device.in_double
def test_a_degenerate_point_is_found_exactly_before_its_eigenvalues_are_counted():
    # Along the plateau's null direction F is of third order: Levenberg-Marquardt stops at |F| = 1e-11 some 1e-4 away,
    # and there no eigenvalue is below 1e-9.
    field = VectorField(Case.build(committee(2)))
    values = field.values()
    group = symmetries(field, values)
    exact = np.full(4, 1 / math.sqrt(6))

    def evaluate(x):
        f, j = zip(*(field.evaluate(point, values) for point in x), strict=True)
        return np.array(f), np.array(j)

    (away,), (size,) = levenberg_marquardt(evaluate, exact + 0.05 * np.array([[0.5, 1.0, -1.0, -0.2]]), steps=250)
    assert size < 1e-11
    assert 1e-5 < np.abs(away - exact).max() < 1e-3
    _, j = field.evaluate(away, values)
    assert (np.abs(np.linalg.eigvals(np.asarray(j))) < 1e-9).sum() == 0
    point, residual = polish(evaluate, group, away)
    np.testing.assert_allclose(point, exact, atol=1e-13)
    assert residual < 1e-14
    assert (np.abs(np.linalg.eigvals(np.asarray(field.evaluate(point, values)[1]))) < 1e-9).sum() == 1


def test_vectors_have_fewer_growing_directions_than_the_gram_matrix():
    # At u = 0 all of d K directions grow; two vectors in the span of two teachers have four, and two for every
    # dimension beyond. The Gram matrix has four in M and three in Q, whose rates are sums of those of vectors.
    model = odesim.declare(student={"unit": "w^2", "units": 2}, teacher={"units": 2})
    found = odesim.atlas(model, starts=60)
    k = int(np.argmax(found["loss"]))
    assert found.numbers["units"][k] == "1 = 0, 2 = 0"
    assert (found["index"][k], found["index_outside"][k]) == (4, 2)
    zero = {"Q_ww": np.zeros((2, 2)), "M_ww": np.zeros((2, 2))}
    gram = odesim.linearise(Case.build(model), state=zero, method="forward mode")
    assert (gram.eigenvalues.real > 1e-6).sum() == 7


def test_points_of_a_manifold_are_one_class():
    # f = (u.x)^2 + (v.x)^2 is invariant under rotations of (u, v): its zeros of the loss are a circle.
    found = odesim.atlas(odesim.declare(student={"unit": "w^2", "units": 2}, teacher={"units": 2}), starts=60)
    k = int(np.argmin(found["loss"]))
    assert found["orbit"][k] == -1 and found["null"][k] == 1 and found["count"][k] > 10
    assert "manifold" in found.tables()["classes"][1][k]


def test_one_unit_on_a_sphere_has_two_poles_and_no_centre():
    # In the span of its one teacher a unit vector is +-t: no direction is left there, and those out of it decide.
    found = odesim.atlas("ben_arous_2021", starts=40)
    np.testing.assert_allclose(found["loss"], [-6.0, 6.0], atol=1e-12)
    np.testing.assert_allclose(found["M_ww"].ravel(), [1.0, -1.0], atol=1e-12)
    assert found["eigenvalues"].shape == (2, 0)
    np.testing.assert_allclose(found["eigenvalues_outside"].ravel(), [-18.0, 18.0], atol=1e-9)
    assert found["index"].tolist() == [0, 0] and found["index_outside"].tolist() == [0, 1]


@device.in_double
def test_online_classes_have_gram_matrices_and_vanishing_rates():
    model = odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 2}, teacher={"units": 2, "noise": 0.3},
        training={"limit": "online", "step": 0.5},
    )  # fmt: skip
    field = VectorField(Case.build(model))
    values = field.values()
    points, search = stationary_points(field, values, starts=100)
    assert [p.index for p in points] == [0, 1, 3] and search.outside_cone > 0
    for point in points:
        assert field.least(point.x, values) > -1e-10
        there = odesim.linearise(Case.build(model), state=dict(point.state))
        assert there.residual < 1e-14


def test_levenberg_marquardt_rejects_steps_to_where_f_is_not_finite():
    # F = log(x) - 1 beyond a pole: Gauss-Newton from 0.05 would jump to below 0 elsewhere, and 20 goes to -20.
    def evaluate(x):
        with np.errstate(invalid="ignore"):
            return np.log(x) - 1, (1 / x)[..., None]

    ends, sizes = levenberg_marquardt(evaluate, np.array([[0.05], [20.0], [-1.0]]))
    np.testing.assert_allclose(ends[:2, 0], math.e, rtol=1e-12)
    assert np.isinf(sizes[2])


def test_a_search_is_repeatable_and_says_what_it_did():
    one, two = (odesim.atlas("arnaboldi_2023", starts=40, seed=3) for _ in range(2))
    assert one.summary() == two.summary()
    assert one.numbers["arrived"] <= one.numbers["starts"]
    np.testing.assert_array_equal(one["M_ww"], two["M_ww"])


def test_starts_that_stop_on_the_way_to_a_nearly_degenerate_point_are_no_classes():
    # At the step 0.006 norms of equal units are exchanged at rates of 5e-7, and |F| = 1e-11 is reached far from rest.
    model = odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 2}, teacher={"units": 2},
        training={"limit": "online", "step": 0.006},
    )  # fmt: skip
    found = odesim.atlas(model, starts=100)
    assert found["index"].tolist() == [0, 1, 3]
    assert found["residual"].max() < 1e-15
    assert found["loss"][1] == pytest.approx(plateau(2), abs=5e-5)
