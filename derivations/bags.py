"""The third family of models: bags of patches from a finite alphabet, of which every expert chooses its own.

Types only, beside `derivations.contract` and `derivations.patterns`.  An example is n patches, each a unit vector of a
fixed frame; an expert sees those that its router ranks highest (expert-choice routing), so that no example belongs to
one expert.  Everything a network computes is a function of inner products with the frame and of how often each vector
occurs, which is why one definition serves training in d dimensions and training on counts alone.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.frames import Sizes


@dataclasses.dataclass(frozen=True)
class BagWeights:
    """hidden (k, M, d), out (k, M) or by class (k, M, c), routers (k, d), and the frame (P, d) of the patches."""

    hidden: np.ndarray
    out: np.ndarray
    routers: np.ndarray
    frame: np.ndarray


@dataclasses.dataclass(frozen=True)
class BagTables:
    """What counts alone need: pre (k, M, P) and route (k, P), inner products of hidden units and routers with the
    frame, out as in `BagWeights`, and the frame's Gram matrix (P, P)."""

    pre: np.ndarray
    route: np.ndarray
    out: np.ndarray
    gram: np.ndarray


@dataclasses.dataclass(frozen=True)
class Bags:
    """N examples: `counts` (P, N) copies of every frame vector, and `labels` (N,): +-1, or the classes 1..c."""

    counts: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return self.labels.size


@dataclasses.dataclass(frozen=True)
class BagModel:
    """The microscopic truth of a stage on bags of patches, once for both simulators.

    `module` holds functions written with `np` and elementwise operations, sums and `where` only, so that one source
    serves NumPy and JAX; S are the patches of an example (its n patches, or the P frame vectors with multiplicities):

        respond(fields (k, M, S, ..), out (k, M, 1, ..)) -> (k, S, ..)   the experts' outputs on every patch
        slope(fields) -> derivative of the activation
        `weigh`(route (k, S, B), response (k, S, B), counts (S, B), labels (B,), *numbers)
            -> experts (k, S, B), routers (k, S, B), margin (B,)   minus the gradient of the loss: along patch x a
            neuron
            of output weight a and field h moves by the batch mean of a slope(h) experts x, a router by routers x
        draw(uniform (U, B), *law) -> atoms (n, B), labels (B,)

    A model with an output for each of c classes has output weights (k, M, c), responses and experts (k, c, S, ..), and
    its `respond` takes the weights as they are; a neuron moves by the sum over the classes.

    `numbers(parameters)` are the arguments of `weigh`, `law(parameters)` those of `draw`, `uniforms(parameters)` = U;
    `rates(parameters, step_size)` what the experts' and the routers' gradients are multiplied by; `ball(parameters)`
    the half-diameter rho of pattern sets (0 for points): a patch is then normalised(frame vector + rho direction),
    and the first `points(parameters)` vectors of the frame are points even then.
    `place(initial, arrays, rng)` gives the weights in d dimensions, `tables(initial)` their inner products with the
    frame; `data(initial)` the fixed training set or None;
    `measure(initial, pre (k, M, P), route (k, P))` the flat numbers that are saved, read by `observe`; `compressible`
    is empty, or the reason why counts do not suffice.  `conflict(parameters, explicit, arrays, batch)` is empty, or
    what the names of the parameters that were given, the arrays of an initial file and the batch contradict each other
    in; `sizes(initial)` says how much the network and a sample hold.
    """

    module: str
    helpers: tuple[str, ...]
    weigh: str
    uniforms: Callable[[Any], int]
    numbers: Callable[[Any], tuple[Any, ...]]
    law: Callable[[Any], tuple[Any, ...]]
    rates: Callable[[Any, float], tuple[float, float]]
    ball: Callable[[Any], float]
    points: Callable[[Any], int]
    place: Callable[[Initial, Mapping[str, np.ndarray] | None, np.random.Generator], BagWeights]
    tables: Callable[[Initial], BagTables]
    data: Callable[[Initial, int], Bags | None]
    measure: Callable[[Initial, np.ndarray, np.ndarray], np.ndarray]
    compressible: Callable[[Any], str]
    conflict: Callable[[Any, Collection[str], Mapping[str, Any], int], str]
    sizes: Callable[[Initial], Sizes]
    observe: Callable[[Any, np.ndarray], Labelled]
