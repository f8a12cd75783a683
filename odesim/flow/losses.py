"""Checks of the losses of a finished run: rounding below zero, and divergence."""

from collections.abc import Iterable

import numpy as np

WITHIN = 10.0
"""Assumed upper bound of the errors of a run, in tolerances."""
GREW = 1e3
"""Factor by which both the loss and the state grow in a divergent run."""


def zero_within_error(values: np.ndarray, rtol: float) -> np.ndarray:
    """Return the values; negative values within their error of 0 are replaced by 0.

    The error is `WITHIN` times `rtol` of the largest value. Values that are more negative, such as those of the loss -f
    y, are unchanged.

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
    """Return a sentence if the loss (time,) diverged, otherwise "".

    It diverged if its last value is `GREW` times its first, and an entry of the state (time, ..) grew as much from its
    start or from 1. A tiny loss that grows from an optimum leaves the weights as large as they were. `how` is the cause
    or a hint.
    """
    if len(loss) < 2 or not abs(loss[-1]) > GREW * abs(loss[0]):
        return ""
    sizes = [(np.abs(values[0]).max(initial=0.0), np.abs(values[-1]).max(initial=0.0)) for values in components]
    if not any(last > GREW * max(first, 1.0) for first, last in sizes):
        return ""
    return f"the loss diverged, from {loss[0]:.3g} to {loss[-1]:.3g}: {how}"
