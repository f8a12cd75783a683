"""Vectors of given inner products: the factor of a Gram matrix that random draws are made with."""

import itertools

import numpy as np

DEPENDENT = 1e-12
"""A vector whose squared part beside those before it is below this, of the largest square, depends on them."""

NEARLY = 1e-6
"""The same for the order of vectors: below it another order keeps more digits."""


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


def lower_product(lower: np.ndarray, columns: np.ndarray, parts: int = 8) -> np.ndarray:
    """Return L y for a lower triangular L (n, n) and y (n, N), without most of the products with zeros above it.

    The rows are taken in `parts`; those of a part need the entries of y up to its last row only.

    >>> lower_product(np.array([[1.0, 0.0], [2.0, 3.0]]), np.array([[1.0], [1.0]]))
    array([[1.],
           [5.]])
    """
    product = np.empty((len(lower), columns.shape[1]))
    edges = np.linspace(0, len(lower), parts + 1).astype(int)
    for first, last in itertools.pairwise(edges):
        np.matmul(lower[first:last, :last], columns[:last], out=product[first:last])
    return product


def thin_root(gram: np.ndarray) -> np.ndarray:
    """A factor L (n, rank), L L^T = gram, without empty columns: `root`, or one with pivots where that is unsafe.

    Of more vectors than dimensions, in their order, one that nearly depends on those before it turns the rounding of
    all that follow into a part of about 1e-13 outside of the span: 1 in 300 matrices got a column too many.  The
    largest part goes first instead.

    >>> thin_root(np.array([[1.0, -1.0], [-1.0, 1.0]])).round(12).tolist()
    [[1.0], [-1.0]]
    """
    triangle = root(gram)
    if (np.diagonal(triangle) ** 2 > NEARLY * np.diagonal(gram).max(initial=0.0)).all():
        return triangle
    left, columns = np.array(gram, float), []
    least = DEPENDENT * np.diagonal(gram).max(initial=0.0)
    while len(columns) < len(gram) and np.diagonal(left).max() > least:
        first = int(np.diagonal(left).argmax())
        columns.append(left[:, first] / np.sqrt(left[first, first]))
        left = left - np.outer(columns[-1], columns[-1])
    return np.array(columns).T.reshape(len(gram), len(columns))


def grams_by_block(rows: np.ndarray, dimension: np.ndarray) -> np.ndarray:
    """Gram matrices (.., L, n, n) of the parts of rows (.., n, d) in blocks of `dimension` (L,) coordinates.

    >>> grams_by_block(np.array([[1.0, 2.0, 3.0]]), np.array([1, 2]))[:, 0, 0].tolist()
    [1.0, 13.0]
    """
    parts = np.split(rows, np.cumsum(dimension)[:-1], axis=-1)
    return np.stack([part @ np.swapaxes(part, -1, -2) for part in parts], axis=-3)
