"""A flow that reaches a wall ends there: the slope is no number beyond it, and the state stands still before it."""

import numpy as np
import pytest

import odesim
from odesim.errors import NumericalError
from odesim.evidence.laboratory import Laboratory

CONTROLLER = {
    "student": {"unit": "erf(w/sqrt(2))"}, "teacher": {},
    "training": {"limit": "online", "step": "level + 0.2*log(target/(Q_ww[1,1] - 2*M_ww[1,1] + 1))"},
    "memory": {"level": {"start": 2.0, "rate": "0.01*log(target/(Q_ww[1,1] - 2*M_ww[1,1] + 1))"}},
    "parameters": {"target": {"default": 1e-4, "above": 0.0, "maximum": 0.1}},
}  # fmt: skip
"""The step falls to 0 near t = 0.159. The level, near 2, changes there by less than its spacing in a step."""
START = {"Q_ww": [[1.0]], "M_ww": [[-0.01828014]], "P_ww": [[1.0]]}


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize("solver", [None, "DOP853", "Radau"])
def test_a_flow_ends_where_its_step_falls_to_zero(backend, solver):
    lab = Laboratory(odesim.declare(**CONTROLLER))
    options = {} if solver is None else {"solver": solver}
    initial = {name: np.array(values) for name, values in START.items()}
    with pytest.raises(NumericalError, match=r"step falls below 0 at t = 0\.15929"):
        lab.integrate(until=0.2, save_points=5, backend=backend, d=10_000, initial=initial, **options)
