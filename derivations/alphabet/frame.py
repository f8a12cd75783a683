"""Models on a frame: an input is a multiset of vectors of a finite frame, and every expert selects some of them.

Types only, beside those of `derivations.contract` and `patterns`. A pattern model sends an example to one group of
filters. Here every expert gets the vectors that its router ranks highest (or every vector gets those experts), so that
an example has no single expert. All computations of a network are functions of inner products with the frame and of the
count of each vector in an input. Therefore one definition serves training in D dimensions and in the coordinates of the
frame.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from derivations.alphabet.sizes import Sizes
from derivations.contract import Initial, Labelled


@dataclasses.dataclass(frozen=True)
class Samples:
    """B inputs: the vectors `tokens` (S, B) of the frame, their counts `copies` (S, B), and `labels` (B,).

    If `tokens` is None they are all vectors of the frame, in its order, and copies are (P, B). `weight` (B,) is the
    count of every input in a batch, or its probability in a list of all inputs; None means one. Arrays of NumPy or of
    JAX.
    """

    tokens: Any
    copies: Any
    labels: Any
    weight: Any = None

    def __len__(self) -> int:
        return self.labels.size

    def take(self, index: Any) -> "Samples":
        """The inputs with the given numbers, once each."""
        tokens = None if self.tokens is None else self.tokens[:, index]
        return Samples(tokens, self.copies[:, index], self.labels[index])


@dataclasses.dataclass(frozen=True)
class FrameWeights:
    """neurons (k, M, D), routers (k, D) and constant output weights `out` (k, M), or by class (k, M, c).

    In D dimensions `frame` (P, D) contains the vectors. If it is None the weights are inner products with the frame, D
    = P, and move by its Gram matrix `gram` (P, P), None for an orthonormal frame.
    """

    neurons: np.ndarray
    routers: np.ndarray
    out: np.ndarray
    frame: np.ndarray | None = None
    gram: np.ndarray | None = None


@dataclasses.dataclass(frozen=True)
class Loops:
    """A counted model's draws and sums as loops for numba: `functions` are "module:function", helpers first, of which

    `count`(uniform (U, B), *law, copies (P, B), labels (B,))
        fills the last two with the samples that `draw` makes of the same numbers
    `sums`(route (k, P), response (k, P), copies (P, B), labels (B,), weight (B,), *numbers, experts, routers)
        fills the last two (k, P) with the sums of `weight` times those of `weigh` over the samples
    """

    functions: tuple[str, ...]
    count: str
    sums: str


@dataclasses.dataclass(frozen=True)
class FrameModel:
    """The microscopic truth of a stage on vectors of a frame, once for both simulators and both libraries.

    `module` holds functions written with `np` and array operations, traced by JAX from the same source; the sample
    index comes last.  S are the distinct places of an input, or all P vectors of the frame:

        draw(uniform (U, B), *law) -> tokens (S, B), copies (S, B), labels (B,)
        activate(fields) -> value, slope                     of a neuron, elementwise
        `weigh`(route (k, S, B), response (k, S, B), copies (S, B), labels (B,), *numbers)
            -> experts (k, S, B), routers (k, S, B), output or margin (B,)
               minus the gradient of the loss: along the vector at place j, a neuron of output weight a and field h
               moves by the batch mean of a slope(h) experts_j, a router by that of routers_j

    `labels` are +-1, or the classes 1..c; response = sum_r a_r value(h_r).  A model with an output for each of c
    classes has output weights (k, M, c), and responses and experts (k, c, S, B); a neuron moves by the sum over them.
    `helpers` are further functions that these call.

    `numbers(initial)` are the arguments of `weigh`, `law(initial)` those of `draw`, `uniforms(initial)` = U;
    `rates(initial, step_size)` what the gradients of the neurons and of the routers are multiplied by.
    With `counted`, training in the coordinates of the frame asks `weigh` about all its vectors at once, with how often
    each stands in every input, and route and response of one column: for short alphabets; with `loops` by these.
    `ball(initial)` = (rho, points), where patches need not be points: training in D dimensions takes every patch as
    the vector normalised(frame vector + rho direction), and the first `points` vectors of the frame as they are.
    `inputs(initial)` lists all inputs with their chances, so that batches can be counted, or is None where the list is
    too long; `data(initial, batch)` is the fixed training set, or None for fresh samples in every step.
    `place(initial, arrays, rng, compressed)` gives the weights, in the coordinates of the frame or in D dimensions.
    `compressible(parameters)` is empty, or the reason why there is no other form than the explicit one;
    `conflict(parameters, explicit, arrays, batch)` is empty, or what the names of the parameters that were given, the
    arrays of an initial file and the batch contradict each other in; `sizes(initial)` says how much the network and a
    sample hold.
    `measure(initial, neurons (k, M, P), routers (k, P))` is what is saved of a state, as a flat vector, from inner
    products with the frame; `observe` labels it.  `fixed(initial)` are constants that training leaves as they are,
    which are saved beside it.  With `costly_loss(parameters)` the population loss along training, by the flow's first
    tier, costs about as much as the training, and is saved only where it is asked for.
    """

    module: str
    helpers: tuple[str, ...]
    numbers: Callable[[Initial], tuple[Any, ...]]
    law: Callable[[Initial], tuple[Any, ...]]
    uniforms: Callable[[Initial], int]
    rates: Callable[[Initial, float], tuple[float, float]]
    place: Callable[[Initial, Mapping[str, np.ndarray] | None, np.random.Generator, bool], FrameWeights]
    sizes: Callable[[Initial], Sizes]
    measure: Callable[[Initial, np.ndarray, np.ndarray], np.ndarray]
    observe: Callable[[Any, np.ndarray], Labelled]
    weigh: str = "weigh"
    counted: bool = False
    loops: Loops | None = None
    ball: Callable[[Initial], tuple[float, int]] | None = None
    inputs: Callable[[Initial], Samples | None] = lambda initial: None
    data: Callable[[Initial, int], Samples | None] = lambda initial, batch: None
    compressible: Callable[[Any], str] = lambda parameters: ""
    conflict: Callable[[Any, Collection[str], Mapping[str, Any], int], str] = lambda *request: ""
    fixed: Callable[[Initial], Labelled] = lambda initial: {}
    costly_loss: Callable[[Any], bool] = lambda parameters: False
