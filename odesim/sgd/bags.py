"""Training on bags of patches: replicas with weights in d dimensions, or with the counts of patterns alone."""

import dataclasses
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.bags import BagModel
from derivations.contract import Initial
from odesim.errors import UsageError
from odesim.machine import streams
from odesim.sgd.replicas import Replicas, Weights


@dataclasses.dataclass(frozen=True)
class Batch:
    """Patches of one step: frame vectors `atoms` (n, B), labels (B,), and for balls the directions of their noise."""

    atoms: np.ndarray
    labels: np.ndarray
    noise: np.ndarray | None = None


def atoms_of(counts: np.ndarray) -> np.ndarray:
    """The patches (n, B) of samples with equal totals, from their counts (P, B)."""
    n = int(counts[:, 0].sum())
    return np.array([np.repeat(np.arange(len(counts)), column.astype(int)) for column in counts.T]).reshape(-1, n).T


def counts_of(atoms: np.ndarray, patterns: int) -> np.ndarray:
    """The counts (P, B) of patches (n, B)."""
    size = atoms.shape[1]
    flat = np.bincount((atoms * size + np.arange(size)).reshape(-1), minlength=patterns * size)
    return flat.reshape(patterns, size).astype(float)


def beside(out: Any, fields: Any) -> Any:
    """Output weights as `respond` takes them: with an axis for each of the fields' own, but by class as they are."""
    return out if out.ndim == 3 else out.reshape(out.shape + (1,) * (fields.ndim - 2))


def pushed(out: Any, experts: Any) -> Any:
    """What a neuron's slope is multiplied by, (k, M, S, ..): a_r experts, or sum_i a_{r,i} experts_i over classes."""
    if out.ndim == 2:
        return beside(out, experts[:, None]) * experts[:, None]
    wide = out.reshape(out.shape + (1,) * (experts.ndim - 2))
    return sum(wide[:, :, i] * experts[:, None, i] for i in range(out.shape[2]))


def entries(model: BagModel, initial: Initial, simulation: Any) -> int:
    """How many numbers a step holds: fields of neurons on patches, their responses, patches, and weights."""
    s, counted = model.sizes(initial), simulation.method == "compressed"
    width = s.frame if counted else s.width
    patches = (s.frame if counted else s.patches) * s.blocks * simulation.batch
    responses = 4 * s.experts * patches * s.outputs
    neurons = s.experts * s.neurons
    fields = responses if counted else 3 * neurons * patches + 2 * patches * width + responses
    return fields + 4 * simulation.replicas * (neurons + s.experts) * width


def descent(
    model: BagModel, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Minus the mean gradients over drawn batches along the frame (repeats, k, M + 1, P): neurons, then the router."""
    p, tables = initial.parameters, model.tables(initial)
    functions, numbers, law = importlib.import_module(model.module), model.numbers(p), model.law(p)
    pre, out = tables.pre, tables.out
    drawn, found = functions.draw(rng.random((model.uniforms(p), batch)), *law), []
    response = functions.respond(pre, beside(out, pre))[..., None]
    for repeat in range(repeats):
        if fresh and repeat > 0:
            drawn = functions.draw(rng.random((model.uniforms(p), batch)), *law)
        counts = counts_of(drawn[0], len(tables.gram))
        experts, routers, _ = getattr(functions, model.weigh)(
            tables.route[..., None], response, counts, drawn[1], *numbers
        )
        neurons = pushed(out, experts.mean(axis=-1)) * functions.slope(pre)
        found.append(np.concatenate([neurons, routers.mean(axis=-1)[:, None]], axis=1))
    return np.array(found)


class BagChains(Replicas):
    """Replicas of one training run, each with its own random numbers; the NumPy engine of both methods.

    `compressed` keeps the inner products with the frame only, which move by the Gram matrix; `explicit` keeps the
    weights and every patch as vectors of d dimensions.  Both take the same samples from the same seed.
    """

    names = ("first", "second")

    def __init__(
        self, model: BagModel, initials: list[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int,
    ) -> None:  # fmt: skip
        p = initials[0].parameters
        super().__init__(model, initials, batch, seed)
        self.compressed = compressed
        self.numbers, self.law = model.numbers(p), model.law(p)
        self.rates, self.uniforms, self.ball = model.rates(p, step_size), model.uniforms(p), model.ball(p)
        self.points = model.points(p)
        self.training = model.data(initials[0], batch)
        if self.training is not None and batch > len(self.training):
            raise UsageError(
                f"--batch {batch} is more than the {len(self.training)} samples of the training set: give --batch "
                f"{len(self.training)} for full batches, or -p data=online for fresh samples"
            )
        self.atoms = None if self.training is None else atoms_of(self.training.counts)
        tables = [model.tables(initial) for initial in initials]
        self.gram, self.out = tables[0].gram, [of.out for of in tables]
        if compressed:
            self.moving = [(of.pre, of.route) for of in tables]
            self.frame = None
        else:
            placed = [
                model.place(initial, arrays, streams.generator(seed, "rest", k)) for k, initial in enumerate(initials)
            ]
            self.moving = [(np.array(w.hidden), np.array(w.routers)) for w in placed]
            self.frame = placed[0].frame

    def stepped(self, k: int, moving: Weights) -> Weights:
        """The weights of replica k after one step on a batch of its own."""
        return self.step(moving, self.out[k], self.draw(self.rngs[k]))

    def draw(self, rng: np.random.Generator) -> Batch:
        """The samples of the next step."""
        if self.training is not None and self.atoms is not None:
            if self.batch == len(self.training):
                chosen = Batch(self.atoms, self.training.labels)
            else:
                index = rng.choice(len(self.training), self.batch, replace=False)
                chosen = Batch(self.atoms[:, index], self.training.labels[index])
        else:
            chosen = Batch(*self.functions.draw(rng.random((self.uniforms, self.batch)), *self.law))
        if self.ball == 0 or self.frame is None:
            return chosen
        noise = rng.standard_normal((*chosen.atoms.shape, self.frame.shape[1]))
        return dataclasses.replace(chosen, noise=noise)

    def step(self, moving: tuple[np.ndarray, np.ndarray], out: np.ndarray, batch: Batch) -> tuple[Any, Any]:
        """One training step of (pre, route) or (hidden, routers)."""
        return self.step_counts(moving, out, batch) if self.frame is None else self.step_vectors(moving, out, batch)

    def step_counts(self, moving: tuple[np.ndarray, np.ndarray], out: np.ndarray, batch: Batch) -> tuple[Any, Any]:
        """A step on inner products: responses are needed once per pattern, not once per patch."""
        pre, route = moving
        counts = counts_of(batch.atoms, len(self.gram))
        response = self.functions.respond(pre, beside(out, pre))[..., None]
        weigh = getattr(self.functions, self.model.weigh)
        experts, routers, _ = weigh(route[..., None], response, counts, batch.labels, *self.numbers)
        moved, slope = pre, self.functions.slope(pre)
        if self.rates[0] and out.ndim == 3:
            moved = pre + self.rates[0] * ((pushed(out, experts.mean(axis=-1)) * slope) @ self.gram)
        elif self.rates[0]:
            moved = pre + self.rates[0] * out[..., None] * ((experts.mean(axis=-1)[:, None] * slope) @ self.gram)
        return moved, route + self.rates[1] * (routers.mean(axis=-1) @ self.gram)

    def patches(self, batch: Batch) -> np.ndarray:
        """The patches as vectors, (n B, d); those of balls are normalised(q + rho direction)."""
        assert self.frame is not None
        x = self.frame[batch.atoms]
        if batch.noise is not None:
            direction = batch.noise / np.linalg.norm(batch.noise, axis=-1, keepdims=True)
            moved = x + self.ball * direction
            moved /= np.linalg.norm(moved, axis=-1, keepdims=True)
            x = np.where((batch.atoms >= self.points)[..., None], moved, x)
        return x.reshape(-1, x.shape[-1])

    def step_vectors(self, moving: tuple[np.ndarray, np.ndarray], out: np.ndarray, batch: Batch) -> tuple[Any, Any]:
        """A step on weight vectors, patch by patch."""
        hidden, routers = moving
        (k, each, d), (n, size) = hidden.shape, batch.atoms.shape
        x = self.patches(batch)
        fields = (hidden.reshape(-1, d) @ x.T).reshape(k, each, n, size)
        route = (routers @ x.T).reshape(k, n, size)
        response = self.functions.respond(fields, beside(out, fields))
        weigh = getattr(self.functions, self.model.weigh)
        experts, pull, _ = weigh(route, response, np.ones((n, size)), batch.labels, *self.numbers)
        moved = hidden
        if self.rates[0]:
            change = pushed(out, experts) * self.functions.slope(fields)
            moved = hidden + self.rates[0] / size * (change.reshape(k * each, -1) @ x).reshape(hidden.shape)
        return moved, routers + self.rates[1] / size * (pull.reshape(k, -1) @ x)

    def measured(self, moving: Weights) -> tuple[np.ndarray, np.ndarray]:
        """(pre, route): inner products with the frame."""
        first, second = moving
        return (first, second) if self.frame is None else (first @ self.frame.T, second @ self.frame.T)
