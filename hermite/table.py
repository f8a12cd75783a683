"""Compiled tables E[He_i(x1) He_j(x2) He_k(x3) He_l(x4)] of all degrees up to K for one covariance."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, no_type_check

import numpy as np
from numba import njit, types

from hermite.errors import ShapeError, TooLarge, degree
from hermite.machine_code import compile_function

if TYPE_CHECKING:
    from jaxtyping import Float64

# Up to this degree no entry can overflow while every |C_ij| <= 4 (beyond, the result is checked).
SAFE_DEGREE = 30


@njit
@no_type_check
def _combine(out, places, count, size, row, column, factor, excess):
    """Write row out[at - size ..] + column out[at - 1 ..] + factor out[before ..] + excess out[back ..] from `to` on.

    `count` entries, with places = (to, at, before, back). The weights row and column vanish where a move leaves its
    block, so these loops have no branches and run in vector registers. There are three forms of the loop, because most
    calls lack the last terms. The slices are made here, because numba counts references to every array that it passes
    on, which costs as much as a hundred entries.
    """
    to, at, before, back = places
    target, below, shrunk = out[to : to + count], out[before : before + count], out[back : back + count]
    moved_row, moved_place = out[at - size : at - size + count], out[at - 1 : at - 1 + count]
    if excess != 0.0:
        for m in range(target.size):
            moved = row[m] * moved_row[m] + column[m] * moved_place[m]
            target[m] = moved + factor * below[m] + excess * shrunk[m]
    elif factor != 0.0:
        for m in range(target.size):
            target[m] = row[m] * moved_row[m] + column[m] * moved_place[m] + factor * below[m]
    else:
        for m in range(target.size):
            target[m] = row[m] * moved_row[m] + column[m] * moved_place[m]


@njit
@no_type_check
def _first(out, places, count, size, row, column, excess):
    """Write one block whose source has no memory before it: the first line separately, the rest by `_combine`."""
    to, at, back = places
    out[to] = excess * out[back]
    for m in range(1, min(size, count)):
        out[to + m] = column[m] * out[at + m - 1] + excess * out[back + m]
    if count > size:
        row, column = row[size:], column[size:]
        _combine(out, (to + size, at + size, at, back + size), count - size, size, row, column, 0.0, excess)


@njit
@no_type_check
def _weights(row, column, size, c_row, c_column):
    """Write c_row k and c_column l at place k size + l of a plane."""
    for k in range(size):
        for m in range(size):
            row[k * size + m] = c_row * k
            column[k * size + m] = c_column * m


@njit
@no_type_check
def _raise(out, block, size, row, column, variance):
    """Fill out from its first block on, raising the degree of the variable that numbers the blocks."""
    for i in range(out.size // block - 1):
        start, back = i * block, max(i - 1, 0) * block
        _first(out, (start + block, start, back), block, size, row, column, (variance - 1.0) * i)


@njit
@no_type_check
def _raise_cubes(out, size, row, column, c12, variance):
    """Fill the table of 4 variables from its first cube on, a plane at a time.

    A plane may read what lies before its source in memory, where the weights are zero; only the first plane has no
    memory before it.
    """
    plane, cube = size * size, size * size * size
    for i in range(size - 1):
        excess = (variance - 1.0) * i
        for j in range(size):
            at = i * cube + j * plane
            back = at - cube if i else at
            if at == 0:
                _first(out, (cube, 0, 0), plane, size, row, column, excess)
                continue
            before = at - plane if j else at
            _combine(out, (at + cube, at, before, back), plane, size, row, column, c12 * j, excess)


@no_type_check
def _fill(covariance, size, out):
    """Fill the flat table of 2, 3 or 4 variables; return the largest |C_ij|, or nan unless C is symmetric.

    The block at degree 0 of a variable is the table of the variables after it, filled first.
    """
    n = covariance.shape[0]
    largest = 0.0
    for i in range(n):
        for j in range(i + 1):
            largest = max(largest, abs(covariance[i, j]))
            gap = abs(covariance[i, j] - covariance[j, i])
            # 1e-12: far above the rounding of A A^T, far below an asymmetry that is meant
            if not gap <= 1e-12 * (abs(covariance[i, i]) + abs(covariance[j, j]) + abs(covariance[i, j])):
                return np.nan
    plane = size * size
    row, column = np.empty(plane), np.empty(plane)
    out[0] = 1.0
    _weights(row, column, size, 0.0, 0.0)
    _raise(out[:size], 1, 1, row, column, covariance[n - 1, n - 1])
    # the blocks are lines here: the row weights are not read
    _weights(row, column, size, 0.0, covariance[n - 2, n - 1])
    _raise(out[:plane], size, size, row, column, covariance[n - 2, n - 2])
    if n > 2:
        _weights(row, column, size, covariance[n - 3, n - 2], covariance[n - 3, n - 1])
        _raise(out[: plane * size], plane, size, row, column, covariance[n - 3, n - 3])
    if n > 3:
        _weights(row, column, size, covariance[0, 2], covariance[0, 3])
        _raise_cubes(out, size, row, column, covariance[0, 1], covariance[0, 0])
    return largest


@functools.cache
def _compiled_fill() -> Callable[..., float]:
    """`_fill`, compiled when the first table is asked for, with the functions that it calls."""
    flat, matrix = types.float64[::1], types.float64[:, ::1]
    return compile_function(_fill, types.float64(matrix, types.int64, flat))


def table(covariance, K: int, out: Float64[np.ndarray, "*degrees"] | None = None) -> Float64[np.ndarray, "*degrees"]:
    """Return E[He_i(x1) He_j(x2) ...] for all degrees 0..K of 2, 3 or 4 centred jointly Gaussian variables.

    E[He_{i+1}(x1) R] = sum_{j != 1} C_1j k_j E[He_i(x1) R_j-] + (C_11 - 1) i E[He_{i-1}(x1) R],
    where R_j- has the degree k_j of x_j lowered by one. Entries of odd total degree come out as exact zeros.

    Arguments: covariance (n, n), symmetric, n in 2..4; K, integer >= 0; out, C-contiguous float64 of shape
    (K+1,)*n to write into, or None. Returns the array (K+1,)*n.
    Raises: DegreeError, ShapeError, TooLarge (an entry exceeds the doubles).
    Source: Liao & Kyrillidis 2026, Lemma 1 as a recurrence; Stein 1981.

    >>> table([[1.0, 0.5], [0.5, 1.0]], 2).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    """
    K = degree(K, "K")
    covariance = np.array(covariance, dtype=np.float64, order="C")  # a copy: numba tells read-only arrays from others
    n = covariance.shape[0] if covariance.ndim == 2 else 0
    if covariance.shape != (n, n) or n not in (2, 3, 4):
        raise ShapeError(f"covariance: expected shape (n, n) with n = 2, 3 or 4, got {covariance.shape}")
    shape = (K + 1,) * n
    if out is None:
        out = np.empty(shape)
    elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous or not out.flags.writeable:
        raise ShapeError(f"out: expected writeable C-contiguous float64 {shape}, got {out.dtype} {out.shape}")
    largest = _compiled_fill()(covariance, K + 1, out.reshape(-1))
    if not largest < np.inf:
        raise ShapeError("covariance: expected a finite symmetric matrix, got another; pass (C + C.T) / 2 if meant")
    if (K > SAFE_DEGREE or largest > 4) and not np.isfinite(out).all():
        raise TooLarge(f"expected entries below 1e308, got an overflow at K = {K}; lower K or rescale the variables")
    return out
