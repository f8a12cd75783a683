"""Orders at which the gradient of a student depends on its label: those with a Hermite tensor of both.

At small overlaps with the teacher the correlation of a student unit with the label is

    E[y phi(u . x)] = sum_k <S_k of the label, S_k of the unit>.

S_k of the unit has degree k in the overlaps, so the gradient has order k - 1 in them, for the smallest k at which
neither tensor vanishes. Tier `leading` has the same order, with its rate, for one group of units of one vector.
"""

import dataclasses
from typing import Any

import numpy as np

from derivations.declare import array_values, schedules
from derivations.declare.declaration import Declaration, Group
from derivations.declare.hermite_tensors import HIGHEST, Tensors, of_function, of_polynomial
from derivations.declare.parameter_class import rows
from derivations.declare.teacher_label import start

UNITS = 16
"""Maximal number of units of a group that are checked if they differ in norms or biases."""


@dataclasses.dataclass(frozen=True)
class StudentOrder:
    """Smallest order in the gradient of the student, or None with the reason."""

    order: int | None
    reason: str = ""


def student_order(parameters: Any, head: str, label: Tensors, zero: float) -> StudentOrder:
    """Return the smallest order with a tensor of both the label of a head and a moving vector of the student.

    Arguments: label, the tensors of the label; zero, the size up to which they count as 0.
    """
    declared: Declaration = parameters.declaration
    reason = _reason(declared, head)
    if reason:
        return StudentOrder(None, reason)
    initial, layout = start(parameters), rows(parameters)
    norms = np.sqrt(np.diag(layout.gram({**initial.constants, **initial.state})))
    orders: set[int] = set()
    for number, group in enumerate(declared.students):
        if declared.readout(number, head) is None or not any(declared.moves(group, slot) for slot in group.slots):
            continue
        scalars = {word: np.asarray(initial.state[group.named(word)], float) for word in group.scalars}
        kinds = set()
        for j in range(layout.sizes[number]):
            sizes = tuple(_norm(declared, float(norms[layout.of(number, slot)][j])) for slot in group.slots)
            kinds.add((sizes, tuple(float(values[j]) for values in scalars.values())))
        for sizes, numbers in sorted(kinds)[:UNITS]:
            namespace = {**schedules.shared(parameters), **dict(zip(scalars, numbers, strict=True))}
            orders |= _orders(declared, group, sizes, namespace)
    shared = [k for k in sorted(orders) if k <= label.order and float(np.linalg.norm(label.arrays[k])) > zero]
    if not shared:
        message = (
            f"student and teacher share no order up to {label.order}, so the gradient does not depend on the label"
        )
        return StudentOrder(None, message)
    return StudentOrder(shared[0])


def _reason(declared: Declaration, head: str) -> str:
    """The reason that tensors do not give the order of a student; "" if they give it."""
    if declared.look is not None:
        return "a sample is used more than once, so the generative exponent replaces the information exponent"
    if declared.rules:
        return "students move by rules in place of the gradient, which may depend on other orders"
    if any(group.share for group in declared.students):
        return "a unit has a share among all units of its group, and no separate tensors"
    if declared.prediction(True, head) is not None:
        return "the answer is an expression in the outputs of groups, not a sum of units"
    moving = any(
        declared.readout(k, head) is not None and any(declared.moves(group, slot) for slot in group.slots)
        for k, group in enumerate(declared.students)
    )
    return "" if moving else "no vector of the student is trained"


def _norm(declared: Declaration, size: float) -> float:
    """The factor between the field of a unit and its normalised field."""
    size = 1.0 if declared.weights == "normalised" else size
    return float(round(size)) if abs(size - round(size)) < 1e-9 else size


def _orders(declared: Declaration, group: Group, norms: tuple[float, ...], namespace: dict[str, float]) -> set[int]:
    """The orders with a tensor of a unit along a moving vector, if the vectors of a unit are orthogonal."""
    sizes = dict(zip(group.slots, norms, strict=True))
    tree = array_values.with_norms(group.unit, sizes)
    order = HIGHEST[len(norms)]
    polynomial = array_values.polynomial(tree, group.slots, namespace)
    if polynomial is not None and all(size == 1.0 for size in norms):
        tensors = of_polynomial(polynomial[0], len(norms), order, polynomial[1])
    else:
        breaks = [array_values.kinks(tree, slot, namespace, sizes[slot]) for slot in group.slots]

        def function(*z: Any) -> Any:
            fields = {slot: sizes[slot] * x for slot, x in zip(group.slots, z, strict=True)}
            return np.asarray(array_values.value(tree, {**namespace, **fields})) + sum(0.0 * x for x in z)

        degree = None if polynomial is None else max(map(sum, polynomial[0]), default=0)
        tensors = of_function(function, breaks, order, degree)
    moving = [i for i, slot in enumerate(group.slots) if declared.moves(group, slot)]
    tolerance = 0.0 if tensors.exact else max(1e-9 * tensors.size, 10 * tensors.error)
    return {n for n in range(1, order + 1) if float(np.linalg.norm(tensors.arrays[n][moving])) > tolerance}
