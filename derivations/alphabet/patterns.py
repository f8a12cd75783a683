"""The second family of models: inputs made of patches, each an atom of a finite frame or a dense vector.

Types only, beside those of `derivations.contract`. A Gaussian model depends on an input through its inner products with
all weight vectors. These inputs are sets of patches, experts are groups of filters, and a routing rule selects the
group for an example.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from derivations.alphabet.sizes import Sizes
from derivations.contract import Initial, Labelled


@dataclasses.dataclass(frozen=True)
class Examples:
    """n examples: patch s of example i is amplitudes[s, i] times frame vector atoms[s, i], then come dense patches.

    `atoms`, `amplitudes` (S, n), `dense` (n, D, d), `labels` and `cluster` (n,); S or D may be 0.
    """

    atoms: np.ndarray
    amplitudes: np.ndarray
    dense: np.ndarray
    labels: np.ndarray
    cluster: np.ndarray

    def __len__(self) -> int:
        return self.labels.size

    def take(self, index: np.ndarray) -> "Examples":
        """The examples with the given indices."""
        return Examples(
            self.atoms[:, index], self.amplitudes[:, index], self.dense[index], self.labels[index], self.cluster[index]
        )


@dataclasses.dataclass(frozen=True)
class Weights:
    """filters (M, J, d) and their biases (M, J), routers (M, d), and the fixed frame (F, d) of the atoms."""

    filters: np.ndarray
    bias: np.ndarray
    routers: np.ndarray
    frame: np.ndarray


@dataclasses.dataclass(frozen=True)
class Counting:
    """Counting of batches whose examples have finitely many configurations, without dense patches.

    `obstacle(parameters)` is empty, or the reason why a step is not a function of the number of examples of every
    configuration in each group of filters. `configurations(parameters)` lists them with their chances (C,);
    `routing(logits (M, C))` is the distribution (M, C) of the group that an example's noise selects. Training with
    random counts of these distributions has exactly the distribution of training with random examples.
    """

    obstacle: Callable[[Any], str]
    configurations: Callable[[Any], tuple[Examples, np.ndarray]]
    routing: Callable[[np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Plan:
    """Training and test data of a run, and the changes allowed in it.

    With `fresh` every step draws its examples. Otherwise there is a training set of `count` examples (0: as many as a
    batch), drawn with `seed`, one for all replicas or, with `own`, one for each. `tests` examples, from the same seed,
    are for accuracy and for the table of dispatch of the `clusters`. With `noise` routing is noisy, with `stops` the
    model's `halt` is called before every step, with `biased` the filters' biases are trained too.

    >>> Plan(clusters=4, seed=0, tests=2000, fresh=True).count
    0
    """

    clusters: int
    seed: int
    tests: int
    fresh: bool = False
    count: int = 0
    own: bool = False
    noise: bool = False
    stops: bool = False
    biased: bool = False


@dataclasses.dataclass(frozen=True)
class PatternModel:
    """The microscopic truth of a stage on pattern data, once for both simulators.

    `module` holds functions written with `np` and elementwise operations, products, sums, `where`, `sort` and
    `argmax` only, traced by JAX and compiled by numba from one source; the example index comes last:

        dispatch(logits (M, B), noise (M, B), *numbers) -> expert (B,)   which group of filters sees an example
        coefficients(expert, fields (J, P, B), logits, noise, labels (B,), share (M,), *numbers)
            -> filters (J, P, B), routers (M, B), margin (B,)   minus the gradient along each patch, for the filters of
            the example's expert, and along the sum of its patches, for every router; `expert` is one number (a
            block of examples of one expert) or an array (B,); `share` is the part of the batch at each expert
        rates(weights (M,), bias (M,), *numbers) -> (M,), (M,), number   what multiplies step size times minus the
            gradient of the filters and of the biases of each expert and of the routers, given the squared norms of an
            expert's gradients
        losses(margin, *numbers) -> (B,), halt(loss, best, *numbers) -> bool: whether training stops before this step
        draw(uniform (U, B), *numbers) -> atoms (S, B), amplitudes (S, B), labels (B,), cluster (B,)

    Fields are inner products of patch and filter plus the filter's bias.  `helpers` lists further functions of the
    module that these call.  `numbers(parameters)` are their run-time arguments, `uniforms` the number U;
    `noisy(parameters)` = (dense patches, their standard deviation per entry); `place(initial, arrays, rng, compressed)`
    the weights at the start, in d dimensions or in the coordinates of the frame; `given(parameters, arrays)` the
    training set of an initial file or None; `compressible(parameters)` is empty, or the reason why the frame's
    coordinates do not close; `plan(parameters)` says what is trained on; `sizes(initial)` and `conflict` are as in
    `derivations.alphabet.frame`, where `patches` are all of an example.
    `observe(parameters, saved)` labels what is saved: filters (M, J, F) and routers (M, F) along the frame, the table
    of dispatch (K, M) under noise, seven scalars (dispatch entropy and accuracy on the test examples, both once more
    under noise, then loss, accuracy and entropy on the training set), and, where the weights live in d dimensions,
    the lengths outside the frame of filters (M, J) and routers (M,).  `counting` names the model's
    `Counting` as "module:attribute", if it has one.  With `costly_loss(parameters)` the population loss
    along training, by the flow's first tier, costs about as much as the training, and is saved only on request.
    """

    module: str
    helpers: tuple[str, ...]
    uniforms: int
    numbers: Callable[[Any], tuple[Any, ...]]
    noisy: Callable[[Any], tuple[int, float]]
    place: Callable[[Initial, Mapping[str, np.ndarray] | None, np.random.Generator, bool], Weights]
    given: Callable[[Any, Mapping[str, np.ndarray] | None], Examples | None]
    compressible: Callable[[Any], str]
    plan: Callable[[Any], Plan]
    sizes: Callable[[Initial], Sizes]
    conflict: Callable[[Any, Collection[str], Mapping[str, Any], int], str]
    observe: Callable[[Any, np.ndarray], Labelled]
    counting: str = ""
    costly_loss: Callable[[Any], bool] = lambda parameters: False
