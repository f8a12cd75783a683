"""The microscopic truth of a stage whose step moves numbers beside the vectors (readouts, biases) or sees norms."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations.contract.model import Model
from derivations.contract.state import Initial, Labelled


def packed(gram: np.ndarray, scalars: np.ndarray) -> np.ndarray:
    """Gram matrices (.., n, n) and scalars (.., s) as one array (.., n n + s), which is what a run saves.

    >>> packed(np.eye(2), np.array([3.0]))
    array([1., 0., 0., 1., 3.])
    """
    return np.concatenate([gram.reshape(*gram.shape[:-2], -1), scalars], axis=-1)


def unpacked(saved: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The Gram matrices (.., n, n) and the scalars (.., s) of `packed` arrays.

    >>> unpacked(np.array([1.0, 0.0, 0.0, 1.0, 3.0]), 2)[1]
    array([3.])
    """
    return saved[..., : n * n].reshape(*saved.shape[:-1], n, n), saved[..., n * n :]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScalarModel(Model):
    """A `Model` of isotropic inputs x ~ N(0, I_d) with trained numbers s beside the vectors u_k.

        coefficients(fields, labels, vv, scalars, *numbers) -> (trained + further, ...)   per sample; the first
            `trained` rows are those of a `Model`, with fields of the raw vectors and vv (trained,) their squared
            norms; the means of the `further` rows over the batch reach `update`; the last (s,) of them are the
            derivatives of the loss in the scalars
        update(vv, vg, gg, means, scalars, step_size, *numbers) -> (a, b, new scalars)   means (further,)
        draw(uniform, normal, *numbers) -> labels   there is no `mean`

    `scalars(initial)` are the numbers (s,) at the start and `further(parameters)` counts the further rows.  The
    functions stand in no file: `written()` is the text of a module that holds them, and `stem` a name that changes with
    it; `module` is what writes it, and `helpers` are the functions of that text that are no roles.

    Explicit SGD takes nothing of this but `update`, whose further rows of norms are then 0: it differentiates
    losses(vectors (n, d), scalars (s,), x (samples, d), labels (.., samples), *numbers) -> (samples,), in JAX.

    `observe` takes `packed` Gram matrices and scalars; `fixed(initial)` are the constants that are saved with a run.
    """

    scalars: Callable[[Initial], np.ndarray]
    further: Callable[[Any], int]
    losses: Callable[..., Any]
    written: Callable[[], str]
    stem: str
    fixed: Callable[[Initial], Labelled]
