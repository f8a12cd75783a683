"""The Jacobian of a statement at a state, by whole arrays: for claims, which take it at a few states.

`odesim.derivatives` compiles the same derivatives.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract.layout import Dense, Layout
from derivations.equations.arrays import evaluate
from derivations.equations.lower import lower
from derivations.equations.setup import setup
from derivations.equations.tier import layout_of
from derivations.statement import Statement

DIRECTION = "v_"
"""Prefix of the names of a direction."""


def jacobian(statement: Statement, numbers: Mapping[str, Any], state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return dF/dy (n, n) of a flow at a state, given by its components, and numbers of its constants."""
    layout = layout_of(statement, numbers)
    symmetric = frozenset(part.name for part in layout.parts if not isinstance(part, Dense))
    program = list(lower(statement, numbers, symmetric, "rates", {DIRECTION: ()}).values())[-1]
    known, columns = setup(program, numbers), []
    for unit in np.eye(layout.pack(state).size):
        rates = evaluate(program, known, {**state, **directions(layout, unit)})
        columns.append(layout.pack({part.name: rates[f"{DIRECTION}{part.name}"] for part in layout.parts}))
    return np.array(columns).T


def directions(layout: Layout, y: np.ndarray) -> dict[str, np.ndarray]:
    """The components of a direction (n,) of the state; a diagonal that is constant does not change."""
    found, at = {}, 0
    for part in layout.parts:
        count = part.count(y.size - at)
        found[f"{DIRECTION}{part.name}"] = part.fill(y[at : at + count], 0.0)
        at += count
    return found
