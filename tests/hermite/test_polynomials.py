"""Hermite polynomials against SciPy, Rodrigues' formula and the product identities."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_hermitenorm

from hermite import polynomials
from hermite.errors import DegreeError, DomainError
from hermite.polynomials import evaluate

X = sympy.Symbol("x")


def rodrigues(k):
    """He_k from (-1)^k e^{x^2/2} d^k e^{-x^2/2}, an independent definition."""
    weight = sympy.exp(-(X**2) / 2)
    return sympy.expand(sympy.simplify((-1) ** k * sympy.diff(weight, X, k) / weight))


@pytest.mark.parametrize("k", range(9))
def test_symbolic_polynomials_are_those_of_rodrigues(k):
    assert sympy.expand(polynomials.symbolic(k, X) - rodrigues(k)) == 0


@pytest.mark.parametrize("k", [0, 1, 2, 5, 12, 30])
def test_values_agree_with_scipy(k):
    x = np.linspace(-6, 6, 41)
    expected = eval_hermitenorm(k, x)
    # both recurrences lose about an ulp a step, relative to the largest value around
    assert np.allclose(polynomials.evaluate(k, x), expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())


def test_coefficients_and_values_agree_exactly_on_fractions():
    x = Fraction(3, 7)
    for k in range(20):
        assert polynomials.evaluate(k, x) == sum(c * x**m for m, c in enumerate(polynomials.coefficients(k)))


def test_one_recurrence_serves_every_number_type():
    jax = pytest.importorskip("jax")
    assert polynomials.evaluate(5, 2) == -18
    assert polynomials.evaluate(5, np.int64(2)) == -18.0
    assert polynomials.evaluate(5, mpmath.mpf(2)) == -18
    assert sympy.expand(polynomials.evaluate(5, X)) == X**5 - 10 * X**3 + 15 * X
    assert jax.numpy.allclose(polynomials.evaluate(5, jax.numpy.array([2.0])), -18.0)
    assert polynomials.evaluate(0, float("inf")) == 1.0
    assert polynomials.evaluate(0, np.zeros((2, 3))).shape == (2, 3)


def test_integer_arrays_do_not_wrap_around():
    assert polynomials.evaluate(30, np.array([100]))[0] == pytest.approx(
        float(polynomials.evaluate(30, 100)), rel=1e-13
    )


def test_derivative_is_the_factor_times_the_lower_polynomial():
    for k in range(1, 10):
        factor, order = polynomials.derivative(k)
        assert sympy.expand(sympy.diff(rodrigues(k), X) - factor * rodrigues(order)) == 0
    assert polynomials.derivative(0)[0] == 0


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.fractions(-5, 5, max_denominator=9))
def test_products_of_polynomials_linearise(j, k, x):
    product = polynomials.evaluate(j, x) * polynomials.evaluate(k, x)
    assert product == sum(c * polynomials.evaluate(n, x) for n, c in polynomials.linearise(j, k).items())


@settings(derandomize=True, max_examples=25, deadline=None)
@given(st.lists(st.fractions(-9, 9, max_denominator=7), max_size=9))
def test_power_and_hermite_bases_convert_exactly_both_ways(given_coefficients):
    hermite = polynomials.from_power(given_coefficients)
    assert polynomials.to_power(hermite) == given_coefficients
    x = Fraction(-5, 3)
    power_value = sum(c * x**m for m, c in enumerate(given_coefficients))
    assert power_value == sum(b * polynomials.evaluate(k, x) for k, b in enumerate(hermite))


def test_conversion_keeps_sympy_rationals_exact():
    assert polynomials.from_power([0, 0, sympy.Rational(1, 3)]) == [
        sympy.Rational(1, 3),
        0,
        sympy.Rational(1, 3),
    ]


@pytest.mark.parametrize("bad", [-1, -7, True])
def test_degrees_that_are_not_counts_are_refused(bad):
    with pytest.raises(DegreeError, match="integer >= 0"):
        polynomials.coefficients(bad)
    with pytest.raises(DegreeError):
        polynomials.evaluate(bad, 0.0)


@pytest.mark.parametrize("x", [1.5, np.float64(1.5), np.array([1.5, np.inf]), 0.0])
def test_a_value_beyond_the_largest_number_is_refused(x):
    with pytest.raises(DomainError, match="He_400 is beyond the largest number of float64"):
        evaluate(400, x)


def test_where_float64_holds_the_value_it_is_that_of_exact_arithmetic():
    for k in (100, 250, 290):
        exact = evaluate(k, Fraction(3, 2))
        assert evaluate(k, 1.5) == pytest.approx(float(exact), rel=1e-10)
    assert abs(evaluate(400, Fraction(3, 2))) > 10**400
