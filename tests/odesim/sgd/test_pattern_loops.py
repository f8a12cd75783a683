"""Sums over dense patches in blocks of four, against NumPy, for sizes around multiples of four."""

import numpy as np
import pytest

from odesim.sgd import pattern_loops


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11])
def test_products_of_rows_with_a_patch(size: int) -> None:
    rng = np.random.default_rng(size)
    rows, x, sums = rng.standard_normal((3, size)), rng.standard_normal(size), np.array([1.0, -2.0, 0.5])
    expected = sums + rows @ x
    pattern_loops.products(pattern_loops.flipped(rows), x, sums)
    np.testing.assert_allclose(sums, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("patches", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 4, 7, 9])
def test_a_block_of_dense_patches_is_collected(patches: int, count: int) -> None:
    rng, S = np.random.default_rng(10 * patches + count), 2
    dense, index = rng.standard_normal((12, patches, 6)), rng.permutation(12)[:count]
    change, G = rng.standard_normal((3, S + patches, count)), rng.standard_normal((3, 6))
    expected = G + np.einsum("jpi,ipc->jc", change[:, S:], dense[index])
    pattern_loops.collect_dense(dense, index, change, S, G)
    np.testing.assert_allclose(G, expected, rtol=1e-13, atol=1e-13)
