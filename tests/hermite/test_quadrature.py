"""The independent means themselves, against integrals known in closed form."""

import math

import mpmath
import numpy as np
import pytest

from hermite import quadrature
from hermite.errors import DegreeError, DomainError, NotReached, ShapeError


def test_products_of_cosines_integrate_to_their_characteristic_function():
    c = np.array([[1.0, 0.3, 0.2], [0.3, 0.8, -0.1], [0.2, -0.1, 1.2]])
    t = np.array([0.5, -0.4, 0.7])
    value = quadrature.expectation(lambda x: np.cos(t @ x), c, nodes=24)
    assert value == pytest.approx(math.exp(-0.5 * t @ c @ t), abs=1e-13)


def test_singular_covariances_are_allowed():
    assert quadrature.expectation(lambda x: x[0] * x[1] ** 3, np.ones((2, 2)), nodes=8) == pytest.approx(3, rel=1e-12)


def test_four_variables_fit():
    value = quadrature.expectation(lambda x: np.prod(x, axis=0), np.eye(4) + 0.25 * (1 - np.eye(4)), nodes=6)
    assert value == pytest.approx(3 * 0.0625, rel=1e-12)


SHARP = {  # E of steps and kinks in closed form: arcsine laws
    "step step": (lambda x: (x[0] > 0) * (x[1] > 0), lambda r: 0.25 + math.asin(r) / (2 * math.pi)),
    "relu relu": (
        lambda x: np.maximum(x[0], 0) * np.maximum(x[1], 0),
        lambda r: (math.sqrt(1 - r * r) + r * (math.pi / 2 + math.asin(r))) / (2 * math.pi),
    ),
    "abs abs": (
        lambda x: np.abs(x[0] * x[1]),
        lambda r: 2 / math.pi * (math.sqrt(1 - r * r) + r * math.asin(r)),
    ),
}


@pytest.mark.parametrize("name", SHARP)
@pytest.mark.parametrize("rho", [0.0, 0.3, -0.6, 0.95, 0.999])
@pytest.mark.parametrize("nodes", [10, 33, 48])
def test_steps_and_kinks_have_an_error_estimate_and_are_refused(name, rho, nodes):
    integrand, exact = SHARP[name]
    covariance = [[1.0, rho], [rho, 1.0]]
    value, error = quadrature.estimate(integrand, covariance, nodes)
    assert abs(value - exact(rho)) <= error
    with pytest.raises(NotReached, match=r"an integrand with steps or kinks needs monte_carlo"):
        quadrature.expectation(integrand, covariance, nodes)


def test_a_kink_passes_where_the_tolerance_is_above_its_error_and_not_below():
    integrand, exact = SHARP["relu relu"]
    value, error = quadrature.estimate(integrand, np.eye(2))
    assert quadrature.expectation(integrand, np.eye(2), tolerance=1.01 * error / value) == value  # it is positive
    assert value == pytest.approx(exact(0.0), rel=0.05)
    with pytest.raises(NotReached):
        quadrature.expectation(integrand, np.eye(2), tolerance=0.99 * error / value)


@pytest.mark.parametrize("rho", [0.5, 0.999, 1.0])
def test_the_estimate_is_small_where_the_integrand_is_smooth(rho):
    value, error = quadrature.estimate(lambda x: np.exp(0.3 * x[0] + 0.2 * x[1]), [[1.0, rho], [rho, 1.0]])
    exact = math.exp(0.5 * (0.09 + 0.04 + 2 * 0.06 * rho))
    assert abs(value - exact) <= error < 1e-12


def test_four_variables_are_compared_with_half_the_nodes():
    spins = np.eye(4) + 0.25 * (1 - np.eye(4))
    value, error = quadrature.estimate(lambda x: np.exp(0.2 * x.sum(axis=0)), spins, nodes=24)
    assert abs(value - math.exp(0.02 * spins.sum())) <= error < 1e-10


def test_monte_carlo_is_within_its_standard_error():
    mean, standard_error = quadrature.monte_carlo(lambda x: np.exp(x[0] + x[1]), 0.1 * np.eye(2), 100_000, seed=3)
    exact = math.exp(0.1)
    assert abs(mean - exact) < 4 * standard_error
    deviation = math.sqrt(math.exp(0.4) - math.exp(0.2))
    assert standard_error == pytest.approx(deviation / math.sqrt(100_000), rel=0.05)


def test_mpmath_coefficients_have_the_digits_asked():
    with mpmath.workdps(40):
        exact = mpmath.exp(mpmath.mpf(1) / 8) / 2**40
        assert (
            abs(quadrature.coefficient_mpmath(lambda x: mpmath.exp(x / 2), 40, 30) / exact - 1) < mpmath.mpf(10) ** -29
        )
        kink = quadrature.coefficient_mpmath(lambda x: abs(x), 2, 25, breakpoints=[0])
        assert abs(kink - mpmath.sqrt(2 / mpmath.pi)) < mpmath.mpf(10) ** -24


def test_coefficients_that_vanish_come_back_tiny():
    assert abs(quadrature.coefficient_mpmath(mpmath.tanh, 6, 15, depth=20)) < 1e-15


def test_what_is_no_covariance_is_refused():
    with pytest.raises(DomainError, match="eigenvalue"):
        quadrature.factor([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ShapeError):
        quadrature.factor([[1.0, 0.5], [0.4, 1.0]])
    with pytest.raises(ShapeError):
        quadrature.factor(np.ones(3))
    with pytest.raises(DegreeError):
        quadrature.expectation(lambda x: x[0], np.eye(5))
    with pytest.raises(DegreeError):
        quadrature.monte_carlo(lambda x: x[0], np.eye(1), samples=1)
