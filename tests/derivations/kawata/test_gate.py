"""The gate's gradient and routing, against samples in which every term of them shows."""

import math

import numpy as np
import pytest

from derivations.kawata import gate, initial, model
from derivations.kawata.parameters import Parameters
from derivations.vectors import root

LIMIT = 4.5
"""The largest of 33 normal scores exceeds it once in 4,500 times; what is wrong has to exceed twice as much."""


def drilled():
    """Six strong neurons of three experts, with large overlaps with tasks and means."""
    p = Parameters(C=2, M=3, J=2, d=60, rho=3.0, k_star=3, s=(1.0, -0.5), neurons=6)
    rng = np.random.default_rng(0)
    arrays = {
        "kappa": rng.uniform(-0.5, 0.5, (6, 2)), "xi": rng.uniform(-0.5, 0.5, 6), "nu": rng.uniform(-0.4, 0.4, (6, 2)),
        "a": rng.choice([-1.0, 1.0], 6), "b": rng.uniform(-1, 1, 6),
    }  # fmt: skip
    return initial.from_arrays(p, arrays)


def test_every_term_of_the_gate_gradient_is_that_of_samples():
    start = drilled()
    p, c, rng = start.parameters, start.constants, np.random.default_rng(1)
    gram = initial.full_gram(start.state, c)
    factor = root(gram)
    args = (*model.numbers(p, gram), c["a"], c["b"], c["sigma"])
    batches = []
    for _ in range(400):
        size = 25_000
        labels = model.draw(rng.random((2, size)), rng.standard_normal((1, size)), *args)
        y = rng.standard_normal((factor.shape[1], size)) + factor[6:].T @ model.mean(labels, *args)
        fields = factor @ y
        outputs = c["a"][:, None] * model.activation(fields[:6] + c["b"][:, None], c["sigma"], args[0].kind) / p.J
        experts = np.eye(3)[initial.expert_of(p, 6)].T @ outputs
        batches.append((experts * model.label(fields, labels, 6, 2, args[0].links, args[0].s)) @ fields.T / size)
    mean, error = np.mean(batches, axis=0), np.std(batches, axis=0, ddof=1) / math.sqrt(400)

    def score(V):
        return np.abs((mean - np.concatenate([V[:, 5:], V[:, :5]], axis=1) @ gram) / error).max()

    V = gate.population_gradient(start)
    assert score(V) < LIMIT
    for columns in (slice(0, 2), slice(2, 3), slice(3, 5), slice(5, 11)):  # tasks, global task, means, neurons
        without = V.copy()
        without[:, columns] = 0.0
        assert score(without) > 2 * LIMIT, columns
    without = V.copy()
    without[:, 3:5] /= p.rho
    assert score(without) > 2 * LIMIT


@pytest.mark.parametrize("size", [0.3, 1.0, 4.0])
def test_a_gate_is_open_with_the_probability_of_its_score(size):
    p = Parameters(C=2, M=2, J=1, d=9, rho=1.2)
    rng = np.random.default_rng(2)
    vectors = size * rng.standard_normal((2, 9))
    routing = gate.routing(p, vectors[:, :5], vectors @ vectors.T)
    np.testing.assert_allclose(routing["gate_norm"], np.linalg.norm(vectors, axis=1), rtol=1e-13)
    for c in range(2):
        x = rng.standard_normal((9, 200_000))
        x[3 + c] += p.rho
        share = (vectors @ x >= 0).mean(axis=1)
        error = np.sqrt(share * (1 - share) / 200_000)
        assert (np.abs(share - routing["routing"][:, c]) < 4.5 * error).all()
