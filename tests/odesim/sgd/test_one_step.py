"""One step at d = 1e9 against moments in closed form: He_3 regression of a single vector, by Gauss-Hermite quadrature.

v' is not normalised here: with |v| = |v*| = 1, overlap q, coefficient c(v.x, v*.x) and one sample,
g.v* = c (v*.x) and |g|^2 = c^2 |x|^2, whose mean is E c^2 (u^2 + w^2) + (d - 2) E c^2 with u, w the coordinates in the
span.  All moments needed are integrals of polynomials of degree at most 26 over two Gaussians: 40 nodes are exact.
"""

import numpy as np
import pytest

Q, STEP, D = 0.3, 1e-6, 10**9


@pytest.fixture(scope="module")
def plain_model():
    """The benchmark's single-index model with a step that does not go back to the sphere."""
    from bare_models import regression

    return regression.MODEL, regression.Parameters(D)


def expectation(function):
    """E f(u, w) over independent standard normals."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    u, w = np.meshgrid(nodes, nodes, indexing="ij")
    return float((function(u, w) * np.outer(weights, weights)).sum())


def coefficient(u, w):
    """(He_3(v.x) - He_3(v*.x)) He_3'(v.x) with v.x = u and v*.x = Q u + sqrt(1 - Q^2) w."""
    t = Q * u + np.sqrt(1 - Q * Q) * w
    return (u**3 - 3 * u - t**3 + 3 * t) * (3 * u * u - 3)


@pytest.mark.parametrize("batch", [1, 32])
@pytest.mark.parametrize("kind", ["numba", "jax"])
def test_one_step_at_a_billion_dimensions_has_the_exact_moments(plain_model, kind, batch):
    from conftest import run_engine

    model, parameters = plain_model
    gram = np.array([[1.0, Q], [Q, 1.0]])
    replicas = 20_000 if kind == "jax" else 8_000
    grams = run_engine(kind, model, parameters, gram, batch, STEP, 1, replicas, seed=3)
    moved = (Q - grams[:, 0, 1]) / STEP  # the batch mean of c (v*.x)
    growth = (grams[:, 0, 0] - 1) / STEP  # -2 g.v + step |g|^2

    def along(u, w):
        return coefficient(u, w) * (Q * u + np.sqrt(1 - Q * Q) * w)

    first = expectation(along)
    spread = np.sqrt((expectation(lambda u, w: along(u, w) ** 2) - first**2) / batch / replicas)
    assert abs(moved.mean() - first) < 4 * spread
    inner = expectation(lambda u, w: coefficient(u, w) * u)
    mean_c = [inner, expectation(lambda u, w: coefficient(u, w) * w)]
    square = expectation(lambda u, w: coefficient(u, w) ** 2 * (u * u + w * w + D - 2))
    # |g|^2 of a batch: the mean square of one sample over B, and the mean vector squared for distinct pairs.
    size = square / batch + (1 - 1 / batch) * (mean_c[0] ** 2 + mean_c[1] ** 2)
    predicted = -2 * inner + STEP * size
    assert abs(growth.mean() - predicted) < 4 * growth.std() / np.sqrt(replicas)


def test_the_spread_of_the_norm_after_one_step_is_exact(plain_model):
    # At this step the term 2 g.v is a millionth part of step^2 |g|^2 = step^2 c^2 (d - 2) (1 + O(d^-1/2)), so the
    # variance of |v'|^2 - 1 is that of step^2 d c^2, up to 1e-4 of it; its own error is the sampled fourth moment's.
    from conftest import run_engine

    model, parameters = plain_model
    step, replicas = 1.0, 20_000
    grams = run_engine("numba", model, parameters, np.array([[1.0, Q], [Q, 1.0]]), 64, step, 1, replicas, seed=5)
    growth = grams[:, 0, 0] / (step**2 * D / 64)
    mean, second = (expectation(lambda u, w, k=k: coefficient(u, w) ** k) for k in (2, 4))
    variance = (second - mean**2) / 64
    assert abs(growth.mean() - mean) < 4 * np.sqrt(variance / replicas)
