"""Single experts as the paper trains them: one two-layer patch classifier by Adam on full batches."""

import dataclasses

import numpy as np

from derivations.chen import model
from derivations.chen.parameters import ACTIVATIONS, Parameters

RATES = {"linear": 0.003}
"""Adam's step for linear experts; 0.01 for the others (Appendix A.2)."""
DECAY = 5e-4


BLOCK = 2**18
"""Numbers in a block of fields: examples are passed in blocks that stay in a core's cache."""


@dataclasses.dataclass(frozen=True)
class Single:
    """Training and test accuracy of a trained single expert."""

    train: float
    test: float


def draw_inputs(p: Parameters, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Dense inputs (n, P, d), scaled as the released code does, and labels (n,)."""
    scaled = dataclasses.replace(p, variant="released")
    atoms, amplitudes, labels, _ = model.draw(rng.random((7, count)), *model.numbers(scaled))
    patches, size = model.noisy(scaled)
    x = np.zeros((count, p.P, p.d))
    for s in range(3):
        x[np.arange(count), s, atoms[s]] = amplitudes[s]
    x[:, 3:] = size * rng.standard_normal((count, patches, p.d))
    return x, labels


def train(p: Parameters, count: int, epochs: int, seed: int = 0) -> Single:
    """Train J filters in two logits of J/2 each on `count` examples and test on as many.

    logit_1 - logit_0 = sum_j s_j sum_p sigma(w_j . x_p + b_j) with s_j = -1 for the first half; ordinary
    cross-entropy, Adam with decay added to the gradient, uniform initial weights of bound 1/sqrt(d).
    Source: Chen et al. 2022, Appendix A.2 and its released code.
    """
    x, y = draw_inputs(p, np.random.default_rng([p.data_seed, 1]), count)
    x_test, y_test = draw_inputs(p, np.random.default_rng([p.data_seed, 2]), count)
    rng, bound = np.random.default_rng([seed, 3]), 1 / np.sqrt(p.d)
    weights = rng.uniform(-bound, bound, (p.J, p.d + 1))
    signs = np.where(np.arange(p.J) < p.J // 2, -1.0, 1.0)
    kind = ACTIVATIONS.index(p.activation)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    rate = RATES.get(p.activation, 0.01)
    for step in range(1, epochs + 1):
        gradient = DECAY * weights
        for part in blocks(p, count):
            gradient += descent(weights, signs, kind, p, x[part], y[part]) / count
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        scale = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        weights -= rate * first / (1 - 0.9**step) / scale
    return Single(accuracy(weights, signs, kind, p, x, y), accuracy(weights, signs, kind, p, x_test, y_test))


def blocks(p: Parameters, count: int) -> list[slice]:
    """The examples in pieces of about `BLOCK` fields."""
    size = max(1, BLOCK // (p.P * p.J))
    return [slice(at, at + size) for at in range(0, count, size)]


def descent(
    weights: np.ndarray, signs: np.ndarray, kind: int, p: Parameters, x: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """The gradient (J, d + 1) of the summed cross-entropy of some examples, for weights and biases."""
    flat = x.reshape(-1, p.d)
    value, slope = model.activation(flat @ weights[:, :-1].T + weights[:, -1], kind, p.power)
    margin = y * (value @ signs).reshape(len(y), p.P).sum(axis=1)
    push = -y / (1 + np.exp(np.clip(margin, -500, 500)))
    back = np.repeat(push, p.P)[:, None] * slope * signs
    return np.concatenate([back.T @ flat, back.sum(axis=0)[:, None]], axis=1)


def accuracy(weights: np.ndarray, signs: np.ndarray, kind: int, p: Parameters, x: np.ndarray, y: np.ndarray) -> float:
    """The share of positive margins."""
    value, _ = model.activation(x.reshape(-1, p.d) @ weights[:, :-1].T + weights[:, -1], kind, p.power)
    return float((y * (value @ signs).reshape(len(y), p.P).sum(axis=1) > 0).mean())
