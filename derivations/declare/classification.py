"""Classification error P(sign f != sign f*) of a model whose loss is of labels (hinge, logistic).

If f is linear in its Gaussian fields and the sign of f* is that of a linear field z*, with g = c . z,

    P(sign f != sign f*) = arccos(E[g z*] / sqrt(E[g^2] E[z*^2])) / pi

(Sheppard's theorem). If clusters of the inputs have the labels y_c, and f has the mean m_c and the variance s_c^2 in
them, the error is sum_c p_c Phi(-sign(y_c) m_c/s_c). In other cases it is a mean over the points of the tier. Label
noise is left out, as in `error`.
"""

from typing import Any

import numpy as np

from derivations.contract import Component
from derivations.declare.arrays import Arguments, View
from derivations.declare.declaration import Declaration, Group
from derivations.special import special

CLASSIFICATION = Component(
    "classification_error", (), (0.0, 1.0), "P(sign f != sign f*)", "share of wrong labels, without label noise"
)
KEEPS_SIGN = ("sign", "erf", "tanh")
"""Odd increasing functions: the sign of one unit is that of its field."""


def has_closed_form(declared: Declaration, sizes: tuple[int, ...]) -> bool:
    """Return True for linear students, and labels of clusters, or a teacher that is linear or one of `KEEPS_SIGN`.

    A part of a teacher has no closed form. With a teacher, inputs must be one Gaussian of mean 0.
    """
    count = len(declared.students)
    if declared.labelling or declared.predicted or not all(_linear(group) for group in declared.students):
        return False
    if declared.inputs is not None and declared.inputs.clusters:
        return declared.by_cluster
    if all(_linear(group) for group in declared.teachers):
        return True
    teacher = declared.teachers[0]
    inner = teacher.unit.parts[0] if teacher.unit.kind == "call" and teacher.unit.word in KEEPS_SIGN else None
    single_teacher = len(declared.teachers) == 1 and sizes[count] == 1
    return single_teacher and inner is not None and inner.kind == "name" and (inner.word,) == teacher.slots


def _linear(group: Group) -> bool:
    return group.unit.kind == "name" and (group.unit.word,) == group.slots


def closed_form(declared: Declaration, xp: Any, view: View, a: Arguments) -> Any:
    """Return P(sign f != sign f*) from the distribution of fields and the readouts, if `has_closed_form`; 1 if f or f*
    is 0.
    """
    S = sum(a.sizes[: len(declared.students)])
    w = view.w[0]
    c = w[:S]
    if declared.weights == "normalised":
        c = c / xp.sqrt(view.square[:S])
    if declared.by_cluster:
        return sum(a.probability[k] * _in_cluster(xp, c, view, k, xp.sign(a.label[k])) for k in range(len(a.label)))
    b, G = -w[S:], view.covariance[0]
    sizes_squared = (c @ G[:S, :S] @ c) * (b @ G[S:, S:] @ b)
    cosine = c @ G[:S, S:] @ b / xp.sqrt(xp.where(sizes_squared > 0, sizes_squared, 1.0))
    # An overlap may exceed 1 by its error.
    return xp.where(sizes_squared > 0, xp.arccos(xp.clip(cosine, -1.0, 1.0)) / np.pi, 1.0)


def _in_cluster(xp: Any, c: Any, view: View, number: int, sign: Any) -> Any:
    """The share of wrong labels in a cluster: Phi(-sign m/s)."""
    S, centre = len(c), view.centre[number]
    mean = sign * (0.0 if centre is None else c @ centre[:S])
    variance = c @ view.covariance[number][:S, :S] @ c
    scaled = -mean / xp.sqrt(2 * xp.where(variance > 0, variance, 1.0))
    return xp.where(variance > 0, 0.5 + 0.5 * special(xp).erf(scaled), xp.where(mean > 0, 0.0, 1.0))


def share_of_wrong_labels(xp: Any, f: Any, y: Any, weights: Any) -> Any:
    """Return the weight of the points at which the signs of f and y (N,) differ; 0 is a third sign."""
    return xp.where(xp.sign(f) != xp.sign(y), 1.0, 0.0) @ weights
