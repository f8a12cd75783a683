"""The Jacobian of a statement at a state, by whole arrays: for claims, which need it at a few states.

`odesim.derivatives` compiles the same derivatives.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract.layout import DIRECTION
from derivations.equations.arrays import evaluate
from derivations.equations.lower import lower
from derivations.equations.setup import setup
from derivations.equations.tier import layout_of
from derivations.statement import Statement


def jacobian(statement: Statement, numbers: Mapping[str, Any], state: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return dF/dy (n, n) of a flow at a state, given by its components, and numbers of its constants."""
    layout = layout_of(statement, numbers)
    both, y = layout.with_direction(DIRECTION), layout.pack(state)
    program = list(lower(statement, numbers, layout.symmetric, "rates", {DIRECTION: ()}).values())[-1]
    known, columns = setup(program, numbers), []
    for unit in np.eye(y.size):
        rates = evaluate(program, known, both.unpack(np.concatenate([y, unit])))
        columns.append(layout.pack({part.name: rates[f"{DIRECTION}{part.name}"] for part in layout.parts}))
    return np.array(columns).T
