"""Explicit weights with a training set, for files of initial conditions."""

from collections.abc import Callable

import numpy as np
import pytest


def make_weights(seed: int = 0, k: int = 3, each: int = 4, d: int = 9, p: int = 4, n: int = 7, size: int = 30) -> dict:
    """Arrays of an initial file: random unit patterns, weights of order one, samples with one of o1, o2 each."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((p + 2, d))
    patterns /= np.linalg.norm(patterns, axis=1, keepdims=True)
    y = rng.choice([-1, 1], size)
    index = rng.integers(2, p + 2, (size, n))
    index[:, 0] = np.where(y > 0, 0, 1)
    return {
        "patterns": patterns,
        "hidden": rng.standard_normal((k, each, d)) / np.sqrt(k * each),
        "out": rng.standard_normal((k, each)),
        "router": 0.3 * rng.standard_normal((k, d)),
        "index": index,
        "y": y,
    }


def loss(arrays: dict, hidden: np.ndarray, router: np.ndarray, taken: int, gate: str) -> float:
    """The paper's loss of weights in d dimensions, sample by sample and patch by patch."""
    total = 0.0
    for row, y in zip(arrays["index"], arrays["y"], strict=True):
        x, f = arrays["patterns"][row], 0.0
        for w, neurons, out in zip(router, hidden, arrays["out"], strict=True):
            g = x @ w
            top = np.argsort(-g, kind="stable")[:taken]
            share = np.exp(g[top]) / np.exp(g[top]).sum() if gate == "softmax" else np.ones(taken)
            f += share @ np.maximum(x[top] @ neurons.T, 0) @ out / taken
        total += np.log1p(np.exp(-y * f)) / len(arrays["y"])
    return total


def difference_gradient(arrays: dict, name: str, taken: int, gate: str, size: float = 1e-6) -> np.ndarray:
    """Central differences of the loss with respect to `hidden` or `router`."""
    found = np.zeros_like(arrays[name])
    for index in np.ndindex(found.shape):
        ends = []
        for sign in (1, -1):
            moved = {"hidden": arrays["hidden"].copy(), "router": arrays["router"].copy()}
            moved[name][index] += sign * size
            ends.append(loss(arrays, moved["hidden"], moved["router"], taken, gate))
        found[index] = (ends[0] - ends[1]) / (2 * size)
    return found


@pytest.fixture
def weights() -> Callable[..., dict]:
    """`make_weights`, for tests."""
    return make_weights


@pytest.fixture
def gradient() -> Callable[..., np.ndarray]:
    """`difference_gradient`, for tests."""
    return difference_gradient
