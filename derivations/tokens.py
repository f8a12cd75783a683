"""The fourth family of models: an input is a multiset of tokens of a dictionary, pooled by every expert.

Types only, beside those of `derivations.contract` and `derivations.patterns`.  Where a pattern model sends an example
to one group of filters, here every expert selects tokens of every example (or every token selects experts); as tokens
are dictionary entries, weights are read through two tables: routers on patterns, and neurons on patterns.
"""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from derivations.contract import Initial, Labelled
from derivations.frames import Sizes


@dataclasses.dataclass(frozen=True)
class Samples:
    """B inputs: pattern numbers `tokens` (P, B), how often each stands there `copies` (P, B), `labels` (B,), and the
    `weight` (B,) of every input in the mean (1/B, or a multinomial share)."""

    tokens: np.ndarray
    copies: np.ndarray
    labels: np.ndarray
    weight: np.ndarray


@dataclasses.dataclass(frozen=True)
class TokenWeights:
    """routers (k, D), neurons (k, m, D) and the dictionary's patterns (d, D)."""

    routers: np.ndarray
    neurons: np.ndarray
    patterns: np.ndarray


@dataclasses.dataclass(frozen=True)
class TokenModel:
    """The microscopic truth of a stage on tokens of a dictionary, once for both simulators and both libraries.

    `module` holds functions written with `np` and array operations, traced by JAX from the same source; the sample
    index comes last:

        draw(uniform (U, B), *numbers) -> tokens (P, B), copies (P, B), labels (B,)
        activate(u (k, m, d)) -> value, slope (k, m, d)
        coefficients(logits (k, P, B), activation (k, P, B), copies (P, B), labels (B,), *numbers)
            -> routers (k, P, B), neurons (k, P, B), output (B,)   minus the gradient of the loss along every token, for
            each router and, before the slope of the activation, for all neurons of each expert
        rates(step_size, *numbers) -> (router, neuron)

    `numbers(initial)` are their run-time arguments, `uniforms(initial)` the number U.  `inputs(initial)` lists all
    inputs with their chances as `Samples`, so that batches can be counted, or is None where the list is too long.
    `place(initial, arrays, compressed)` gives the weights, in the dictionary's coordinates or in D dimensions;
    `compressible(parameters)` is empty or the reason why there is no other form than the explicit one.
    `sizes(initial)` and `conflict` are as in `derivations.bags`; `patches` are then the uniform numbers of an input.
    `measure(initial, h (k, d), u (k, m, d))` is what is saved of a state, as a flat vector; `observe` labels it.
    `fixed(initial)` are constants that training leaves as they are, which are saved beside it.
    With `costly_loss(parameters)` the population loss along training, by the
    flow's first tier, costs about as much as the training, and is saved only where it is asked for.
    """

    module: str
    helpers: tuple[str, ...]
    numbers: Callable[[Initial], tuple[Any, ...]]
    uniforms: Callable[[Initial], int]
    inputs: Callable[[Initial], Samples | None]
    place: Callable[[Initial, Mapping[str, np.ndarray] | None, bool], TokenWeights]
    compressible: Callable[[Any], str]
    sizes: Callable[[Initial], Sizes]
    measure: Callable[[Initial, np.ndarray, np.ndarray], np.ndarray]
    observe: Callable[[Any, np.ndarray], Labelled]
    fixed: Callable[[Initial], Labelled] = lambda initial: {}
    conflict: Callable[[Any, Collection[str], Mapping[str, Any], int], str] = lambda *request: ""
    costly_loss: Callable[[Any], bool] = lambda parameters: False
