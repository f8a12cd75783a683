"""Mean change of a model in one step by Monte Carlo, which must equal the population right-hand side."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract import Eigenspaces, Initial, Model, ScalarModel, packed, unpacked
from odesim.machine import streams
from odesim.sgd import bind
from odesim.sgd.compressed import factor, samples_of

STEP = 1e-7
"""Step at which the derivative at zero is computed. The update is linear in the step up to terms of its square."""
BATCHES = 50
"""Number of batch means whose spread gives the standard error."""


@dataclasses.dataclass
class Batches:
    """Batches of Gaussian inputs of a model at an initial condition, with gradients by their inner products.

    On inputs with L eigenspaces Gram matrices and inner products are (L, ..), of the parts of the vectors in each.
    """

    model: Model
    initial: Initial
    rng: np.random.Generator

    def __post_init__(self) -> None:
        parameters = self.initial.parameters
        self.trained, self.fixed = self.model.sizes(parameters)
        self.gram = self.model.place(self.initial)
        self.n = self.gram.shape[-1]
        self.spaces = self.model.spaces(parameters) if isinstance(self.model, ScalarModel) else None
        self.root = np.array([factor(one, self.trained) for one in self._by_space(self.gram)]).reshape(self.gram.shape)
        self.numbers = self.model.bound(self.initial, self.gram)
        self.functions = bind.module_of(self.model)
        self.lengths = np.sqrt(np.diag(self._by_space(self.gram).sum(0)))
        self.scale = np.ones(self.n)
        if self.model.normalised:
            self.scale[: self.trained] = 1 / self.lengths[: self.trained]
        self.scalars = self.model.scalars(self.initial) if isinstance(self.model, ScalarModel) else np.empty(0)

    def _by_space(self, values: np.ndarray) -> np.ndarray:
        """Return values by eigenspace (L, .., ..), with L = 1 for isotropic inputs."""
        return values.reshape(-1, *values.shape[-2:])

    def draw(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the inner products (.., n, size) of fresh inputs with all vectors in every eigenspace, and their
        labels.

        A few more inputs complete the last episode.
        """
        size += -size % samples_of(self.model, 1)
        if self.spaces is not None:
            return self._draw_in_spaces(self.spaces, size)
        y = self.rng.standard_normal((self.n, size))
        labels = np.empty((0, size))
        if sum(self.model.noise):
            uniforms, normals = self.model.noise
            uniform, normal = self.rng.random((uniforms, size)), self.rng.standard_normal((normals, size))
            labels = self.functions.draw(uniform, normal, *self.numbers)
            if not isinstance(self.model, ScalarModel):
                mean = self.functions.mean(labels, *self.numbers)
                y[: self.fixed] += self.root[self.trained :, : self.fixed].T @ mean
        return self.root @ y, labels

    def _draw_in_spaces(self, spaces: Eigenspaces, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Return `draw` for inputs of clusters. Each has a mean, which is a sum of the last vectors, and
        eigenvalues.
        """
        which = self.rng.choice(len(spaces.probability), size, p=spaces.probability)
        gram, root = self._by_space(self.gram), self._by_space(self.root)
        y = self.rng.standard_normal((len(gram), self.n, size)) * np.sqrt(spaces.eigenvalue.T[:, None, which])
        means = gram[:, :, self.n - spaces.mean_weights.shape[1] :] @ spaces.mean_weights.T
        uniforms, normals = self.model.noise
        uniform, normal = self.rng.random((uniforms, size)), self.rng.standard_normal((normals, size))
        labels = self.functions.draw(uniform, normal, *self.numbers)
        if spaces.label is not None:
            labels = labels + spaces.label[which]
        return (root @ y + means[:, :, which]).reshape(*self.gram.shape[:-1], size), labels

    def products(self, fields: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return inner products (.., trained, n) of the mean gradients with all vectors, and the means of the further
        rows.
        """
        squares = (self.lengths[: self.trained] ** 2, self.scalars) if isinstance(self.model, ScalarModel) else ()
        whole = fields if fields.ndim == 2 else fields.sum(0)
        coef = self.functions.coefficients(self.scale[:, None] * whole, labels, *squares, *self.numbers)
        coef, further = coef[: self.trained], coef[self.trained :]
        return coef @ np.swapaxes(fields, -1, -2) / fields.shape[-1], further.mean(axis=1)

    def rates(self, products: np.ndarray, further: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return d(raw Gram matrix)/dt (.., n, n) and d(scalars)/dt, in units of the step size, for mean gradients."""
        vg = np.diagonal(self._by_space(products).sum(0)[:, : self.trained]).copy()
        squares = (self.lengths[: self.trained] ** 2, vg, np.zeros(self.trained))
        if isinstance(self.model, ScalarModel):
            a, b, scalars = self.functions.update(*squares, further, self.scalars, STEP, *self.numbers)
        else:
            (a, b), scalars = self.functions.update(*squares, STEP, *self.numbers), self.scalars
        moving = np.zeros_like(self.gram)
        own = self.gram[..., : self.trained, :]
        moving[..., : self.trained, :] = ((a - 1) / STEP)[:, None] * own + (b / STEP)[:, None] * products
        return moving + np.swapaxes(moving, -1, -2), (scalars - self.scalars) / STEP


def gram_drift(model: Model, initial: Initial, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error (n, n) of d(raw Gram matrix)/dt, in units of the step size, from fresh samples.

    One sample gives vector k the gradient coef_k x; a step of size h moves it to a_k v_k + b_k coef_k x, so its inner
    product with vector l moves at (a_k' G_kl + b_k' coef_k (x.l)), a' and b' being derivatives at h = 0. On inputs with
    L eigenspaces the matrices are (L, n, n), of the parts of the vectors in each.
    """
    return state_drift(model, initial, samples, seed)[0]


def state_drift(
    model: Model, initial: Initial, samples: int, seed: int = 0
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return `gram_drift`, and the same for the model's scalars (s,), if any: ((mean, error), (mean, error))."""
    batches = Batches(model, initial, np.random.default_rng(seed))
    size = max(2, samples // BATCHES)
    found = [batches.rates(*batches.products(*batches.draw(size))) for _ in range(BATCHES)]
    grams, scalars = (np.array(part) for part in zip(*found, strict=True))
    return spread(grams), spread(scalars)


def step_change(
    model: ScalarModel, initial: Initial, step_size: float, batch: int, replicas: int, seed: int = 0
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return mean and standard error of the change in one step of compressed SGD: of the raw Gram matrix, then of the
    scalars.

    The change has all orders in the step. Its second order, the squares of the gradients, remains in the online limit.
    """
    from odesim.sgd.engines import NumbaChains
    from odesim.sgd.scalar_traced import ScalarReplicas

    gram, d = model.place(initial), initial.parameters.d
    placed, starts = np.array([gram] * replicas), [initial] * replicas
    if model.spaces(initial.parameters) is None:
        chains: Any = NumbaChains(
            model, initial.parameters, placed, d, batch, step_size, seed, threads=1, initials=starts
        )
    else:  # compressed SGD on inputs with eigenvalues is in JAX only
        chains = ScalarReplicas(model, starts, placed, d, batch, step_size, seed)
    chains.advance(1)
    changed = chains.grams() - packed(gram, model.scalars(initial))
    grams, scalars = unpacked(changed, gram.shape[-1], gram.shape[:-2])
    sizes = np.sqrt(replicas)
    return (grams.mean(0), grams.std(0, ddof=1) / sizes), (scalars.mean(0), scalars.std(0, ddof=1) / sizes)


def descent(
    model: Model, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Return minus the mean gradients over batches, as inner products with [trained, frame] (repeats, .., trained,
    n).
    """
    batches = Batches(model, initial, rng)
    drawn, found = batches.draw(batch), []
    for repeat in range(repeats):
        drawn = batches.draw(batch) if fresh and repeat > 0 else drawn
        products, further = batches.products(*drawn)
        if isinstance(model, ScalarModel) and len(further) > batches.scalars.size:
            products = products + further[: batches.trained, None] * batches.gram[..., : batches.trained, :]
        found.append(-products)
    return np.array(found)


def mean_descent(descent: Callable[..., np.ndarray]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Return the function drift(model, initial, samples, seed) of a family: mean and standard error of its
    `descent`.
    """

    def drift(model: Any, initial: Initial, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        rng = streams.generator(seed, "drift")
        return spread(descent(model, initial, max(2, samples // BATCHES), BATCHES, rng, True))

    return drift


def spread(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error of the means of batches, which are the first axis."""
    return np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means))
