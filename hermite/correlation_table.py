"""Tables of correlation functions as dense series in rho, and their NumPy, numba and JAX evaluators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, no_type_check

import numpy as np

from hermite.errors import DomainError, ShapeError

if TYPE_CHECKING:
    from jaxtyping import Float


def require_correlation(rho) -> Float[np.ndarray, "*rho"]:
    """Return rho as float64, or raise DomainError unless every entry lies in [-1, 1].

    >>> require_correlation([0.5]).tolist()
    [0.5]
    """
    rho = np.asarray(rho, dtype=np.float64)
    good = np.abs(rho) <= 1  # False for nan
    if not np.all(good):
        worst = rho[~good].flat[0]
        raise DomainError(f"rho: expected -1 <= rho <= 1, got {worst}; normalise the vectors, or clip rho")
    return rho


def _horner(coefficients: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return sum_m coefficients[m] square^m with coefficients (M, P) and square (..., 1)."""
    total = np.zeros(np.broadcast_shapes(square.shape, coefficients.shape[1:]))
    for row in coefficients[::-1]:
        total = total * square + row
    return total


def evaluate_rows(
    coefficients: Float[np.ndarray, "rows powers"], rho: Float[np.ndarray, "*rho"]
) -> Float[np.ndarray, "*rho rows"]:
    """Return sum_q coefficients[i, q] rho^q for every row i, even and odd parts apart.

    Arguments: coefficients (rows, Q+1); rho, array. Returns (*rho.shape, rows).

    >>> evaluate_rows(np.array([[1.0, 2.0, 3.0]]), np.array(0.5)).tolist()
    [2.75]
    """
    rho = rho[..., None]
    square = rho * rho
    return _horner(coefficients[:, 0::2].T, square) + rho * _horner(coefficients[:, 1::2].T, square)


@dataclass(frozen=True, eq=False)
class CorrelationTable:
    """Power series of several S_ab, one row for each pair, all of the same length.

    S_ab(rho) = sum_q coefficients[i, q] rho^q, with S_ab' = S_{a+1,b+1} between rows.

    Arguments: pairs, tuple of (a, b); coefficients (P, Q+1); parity, a tuple of 0 (even in rho), 1 (odd but for the
    constant `constants[i]`) or -1 (neither); truncation (P,), bounds of the error on [-1, 1]; correlations, the object
    that made the table, or None. Raises: ShapeError. Source: Liao & Kyrillidis 2026, Section 2.
    """

    pairs: tuple[tuple[int, int], ...]
    coefficients: np.ndarray
    parity: tuple[int, ...]
    truncation: np.ndarray
    correlations: Any = None

    def __post_init__(self) -> None:
        count = len(self.pairs)
        if self.coefficients.ndim != 2 or self.coefficients.shape[1] < 2 or len(self.coefficients) != count:
            raise ShapeError(
                f"coefficients: expected ({count}, at least 2), got {self.coefficients.shape}; one row for each pair"
            )
        if len(self.parity) != count or np.shape(self.truncation) != (count,):
            raise ShapeError(f"expected {count} parities and truncation bounds, got other lengths; one for each pair")

    @cached_property
    def constants(self) -> Float[np.ndarray, "P"]:
        """Constant terms of the rows of parity 1 (c_0^2 of a gate), 0 elsewhere; shape (P,)."""
        return np.where(np.array(self.parity) == 1, self.coefficients[:, 0], 0.0)

    @cached_property
    def _split(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Rows with an even part, their coefficients (M, .), rows with an odd part, theirs, and constants."""
        parity = np.array(self.parity)
        has_even, has_odd = np.flatnonzero(parity != 1), np.flatnonzero(parity != 0)
        even = np.ascontiguousarray(self.coefficients[has_even, 0::2].T)
        odd = np.ascontiguousarray(self.coefficients[has_odd, 1::2].T)
        return has_even, even, has_odd, odd, self.constants

    def index(self, a: int, b: int) -> int:
        """Return the row of (a, b); raises ShapeError when the table has none.

        Rows of (b, a) count only when listed: S_ab = S_ba needs f = g.
        """
        if (a, b) not in self.pairs:
            raise ShapeError(f"expected one of the pairs {self.pairs}, got {(a, b)}; build the table with it")
        return self.pairs.index((a, b))

    def evaluate_numpy(self, rho) -> Float[np.ndarray, "*rho P"]:
        """Return every S_ab(rho) by Horner in rho^2, shape (*rho.shape, P).

        Arguments: rho, array in [-1, 1]. Raises: DomainError. Source: Higham 2002, section 5.1.

        >>> from hermite.correlation import for_gate
        >>> for_gate("probit", 1.0, [(0, 0)]).evaluate_numpy(1.0).round(12).tolist()
        [0.333333333333]
        """
        rho = require_correlation(rho)[..., None]
        has_even, even, has_odd, odd, constants = self._split
        square = rho * rho
        total = np.zeros((*rho.shape[:-1], len(self.pairs))) + constants
        total[..., has_even] += _horner(even, square)
        total[..., has_odd] += rho * _horner(odd, square)
        return total

    evaluate = evaluate_numpy

    def numba(self):
        """Return a compiled scalar function f(rho, out) that writes every S_ab(rho) into out (P,).

        The caller must ensure |rho| <= 1, because the compiled loop does not check it. Agrees with `evaluate_numpy`.
        Raises: nothing. Source: Higham 2002, section 5.1.
        """
        from numba import njit

        has_even, even, has_odd, odd, constants = self._split
        mixed = np.array(self.parity) == -1

        @njit
        @no_type_check
        def evaluate(rho, out):
            square = rho * rho
            tall, wide = even.shape
            for i in range(wide):
                total = 0.0
                for m in range(tall - 1, -1, -1):
                    total = total * square + even[m, i]
                out[has_even[i]] = total
            tall, wide = odd.shape
            # rows of both parts add to what the loop above wrote, the others to their constant
            for i in range(wide):
                row = has_odd[i]
                total = 0.0
                for m in range(tall - 1, -1, -1):
                    total = total * square + odd[m, i]
                out[row] = rho * total + (out[row] if mixed[row] else constants[row])

        return evaluate

    def jax(self):
        """Return a differentiable JAX function of an array rho giving every S_ab, shape (*rho.shape, P).

        The caller must ensure |rho| <= 1. Raises: DomainError unless JAX runs in 64 bits (32 lose accuracy). Source:
        Higham 2002, section 5.1.
        """
        import jax
        import jax.numpy as jnp

        if not jax.config.jax_enable_x64:
            raise DomainError("expected JAX in 64 bits, got 32; call jax.config.update('jax_enable_x64', True) first")
        has_even, even, has_odd, odd, constants = self._split

        def horner(coefficients, square):
            total = jnp.zeros(jnp.broadcast_shapes(square.shape, coefficients.shape[1:]))
            for row in coefficients[::-1]:
                total = total * square + row
            return total

        def evaluate(rho):
            rho = jnp.asarray(rho, dtype=jnp.float64)[..., None]
            square = rho * rho
            total = jnp.zeros((*rho.shape[:-1], len(self.pairs))) + constants
            total = total.at[..., has_even].add(horner(even, square))
            return total.at[..., has_odd].add(rho * horner(odd, square))

        return evaluate
