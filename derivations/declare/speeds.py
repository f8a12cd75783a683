"""The rate factors of vectors and numbers: 0 for frozen ones, the declared rate, else 1."""

from typing import Any

import numpy as np

from derivations.declare import momentum
from derivations.declare.declaration import Declaration, Group
from derivations.declare.parameter_class import rows


def speed(parameters: Any, group: Group, word: str) -> float:
    """The rate factor of a slot, of the readout "a" or of a scalar of a group of students, without its schedule."""
    declared: Declaration = parameters.declaration
    name = declared.rate(group, word)
    factor = getattr(parameters, name) if name else 1.0
    return float(declared.moves(group, word)) * (1.0 if factor is None else float(factor))


def of_vectors(parameters: Any) -> np.ndarray:
    """The rate factors (S,) of the students' rows of the Gram matrix in flow and online limit."""
    return momentum.acceleration(parameters) * of_steps(parameters)


def of_steps(parameters: Any) -> np.ndarray:
    """The step factors (S,) of the students' rows of the Gram matrix."""
    layout = rows(parameters)
    factors = np.zeros(layout.students)
    for number, group in enumerate(layout.declaration.students):
        for slot in group.slots:
            factors[layout.of(number, slot)] = speed(parameters, group, slot)
    return factors


def of_scalars(parameters: Any) -> np.ndarray:
    """The rate factors of readouts and scalars in flow and online limit, in the order of `Rows.scalars`."""
    return momentum.acceleration(parameters) * of_scalar_steps(parameters)


def of_scalar_steps(parameters: Any) -> np.ndarray:
    """The step factors of readouts and scalars, in the order of `Rows.scalars`."""
    layout = rows(parameters)
    return np.array([speed(parameters, layout.declaration.students[k], word) for k, word, _ in layout.scalars])
