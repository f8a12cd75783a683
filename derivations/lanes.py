"""Sixteen pairs at once: the loops that look series up for the lanes of a compiled pair kernel, and their tables.

`correlations` and `gather` are plain functions that `odesim.code.compile` copies into generated modules; nothing here
runs uncompiled.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LANES = 16
"""Pairs that a compiled kernel serves at once: two vectors of eight numbers, or four of four."""


class Series(NamedTuple):
    """S_k(rho) = shift_k + rho^odd_k * sum_t series[k, t] rho^(2t).

    `reach[t]` is the largest rho^2 for which the terms 0..t reach the tolerance; the number of terms is one more
    than a multiple of four, as `correlations` wants it.
    """

    series: np.ndarray
    shift: np.ndarray
    odd: np.ndarray
    reach: np.ndarray


def folded(dense: np.ndarray, odd: Sequence[bool], tolerance: float) -> Series:
    """Power series in rho, rows (functions, terms), as series in rho^2.

    `odd` says of each row whether it is odd but for a constant; an even one keeps its constant in the series.
    """
    dense, marks = dense.copy(), np.asarray(odd, float)
    shift = np.where(marks == 1, dense[:, 0], 0.0)
    dense[marks == 1, 0] = 0.0
    terms = (dense.shape[1] + 1) // 2
    terms += (1 - terms) % 4
    padded = np.zeros((len(dense), 2 * terms))
    padded[:, : dense.shape[1]] = dense
    series = np.where(marks[:, None] == 1, padded[:, 1::2], padded[:, 0::2])
    return Series(np.ascontiguousarray(series), shift, marks, _reach(series, tolerance))


def _reach(series: np.ndarray, tolerance: float) -> np.ndarray:
    """The largest x = rho^2 at which cutting the series after term t leaves at most the tolerance in every row."""
    grid = np.concatenate([[0.0], np.geomspace(1e-16, 1.0, 400)])
    terms = series.shape[1]
    power = grid[None, :] ** np.arange(terms)[:, None]
    size = np.abs(series).max(axis=0)[:, None] * power
    tail = np.concatenate([np.cumsum(size[::-1], axis=0)[::-1][1:], np.zeros((1, grid.size))])
    return np.array([grid[np.flatnonzero(row <= tolerance)[-1]] for row in tail])


def correlations(rho, series, shift, odd, reach, square, S):
    """Fill S[k, lane] = S_k(rho[lane]): a series in rho^2, times rho for odd functions, plus a constant.

    `reach[t]` is the largest rho^2 at which t + 1 terms are enough, so that small overlaps cost few terms.
    """
    functions, terms = series.shape
    largest = 0.0
    for lane in range(16):
        square[lane] = rho[lane] * rho[lane]
        largest = max(largest, square[lane])
    last = terms - 1
    while last > 3 and reach[last - 4] >= largest:
        last -= 4
    for k in range(functions):
        c = series[k, last]
        for lane in range(16):
            S[k, lane] = c
    for t in range(last - 1, -1, -4):
        for k in range(functions):
            c0 = series[k, t]
            c1 = series[k, t - 1]
            c2 = series[k, t - 2]
            c3 = series[k, t - 3]
            for lane in range(16):
                x = square[lane]
                S[k, lane] = (((S[k, lane] * x + c0) * x + c1) * x + c2) * x + c3
    for k in range(functions):
        for lane in range(16):
            S[k, lane] = shift[k] + S[k, lane] * (odd[k] * rho[lane] + (1.0 - odd[k]))


def gather(source, index, target):
    """target[k] = source[index[k]]; indices are unsigned, which spares a test for negative ones."""
    for k in range(index.size):
        target[k] = source[index[k]]
