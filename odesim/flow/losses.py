"""Checks of a finished run's losses: rounding below zero, and a loss that diverged."""

from collections.abc import Iterable

import numpy as np

WITHIN = 10.0
"""Errors of a run are taken to be at most this many tolerances."""
GREW = 1e3
"""A loss diverged if it and the state grew at least this many times."""


def zero_within_error(values: np.ndarray, rtol: float) -> np.ndarray:
    """Return the values with 0 for those below zero by no more than their error.

    The error is `WITHIN` times `rtol` of the largest value.  A quantity that is negative beyond it, such as the loss
    -f y, is returned as it is.

    >>> zero_within_error(np.array([1.0, 1e-3, -2e-9]), 1e-8).tolist()
    [1.0, 0.001, 0.0]
    >>> zero_within_error(np.array([1.0, -2.0]), 1e-8).tolist()
    [1.0, -2.0]
    """
    finite = values[np.isfinite(values)]
    if not finite.size or finite.min() >= 0 or finite.min() < -WITHIN * rtol * np.abs(finite).max():
        return values
    return np.where(values < 0, 0.0, values)


def divergence(loss: np.ndarray, components: Iterable[np.ndarray], how: str) -> str:
    """Return the sentence on a loss (time,) that diverged, or "".

    It diverged if it ends `GREW` times above its start, and an entry of the state (time, ..) grew as much from its
    start or from 1: a loss that grows from an optimum, where it was tiny, leaves the weights as large as they were.
    `how` says why, or what to try.
    """
    if len(loss) < 2 or not abs(loss[-1]) > GREW * abs(loss[0]):
        return ""
    sizes = [(np.abs(values[0]).max(initial=0.0), np.abs(values[-1]).max(initial=0.0)) for values in components]
    if not any(last > GREW * max(first, 1.0) for first, last in sizes):
        return ""
    return f"the loss diverged, from {loss[0]:.3g} to {loss[-1]:.3g}: {how}"
