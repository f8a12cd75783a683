"""Strongly coupled vectors: connected components, against SciPy's."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from derivations.clusters import components


def test_components_are_those_of_scipy_with_the_same_numbers():
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 60))
        edges = rng.random((size, size)) < rng.uniform(0.0, 3.0) / size
        edges |= edges.T
        assert np.array_equal(components(edges), connected_components(csr_array(edges), directed=False)[1])


def test_a_long_path_in_any_order_is_one_component():
    order = np.random.default_rng(1).permutation(300)
    edges = np.zeros((300, 300), bool)
    edges[order[:-1], order[1:]] = edges[order[1:], order[:-1]] = True
    assert not components(edges).any()
