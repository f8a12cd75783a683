"""The factor of a Gram matrix: of dependent vectors, of one that is none, and the same whatever rounding does."""

import numpy as np
import pytest

from derivations.vectors import lower_product, root


def spanned(n, rank, seed=0):
    """n vectors of which `rank` are independent, the rest sums of two of these: rows (n, rank)."""
    rng = np.random.default_rng(seed)
    first = np.eye(rank)
    pairs = np.array([rng.choice(rank, 2, replace=False) for _ in range(n - rank)]).reshape(-1, 2).astype(int)
    return np.vstack([first, first[pairs[:, 0]] - first[pairs[:, 1]]])


@pytest.mark.parametrize(("n", "rank"), [(5, 5), (9, 6), (40, 25)])
def test_it_is_a_factor_with_a_column_for_every_independent_vector(n, rank):
    x = spanned(n, rank)
    found = root(x @ x.T)
    np.testing.assert_allclose(found @ found.T, x @ x.T, atol=1e-12)
    assert (np.abs(found).max(axis=0) > 1e-6).sum() == rank
    assert (np.triu(found, 1) == 0).all()


def test_rounding_of_the_matrix_moves_it_by_rounding():
    x = spanned(40, 25)
    noise = np.random.default_rng(1).normal(size=(40, 40)) * 1e-15
    moved = root(x @ x.T + noise + noise.T)
    assert np.abs(moved - root(x @ x.T)).max() < 1e-6
    # eigenvectors of equal eigenvalues do not stay where they are
    values = [np.linalg.eigh(gram)[1] for gram in (np.eye(40), np.eye(40) + noise + noise.T)]
    assert np.abs(values[0] - values[1]).max() > 0.1


def test_of_a_matrix_with_negative_eigenvalues_it_is_that_of_the_nearest_without():
    gram = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
    values, vectors = np.linalg.eigh(gram)
    assert values.min() < -0.7
    found = root(gram)
    np.testing.assert_allclose(found @ found.T, (vectors * np.maximum(values, 0)) @ vectors.T, atol=1e-12)


@pytest.mark.parametrize("n", [1, 3, 8, 50])
def test_the_product_with_a_lower_triangle_is_the_whole_product(n):
    rng = np.random.default_rng(0)
    lower, columns = np.tril(rng.normal(size=(n, n))), rng.normal(size=(n, 7))
    np.testing.assert_allclose(lower_product(lower, columns), lower @ columns, rtol=1e-13, atol=1e-13)
