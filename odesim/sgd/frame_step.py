"""One training step on vectors of a frame, in array operations common to NumPy and JAX, or by a model's loops.

A step evaluates two tables, the neurons and routers on the frame, and returns gradients along the frame. Both are exact
for any frame, because every patch is one of its vectors. If patches are other vectors (from balls around those of the
frame), training in D dimensions evaluates them one by one.
"""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.alphabet.experts import respond, wide
from derivations.alphabet.frame import FrameModel, Loops, Samples
from derivations.contract import Initial

Weights = tuple[Any, Any]
"""The two trained arrays: neurons (k, M, D) and routers (k, D)."""


@dataclasses.dataclass(frozen=True)
class Library:
    """Differences of NumPy and JAX: the arrays, the model's functions, and the sums over batches.

    `counts(samples, P)` returns the number of occurrences of each of the P vectors in the inputs, and `scattered(pull
    (.., S, B), tokens (S, B), P)` the sums along every vector (.., P).
    """

    xp: Any
    functions: Any
    counts: Callable[[Samples, int], Samples]
    scattered: Callable[[Any, Any, int], Any]
    loops: "Compiled | None" = None


class Compiled:
    """Compiled loops of a counted model: its samples as counts, and its sums over them.

    The types of the arguments are the same in every step, so that each loop is looked up once.
    """

    def __init__(self, loops: Loops) -> None:
        from odesim.code import compile

        made = compile.common(loops.functions)
        self._counting, self._summing = made[loops.count], made[loops.sums]
        self.count: Callable[..., None] | None = None
        self.fill: Callable[..., None] | None = None

    def draw(self, uniform: np.ndarray, law: tuple[Any, ...], width: int) -> Samples:
        """Return the samples (P, B), as counts, that the model's `draw` makes of uniform numbers."""
        copies, labels = np.empty((width, uniform.shape[1])), np.empty(uniform.shape[1])
        arguments = (uniform, *law, copies, labels)
        self.count = self.count or self._counting.compiled_for(*arguments)
        self.count(*arguments)
        return Samples(None, copies, labels)

    def sums(self, route: np.ndarray, response: np.ndarray, batch: Samples, numbers: tuple[Any, ...]) -> Any:
        """Return the sums of the model's `weigh` over a batch, for experts and routers (k, P)."""
        found = np.empty(route.shape), np.empty(route.shape)
        weight = np.ones(len(batch)) if batch.weight is None else batch.weight
        arrays = (route, response, batch.copies, batch.labels, weight)
        arguments = (*(np.require(x, float, ["C", "W"]) for x in arrays), *numbers, *found)
        self.fill = self.fill or self._summing.compiled_for(*arguments)
        self.fill(*arguments)
        return found


def counted(samples: Samples, width: int) -> Samples:
    """Return the counts of samples (`Library.counts` for NumPy)."""
    assert samples.tokens is not None
    size = len(samples)
    places, copies = (samples.tokens * size + np.arange(size)).ravel(), samples.copies.ravel()
    flat = np.bincount(places, copies, minlength=width * size)
    return Samples(None, flat.reshape(width, size), samples.labels, samples.weight)


def scattered(pull: np.ndarray, tokens: np.ndarray, width: int) -> np.ndarray:
    """Return sums along every vector (`Library.scattered` for NumPy).

    >>> scattered(np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.array([[0, 2], [2, 1]]), 3)
    array([[1., 4., 5.]])
    """
    rows = np.arange(pull[..., 0, 0].size)[:, None] * width
    places = (rows + tokens.ravel()).ravel()
    return np.bincount(places, pull.ravel(), rows.size * width).reshape(*pull.shape[:-2], width)


def pushed(out: Any, experts: Any) -> Any:
    """Return the factor of a neuron's slope, (k, M, ..): a_r experts, or sum_i a_{r,i} experts_i over classes."""
    if out.ndim == 2:
        return wide(out, experts[:, None]) * experts[:, None]
    by_class = wide(out, experts)
    return sum(by_class[:, :, i] * experts[:, None, i] for i in range(out.shape[2]))


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step of `model` with the run-time arguments of one initial condition, in arrays of `library`.

    The weights have D dimensions, with the vectors `frame` (P, D), or are inner products with a frame of Gram matrix
    `gram` (P, P), None for an orthonormal one. `rates` multiply the gradients of neurons and routers.
    """

    model: FrameModel
    library: Library
    numbers: tuple[Any, ...]
    rates: tuple[float, float]
    ball: tuple[float, int]
    frame: Any = None
    gram: Any = None

    @property
    def by_patch(self) -> bool:
        """True if every patch is a vector of its own."""
        return self.frame is not None and self.model.ball is not None

    def tables(self, moving: Weights) -> Weights:
        """Return neurons (k, M, P) and routers (k, P) on the frame."""
        neurons, routers = moving
        return moving if self.frame is None else (neurons @ self.frame.T, routers @ self.frame.T)

    def along(self, tables: Weights, out: Any, batch: Samples) -> Weights:
        """Return minus the mean gradients along the frame, of neurons (k, M, P) and routers (k, P). Responses are
        computed once for each vector.

        If every input counts once (always except in counted lists), sums are divided by the number of inputs.
        """
        neurons, routers = tables
        value, slope = self.library.functions.activate(neurons)
        response, width = respond(out, value), routers.shape[-1]
        if self.model.counted and batch.tokens is not None:
            batch = self.library.counts(batch, width)
        total = len(batch) if batch.weight is None else batch.weight.sum()
        if self.library.loops is not None and batch.tokens is None:
            experts, pull = self.library.loops.sums(routers, response, batch, self.numbers)
        else:
            at = (..., None) if batch.tokens is None else (..., batch.tokens)
            experts, pull, _ = self.weigh(routers[at], response[at], batch)
            experts, pull = self.summed(experts, batch, width), self.summed(pull, batch, width)
        return pushed(out, experts / total) * slope, pull / total

    def summed(self, x: Any, batch: Samples, width: int) -> Any:
        """Return the sums over a batch (.., P) of the values of its samples at their places (.., S, B)."""
        x = x if batch.weight is None else batch.weight * x
        return x.sum(axis=-1) if batch.tokens is None else self.library.scattered(x, batch.tokens, width)

    def weigh(self, route: Any, response: Any, batch: Samples) -> tuple[Any, Any, Any]:
        """Evaluate the model's `weigh` on a batch."""
        weigh = getattr(self.library.functions, self.model.weigh)
        return weigh(route, response, batch.copies, batch.labels, *self.numbers)

    def on_frame(self, moving: Weights, out: Any, batch: Samples) -> Weights:
        """Return the weights after one step on patches that are vectors of the frame."""
        along, basis = self.along(self.tables(moving), out, batch), self.gram if self.frame is None else self.frame
        change = along if basis is None else [part @ basis for part in along]
        first, second = (w + rate * c if rate else w for w, rate, c in zip(moving, self.rates, change, strict=True))
        return first, second

    def patches(self, tokens: Any, directions: Any) -> Any:
        """Return the patches (S, B) as vectors (S, B, D); those of balls are normalised(q + rho direction)."""
        xp, (rho, points), x = self.library.xp, self.ball, self.frame[tokens]
        if rho == 0:
            return x
        moved = x + rho * (directions / xp.linalg.norm(directions, axis=-1, keepdims=True))
        moved = moved / xp.linalg.norm(moved, axis=-1, keepdims=True)
        return xp.where((tokens >= points)[..., None], moved, x)

    def on_patches(self, moving: Weights, out: Any, batch: Samples, directions: Any) -> Weights:
        """Return the weights after one step in D dimensions, patch by patch; `directions` (S, B, D) are those of
        balls.
        """
        neurons, routers = moving
        (k, each, d), (places, size) = neurons.shape, batch.copies.shape
        x = self.patches(batch.tokens, directions).reshape(-1, d)
        fields = (neurons.reshape(-1, d) @ x.T).reshape(k, each, places, size)
        value, slope = self.library.functions.activate(fields)
        route = (routers @ x.T).reshape(k, places, size)
        experts, pull, _ = self.weigh(route, respond(out, value), batch)
        for_neurons, for_routers = (rate / size for rate in self.rates)
        if for_neurons:
            change = pushed(out, experts) * slope
            neurons = neurons + for_neurons * (change.reshape(k * each, -1) @ x).reshape(neurons.shape)
        return neurons, routers + for_routers * (pull.reshape(k, -1) @ x) if for_routers else routers


def numpy_library(model: FrameModel, compiled: bool = False) -> Library:
    """Return the model's functions for NumPy, with its loops (if any) when `compiled` is set."""
    loops = Compiled(model.loops) if compiled and model.loops is not None else None
    return Library(np, importlib.import_module(model.module), counted, scattered, loops)


def step_of(
    model: FrameModel, initial: Initial, step_size: float, library: Library, frame: Any = None, gram: Any = None
) -> Step:
    """Return the step of one initial condition."""
    ball = model.ball(initial) if model.ball else (0.0, 0)
    return Step(model, library, model.numbers(initial), model.rates(initial, step_size), ball, frame, gram)
