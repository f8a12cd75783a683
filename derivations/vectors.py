"""Vectors with given inner products: factors of a Gram matrix for random draws."""

import itertools

import numpy as np

DEPENDENT = 1e-12
"""A vector depends on earlier ones if its squared part orthogonal to them is below this, relative to the largest
square.
"""

NEARLY = 1e-6
"""Threshold for the order of vectors: below it another order keeps more digits."""


def root(gram: np.ndarray) -> np.ndarray:
    """L (n, n), lower triangular, L L^T = gram, by Cholesky's method; a vector that depends on earlier ones has no
    column.

    Linearly dependent vectors (v_2 = -v_1) are allowed. For a matrix with negative eigenvalues, L belongs to the
    nearest one without. L is not made of eigenvectors: rounding determines those of equal eigenvalues, so that draws L
    z would depend on the number of threads and on the processor.

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

    With more vectors than dimensions, in their order, a vector that nearly depends on earlier ones amplifies the
    rounding of all later ones to a part of about 1e-13 outside of the span. In tests 1 of 300 matrices had one column
    too many. Therefore the vector with the largest part is first.

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
