"""Exact means of polynomial rules and looks: a tensor of Gauss-Hermite nodes in all fields and the label's noise.

With n nodes each, polynomials of degree 2 n - 1 in every variable have exact means.  The frame has the teachers first,
so that overlaps as small as 1e-5 keep their digits, which random points cannot resolve.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.declare import episodes
from derivations.declare.declaration import Declaration, Group
from derivations.declare.grammar import Tree, number
from derivations.declare.looks import normed
from derivations.declare.noise import in_force
from derivations.declare.parameter_class import rows

MOST_VARIABLES = 4
"""Largest number of fields and noises of a tensor of nodes."""
MOST_NODES = 2**17
"""Largest number of nodes of a tensor; with more, random points are faster."""


def reason(declared: Declaration) -> str:
    """Return the reason why there are no exact means over a grid for any number of units, or ""."""
    if normed(declared):
        return "gnorm is not a polynomial"
    if obstacle := episodes.reason(declared):
        return obstacle
    if declared.law is not None and degree(declared.law.tree, {"xi": 1}) is None:
        return f"the noise {declared.law.text!r} is not a polynomial"
    if declared.loss not in ("squared", "correlation"):
        return f"the {declared.loss} loss is not a polynomial"
    for group in declared.groups:
        if group.share is not None or degree(group.unit, dict.fromkeys(group.slots, 1), group.scalars) is None:
            return f"{group.text!r} is not a polynomial"
    for group in declared.students:
        for word in declared.ruled(group):
            rule = declared.rule(group, word)
            if rule is not None and degree(rule.tree, _names(declared, group), _numbers(declared, group)) is None:
                return f"the rule {rule.text!r} is not a polynomial"
    return ""


def _numbers(declared: Declaration, group: Group) -> tuple[str, ...]:
    """Return the numbers that a rule of a group may contain."""
    return (*group.scalars, *declared.constants(group), "a", *declared.names)


def _degrees(declared: Declaration, field: int = 1) -> tuple[int, int]:
    """The degrees of the students' answer and of the label; that of a student's `field` grows in looks."""
    sides = [
        max((degree(g.unit, dict.fromkeys(g.slots, size), g.scalars) or 0 for g in side), default=0)
        for side, size in ((declared.students, field), (declared.teachers, 1))
    ]
    noise = 1 if declared.law is None else degree(declared.law.tree, {"xi": 1}) or 0
    return sides[0], max(sides[1], noise)


def _names(declared: Declaration, group: Group, field: int = 1) -> dict[str, int]:
    """Return the degrees of all functions of a sample that a rule may contain, in fields and noise."""
    f, y = _degrees(declared, field)
    unit_degree = degree(group.unit, dict.fromkeys(group.slots, field), group.scalars) or 0
    error = max(f, y) if declared.loss == "squared" else y
    loss = 2 * error if declared.loss == "squared" else f + y
    degrees = {
        "f": f,
        "y": y,
        "dl": error,
        "df": unit_degree,
        "dphi": unit_degree,
        "grad": error + unit_degree,
        "l": loss,
    }
    return degrees | dict.fromkeys(group.slots, field)


def degree(tree: Tree, degrees: Mapping[str, int], numbers: tuple[str, ...] = ()) -> int | None:
    """Return the degree of an expression in fields and noise; None if it is not a polynomial.

    `degrees` are the degrees of names; all others, and `numbers`, are numbers.

    >>> from derivations.declare.grammar import read
    >>> degree(read("He(3, w)*dl/2"), {"w": 1, "dl": 3}), degree(read("erf(w)"), {"w": 1})
    (6, None)
    """
    if not any(name in degrees and name not in numbers for name in tree.names()):
        return 0
    if tree.kind == "name":
        return degrees[tree.word]
    parts = [degree(part, degrees, numbers) for part in tree.parts]
    if None in parts:
        return None
    low, high = int(parts[0] or 0), int(parts[-1] or 0)
    match tree.kind:
        case "+" | "-":
            return max(low, high)
        case "*":
            return low + high
        case "/" if high == 0:
            return low
        case "^" if not tree.parts[1].names():
            power = number(tree.parts[1], {})
            return low * int(power) if power == int(power) and power >= 0 else None
        case "call" if tree.word in ("He", "wick"):
            return int(tree.parts[0].value) * high
    return None


def highest(declared: Declaration) -> int:
    """Return the largest degree of the functions whose means are needed: c z, c c of an online limit, the loss and the
    error.
    """
    f, y = _degrees(declared)
    motion_degree = field = _moved(declared, 1)
    for _ in range(declared.look.times if declared.look is not None else 0):
        motion_degree = max(motion_degree, _moved(declared, field))  # z - rho c(z) has the degree of c
        field = max(field, motion_degree)
    return max(2 * motion_degree if declared.noisy else motion_degree + 1, 2 * max(f, y))


def _moved(declared: Declaration, field: int) -> int:
    """Return the largest degree of any motion, at students' fields of a degree."""
    largest = field
    for group in declared.students:
        names, numbers = _names(declared, group, field), _numbers(declared, group)
        for word in (*group.slots, *group.own):
            rule = declared.rule(group, word) if declared.moves(group, word) else None
            motion_degree = names["grad"] if rule is None else degree(rule.tree, names, numbers) or 0
            largest = max(largest, motion_degree)
    return largest


def nodes(parameters: Any, extra: int = 0) -> tuple[np.ndarray, np.ndarray] | None:
    """Points (fields + 1, N), the last row for the label's noise, and weights (N,); None if there are too many.

    Every variable has `extra` nodes than necessary.
    """
    declared, fields = in_force(parameters), rows(parameters).fields
    noisy = parameters.noise is None or parameters.noise > 0
    per_axis, variables = highest(declared) // 2 + 1 + extra, fields + noisy
    if variables > MOST_VARIABLES or per_axis**variables > MOST_NODES:
        return None
    x, weights = _tensor(variables, per_axis)
    return (x if noisy else np.vstack([x, np.zeros(x.shape[1])])), weights


@functools.lru_cache(maxsize=8)
def _tensor(variables: int, per_axis: int) -> tuple[np.ndarray, np.ndarray]:
    """A tensor of Gauss-Hermite nodes (variables, each^variables) of the normal law, and weights of sum 1."""
    axis_nodes, weight = np.polynomial.hermite_e.hermegauss(per_axis)
    weight = weight / math.sqrt(2 * math.pi)
    axes = np.meshgrid(*[axis_nodes] * variables, indexing="ij")
    factors = np.meshgrid(*[weight] * variables, indexing="ij")
    return np.array([axis.ravel() for axis in axes]), np.prod([factor.ravel() for factor in factors], axis=0)


def exists(parameters: Any) -> bool:
    """Return True if the model has rules or looks whose means are exact on such a grid."""
    declared = parameters.declaration
    return (
        bool(declared.rules or declared.look is not None)
        and not reason(in_force(parameters))
        and nodes(parameters) is not None
    )
