"""Training on tokens of a dictionary: weights in D dimensions, or in its coordinates with counted batches.

A batch enters through two tables, routers and neurons on the patterns, and leaves as gradients on the patterns; both
are exact for any orthonormal or other dictionary, since every token is one of its patterns.
"""

import importlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial
from derivations.tokens import Samples, TokenModel, TokenWeights
from odesim.machine import streams

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


def descent(
    model: TokenModel, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Minus the mean gradients over drawn batches on the patterns (repeats, k, m + 1, d): neurons, then the router."""
    functions, numbers = importlib.import_module(model.module), model.numbers(initial)

    def draw() -> Samples:
        tokens, copies, labels = functions.draw(rng.random((model.uniforms(initial), batch)), *numbers)
        return Samples(tokens, copies, labels, np.full(batch, 1 / batch))

    drawn, found = draw(), []
    for repeat in range(repeats):
        drawn = draw() if fresh and repeat > 0 else drawn
        routers, neurons = gradients(functions, numbers, initial.state["h"], initial.state["u"], drawn)
        found.append(np.concatenate([neurons, routers[:, None]], axis=1))
    return np.array(found)


class TokenChains:
    """Replicas of one training run, each with its own weights and random numbers; the NumPy engine."""

    def __init__(
        self, model: TokenModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int,
    ) -> None:  # fmt: skip
        self.model, self.initials, self.batch, self.step_size = model, initials, batch, step_size
        self.functions = importlib.import_module(model.module)
        self.numbers = model.numbers(initials[0])
        self.compressed = compressed
        self.weights = [model.place(initial, arrays, compressed) for initial in initials]
        self.listed = model.inputs(initials[0]) if compressed else None
        self.rngs = [streams.generator(seed, "samples", k) for k in range(len(initials))]
        self.steps = 0

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

    def advance(self, steps: int) -> bool:
        """Take steps in every replica; False where a weight stopped being finite.  An interruption takes all back."""
        before = self.state()
        try:
            for k, rng in enumerate(self.rngs):
                w = self.weights[k]
                for _ in range(steps):
                    w = self.step(w, self.samples(rng))
                self.weights[k] = w
        except BaseException:
            self.restore(before)
            raise
        self.steps += steps
        return all(np.isfinite(w.routers).all() and np.isfinite(w.neurons).all() for w in self.weights)

    def grams(self) -> np.ndarray:
        """What is kept of every replica (R, size), read by the model's `observe`."""
        pairs = zip(self.initials, self.weights, strict=True)
        return np.array([self.model.measure(initial, *self.tables(w)) for initial, w in pairs])

    def state(self) -> dict[str, np.ndarray]:
        """Weights, generators and step count."""
        return {
            "routers": np.array([w.routers for w in self.weights]),
            "neurons": np.array([w.neurons for w in self.weights]),
            "generators": np.array([json.dumps(rng.bit_generator.state) for rng in self.rngs]),
            "steps": np.array(self.steps),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go back to a stored state."""
        parts = zip(arrays["routers"], arrays["neurons"], self.weights, strict=True)
        self.weights = [TokenWeights(a.copy(), b.copy(), w.patterns) for a, b, w in parts]
        for rng, generator in zip(self.rngs, arrays["generators"], strict=True):
            rng.bit_generator.state = json.loads(str(generator))
        self.steps = int(arrays["steps"])
