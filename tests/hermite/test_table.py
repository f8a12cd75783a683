"""Compiled tables against the hafnian-free pairing sums of scaled Hermite variables and quadrature."""

from math import factorial, prod

import numpy as np
import pytest

from hermite import gaussian, quadrature
from hermite.errors import DegreeError, ShapeError, TooLarge
from hermite.polynomials import evaluate
from hermite.table import table


def covariance(n, seed, unit):
    """A positive definite covariance."""
    a = np.random.default_rng(seed).normal(size=(n, n + 1))
    matrix = a @ a.T / (n + 1)
    if unit:
        d = np.sqrt(np.diag(matrix))
        matrix = matrix / np.outer(d, d)
        np.fill_diagonal(matrix, 1.0)
    return matrix


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize(("n", "K"), [(2, 9), (3, 5), (4, 4)])
def test_every_entry_is_the_sum_over_multigraphs(n, K, unit):
    c = covariance(n, seed=n, unit=unit)
    result = table(c, K)
    expected = np.array([gaussian.expectation(d, c) for d in np.ndindex(*result.shape)]).reshape(result.shape)
    assert np.abs(result - expected).max() <= 1e-14 * np.abs(expected).max()


@pytest.mark.parametrize("unit", [True, False])
def test_entries_agree_with_quadrature(unit):
    c = covariance(3, seed=8, unit=unit)
    result = table(c, 6)
    for degrees in [(6, 6, 6), (5, 4, 3), (0, 6, 2), (1, 2, 5)]:

        def integrand(x, degrees=degrees):
            return prod(evaluate(k, row) for k, row in zip(degrees, x, strict=True))

        reference = quadrature.expectation(integrand, c, nodes=20)
        assert abs(result[degrees] - reference) <= 1e-11 * np.abs(result).max()


def test_large_degrees_match_the_lemma_at_the_far_corner():
    c = covariance(4, seed=1, unit=True)
    result = table(c, 12)
    for degrees in [(12, 12, 12, 12), (12, 0, 12, 0), (12, 11, 10, 9), (7, 12, 12, 5), (1, 0, 0, 1)]:
        assert abs(result[degrees] - gaussian.expectation(degrees, c)) <= 1e-14 * np.abs(result).max()


def test_two_variables_give_mehlers_diagonal():
    result = table([[1.0, 0.3], [0.3, 1.0]], 10)
    assert np.allclose(np.diag(result), [factorial(k) * 0.3**k for k in range(11)], rtol=1e-14, atol=0)
    assert np.count_nonzero(result - np.diag(np.diag(result))) == 0


def test_odd_total_degrees_are_exactly_zero_even_in_a_dirty_output():
    out = np.full((5,) * 4, np.nan)
    c = covariance(4, seed=4, unit=False)
    result = table(c, 4, out=out)
    assert result is out
    odd = np.indices(out.shape).sum(axis=0) % 2 == 1
    assert np.all(out[odd] == 0.0) and np.all(np.isfinite(out))
    assert np.array_equal(out, table(c, 4))


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("K", [0, 1, 2])
def test_small_tables_have_the_right_corner(n, K):
    c = covariance(n, seed=6, unit=False)
    result = table(c, K)
    assert result.shape == (K + 1,) * n
    for degrees in np.ndindex(*result.shape):
        assert result[degrees] == pytest.approx(gaussian.expectation(degrees, c), rel=1e-13, abs=1e-14)


def test_variables_may_be_permuted():
    c = covariance(4, seed=9, unit=False)
    order = [2, 0, 3, 1]
    moved = table(c[np.ix_(order, order)], 5)
    assert np.abs(np.transpose(table(c, 5), order) - moved).max() <= 1e-14 * np.abs(moved).max()


def test_wrong_arguments_are_refused():
    with pytest.raises(ShapeError, match="n = 2, 3 or 4"):
        table(np.eye(5), 2)
    with pytest.raises(ShapeError):
        table(np.ones((2, 3)), 2)
    with pytest.raises(ShapeError, match="symmetric"):
        table([[1.0, 0.5], [0.4, 1.0]], 2)
    with pytest.raises(ShapeError, match="symmetric"):
        table([[1.0, np.nan], [np.nan, 1.0]], 2)
    with pytest.raises(ShapeError, match="out"):
        table(np.eye(2), 2, out=np.empty((2, 2)))
    with pytest.raises(DegreeError):
        table(np.eye(2), -1)
    with pytest.raises(TooLarge):
        table([[1.0, 0.9], [0.9, 1.0]], 200)
