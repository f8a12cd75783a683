"""Power series in a correlation as tables for sixteen pairs at once: few terms for small overlaps."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Series(NamedTuple):
    """S_k(rho) = shift_k + rho^odd_k * sum_t series[k, t] rho^(2t), and shorter polynomials for it.

    `levels` (levels, functions, terms) are polynomials in x = rho^2 that replace the series, each up to some x. `reach`
    (2, levels) contains that x and the index of the last term, which is a multiple of four. The last level reaches x =
    1.
    """

    series: np.ndarray
    shift: np.ndarray
    odd: np.ndarray
    levels: np.ndarray
    reach: np.ndarray


def folded(dense: np.ndarray, odd: Sequence[bool], tolerance: float) -> Series:
    """Power series in rho, rows (functions, terms), as series in rho^2.

    `odd` is True for each row that is odd except for a constant; an even row has its constant in the series. Truncated
    series have at most the error `tolerance`, polynomials in their place a hundredth of it, because their error does
    not vanish at small overlaps.
    """
    dense, marks = dense.copy(), np.asarray(odd, float)
    shift = np.where(marks == 1, dense[:, 0], 0.0)
    dense[marks == 1, 0] = 0.0
    terms = (dense.shape[1] + 1) // 2
    padded = np.zeros((len(dense), 2 * terms))
    padded[:, : dense.shape[1]] = dense
    series = np.where(marks[:, None] == 1, padded[:, 1::2], padded[:, 0::2])
    return Series(np.ascontiguousarray(series), shift, marks, *_levels(series, tolerance))


GRID = np.concatenate([[0.0], np.geomspace(1e-16, 1.0, 400)])
"""Values of x = rho^2 at which errors are bounded."""
LONGEST = 40
"""Below this number of terms a polynomial may be shorter than the series: longer ones have coefficients that cancel."""
NEAREST = 1e-4
"""Below this x a series is truncated, because few terms are enough."""


def _levels(series: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The polynomials of `Series.levels` with 5, 9, 13, .. terms, later in larger steps, and their `reach`."""
    terms, last = series.shape[1], 4
    sizes = np.abs(series).max(axis=0) * GRID[:, None] ** np.arange(terms)
    found, reach, ends = [], [], []
    while not reach or reach[-1] < 1.0:
        table, largest = series[:, : last + 1], _furthest(sizes[:, last + 1 :].sum(axis=1), tolerance)
        if last < LONGEST:
            into = _chebyshev(terms)
            x = _furthest(sizes @ into[:, last + 1 :].sum(axis=1), tolerance / 100)
            shorter = _economised(series, into[:, : last + 1], x) if x > max(largest, NEAREST) else None
            if shorter is not None:
                table, largest = shorter, x
        if not reach or largest > reach[-1]:
            found.append(table), reach.append(largest), ends.append(last)
        last = min(last + 4 * max(1, last // 32), terms - 1 + (1 - terms) % 4)
    width = 1 + ends[-1]
    levels = np.array([np.pad(table, ((0, 0), (0, width - table.shape[1]))) for table in found])
    return levels, np.array([reach, ends], float)


def _furthest(left: np.ndarray, tolerance: float) -> float:
    """The largest x at which the omitted terms are within the tolerance."""
    return float(GRID[np.flatnonzero(left <= tolerance)[-1]])


def _economised(series: np.ndarray, into: np.ndarray, x: float) -> np.ndarray | None:
    """The series by as many Chebyshev polynomials on [0, x] as `into` has columns, as powers.

    This is telescoping (Lanczos 1956, Applied Analysis, chapter 7). A power is a sum of shifted Chebyshev polynomials
    with positive coefficients that sum to 1: the omitted coefficients bound the error. The result is None if
    coefficients cancel, so that their absolute values sum to more than twice those of the series.
    """
    scaled = series * x ** np.arange(series.shape[1])
    table = scaled @ into @ _powers(into.shape[1])
    if (np.abs(table).sum(axis=1) > 2.0 * np.abs(scaled).sum(axis=1)).any():
        return None
    return table / x ** np.arange(into.shape[1])


@functools.cache
def _chebyshev(terms: int) -> np.ndarray:
    """x^t = sum_j C[t, j] T_j(2x - 1) for t below `terms`; as many j, at least `LONGEST`."""
    C = np.zeros((terms, max(terms, LONGEST) + 1))
    C[0, 0] = 1.0
    for t in range(1, terms):
        C[t] = 0.5 * C[t - 1]
        C[t, 1:] += 0.25 * C[t - 1, :-1]
        C[t, 1] += 0.25 * C[t - 1, 0]
        C[t, :-1] += 0.25 * C[t - 1, 1:]
    return C[:, :-1]


@functools.cache
def _powers(terms: int) -> np.ndarray:
    """T_j(2x - 1) = sum_t P[j, t] x^t for j below `terms`."""
    P = np.zeros((terms, terms))
    P[0, 0], P[1, :2] = 1.0, (-1.0, 2.0)
    for j in range(2, terms):
        P[j] = -2.0 * P[j - 1] - P[j - 2]
        P[j, 1:] += 4.0 * P[j - 1, :-1]
    return P
