"""Vectors of given inner products: the factor of a Gram matrix that random draws are made with."""

import numpy as np

DEPENDENT = 1e-12
"""A vector whose squared part beside those before it is below this, of the largest square, depends on them."""


def root(gram: np.ndarray) -> np.ndarray:
    """L (n, n), lower triangular, L L^T = gram, by Cholesky's method; what depends on vectors before it has no column.

    Of vectors that are linearly dependent (v_2 = -v_1) too; of a matrix with negative eigenvalues, L belongs to the
    nearest one that has none.  L is not made of eigenvectors: those of equal eigenvalues are what rounding makes of
    them, so that draws L z would be others with every number of threads and on every processor.

    >>> root(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    array([[ 1.,  0.],
           [-1.,  0.]])
    """
    least = DEPENDENT * np.diagonal(gram).max(initial=0.0)
    try:
        found = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(gram)
        gram = (vectors * np.maximum(values, 0.0)) @ vectors.T
    else:
        if (np.diagonal(found) ** 2 > least).all():
            return found
    found = np.zeros(gram.shape)
    for j in range(len(gram)):
        column = gram[j:, j] - found[j:, :j] @ found[j, :j]
        if column[0] > least:
            found[j:, j] = column / np.sqrt(column[0])
    return found
