"""Replicas of a training run on a finite alphabet: what they share, whatever a step is."""

import abc
import importlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from derivations.contract import Initial
from odesim.machine import streams

Weights = tuple[np.ndarray, np.ndarray]
"""The two arrays that move: of the neurons and the routers, in the order of the engine."""


class Replicas(abc.ABC):
    """Replicas that move one after the other, each with its own weights and random numbers.

    A subclass says what one step is (`stepped`) and which two tables are measured (`measured`); `names` are those of
    the arrays that move, in a checkpoint.
    """

    names: tuple[str, str]

    def __init__(self, model: Any, initials: Sequence[Initial], batch: int, seed: int) -> None:
        self.model, self.initials, self.batch = model, initials, batch
        self.functions = importlib.import_module(model.module)
        self.rngs = [streams.generator(seed, "samples", k) for k in range(len(initials))]
        self.moving: list[Weights] = []
        self.steps = 0

    @abc.abstractmethod
    def stepped(self, k: int, moving: Weights) -> Weights:
        """The weights of replica k after one step on a batch of its own."""

    @abc.abstractmethod
    def measured(self, moving: Weights) -> tuple[np.ndarray, np.ndarray]:
        """The two tables that the model's `measure` takes."""

    def advance(self, steps: int) -> bool:
        """Take steps in every replica; False where a weight stopped being finite.  An interruption takes all back."""
        before = self.state()
        try:
            for k in range(len(self.moving)):
                for _ in range(steps):
                    self.moving[k] = self.stepped(k, self.moving[k])
        except BaseException:
            self.restore(before)
            raise
        self.steps += steps
        return self.finite()

    def finite(self) -> bool:
        """Whether every weight is a number."""
        return all(np.isfinite(array).all() for moving in self.moving for array in moving)

    def grams(self) -> np.ndarray:
        """What is saved of every replica (R, size), read by the model's `observe`."""
        pairs = zip(self.initials, self.moving, strict=True)
        return np.array([self.model.measure(initial, *self.measured(moving)) for initial, moving in pairs])

    def state(self) -> dict[str, np.ndarray]:
        """Weights, generators and step count."""
        return {
            **{name: np.array([moving[i] for moving in self.moving]) for i, name in enumerate(self.names)},
            "generators": np.array([json.dumps(rng.bit_generator.state) for rng in self.rngs]),
            "steps": np.array(self.steps),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go back to a stored state."""
        first, second = (arrays[name] for name in self.names)
        self.moving = [(a.copy(), b.copy()) for a, b in zip(first, second, strict=True)]
        for rng, generator in zip(self.rngs, arrays["generators"], strict=True):
            rng.bit_generator.state = json.loads(str(generator))
        self.steps = int(arrays["steps"])


def keys(seed: int, count: int) -> Any:
    """A key of JAX for every replica."""
    import jax
    import jax.numpy as jnp

    return jax.vmap(lambda k: jax.random.fold_in(jax.random.key(seed), k))(jnp.arange(count))


def over_replicas(one: Callable[[Any], Any], replicas: Any) -> Any:
    """`one` of every replica: one after the other on a CPU, where a vmapped step is slower, and together elsewhere."""
    import jax

    if jax.default_backend() == "cpu":
        return jax.lax.map(one, replicas)
    return jax.vmap(one)(replicas)
