"""Correlation functions S_ab(rho) = E[f^(a)(z1) g^(b)(z2)] as power series in the correlation rho."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hermite.correlation_table import CorrelationTable, evaluate_rows, require_correlation
from hermite.errors import DegreeError, DomainError, NotReached, degree
from hermite.expansion import Expansion

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def _root_falling(q: np.ndarray, a: int) -> np.ndarray:
    """Return sqrt((q + a)! / q!)."""
    product = np.ones(q.size)
    for i in range(1, a + 1):
        product *= np.sqrt(q + i)
    return product


@dataclass(frozen=True, eq=False)
class Correlations:
    """The functions S_ab of one pair of expansions (g = f by default).

    S_ab(rho) = E[f^(a)(z1) g^(b)(z2)] = sum_q c^f_{q+a} c^g_{q+b} rho^q / q!, S_ab' = S_{a+1,b+1}.

    Arguments: f, g, Expansions. Source: Liao & Kyrillidis 2026; Price 1958.

    >>> from hermite.functions import probit
    >>> Correlations(probit(80)).evaluate(0, 0, 0.0).tolist()
    0.25
    """

    f: Expansion
    g: Expansion | None = None

    @property
    def second(self) -> Expansion:
        """The expansion of the second factor."""
        return self.f if self.g is None else self.g

    def _reach(self, a: int, b: int) -> int:
        """Return the number of coefficients of S_ab that the two expansions determine."""
        return max(min(self.f.order - a, self.second.order - b) + 1, 0)

    def _known(self, a: int, b: int) -> np.ndarray:
        """Return every coefficient of rho^q that the two expansions determine."""
        q = np.arange(self._reach(a, b))
        # sqrt((q+a)! (q+b)!) / q! as a product of a + b roots: nothing overflows and nothing cancels
        left = self.f.orthonormal[q + a] * _root_falling(q, a)
        return left * (self.second.orthonormal[q + b] * _root_falling(q, b))

    def _complete(self, a: int, b: int) -> bool:
        """Return True if S_ab is a polynomial of which all coefficients are known."""
        f, g = self.f, self.second
        return (f.exact and f.order - a <= g.order - b) or (g.exact and g.order - b <= f.order - a)

    def coefficients(self, a: int, b: int, terms: int) -> Float[np.ndarray, "{terms}"]:
        """Return the coefficients of rho^0..rho^(terms-1) in S_ab.

        c^f_{q+a} c^g_{q+b} / q! = a^f_{q+a} a^g_{q+b} sqrt((q+a)! (q+b)!) / q!.

        Arguments: a, b, derivative orders; terms. Returns (terms,).
        Raises: DegreeError, NotReached when the expansions are too short. Source: Mehler 1866.
        """
        a, b, terms = degree(a, "a"), degree(b, "b"), degree(terms, "terms")
        known = self._known(a, b)[:terms]
        if known.size < terms and not self._complete(a, b):
            short = f"{terms + max(a, b) - 1}, got {self.f.order} and {self.second.order}"
            raise NotReached(f"S_{a},{b}: expected expansions to order {short}; expand further")
        return np.concatenate([known, np.zeros(terms - known.size)])

    def exact_zeros(self, a: int, b: int, terms: int) -> Bool[np.ndarray, "{terms}"]:
        """Return booleans (terms,) marking the coefficients of S_ab that vanish exactly."""
        q = np.arange(min(self._reach(a, b), terms))
        marks = self.f.zero[q + a] | self.second.zero[q + b]
        return np.concatenate([marks, np.full(terms - q.size, self._complete(a, b))])

    def _bounds(self, a: int, b: int, rho: float) -> np.ndarray:
        """Return the truncation bound for every number of terms 0..reach.

        Known coefficients that are left out are added up. The coefficients that no expansion contains are bounded by
        Cauchy-Schwarz with the Parseval tails, sum_{q >= Q} |..| rho^q <= rho^Q |f^(a) beyond Q+a| |g^(b) beyond Q+b|.
        """
        if not 0 <= rho <= 1:
            raise DomainError(f"rho: expected 0 <= rho <= 1, got {rho}; S_ab is bounded on [-rho, rho]")
        known = np.abs(self._known(a, b))
        reach = known.size
        rest = 0.0
        if not self._complete(a, b):
            rest = self._norm(self.f, a, reach) * self._norm(self.second, b, reach)
        weighted = known * float(rho) ** np.arange(reach)
        left = np.concatenate([np.cumsum(weighted[::-1])[::-1], [0.0]])
        return left + (rest * float(rho) ** reach if rest else 0.0)

    @staticmethod
    def _norm(side: Expansion, j: int, reach: int) -> float:
        """Return a bound of the norm of the terms k >= reach + j of f^(j)."""
        if reach + j == 0:
            return math.sqrt(side.moment(0))
        return side.tail(j, reach + j - 1)

    def truncation(self, a: int, b: int, terms: int, rho: float = 1.0) -> float:
        """Return a bound of the error of S_ab on [-rho, rho] after the given number of terms.

        sum of the known terms left out + rho^Q (tail of f^(a)) (tail of g^(b)), Q the number of known terms.

        Arguments: a, b, derivative orders; terms; rho in [0, 1]. Returns a float, math.inf when a moment
        diverges.
        Raises: DegreeError, DomainError, NotReached (a moment is not known). Source: Cauchy-Schwarz and
        Parseval.
        """
        a, b, terms = degree(a, "a"), degree(b, "b"), degree(terms, "terms")
        bounds = self._bounds(a, b, rho)
        return float(bounds[min(terms, bounds.size - 1)])

    def terms_needed(self, a: int, b: int, tolerance: float, rho: float = 1.0) -> int:
        """Return the least number of terms whose truncation bound is within the tolerance.

        Arguments: a, b, derivative orders; tolerance, absolute; rho in [0, 1].
        Raises: DegreeError, DomainError, NotReached with the bound reached when the expansions are too short.
        Source: `truncation`.
        """
        a, b = degree(a, "a"), degree(b, "b")
        bounds = self._bounds(a, b, rho)
        met = np.flatnonzero(bounds <= tolerance)
        if met.size == 0:
            orders = f"orders {self.f.order} and {self.second.order}"
            raise NotReached(
                f"S_{a},{b} at |rho| <= {rho}: expected a bound of {tolerance:.3g}, "
                f"got {bounds[-1]:.3g} with {orders}; "
                "expand further, raise the tolerance or keep |rho| away from 1"
            )
        return int(met[0])

    def scale(self, a: int, b: int) -> float:
        """Return max(1, |S_ab(1)|), to which tolerances are relative."""
        return max(1.0, abs(math.fsum(self._known(a, b))))

    def evaluate(self, a: int, b: int, rho, tolerance: float = 1e-13) -> Float[np.ndarray, "*rho"]:
        """Return S_ab(rho) with as many terms as the largest |rho| needs.

        Arguments: a, b, derivative orders; rho, array of any shape in [-1, 1]; tolerance, relative to
        max(1, |S_ab(1)|). Returns float64 of rho's shape.
        Raises: DegreeError, DomainError (|rho| > 1), NotReached. Source: Mehler 1866.

        >>> from hermite.functions import logistic
        >>> round(float(Correlations(logistic(129)).evaluate(1, 3, 0.5)), 13)
        -0.0134161014432
        """
        a, b = degree(a, "a"), degree(b, "b")
        rho = require_correlation(rho)
        largest = float(np.abs(rho).max(initial=0.0))
        # half of the tolerance for the series cut off, half for rounding
        terms = max(self.terms_needed(a, b, tolerance / 2 * self.scale(a, b), largest), 1)
        return evaluate_rows(self.coefficients(a, b, terms)[None], rho)[..., 0]

    def _parity(self, a: int, b: int, terms: int) -> int:
        """Return 0 for even in rho, 1 for odd but for a constant, -1 for neither, from exact zeros only."""
        zero = self.exact_zeros(a, b, terms)
        if zero[1::2].all():
            return 0
        return 1 if zero[2::2].all() else -1

    def table(self, pairs, tolerance: float = 1e-13) -> CorrelationTable:
        """Return the coefficients of many S_ab with one common length, enough for every pair on [-1, 1].

        Arguments: pairs, sequence of (a, b), in the order of the rows; tolerance, relative to max(1, |S_ab(1)|) for
        each pair. Returns a CorrelationTable. Raises: DegreeError, NotReached. Source: `coefficients`, `terms_needed`.

        >>> from hermite.functions import logistic
        >>> Correlations(logistic(129)).table([(0, 0), (1, 1)]).parity
        (1, 0)
        """
        pairs = tuple((degree(a, "a"), degree(b, "b")) for a, b in pairs)
        if not pairs:
            raise DegreeError("pairs: expected at least one (a, b), got none; pass [(0, 0)]")
        # half of the tolerance for the series cut off, half for rounding
        terms = max(2, *(self.terms_needed(a, b, tolerance / 2 * self.scale(a, b)) for a, b in pairs))
        return CorrelationTable(
            pairs=pairs,
            coefficients=np.array([self.coefficients(a, b, terms) for a, b in pairs]),
            parity=tuple(self._parity(a, b, terms) for a, b in pairs),
            truncation=np.array([self.truncation(a, b, terms) for a, b in pairs]),
            correlations=self,
        )
