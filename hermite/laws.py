"""Gaussian laws with exact arithmetic: conditioning without cancellation, also for singular covariances."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Law:
    """A Gaussian law: mean (n entries, real or complex) and covariance rows, Fractions where exactness matters.

    Arguments: mean; rows, positive semidefinite.

    >>> from fractions import Fraction
    >>> one = Fraction(1)
    >>> Law((0, 0), ((one, one / 2), (one / 2, one))).given(0).rows[1][1]
    Fraction(3, 4)
    """

    mean: tuple
    rows: tuple

    def given(self, i: int, value: Any = 0) -> "Law":
        """Return the law conditioned on variable i being `value`; its own row becomes zero, its mean `value`.

        m_j + C_ij / C_ii (value - m_i), C_jk - C_ij C_ik / C_ii.

        Arguments: i, a variable of positive variance. A fixed variable then has a row of exact zeros. Source: Anderson
        2003, section 2.5.
        """
        row, variance = self.rows[i], self.rows[i][i]
        size = len(row)
        gain = [c / variance for c in row]
        mean = [m + g * (value - self.mean[i]) for m, g in zip(self.mean, gain, strict=True)]
        rows = [list(old) for old in self.rows]
        for j in range(size):
            if gain[j] == 0:
                continue
            for k in range(j, size):
                rows[j][k] = rows[k][j] = rows[j][k] - gain[j] * row[k]
        mean[i] = value
        for j in range(size):
            if j == i or rows[j][j] <= 0:
                for k in range(size):
                    rows[j][k] = rows[k][j] = 0 * variance
        return Law(tuple(mean), tuple(map(tuple, rows)))

    def part(self, which) -> "Law":
        """Return the marginal law of the listed variables."""
        which = list(which)
        return Law(
            tuple(self.mean[i] for i in which),
            tuple(tuple(self.rows[i][j] for j in which) for i in which),
        )

    def plain(self) -> "Law":
        """Return the law with every Fraction rounded to a float."""
        mean = tuple(m if isinstance(m, complex) else float(m) for m in self.mean)
        return Law(mean, tuple(tuple(float(c) for c in row) for row in self.rows))

    @property
    def centred(self) -> bool:
        """Return True if every mean is zero."""
        return all(m == 0 for m in self.mean)


def density(law: Law, i: int) -> float:
    """Return the density of variable i at 0, exp(-m^2 / 2v) / sqrt(2 pi v).

    >>> round(density(Law((0.0,), ((1.0,),)), 0), 12)
    0.398942280401
    """
    variance = law.rows[i][i]
    try:
        power = float(law.mean[i] * law.mean[i] / (2 * variance))
    except OverflowError:
        power = math.inf
    return math.exp(-power) / math.sqrt(2 * math.pi * float(variance)) if power < 745 else 0.0


def semidefinite(rows) -> bool:
    """Return True if a symmetric matrix of Fractions has no negative eigenvalue, decided exactly by elimination.

    >>> semidefinite([[1, 1], [1, 1]]), semidefinite([[1, 2], [2, 1]])
    (True, False)
    """
    rows = [list(row) for row in rows]
    for i, row in enumerate(rows):
        if row[i] < 0 or (row[i] == 0 and any(row[i + 1 :])):
            return False
        for j in range(i + 1, len(rows)):
            if row[i] != 0 and row[j] != 0:
                gain = row[j] / row[i]
                rows[j] = [a - gain * b for a, b in zip(rows[j], row, strict=True)]
    return True
