"""Training on vectors of a frame: replicas with weights in D dimensions, or with inner products with the frame only."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.alphabet.frame import FrameModel, Samples
from derivations.contract import Initial
from odesim.errors import UsageError
from odesim.machine import streams
from odesim.sgd.frame_step import Library, Weights, numpy_library, step_of


def atoms_of(counts: np.ndarray) -> np.ndarray:
    """Return the patches (n, B) of samples with equal totals, from their counts (P, B)."""
    n = int(counts[:, 0].sum())
    return np.array([np.repeat(np.arange(len(counts)), column.astype(int)) for column in counts.T]).reshape(-1, n).T


class Source:
    """Generator of fresh samples for one initial condition, as counts if the library has compiled loops for counts."""

    def __init__(self, model: FrameModel, initial: Initial, library: Library) -> None:
        self.library, self.width = library, model.sizes(initial).frame
        self.uniforms, self.law = model.uniforms(initial), model.law(initial)

    def draw(self, rng: np.random.Generator, batch: int) -> Samples:
        """Return a batch."""
        uniform = rng.random((self.uniforms, batch))
        if self.library.loops is not None:
            return self.library.loops.draw(uniform, self.law, self.width)
        return Samples(*self.library.functions.draw(uniform, *self.law))


def entries(model: FrameModel, initial: Initial, simulation: Any) -> int:
    """Return the number of stored numbers of a run: fields and responses on the vectors of its samples, weights, saved
    states.

    The measured memory of a step was 0.6 to 1.0 of this number, with loops 0.75 to 0.9.
    """
    s, compressed, drawn = model.sizes(initial), simulation.method == "compressed", simulation.batch
    if compressed and model.inputs(initial) is not None:
        drawn = 0  # counts over the list of inputs
    places = (s.frame if compressed and model.counted else s.patches) * s.blocks * drawn
    neurons, width = s.experts * s.neurons, s.frame if compressed else s.width
    step = (6 + 2 * s.outputs) * s.experts * places
    if compressed and model.loops is not None and simulation.case.backend == "numba":
        step = (s.experts + 1) * places + (2 * s.experts + s.patches + 3) * drawn
    if not compressed and model.ball is not None:
        step += (3 * neurons + 2 * width) * places
    saved = simulation.case.save_points * simulation.replicas * neurons * s.frame
    return step + 6 * simulation.replicas * (neurons + s.experts) * width + saved


def descent(
    model: FrameModel, initial: Initial, batch: int, repeats: int, rng: np.random.Generator, fresh: bool
) -> np.ndarray:
    """Return minus the mean gradients over drawn batches along the frame (repeats, k, M + 1, P): neurons, then the
    router.
    """
    library = numpy_library(model, compiled=True)
    step, w = step_of(model, initial, 1.0, library), model.place(initial, None, rng, True)
    source, found = Source(model, initial, library), []
    drawn = source.draw(rng, batch)
    for repeat in range(repeats):
        drawn = source.draw(rng, batch) if fresh and repeat > 0 else drawn
        neurons, routers = step.along((w.neurons, w.routers), w.out, drawn)
        found.append(np.concatenate([neurons, routers[:, None]], axis=1))
    return np.array(found)


class FrameChains:
    """Replicas of one training run in NumPy or loops, one after the other, each with its own weights and random
    numbers.

    `compressed` replicas have inner products with the frame only, whose steps need the Gram matrix of the frame.
    `explicit` replicas have weights in D dimensions. With the same seed both have the same samples, unless batches are
    counted from a list.
    """

    compiles = True
    """True if a model's loops support training in the coordinates of the frame."""

    def __init__(
        self, model: FrameModel, initials: Sequence[Initial], arrays: Mapping[str, np.ndarray] | None, *,
        compressed: bool, batch: int, step_size: float, seed: int,
    ) -> None:  # fmt: skip
        first = initials[0]
        self.model, self.initials, self.batch = model, initials, batch
        placed = [
            model.place(initial, arrays, streams.generator(seed, "rest", k), compressed)
            for k, initial in enumerate(initials)
        ]
        library = numpy_library(model, self.compiles and compressed)
        self.move = step_of(model, first, step_size, library, placed[0].frame, placed[0].gram)
        self.moving: list[Weights] = [(np.array(w.neurons), np.array(w.routers)) for w in placed]
        self.out = [np.asarray(w.out) for w in placed]
        self.source = Source(model, first, library)
        self.listed, self.training = model.inputs(first) if compressed else None, model.data(first, batch)
        if self.training is not None and batch > len(self.training):
            raise UsageError(
                f"--batch {batch} is more than the {len(self.training)} samples of the training set: give --batch "
                f"{len(self.training)} for full batches, or -p data=online for fresh samples"
            )
        if self.training is not None and self.training.tokens is None and self.move.by_patch:
            tokens = atoms_of(self.training.copies)
            self.training = Samples(tokens, np.ones(tokens.shape), self.training.labels)
        self.rngs = [streams.generator(seed, "samples", k) for k in range(len(initials))]
        self.steps = 0

    def draw(self, rng: np.random.Generator) -> Samples:
        """Return the samples of the next step: counts over the list of all inputs, of the training set, or fresh
        ones.
        """
        if self.listed is not None:
            s = self.listed
            return Samples(s.tokens, s.copies, s.labels, rng.multinomial(self.batch, s.weight))
        if self.training is None:
            return self.source.draw(rng, self.batch)
        if self.batch == len(self.training):
            return self.training
        return self.training.take(rng.choice(len(self.training), self.batch, replace=False))

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a weight is no longer finite. An interruption restores the state
        before.
        """
        before = self.state()
        try:
            for k in range(len(self.moving)):
                for _ in range(steps):
                    self.moving[k] = self.stepped(k)
        except BaseException:
            self.restore(before)
            raise
        self.steps += steps
        return self.finite()

    def stepped(self, k: int) -> Weights:
        """Return the weights of replica k after one step on its own batch."""
        batch, move = self.draw(self.rngs[k]), self.move
        if not move.by_patch:
            return move.on_frame(self.moving[k], self.out[k], batch)
        shape = (*batch.copies.shape, move.frame.shape[1])
        directions = self.rngs[k].standard_normal(shape) if move.ball[0] else None
        return move.on_patches(self.moving[k], self.out[k], batch, directions)

    def finite(self) -> bool:
        """Return True if every weight is finite."""
        return all(np.isfinite(array).all() for moving in self.moving for array in moving)

    def grams(self) -> np.ndarray:
        """Return the saved variables of every replica (R, size), read by the model's `observe`."""
        pairs = zip(self.initials, self.moving, strict=True)
        return np.array([self.model.measure(initial, *self.move.tables(moving)) for initial, moving in pairs])

    def state(self) -> dict[str, np.ndarray]:
        """Return weights, generators and step count."""
        return {
            "neurons": np.array([neurons for neurons, _ in self.moving]),
            "routers": np.array([routers for _, routers in self.moving]),
            "generators": np.array([json.dumps(rng.bit_generator.state) for rng in self.rngs]),
            "steps": np.array(self.steps),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        pairs = zip(arrays["neurons"], arrays["routers"], strict=True)
        self.moving = [(neurons.copy(), routers.copy()) for neurons, routers in pairs]
        for rng, generator in zip(self.rngs, arrays["generators"], strict=True):
            rng.bit_generator.state = json.loads(str(generator))
        self.steps = int(arrays["steps"])
