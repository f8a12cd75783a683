"""Rows of a state as independent blocks: one compiled program, whatever the number of rows."""

import dataclasses

import numpy as np
import pytest
from numba import njit

from derivations.kawata.tiers.flow import XI
from derivations.statement import sp
from odesim.code.prepared import tables_of
from odesim.code.rows import of_one_row
from odesim.flow import row_blocks
from odesim.flow.problem import prepare
from odesim.request.case import Case


@njit
def call(functions, which, y, out, tables, kernels):
    functions[which](y, out, tables, kernels)


def evaluated(blocks, which, y, count):
    out = np.empty(count)
    call(blocks.functions, which, y, out, blocks.tables, blocks.kernels)
    return out


@pytest.mark.parametrize(("C", "activation"), [(2, "relu"), (3, "erf")])
def test_a_block_has_the_slope_of_its_row_and_the_jacobian_of_differences(C, activation):
    problem = prepare(Case.build("kawata", {"C": C, "J": 3, "d": 100, "activation": activation}, until=1e5))
    n, y = 2 * C + 1, np.random.default_rng(1).uniform(-0.4, 0.4, problem.start.size)
    whole = problem.slope()(0.0, y).reshape(-1, n)
    blocks = row_blocks.as_blocks(*problem.derivative.programs, slice(1, 3))
    for k, row in enumerate(y.reshape(-1, n)[1:3]):
        blocks.tables[0][blocks.places] = blocks.numbers[k]
        np.testing.assert_array_equal(evaluated(blocks, 0, row, n), whole[k + 1])
        J = evaluated(blocks, 1, row, n * n).reshape(n, n)
        shifts = 1e-6 * np.eye(n)
        quotients = [(evaluated(blocks, 0, row + h, n) - evaluated(blocks, 0, row - h, n)) / 2e-6 for h in shifts]
        np.testing.assert_allclose(J, np.transpose(quotients), atol=1e-7 * np.abs(J).max())


def test_nothing_is_compiled_for_another_number_of_rows():
    kernels = [
        prepare(Case.build("kawata", {"C": 2, "J": J, "d": 100}, until=1e5)).derivative.programs[0].program[1]
        for J in (2, 5)
    ]
    assert kernels[0] is kernels[1]


@pytest.mark.parametrize("joined", [lambda j, i: sp.Sum(XI[i], i), lambda j, i: sp.Sum(XI[j], j)])
def test_rows_that_act_on_each_other_are_refused(joined):
    """One row alone would have the wrong rates."""
    problem = prepare(Case.build("kawata", {"C": 2, "J": 2, "d": 100}, until=1.0))
    statement = problem.equations.code.statement()
    j, i = statement.rows, sp.Idx("i2", statement.rows.upper + 1)
    (xi,) = (e for e in statement.equations if e.target == XI[j])
    changed = tuple(dataclasses.replace(e, rate=e.rate + joined(j, i)) if e is xi else e for e in statement.equations)
    coupled = dataclasses.replace(statement, equations=changed)
    numbers = of_one_row(coupled, coupled.named(problem.arguments))
    with pytest.raises(ValueError, match="whose rows are separate"):
        tables_of(coupled, problem.equations.layout, numbers, "rates")
