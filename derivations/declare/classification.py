"""Classification error P(sign f != sign f*) of a model whose loss is of labels (hinge, logistic).

Where f is linear in its Gaussian fields and the sign of f* is that of a linear field z*, with g = c . z,

    P(sign f != sign f*) = arccos(E[g z*] / sqrt(E[g^2] E[z*^2])) / pi

(Sheppard's theorem); elsewhere it is a mean over the points of the tier.  Label noise is left out, as it is of `error`.
"""

from typing import Any

import numpy as np

from derivations.contract import Component
from derivations.declare.arrays import View
from derivations.declare.declaration import Declaration, Group

CLASSIFICATION = Component(
    "classification_error", (), (0.0, 1.0), "P(sign f != sign f*)", "share of wrong labels, without label noise"
)
KEEPS_SIGN = ("sign", "erf", "tanh")
"""Odd increasing functions: the sign of one unit is that of its field."""


def has_closed_form(declared: Declaration, sizes: tuple[int, ...]) -> bool:
    """Return True if the arccosine holds: linear students, and a teacher that is linear or one unit of `KEEPS_SIGN`.

    Inputs are one Gaussian of mean 0.
    """
    count = len(declared.students)
    if declared.inputs is not None and declared.inputs.clusters:
        return False
    if not all(_linear(group) for group in declared.students):
        return False
    if all(_linear(group) for group in declared.teachers):
        return True
    teacher = declared.teachers[0]
    inner = teacher.unit.parts[0] if teacher.unit.kind == "call" and teacher.unit.word in KEEPS_SIGN else None
    one = len(declared.teachers) == 1 and sizes[count] == 1
    return one and inner is not None and inner.kind == "name" and (inner.word,) == teacher.slots


def _linear(group: Group) -> bool:
    return group.unit.kind == "name" and (group.unit.word,) == group.slots


def arccosine(declared: Declaration, xp: Any, view: View, sizes: tuple[int, ...]) -> Any:
    """P(sign f != sign f*) of the covariance of fields and the readouts, if `has_closed_form`; 1 where f or f* is 0."""
    S = sum(sizes[: len(declared.students)])
    c, b, G = view.w[:S], -view.w[S:], view.covariance[0]
    if declared.weights == "normalised":
        c = c / xp.sqrt(view.square[:S])
    sizes_squared = (c @ G[:S, :S] @ c) * (b @ G[S:, S:] @ b)
    cosine = c @ G[:S, S:] @ b / xp.sqrt(xp.where(sizes_squared > 0, sizes_squared, 1.0))
    # An overlap may pass 1 by its error.
    return xp.where(sizes_squared > 0, xp.arccos(xp.clip(cosine, -1.0, 1.0)) / np.pi, 1.0)


def share_of_wrong_labels(xp: Any, f: Any, y: Any, weights: Any) -> Any:
    """The weight of the points at which the signs of f and y (N,) differ; 0 has a sign of its own."""
    return xp.where(xp.sign(f) != xp.sign(y), 1.0, 0.0) @ weights
