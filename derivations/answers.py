"""Common parts of the predictions of several systems: arrays of samples, their checks, and margins."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.contract import Labelled, UsageError

SAMPLE = ("sample",)


def check_names(inputs: Mapping[str, np.ndarray], wanted: Sequence[str], optional: Sequence[str] = ("y",)) -> str:
    """The one array of `wanted` that contains the samples. Raises `UsageError` for none, several, or other arrays."""
    found = [name for name in wanted if name in inputs]
    others = sorted(set(inputs) - {*wanted, *optional})
    if len(found) != 1 or others:
        raise UsageError(
            f"samples are given by {' or '.join(wanted)} and optionally {', '.join(optional)}, but the arrays are "
            f"{', '.join(inputs) or 'none'}"
        )
    return found[0]


def whole_numbers(values: np.ndarray, name: str, below: int) -> np.ndarray:
    """A table (N, n) of whole numbers from 0 to `below` - 1.  Raises `UsageError`."""
    if values.ndim != 2 or values.size == 0 or values.dtype.kind not in "iuf":
        raise UsageError(f"{name} must be a table (samples, patches) of numbers, but has shape {values.shape}")
    if (values != np.round(values)).any() or values.min() < 0 or values.max() >= below:
        raise UsageError(f"{name} must hold whole numbers from 0 to {below - 1}")
    return values.astype(np.int64)


def class_answers(
    output: np.ndarray, inputs: Mapping[str, np.ndarray], **more: tuple[tuple[str, ...], Any, str]
) -> Labelled:
    """The outputs f_i (c, N), the class of the largest, and f_y - max over others if there are labels 1 to c.

    Raises `UsageError` for labels that are not classes.
    """
    classes, size = output.shape
    found: dict[str, Any] = {
        "output": (("class", *SAMPLE), output, "outputs f_i of the network"),
        "answer": (SAMPLE, output.argmax(axis=0) + 1, "class of the largest output"),
        **more,
    }
    if "y" in inputs:
        y = np.asarray(inputs["y"], float)
        if y.shape != (size,) or not np.isin(y, np.arange(1, classes + 1)).all():
            raise UsageError(
                f"y must hold a class from 1 to {classes} for each of {size} samples, but has shape {y.shape}"
                + (f" and values from {y.min():g} to {y.max():g}" if y.size else "")
            )
        own = np.arange(1, classes + 1)[:, None] == y
        margin = np.where(own, output, 0.0).sum(axis=0) - np.where(own, -np.inf, output).max(axis=0)
        found["margin"] = (SAMPLE, margin, "margin f_y - max over j != y of f_j")
    return found


def answers(output: np.ndarray, inputs: Mapping[str, np.ndarray], **more: tuple[tuple[str, ...], Any, str]) -> Labelled:
    """The outputs f (N,) and, if there are labels, the margins y f."""
    found: dict[str, Any] = {"output": (SAMPLE, output, "output f of the network"), **more}
    if "y" in inputs:
        y = np.asarray(inputs["y"], float)
        if y.shape != output.shape or not (np.abs(y) == 1).all():
            raise UsageError(f"y must hold +1 or -1 for each of {output.size} samples, but has shape {y.shape}")
        found["margin"] = (SAMPLE, y * output, "margin y f")
    return found
