"""Order parameters that a flow of overlaps couples strongly: those between the same two clusters of vectors.

dG_ab/dt = sum_c (C_ac G_cb + C_bc G_ca): an entry (a, b) depends on (c, b) through the overlap of a and c. Entries of
other clusters therefore enter its derivative only with small factors.
"""

import numpy as np

LEVELS, LARGEST = (0.2, 0.5, 0.8, 0.95), 16
"""Overlaps above this couple two vectors strongly. On a plateau overlaps are near 0 or near their limit. Elsewhere the
level is the lowest one at which every cluster has at most `LARGEST` vectors.
"""


def clusters(overlaps: np.ndarray) -> np.ndarray:
    """The cluster (n,) of every vector, from overlaps (n, n) between unit vectors: connected components above a level.

    >>> clusters(np.array([[1.0, 0.9, 0.0], [0.9, 1.0, -0.1], [0.0, -0.1, 1.0]])).tolist()
    [0, 0, 1]
    """
    sizes, cluster = np.abs(overlaps), np.arange(len(overlaps))
    for level in LEVELS:
        cluster = components(sizes > level)
        if np.bincount(cluster).max() <= LARGEST:
            break
    return cluster


def components(joined: np.ndarray) -> np.ndarray:
    """The connected component (n,) of every vertex of a graph, from the symmetric matrix (n, n) of its edges.

    Numbered by their first vertices, as `scipy.sparse.csgraph.connected_components` does, in a tenth of its time for
    the few vectors of a model: the smallest number spreads along edges until it is constant.

    >>> components(np.array([[0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]], bool)).tolist()
    [0, 1, 0, 1]
    """
    label = np.arange(len(joined))
    while True:
        least = np.minimum(label, np.where(joined, label, len(label)).min(axis=1, initial=len(label)))
        if np.array_equal(least, label):
            return (np.cumsum(label == np.arange(len(label))) - 1)[label]
        label = least[least]  # and to its earlier predecessors


def labels(cluster: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Whole numbers (entries,) of overlaps between the vectors `first` and `second`: equal for the same two clusters.

    >>> labels(np.array([0, 0, 1]), np.array([0, 1, 0, 2]), np.array([2, 2, 1, 2])).tolist()
    [1, 1, 0, 2]
    """
    low, high = np.minimum(cluster[first], cluster[second]), np.maximum(cluster[first], cluster[second])
    return np.unique(low * cluster.size + high, return_inverse=True)[1]
