"""The model's mean one-step drift by Monte Carlo: what the population right-hand side must equal."""

import importlib

import numpy as np

from derivations.contract import Initial, Model
from odesim.sgd.compressed import factor

STEP = 1e-7
"""The update is linear in the step up to terms of its square; the derivative at zero is taken at this step."""
BATCHES = 50
"""The standard error comes from the spread of this many batch means."""


def gram_drift(model: Model, initial: Initial, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error (n, n) of d(raw Gram matrix)/dt, in units of the step size, from fresh samples.

    One sample gives vector k the gradient coef_k x; a step of size h moves it to a_k v_k + b_k coef_k x, so its inner
    product with vector l moves at (a_k' G_kl + b_k' coef_k (x.l)), a' and b' being derivatives at h = 0.
    """
    trained, fixed = model.sizes(initial.parameters)
    gram = model.place(initial)
    root, numbers = factor(gram, trained), model.bound(initial, gram)
    functions = importlib.import_module(model.module)
    rng = np.random.default_rng(seed)
    size = max(2, samples // BATCHES)
    lengths = np.sqrt(np.diag(gram))
    scale = np.ones(len(gram))
    if model.normalised:
        scale[:trained] = 1 / lengths[:trained]
    means = []
    for _ in range(BATCHES):
        y = rng.standard_normal((len(gram), size))
        labels = np.empty((0, size))
        if sum(model.noise):
            uniform, normal = rng.random((model.noise[0], size)), rng.standard_normal((model.noise[1], size))
            labels = functions.draw(uniform, normal, *numbers)
            y[:fixed] += root[trained:, :fixed].T @ functions.mean(labels, *numbers)
        fields = root @ y
        coef = functions.coefficients(scale[:, None] * fields, labels, *numbers)
        products = coef @ fields.T / size
        vg = np.diagonal(products[:, :trained]).copy()
        a, b = functions.update(lengths[:trained] ** 2, vg, np.zeros(trained), STEP, *numbers)
        moving = np.zeros_like(gram)
        moving[:trained] = ((a - 1) / STEP)[:, None] * gram[:trained] + (b / STEP)[:, None] * products
        means.append(moving + moving.T)
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(BATCHES)
