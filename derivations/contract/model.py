"""The microscopic truth of a stage: weights, samples, one training step."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract.state import Initial, Labelled


@dataclasses.dataclass(frozen=True)
class Model:
    """The microscopic truth of a stage, once for both simulators: weight vectors, samples, one training step.

    A model has `trained` vectors and a fixed `frame` (teachers, means); inputs are x = sum_k mean_k frame_k + z
    with z ~ N(0, I_d).  `module` holds its functions, written with `np` and elementwise operations, products,
    sums, `where`, `sort` and `argmax` only, so that one source is traced by JAX (with `np` bound to its array
    library) and compiled by numba.  Arrays carry the vector index first and, for a batch, the sample index last:

        coefficients(fields, labels, *numbers) -> (trained, ...)   one scalar per sample and trained vector; the
            gradient of vector k is the batch mean of coefficient_k x.  fields = inner products of x with
            [trained, frame] (trained + frame, ...)
        update(vv, vg, gg, step_size, *numbers) -> (a, b)   new vector_k = a_k vector_k + b_k gradient_k, from the
            squared norms of vectors and gradients and their inner products, each (trained,)
        draw(uniform, normal, *numbers) -> labels, mean(labels, *numbers) -> (frame, ...)   where `noise` is not (0, 0):
            labels made of `noise` = (uniforms, normals) per sample, and the mean of x in the frame

    With `normalised` the fields are those of the trained vectors divided by their lengths.  `helpers` lists further
    functions of the module that these call.  `sizes(parameters)` = (trained, frame);
    `numbers(parameters, gram)` are the run-time arguments (integers are sizes or switches; many of them are one
    NamedTuple), and after them come the arrays of the initial condition that `constants` names (second-layer weights,
    biases);
    `place(initial)` is the Gram matrix of the raw vectors at the start, `weights(arrays)` their rows where a
    file gives them (absent, or None, where a file gives overlaps); `observe(parameters, gram)` reads the components off
    raw Gram matrices (..., n, n).
    """

    module: str
    helpers: tuple[str, ...]
    normalised: bool
    noise: tuple[int, int]
    sizes: Callable[[Any], tuple[int, int]]
    numbers: Callable[[Any, np.ndarray], tuple[Any, ...]]
    place: Callable[[Initial], np.ndarray]
    weights: Callable[[Mapping[str, np.ndarray]], np.ndarray | None] | None
    observe: Callable[[Any, np.ndarray], Labelled]
    constants: tuple[str, ...] = ()

    def bound(self, initial: Initial, gram: np.ndarray) -> tuple[Any, ...]:
        """All run-time arguments of the functions for one initial condition: `numbers`, then the constants."""
        fixed = tuple(np.asarray(initial.constants[name], float) for name in self.constants)
        return (*self.numbers(initial.parameters, gram), *fixed)
