"""Single experts as the paper trains them: one two-layer patch classifier by Adam on full batches."""

import dataclasses

import numpy as np

from derivations.chen import model
from derivations.chen.parameters import ACTIVATIONS, Parameters

RATES = {"linear": 0.003}
"""Adam's step for linear experts; 0.01 for the others (Appendix A.2)."""
DECAY = 5e-4
FEWEST, RISE = 501, 0.02
"""Training may end after this number of epochs, if the loss has risen by this amount."""


BLOCK = 2**18
"""Numbers in a block of fields: blocks of examples fit in a core's cache."""


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


def train(p: Parameters, count: int, epochs: int = 801, seed: int = 0) -> Single:
    """Train J filters in two logits of J/2 each on `count` examples and test on as many, in single precision.

    logit_1 - logit_0 = sum_j s_j sum_p sigma(w_j . x_p + b_j) with s_j = -1 for the first half; ordinary cross-entropy,
    Adam with decay added to the gradient, uniform initial weights of bound 1/sqrt(d); training ends after 501 epochs at
    the earliest, if the loss is 0.02 above its minimum. Source: Chen et al. 2022, Appendix A.2 and its released code.
    """
    x, y = draw_inputs(p, np.random.default_rng([p.data_seed, 1]), count)
    x_test, y_test = draw_inputs(p, np.random.default_rng([p.data_seed, 2]), count)
    x, x_test = x.astype(np.float32), x_test.astype(np.float32)
    rng, bound = np.random.default_rng([seed, 3]), 1 / np.sqrt(p.d)
    weights = rng.uniform(-bound, bound, (p.J, p.d + 1)).astype(np.float32)
    signs = np.where(np.arange(p.J) < p.J // 2, -1.0, 1.0).astype(np.float32)
    kind = ACTIVATIONS.index(p.activation)
    first, second, best = np.zeros_like(weights), np.zeros_like(weights), np.inf
    rate = RATES.get(p.activation, 0.01)
    for step in range(1, epochs + 1):
        gradient, loss = np.float32(DECAY) * weights, 0.0
        for part in blocks(p, count):
            slope, cost = descent(weights, signs, kind, p, x[part], y[part])
            gradient += (slope / count).astype(np.float32)
            loss += cost / count
        best = min(best, loss)
        if step > FEWEST and loss > best + RISE:
            break
        first = np.float32(0.9) * first + np.float32(0.1) * gradient
        second = np.float32(0.999) * second + np.float32(0.001) * gradient**2
        scale = np.sqrt(second / np.float32(1 - 0.999**step)) + np.float32(1e-8)
        weights -= np.float32(rate / (1 - 0.9**step)) * first / scale
    return Single(accuracy(weights, signs, kind, p, x, y), accuracy(weights, signs, kind, p, x_test, y_test))


def blocks(p: Parameters, count: int) -> list[slice]:
    """The examples in pieces of about `BLOCK` fields."""
    size = max(1, BLOCK // (p.P * p.J))
    return [slice(at, at + size) for at in range(0, count, size)]


def descent(
    weights: np.ndarray, signs: np.ndarray, kind: int, p: Parameters, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, float]:
    """The gradient (J, d + 1), for weights and biases, and the value of the summed cross-entropy of some examples."""
    flat = x.reshape(-1, p.d)
    value, slope = model.activation(flat @ weights[:, :-1].T + weights[:, -1], kind, p.power)
    margin = y * (value @ signs).reshape(len(y), p.P).sum(axis=1)
    margin = margin.astype(np.float64)
    push = (-y / (1 + np.exp(np.clip(margin, -500, 500)))).astype(x.dtype)
    back = np.repeat(push, p.P)[:, None] * slope * signs
    gradient = np.concatenate([back.T @ flat, back.sum(axis=0)[:, None]], axis=1)
    return gradient, float(np.logaddexp(0.0, -margin).sum())


def accuracy(weights: np.ndarray, signs: np.ndarray, kind: int, p: Parameters, x: np.ndarray, y: np.ndarray) -> float:
    """The share of positive margins."""
    value, _ = model.activation(x.reshape(-1, p.d) @ weights[:, :-1].T + weights[:, -1], kind, p.power)
    return float((y * (value @ signs).reshape(len(y), p.P).sum(axis=1) > 0).mean())
