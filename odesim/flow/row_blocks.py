"""Rows of a state, evaluated by the engine, as independent blocks."""

import numpy as np

from odesim.code import engine
from odesim.code.right_hand_side import LINE, Filling, aligned
from odesim.flow.block_loops import hold_functions, program_jacobian
from odesim.flow.blocks import Blocks


def as_blocks(rates: Filling, jacobian: Filling, chosen: slice) -> Blocks:
    """Return some rows of a state as independent blocks. Their tables have the program of the rates, then that of the
    Jacobian.
    """
    (W, T, N, numbers, places), kernels = _one_row(rates), rates.program[1]
    assert kernels is jacobian.program[1], "programs that lie in one set of tables have one kernel"
    W2, T2, N2, more, others = _one_row(jacobian)
    N[9:12] = W.size, T.size, N.size
    both = aligned(np.concatenate([W, W2])), np.concatenate([T, T2]), np.concatenate([N, N2])
    numbers, places = np.concatenate([numbers, more], axis=1), np.concatenate([places, others + W.size])
    functions = hold_functions(engine.flow, program_jacobian)
    return Blocks(functions, both, kernels, numbers[chosen], places)


def _one_row(filling: Filling) -> tuple[np.ndarray, ...]:
    """Return W, T and N for one row, the numbers (rows, q) of all rows, and the places (q,) in W of the numbers of a
    row.
    """
    (W, T, N), _ = filling.program
    rows, count, places, values = (int(N[k]) for k in (5, 6, 7, 8))
    numbers = W[values : values + rows * count].reshape(rows, count)
    W, single = np.concatenate([W[:values], np.zeros(-values % (LINE // 8))]), N.copy()
    single[5:7] = 1, 0
    return W, T, single, numbers, T[places : places + count].astype(np.int64)
