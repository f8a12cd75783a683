"""Phase IV: the second layer by ridge regression on routed features, and its error on fresh samples.

    Psi_{t,(m,j)} = (1/J) 1[expert m active on x_t] sigma(w_mj . x_t + b_mj)
    a = (Psi^T Psi / T + lambda I)^{-1} Psi^T y / T

Errors are those against the noiseless target: with label noise the error against y cannot vanish.
Source: Kawata et al. 2025, Algorithm 1 (Phase IV) and Lemma C.29, corrected.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.kawata import model
from derivations.kawata.initial import expert_of, full_gram, root

BLOCK = 20_000


def blocks(
    initial: Initial, samples: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """(features (N, B), labels y (B,), noiseless target (B,), cluster (B,)) of fresh samples, block after block."""
    p, c = initial.parameters, initial.constants
    gram = full_gram(initial.state, c)
    factor, N, C = root(gram), p.neurons, p.C
    args: Any = (*model.numbers(p, gram), c["a"], c["b"], c["sigma"])
    kind, links, s = args[5], args[12], args[13]
    expert, done = expert_of(p, N), 0
    gated = "theta" in c
    while done < samples:
        size = min(BLOCK, samples - done)
        labels = model.draw(rng.random((2, size)), rng.standard_normal((1, size)), *args)
        y = rng.standard_normal((factor.shape[1], size))
        y += factor[N : N + 2 * C + 1].T @ model.mean(labels, *args)
        fields = factor @ y
        cluster = labels[:C].argmax(axis=0)
        if gated:
            active = fields[N + 2 * C + 1 :][expert] >= 0.0
        elif p.M > 1 and p.routing == "perfect":
            active = cluster[None] == (expert % C)[:, None]
        else:
            active = np.ones((N, size), bool)
        features = active * model.activation(fields[:N] + c["b"][:, None], c["sigma"], kind) / p.J
        noisy = model.label(fields, labels, N, C, links, s)
        yield features, noisy, noisy - labels[C + 1], cluster
        done += size


def fit(initial: Initial, rng: np.random.Generator) -> dict[str, Any]:
    """The second-layer weights, the test errors and the share of samples that reach some expert."""
    p = initial.parameters
    N, training = p.neurons, p.ridge_samples
    second, first = np.zeros((N, N)), np.zeros(N)
    for features, noisy, _, _ in blocks(initial, training, rng):
        second += features @ features.T
        first += features @ noisy
    weights = np.linalg.solve(second / training + p.ridge * np.eye(N), first / training)
    total, by_cluster, seen = np.zeros(4), np.zeros(p.C), np.zeros(p.C)
    for features, _, target, cluster in blocks(initial, p.test_samples, rng):
        error = np.abs(weights @ features - target)
        total += [error.sum(), (error**2).sum(), np.abs(target).sum(), (target**2).sum()]
        by_cluster += np.bincount(cluster, error, p.C)
        seen += np.bincount(cluster, minlength=p.C)
    total /= p.test_samples
    summary = {
        "test_error": float(total[0]),
        "test_squared_error": float(total[1]),
        "error_of_zero": float(total[2]),
        "squared_error_of_zero": float(total[3]),
        "relative_error": float(total[0] / total[2]) if total[2] > 0 else None,
        "training_samples": training,
    }
    return {"weights": weights, "by_cluster": by_cluster / np.maximum(seen, 1), "summary": summary}
