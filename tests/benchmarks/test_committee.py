"""The committee of the benchmarks is the one its equations say, or its timings would mean nothing."""

import numpy as np
import pytest

from benchmarks import committee

STEP = 0.3


@pytest.fixture(scope="module")
def flow():
    """The compiled right-hand side."""
    return committee.compiled()


def test_its_kernels_and_loops_are_the_mean_of_one_step(flow):
    p, k, samples = 2, 3, 400_000
    rng = np.random.default_rng(5)
    w, teacher = rng.standard_normal((p, 6)) * 0.4, np.linalg.qr(rng.standard_normal((6, k)))[0].T
    upper = np.triu_indices(p)
    y = np.concatenate([(w @ teacher.T).ravel(), (w @ w.T)[upper]])
    x = rng.standard_normal((samples, 6))
    local, target = x @ w.T, x @ teacher.T
    error = (target**3 - 3 * target).sum(axis=1) - (local**3 - 3 * local).sum(axis=1)
    pull = 3 * (local**2 - 1) * error[:, None]
    M = pull[:, :, None] * target[:, None, :]
    cross = pull[:, :, None] * local[:, None, :]
    Q = cross + cross.transpose(0, 2, 1) + STEP * pull[:, :, None] * pull[:, None, :]
    drawn = np.concatenate([M.reshape(samples, -1), Q[:, upper[0], upper[1]]], axis=1)
    z = (drawn.mean(axis=0) - flow(0.0, y, p, k, STEP)) / (drawn.std(axis=0) / np.sqrt(samples))
    assert np.abs(z).max() < 4, z


def test_the_expression_given_to_the_peers_is_the_same_function(flow):
    y = committee.state(2, seed=1)
    np.testing.assert_allclose(np.array(committee.flat(2, list(y), STEP)), flow(0.0, y, 2, 2, STEP), rtol=1e-12)
