"""Phase IV: the second layer by ridge regression on routed features, and its error on fresh samples.

    Psi_{t,(m,j)} = (1/J) 1[expert m active on x_t] sigma(w_mj . x_t + b_mj)
    a = (Psi^T Psi / T + lambda I)^{-1} Psi^T y / T

Errors are those against the noiseless target, because the error against y cannot vanish with label noise. Source:
Kawata et al. 2025, Algorithm 1 (Phase IV) and Lemma C.29, corrected.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from derivations.contract import Initial, UsageError
from derivations.kawata import model
from derivations.kawata.finite_step import label_power
from derivations.kawata.gate import neuron_terms
from derivations.kawata.initial import expert_of, full_gram
from derivations.kawata.parameters import ACTIVATIONS
from derivations.kawata.shifted import shifted
from derivations.vectors import lower_product, root

BLOCK, CHUNK = 20_000, 2_000
"""Samples that are drawn at once, and samples whose features are computed at once.

The features of a whole block of 960 neurons take 150 MB, and computing them takes three times as long: the time goes
into new memory.
"""
TERMS = 150
"""Degree of the last term of a Mehler series: for ReLU at equal directions it omits 3e-5 of E sigma^2."""


def blocks(
    initial: Initial, samples: int, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """(features (N, B), labels y (B,), noiseless target (B,), cluster (B,)) of fresh samples, chunk after chunk."""
    p, c = initial.parameters, initial.constants
    gram = full_gram(initial.state, c)
    factor, N, C = root(gram), p.neurons, p.C
    args: Any = (*model.numbers(p, gram), c["a"], c["b"], c["sigma"])
    kind, links, s = args[0].kind, args[0].links, args[0].s
    expert, done = expert_of(p, N), 0
    gated = "theta" in c
    while done < samples:
        size = min(BLOCK, samples - done)
        labels = model.draw(rng.random((2, size)), rng.standard_normal((1, size)), *args)
        y = rng.standard_normal((factor.shape[1], size))
        y += factor[N : N + 2 * C + 1].T @ model.mean(labels, *args)
        cluster = labels[:C].argmax(axis=0)
        for begin in range(0, size, CHUNK):
            chosen = slice(begin, begin + CHUNK)
            fields, of_chosen = lower_product(factor, y[:, chosen]), cluster[chosen]
            if gated:
                active = fields[N + 2 * C + 1 :][expert] >= 0.0
            elif p.M > 1 and p.routing == "perfect":
                active = of_chosen[None] == (expert % C)[:, None]
            else:
                active = np.ones((N, 1), bool)
            features = active * model.activation(fields[:N] + c["b"][:, None], c["sigma"], kind) / p.J
            noisy = model.label(fields, labels[:, chosen], N, C, links, s)
            yield features, noisy, noisy - labels[C + 1, chosen], of_chosen
        done += size


def population(initial: Initial) -> dict[str, Any]:
    """The regression on infinitely many samples and its error, if every expert is active on its clusters with
    certainty.

    E[psi_j psi_l | c] = J^{-2} sum_i alpha_i^j alpha_i^l (w_j . w_l)^i (Mehler) and E[y psi_j | c] = H_c / J; the
    series is truncated at degree `TERMS`. The error is bounded by the last term over 1 - |w_j . w_l| or, for equal
    directions, by Parseval. Raises `UsageError` for routing by gates, which is random.
    """
    p, c = initial.parameters, initial.constants
    if "theta" in c:
        raise UsageError(
            "ridge_samples=0 (the population) needs routing=perfect or M=1: behind gates give ridge_samples"
        )
    N = p.neurons
    one = dataclasses.replace(initial, constants={**c, "a": np.ones(N), "sigma": c["sigma"]})
    active = np.eye(p.C)[expert_of(p, N) % p.C] if p.M > 1 else np.ones((N, p.C))
    overlap = full_gram(initial.state, c)[:N, :N]
    second, first = np.zeros((N, N)), np.zeros(N)
    value = neuron_terms(one)["value"]
    for k in range(p.C):
        t = p.rho * initial.state["nu"][:, k] + c["b"]
        alpha = np.array(shifted(np, ACTIVATIONS.index(p.activation), np.ones(N), t, c["sigma"], TERMS))
        gram, power = np.zeros((N, N)), np.ones((N, N))
        for row in alpha:
            gram += np.outer(row, row) * power
            power = power * overlap
        second += np.outer(active[:, k], active[:, k]) * gram / (p.J**2 * p.C)
        first += active[:, k] * value[:, k] / (p.J * p.C)
    weights = np.linalg.solve(second + p.ridge * np.eye(N), first)
    power_of_target = label_power(dataclasses.replace(p, zeta=0.0))
    squared = power_of_target - 2 * weights @ first + weights @ second @ weights
    return {"weights": weights, "squared_error": float(squared), "squared_error_of_zero": power_of_target}


def fit(initial: Initial, rng: np.random.Generator) -> dict[str, Any]:
    """The second-layer weights, the test errors and the share of samples that reach some expert."""
    p = initial.parameters
    N, training = p.neurons, p.ridge_samples
    if training == 0:
        weights = population(initial)["weights"]
    else:
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
