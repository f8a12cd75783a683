"""The model's mean one-step drift by Monte Carlo: what the population right-hand side must equal."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract import Initial, Model
from odesim.machine import streams
from odesim.sgd.compressed import factor

STEP = 1e-7
"""The update is linear in the step up to terms of its square; the derivative at zero is taken at this step."""
BATCHES = 50
"""The standard error comes from the spread of this many batch means."""


@dataclasses.dataclass
class Batches:
    """Batches of Gaussian inputs of a model at an initial condition: gradients by their inner products."""

    model: Model
    initial: Initial
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.trained, self.fixed = self.model.sizes(self.initial.parameters)
        self.gram = self.model.place(self.initial)
        self.root, self.numbers = factor(self.gram, self.trained), self.model.bound(self.initial, self.gram)
        self.functions = importlib.import_module(self.model.module)
        self.lengths = np.sqrt(np.diag(self.gram))
        self.scale = np.ones(len(self.gram))
        if self.model.normalised:
            self.scale[: self.trained] = 1 / self.lengths[: self.trained]

    def draw(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The inner products (n, size) of fresh inputs with all vectors, and their labels."""
        y = self.rng.standard_normal((len(self.gram), size))
        labels = np.empty((0, size))
        if sum(self.model.noise):
            uniforms, normals = self.model.noise
            uniform, normal = self.rng.random((uniforms, size)), self.rng.standard_normal((normals, size))
            labels = self.functions.draw(uniform, normal, *self.numbers)
            y[: self.fixed] += self.root[self.trained :, : self.fixed].T @ self.functions.mean(labels, *self.numbers)
        return self.root @ y, labels

    def products(self, fields: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Inner products (trained, n) of the mean gradients with all vectors."""
        coef = self.functions.coefficients(self.scale[:, None] * fields, labels, *self.numbers)
        return coef @ fields.T / fields.shape[1]


def gram_drift(model: Model, initial: Initial, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error (n, n) of d(raw Gram matrix)/dt, in units of the step size, from fresh samples.

    One sample gives vector k the gradient coef_k x; a step of size h moves it to a_k v_k + b_k coef_k x, so its inner
    product with vector l moves at (a_k' G_kl + b_k' coef_k (x.l)), a' and b' being derivatives at h = 0.
    """
    batches = Batches(model, initial, np.random.default_rng(seed))
    trained, gram = batches.trained, batches.gram
    size = max(2, samples // BATCHES)
    means = []
    for _ in range(BATCHES):
        products = batches.products(*batches.draw(size))
        vg = np.diagonal(products[:, :trained]).copy()
        a, b = batches.functions.update(
            batches.lengths[:trained] ** 2, vg, np.zeros(trained), STEP, *batches.numbers
        )  # fmt: skip
        moving = np.zeros_like(gram)
        moving[:trained] = ((a - 1) / STEP)[:, None] * gram[:trained] + (b / STEP)[:, None] * products
        means.append(moving + moving.T)
    return spread(np.array(means))


def descent(
    model: Model, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Minus the mean gradients over batches by their inner products with [trained, frame] (repeats, trained, n)."""
    batches = Batches(model, initial, rng)
    drawn, found = batches.draw(batch), []
    for repeat in range(repeats):
        drawn = batches.draw(batch) if fresh and repeat > 0 else drawn
        found.append(-batches.products(*drawn))
    return np.array(found)


def mean_descent(descent: Callable[..., np.ndarray]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The function drift(model, initial, samples, seed) of a family: mean and standard error of its `descent`."""

    def drift(model: Any, initial: Initial, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = streams.generator(seed, "drift")
        return spread(descent(model, initial, max(2, samples // BATCHES), BATCHES, rng, True))

    return drift


def spread(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of the means of batches, the first axis."""
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))
