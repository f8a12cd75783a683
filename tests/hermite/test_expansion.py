"""Expansions: normalisations, remainders, refusals, and quadrature where there is no closed form."""

import math

import numpy as np
import pytest

from hermite import expansion, functions
from hermite.errors import NotReached, ShapeError, TooLarge, Undecided
from hermite.expansion import Expansion, expand


def by_hand(a, error=None, **more):
    """An expansion with the coefficients given."""
    a = np.array(a, dtype=float)
    error = np.zeros(a.size) if error is None else np.array(error)
    return Expansion("by hand", a, error, float(np.sum(a * a)), **more)


def test_derivative_means_are_the_orthonormal_coefficients_times_the_root_of_the_factorial():
    e = by_hand(np.ones(160))
    expected = [math.exp(math.lgamma(k + 1) / 2) for k in range(160)]
    assert np.allclose(e.derivative_means, expected, rtol=1e-12, atol=0)
    # integers under the root: exact where the factorial is a double
    assert e.derivative_means[5] == math.sqrt(120)


def test_derivative_means_beyond_the_doubles_are_refused():
    with pytest.raises(TooLarge, match="orthonormal"):
        _ = by_hand(np.ones(320)).derivative_means


def test_derivative_means_fit_when_only_the_root_of_the_factorial_does_not():
    a = np.zeros(311)
    a[310] = 1e-30
    expected = math.exp(math.lgamma(311) / 2 - 30 * math.log(10))
    assert by_hand(a).derivative_means[310] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    ("a", "parity"),
    [([0, 1, 0, 2], "odd"), ([1, 1, 0, 2], "odd+constant"), ([1, 0, 3], "even"), ([1, 1, 1], None)],
)
def test_parity_of_a_polynomial_is_read_from_its_exact_zeros(a, parity):
    assert by_hand(a, exact=True).parity == parity


def test_parity_of_a_truncated_series_is_only_what_its_symmetry_declares():
    assert by_hand([1, 0, 3]).parity is None
    assert by_hand([0, 1, 0], symmetry="odd").parity == "odd"


def test_expand_finds_the_coefficients_of_an_exponential():
    e = expand(lambda x: math.exp(0.7 * x), 20)
    exact = [math.exp(0.245) * 0.7**k / math.sqrt(math.factorial(k)) for k in range(21)]
    assert np.all(np.abs(e.orthonormal - exact) <= e.error)
    assert e.error.max() <= 1e-12 * math.exp(0.49)
    assert e.second_moment == pytest.approx(math.exp(0.98), rel=1e-12)


def test_expand_finds_the_kink_of_a_rectifier():
    e = expand(lambda x: max(0.0, x - 0.3), 30)
    phi, tail = math.exp(-0.045) / math.sqrt(2 * math.pi), math.erfc(0.3 / math.sqrt(2)) / 2
    assert abs(e.orthonormal[0] - (phi - 0.3 * tail)) <= e.error[0]
    assert abs(e.orthonormal[1] - tail) <= e.error[1]
    # He_2(0.3) phi / sqrt(4!)
    assert abs(e.orthonormal[4] - (0.09 - 1) * phi / math.sqrt(24)) <= e.error[4] <= 1e-12


def test_expand_finds_the_jump_of_a_sign():
    e = expand(lambda x: float(np.sign(x)), 7)
    assert e.orthonormal[1] == pytest.approx(math.sqrt(2 / math.pi), abs=1e-12)
    assert e.orthonormal[3] == pytest.approx(-math.sqrt(2 / math.pi) / math.sqrt(6), abs=1e-12)


def test_expand_refuses_what_it_cannot_reach():
    with pytest.raises(NotReached, match="finite"):
        expand(lambda x: math.inf if x > 30 else 0.0, 3)
    with pytest.raises(NotReached):
        expand(math.sin, 3, tolerance=1e-17)
    with pytest.raises(ValueError, match="tolerance"):
        expand(math.sin, 3, tolerance=0.0)


def test_tail_bounds_the_rest_of_a_known_series():
    full = functions.exponential(60, 1.1).orthonormal
    for order in (2, 5, 9):
        e = functions.exponential(order, 1.1)
        for j in (0, 1, 3):
            k = np.arange(order + 1, 61)
            left = math.sqrt(sum(full[i] ** 2 * math.perm(int(i), j) for i in k))
            # Parseval subtracts numbers of the size of the moment: its root loses half the digits
            slack = math.sqrt(1e-13 * e.moment(j))
            assert left <= e.tail(j) * (1 + 1e-12)
            assert e.tail(j) <= left + slack


def test_tail_of_a_lower_order_bounds_more():
    e = functions.logistic(101)
    long = functions.logistic(301)
    for j in (0, 2, 5):
        for order in (5, 40, 101):
            k = range(order + 1, 302)
            left = math.sqrt(sum(long.orthonormal[i] ** 2 * math.perm(i, j) for i in k if i >= j))
            assert left <= e.tail(j, order) <= 1.5 * left


def test_tail_of_a_finite_polynomial_is_zero_and_of_a_kink_infinite():
    assert functions.polynomial([1, 2, 3]).tail() == 0.0
    assert functions.polynomial([1, 2, 3]).tail(0, 1) == pytest.approx(3 * math.sqrt(2), rel=1e-14)
    assert functions.relu(10).tail(2) == math.inf


def test_tail_without_a_moment_is_refused():
    with pytest.raises(NotReached, match="derivative_moments"):
        expand(math.sin, 5).tail(1)


def test_information_exponent_is_the_first_order_that_is_not_zero():
    assert functions.logistic(5).information_exponent() == 1
    assert functions.cosine(6).information_exponent() == 2
    assert functions.polynomial([0, -3, 0, 1]).information_exponent() == 3
    assert functions.polynomial([3, 0, -6, 0, 1]).information_exponent() == 4
    assert functions.relu(4).information_exponent() == 1


def test_information_exponent_is_undecided_for_a_coefficient_within_its_error():
    with pytest.raises(Undecided, match="a_1"):
        expand(lambda x: x**3 - 3 * x, 5).information_exponent()
    with pytest.raises(Undecided):
        by_hand([0.0, 1e-9, 1.0], error=[0, 1e-8, 0]).information_exponent()
    with pytest.raises(Undecided):
        by_hand([0.0, 1e-3, 1.0]).information_exponent(tolerance=1e-2)
    assert by_hand([0.0, 1e-9, 1.0]).information_exponent() == 1


def test_information_exponent_of_a_constant_is_undecided():
    with pytest.raises(Undecided, match="constant"):
        functions.polynomial([2, 0, 0]).information_exponent()


def test_ill_formed_expansions_are_refused():
    with pytest.raises(ShapeError, match="error"):
        Expansion("x", np.ones(3), np.zeros(2), 3.0)
    with pytest.raises(TooLarge, match="finite"):
        Expansion("x", np.array([1.0, np.inf]), np.zeros(2), 3.0)
    with pytest.raises(ShapeError, match="zero marks"):
        by_hand([1.0, 2.0], zero=np.array([False, True]))
    with pytest.raises(ShapeError, match="symmetry"):
        by_hand([1.0], symmetry="skew")
    with pytest.raises(ValueError, match="read-only"):
        by_hand([1.0, 2.0]).orthonormal[0] = 5.0


def test_orthonormal_polynomials_have_unit_norm():
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    h = np.array(expansion.orthonormal_polynomials(30, nodes))
    gram = (h * weights) @ h.T / math.sqrt(2 * math.pi)
    assert np.abs(gram - np.eye(31)).max() < 1e-12
