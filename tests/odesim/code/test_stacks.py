"""Stacks of small matrices: loops along the stack give what array operations give."""

import numpy as np
import pytest

import odesim
from odesim.code.tables import STACKED, is_stack
from odesim.flow.problem import compile_functions, prepare
from odesim.request.case import Case


@pytest.mark.parametrize(("unit", "weights"), [("erf(w/sqrt(2))", "sphere"), ("w^2", "free")])
def test_loops_along_a_stack_are_the_array_operations(unit, weights):
    count = STACKED + 5
    assert is_stack((count, 3, 3)) and not is_stack((STACKED - 1, 3, 3))
    made = odesim.declare(
        student={"unit": unit, "units": 3}, teacher={"units": 2, "noise": 0.1, "gram": 0.2, "spread": "random"},
        training={"limit": "online", "step": 0.3, "weights": weights, "decay": 0.0}, start={"norm": 0.7},
        inputs={"blocks": [[float(x), f"1/{count}"] for x in np.linspace(2, 1, count)]},
    )  # fmt: skip
    problem = prepare(Case.build(made, {"d": 2100}, until=1.0))
    arrays = compile_functions(problem.equations, "numpy")["flow"]
    wanted = arrays(0.0, problem.start, *problem.equations.arguments(problem.initial))
    assert problem.slope()(0.0, problem.start) == pytest.approx(wanted, rel=0, abs=1e-13 * np.abs(wanted).max())
