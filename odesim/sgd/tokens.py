"""Training on tokens of a dictionary: weights in D dimensions, or in its coordinates with counted batches.

A batch enters through two tables, routers and neurons on the patterns, and leaves as gradients on the patterns; both
are exact for any orthonormal or other dictionary, since every token is one of its patterns.
"""

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.tokens import Samples, TokenModel, TokenWeights
from odesim.sgd.replicas import Replicas, Weights

ROLES = ("draw", "activate", "coefficients", "rates")


def gradients(
    functions: Any, numbers: tuple[Any, ...], h: np.ndarray, u: np.ndarray, batch: Samples
) -> tuple[np.ndarray, np.ndarray]:
    """Minus the mean gradients on the patterns: of routers (k, d) and of neurons (k, m, d)."""
    value, slope = functions.activate(u)
    sigma = value.sum(axis=1)
    routers, neurons, _ = functions.coefficients(
        h[:, batch.tokens], sigma[:, batch.tokens], batch.copies, batch.labels, *numbers
    )
    k, d = h.shape
    place = (np.arange(k)[:, None, None] * d + batch.tokens).ravel()
    on_routers = np.bincount(place, (batch.weight * routers).ravel(), k * d).reshape(k, d)
    on_neurons = np.bincount(place, (batch.weight * neurons).ravel(), k * d).reshape(k, d)
    return on_routers, on_neurons[:, None] * slope


def entries(model: TokenModel, initial: Initial, simulation: Any) -> int:
    """How many numbers a run holds: logits and gates of drawn inputs, weights, and what is saved."""
    s, drawn = model.sizes(initial), simulation.batch
    if simulation.method == "compressed" and model.inputs(initial) is not None:
        drawn = 0  # counts over the list of inputs
    saved = simulation.case.save_points * simulation.replicas * s.experts * s.neurons * s.frame
    weights = simulation.replicas * s.experts * (s.neurons + 1) * s.frame
    return 8 * s.experts * s.patches * drawn + 6 * weights + saved


def descent(
    model: TokenModel, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Minus the mean gradients over drawn batches on the patterns (repeats, k, m + 1, d): neurons, then the router."""
    functions, numbers = importlib.import_module(model.module), model.numbers(initial)

    def draw() -> Samples:
        tokens, copies, labels = functions.draw(rng.random((model.uniforms(initial), batch)), *numbers)
        return Samples(tokens, copies, labels, np.full(batch, 1 / batch))

    w = model.place(initial, None, True)
    drawn, found = draw(), []
    for repeat in range(repeats):
        drawn = draw() if fresh and repeat > 0 else drawn
        routers, neurons = gradients(functions, numbers, w.routers, w.neurons, drawn)
        found.append(np.concatenate([neurons, routers[:, None]], axis=1))
    return np.array(found)


class TokenChains(Replicas):
    """Replicas of one training run, each with its own weights and random numbers; the NumPy engine."""

    names = ("routers", "neurons")

    def __init__(
        self, model: TokenModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int,
    ) -> None:  # fmt: skip
        super().__init__(model, initials, batch, seed)
        self.step_size = step_size
        self.numbers = model.numbers(initials[0])
        self.compressed = compressed
        placed = [model.place(initial, arrays, compressed) for initial in initials]
        self.patterns = placed[0].patterns
        self.moving = [(w.routers, w.neurons) for w in placed]
        self.listed = model.inputs(initials[0]) if compressed else None

    def samples(self, rng: np.random.Generator) -> Samples:
        """A fresh batch: counts over the list of all inputs, or drawn inputs."""
        if self.listed is not None:
            s = self.listed
            counts = rng.multinomial(self.batch, s.weight)
            return Samples(s.tokens, s.copies, s.labels, counts / self.batch)
        uniform = rng.random((self.model.uniforms(self.initials[0]), self.batch))
        tokens, copies, labels = self.functions.draw(uniform, *self.numbers)
        return Samples(tokens, copies, labels, np.full(self.batch, 1 / self.batch))

    def tables(self, w: TokenWeights) -> tuple[np.ndarray, np.ndarray]:
        """Routers (k, d) and neurons (k, m, d) on the patterns."""
        if self.compressed:
            return w.routers, w.neurons
        return w.routers @ w.patterns.T, w.neurons @ w.patterns.T

    def step(self, w: TokenWeights, batch: Samples) -> TokenWeights:
        """One step of descent on a batch, routers and neurons together."""
        on_routers, on_neurons = gradients(self.functions, self.numbers, *self.tables(w), batch)
        if not self.compressed:
            on_routers, on_neurons = on_routers @ w.patterns, on_neurons @ w.patterns
        router_rate, neuron_rate = self.functions.rates(self.step_size, *self.numbers)
        return TokenWeights(w.routers + router_rate * on_routers, w.neurons + neuron_rate * on_neurons, w.patterns)

    @property
    def weights(self) -> list[TokenWeights]:
        """The weights of every replica."""
        return [TokenWeights(*moving, self.patterns) for moving in self.moving]

    def stepped(self, k: int, moving: Weights) -> Weights:
        """The weights of replica k after one step on a batch of its own."""
        w = self.step(TokenWeights(*moving, self.patterns), self.samples(self.rngs[k]))
        return w.routers, w.neurons

    def measured(self, moving: Weights) -> tuple[np.ndarray, np.ndarray]:
        """Routers and neurons on the patterns."""
        return self.tables(TokenWeights(*moving, self.patterns))
