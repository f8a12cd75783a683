"""Definition of SGD in a stage: weights, samples, one training step."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.contract.state import Initial, Labelled


@dataclasses.dataclass(frozen=True)
class Model:
    """Definition of SGD in a stage, for both simulators: weight vectors, samples, and one training step.

    A model has `trained` vectors and a fixed `frame` (teachers, means).  Inputs are x = sum_k mean_k frame_k + z with
    z ~ N(0, I_d).  `module` is the module of its functions.  They may use only `np`, elementwise operations, products,
    sums, `where`, `sort` and `argmax`.  JAX then traces the same source that numba compiles, with `np` bound to its
    array library.  In all arrays the first index is that of the vector; for a batch, the last is that of the sample:

        coefficients(fields, labels, *numbers) -> (trained, ...)   one scalar per sample and trained vector; the
            gradient of vector k is the batch mean of coefficient_k x.  fields = inner products of x with
            [trained, frame] (trained + frame, ...)
        update(vv, vg, gg, step_size, *numbers) -> (a, b)   new vector_k = a_k vector_k + b_k gradient_k, from the
            squared norms of vectors and gradients and their inner products, each (trained,)
        draw(uniform, normal, *numbers) -> labels, mean(labels, *numbers) -> (frame, ...)   where `noise` is not (0, 0):
            labels made of `noise` = (uniforms, normals) per sample, and the mean of x in the frame

    Attributes:
        normalised: If true, fields are those of the trained vectors divided by their lengths.
        helpers: Further functions of the module, which the functions above call.
        sizes: sizes(parameters) = (trained, frame).
        numbers: numbers(parameters, gram) returns the run-time arguments.  Integers are sizes or switches.  Many
            arguments form one NamedTuple.
        constants: Names of arrays of the initial condition that follow these arguments (second-layer weights, biases).
        place: place(initial) returns the initial Gram matrix of the raw vectors.
        weights: weights(arrays) returns the rows of the vectors, if a file has them.  It is absent, or returns None,
            if a file has overlaps.
        observe: observe(parameters, gram) computes the components from raw Gram matrices (..., n, n).
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
        """Return all run-time arguments of the functions for one initial condition: `numbers`, then the constants."""
        fixed = tuple(np.asarray(initial.constants[name], float) for name in self.constants)
        return (*self.numbers(initial.parameters, gram), *fixed)
