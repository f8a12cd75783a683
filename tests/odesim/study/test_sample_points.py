"""Quadrature points that lie farther out where rare samples decide the covariance of a step."""

import numpy as np
import pytest

import odesim
from odesim.flow.problem import prepare
from odesim.request.case import Case
from odesim.sgd.increments import sobol_points
from odesim.sgd.simulation import Simulation
from odesim.study import band_question, linearisation, sample_points
from odesim.study.local_dynamics import local

HEAVY = odesim.declare(
    student={"unit": "relu(w)", "units": 2}, teacher={"unit": "He(4, w)/sqrt(24)", "gram": 0.0},
    training={"loss": "correlation", "weights": "sphere", "limit": "online", "step": 0.1}, start={"overlap": 0.3},
)  # fmt: skip
LIGHT = odesim.declare(
    student={"unit": "erf(w/sqrt(2))"}, teacher={}, training={"limit": "online", "step": 0.5}, start={"overlap": 0.3}
)
RELU = {
    "student": {"unit": "relu(w)", "units": 2}, "teacher": {"units": 2}, "start": {"overlap": 0.4},
    "training": {"limit": "online", "step": 1.0},
}  # fmt: skip


def ready(system):
    case = Case.build(system, {"d": 10**6}, until=1.0, backend=None)
    return band_question.prepared(Simulation.build(case, method="compressed")).setting


def sampled(system, **parameters):
    return prepare(Case.build(system, {"tier": "sampled", **parameters}, until=1.0, backend="numba"))


@pytest.mark.parametrize("width", [1.0, 1.25, 1.5, 2.0])
def test_points_of_any_spread_have_the_moments_of_the_samples(width):
    points = sobol_points(None, 3, (0, 1), 14, width=width)
    moments = np.array([points.weights @ points.span**k for k in (0, 1, 2, 3, 4)])
    assert np.abs(moments - np.array([1, 0, 1, 0, 3])[:, None]).max() < 0.03
    assert abs(points.weights @ points.normals[:, 0] ** 2 - 1) < 0.03


def test_a_high_moment_is_known_better_by_wider_points():
    errors = []
    for width in (1.0, 1.5):
        found = [sobol_points(None, 3, (0, 0), 12, seed, width) for seed in range(8)]
        errors.append(np.std([points.weights @ points.span[:, 0] ** 12 / 10395 for points in found]))
    assert errors[1] < errors[0] / 4


def test_wider_points_are_taken_where_tails_are_heavy_alone():
    assert np.ptp(ready(LIGHT).increments.points.weights) == 0
    assert np.ptp(ready(HEAVY).increments.points.weights) > 0


def test_the_covariance_of_a_heavy_step_is_that_of_many_random_samples():
    # c = -He_4(z)/sqrt(24) step(u); M moves by -eta c z, of which E[He_4(z)^2 z^2 step(u)]/24 = 216/48 where z, u are
    # uncorrelated.
    system = odesim.declare(
        student={"unit": "relu(w)"}, teacher={"unit": "He(4, w)/sqrt(24)"},
        training={"loss": "correlation", "weights": "free", "limit": "online", "step": 0.1}, start={"overlap": 0.0},
    )  # fmt: skip
    own = ready(system)
    node = local(own.problem, own.increments, own.clock, 0.0, own.problem.start)
    place = own.problem.equations.layout.places("M_ww", own.problem.start.size)[0, 0]
    assert node.covariance[place, place] == pytest.approx(0.1**2 * 216 / 48, rel=0.05)


def test_the_error_of_a_variance_is_that_of_random_points():
    own = ready(LIGHT)
    step = (own.clock.d, own.clock.step_size)
    told = sample_points.relative_error(own.increments, own.problem.initial, step)
    changes, _ = own.increments.of_step(own.problem.initial, *step, 0.0)
    # Independent groups of points scatter by the error of one group.
    parts = np.random.default_rng(0).permutation(changes)[: 64 * 256].reshape(64, 256, -1)
    variances = parts.var(axis=1)
    moving = variances.mean(0) > 1e-9 * variances.max()
    seen = (variances.std(0)[moving] / np.sqrt(64) / variances.mean(0)[moving]).max()
    assert told == pytest.approx(seen, rel=0.5)


def test_the_jacobian_of_a_sampled_flow_with_kinks_counts_the_points_that_change_sides():
    own = sampled(odesim.declare(**RELU))
    fine = sampled(odesim.declare(**RELU), points=2**18, sample_seed=5)
    assert own.smooth.rough and own.smooth.kinks
    found = linearisation.fast_jacobian(own, 0.0, own.start)
    known = linearisation.fast_jacobian(fine, 0.0, own.start)
    forward = linearisation.forward(own, 0.0, own.start)  # where every step function has derivative 0
    away, wrong = (np.linalg.norm(each - known) / np.linalg.norm(known) for each in (found, forward))
    assert away < 0.2 and wrong > 0.3


def test_the_jacobian_of_a_sampled_flow_without_kinks_is_that_of_its_points():
    smooth = {**RELU, "student": {"unit": "tanh(w)", "units": 2}}
    own = sampled(odesim.declare(**smooth))
    jacobian = linearisation.fast_jacobian(own, 0.0, own.start)
    move = 1e-4 * np.random.default_rng(0).standard_normal(own.start.size)
    slope = linearisation.compiled(own)
    seen = (slope(0.0, own.start + move) - slope(0.0, own.start - move)) / 2
    assert np.abs(jacobian @ move - seen).max() < 1e-6 * np.abs(seen).max()
