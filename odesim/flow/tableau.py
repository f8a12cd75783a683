"""The coefficients of DOP853, the explicit method of order 8 of Hairer, Norsett & Wanner (1993)."""

import functools
import importlib.util
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Tableau(NamedTuple):
    """Stages k_s = f(t + C_s h, y + h sum_j A_sj k_j), the new state y + h sum_s B_s k_s, its errors and interpolant.

    `A` (12, 12), `B` (12,) and `C` (12,) make the step; `E3` and `E5` (13,) its errors of third and fifth order from
    the stages and the slope at the end; `more_A` (3, 16) and `more_C` (3,) three further stages, and `D` (4, 16) the
    last coefficients of the interpolant of order 7 from all sixteen. `rows` are (C_s, non-zero entries of A_s) again,
    for s = 1..11, because reading them from the arrays costs as much as a small product.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    E3: np.ndarray
    E5: np.ndarray
    more_A: np.ndarray
    more_C: np.ndarray
    D: np.ndarray
    rows: tuple[tuple[float, np.ndarray], ...]


@functools.cache
def dop853() -> Tableau:
    """Return the coefficients of SciPy.

    SciPy's file with the coefficients is executed without importing SciPy, whose import takes longer than most runs.

    >>> table = dop853()
    >>> bool(abs(table.B.sum() - 1) < 1e-15 and abs(table.A.sum(axis=1) - table.C).max() < 1e-14)
    True
    """
    found = importlib.util.find_spec("scipy")
    assert found is not None and found.origin is not None
    path = Path(found.origin).parent / "integrate" / "_ivp" / "dop853_coefficients.py"
    spec = importlib.util.spec_from_file_location("odesim_dop853_coefficients", path)
    assert spec is not None and spec.loader is not None
    held = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(held)
    stages = held.N_STAGES
    return Tableau(
        held.A[:stages, :stages].copy(), held.B.copy(), held.C[:stages].copy(), held.E3.copy(), held.E5.copy(),
        held.A[stages + 1 :].copy(), held.C[stages + 1 :].copy(), held.D.copy(),
        tuple((float(held.C[s]), held.A[s, :s].copy()) for s in range(1, stages)),
    )  # fmt: skip


@functools.cache
def weights() -> np.ndarray:
    """Return the coefficients of all sums over slopes (14, 13), in the form of the compiled loops.

    Row s - 1 has those of stage s, the twelfth those of the new state, the last two those of its errors of third and
    fifth order.
    """
    table, rows = dop853(), np.zeros((14, 13))
    rows[:11, :12], rows[11, :12], rows[12], rows[13] = table.A[1:], table.B, table.E3, table.E5
    return rows
