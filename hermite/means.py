"""E[prod_k f_k(z_k)] for jointly Gaussian z: each mean by the method its factors allow, with a bound of its error.

Polynomials may stand beside the factors counted here; exponentials only tilt the law.

* none: `lemma`, Isserlis in rational numbers, rounded once;
* one: `derivative means`, Stein's finite sum;
* two of the step's family (step, sign, abs, relu, erf, probit, gelu), three without biases, or one with cosines and
  sines: `closed form`, arcs and Owen's T;
* three of that family with biases, or four: `plackett`, smooth one-dimensional integrals;
* two, one at least of logistic, tanh, silu, softplus: `correlation` (functions S_ab, unit variances, no biases) or
  `panels`, one variable given the other;
* more: `tensor` (analytic factors, a product rule in the eigenbasis), `series` (multivariate Hermite, moderate
  correlations) or `quasi-random` (the rest, and any function of the fields: `mean_of`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from hermite import closed, leaves
from hermite.errors import DomainError, NotReached, ShapeError
from hermite.ladders import Factor, factor
from hermite.laws import EPS, Law, semidefinite
from hermite.quadrature import factor as root

__all__ = ["Answer", "Factor", "factor", "mean", "mean_of"]


@dataclass(frozen=True)
class Answer:
    """A Gaussian mean: value, error and name of the method.

    `error` bounds |value - truth| for all methods but `quasi-random`, where it is 8 standard errors of independent
    randomisations, and `panels` and `tensor`, where it is the difference from a much coarser rule.

    >>> float(Answer(0.5, 0.0, "closed form"))
    0.5
    """

    value: float
    error: float
    method: str

    def __float__(self) -> float:
        return self.value


def _law(covariance, mean) -> Law:
    """Return the exact law of a covariance and a mean in floats, after checking them."""
    matrix = np.asarray(covariance, dtype=np.float64)
    if matrix.ndim != 2 or not np.all(np.isfinite(matrix)):
        raise ShapeError(
            f"covariance: expected a square matrix of finite numbers, got shape {matrix.shape}; pass (n, n)"
        )
    root(matrix)  # raises an error if the matrix is not a covariance
    matrix = (matrix + matrix.T) / 2
    at = np.zeros(len(matrix)) if mean is None else np.asarray(mean, dtype=np.float64)
    if at.shape != (len(matrix),) or not np.all(np.isfinite(at)):
        raise ShapeError(f"mean: expected {len(matrix)} finite numbers, got shape {at.shape}; one for each variable")
    rows = [[Fraction(float(c)) for c in row] for row in matrix]
    for i in range(len(rows)):
        if rows[i][i] <= 0:  # a fixed variable; rounding may have made its variance -1e-17
            for j in range(len(rows)):
                rows[i][j] = rows[j][i] = Fraction(0)
    return Law(tuple(Fraction(float(m)) for m in at), tuple(map(tuple, rows)))


def mean(
    factors: Sequence[Factor],
    covariance: Any,
    mean: Any = None,
    *,
    slots: Sequence[int] | None = None,
    tolerance: float = 1e-10,
    strict: bool = False,
    seed: int = 0,
) -> Answer:
    """Return E[prod_k f_k(z_{slot k})] for Gaussian z of any covariance and mean, with a bound of the error.

    The method is the first in the list of the module that the factors allow. The arithmetic is rational up to the last
    step, so that singular and nearly singular covariances lose no accuracy.

    Arguments: factors, of `factor`; covariance (n, n), positive semidefinite, taken as exact; mean (n,), zeros when
    None; slots, the variable of each factor, 0..n-1 in order when None (several may share one); tolerance, relative to
    max(1, |value|), decides which methods are tried; strict, raise NotReached if the error is above the tolerance; seed
    of the quasi-random points. Returns an Answer. Raises: ShapeError, DomainError (no covariance, or an infinite mean),
    NotReached (strict), TooLarge. Source: Isserlis 1918; Stein 1981; Price 1958; Plackett 1954; Owen 1956; Saad & Solla
    1995; Cho & Saul 2009.

    >>> answer = mean([factor("erf", scale=2**-0.5)] * 2, [[1.0, 0.5], [0.5, 1.0]])
    >>> abs(answer.value - 2 / math.pi * math.asin(0.25)) <= answer.error < 1e-15, answer.method
    (True, 'closed form')
    """
    law = _law(covariance, mean)
    n, factors = len(law.mean), tuple(factors)
    at = tuple(range(len(factors))) if slots is None else tuple(int(s) for s in slots)
    if len(at) != len(factors) or any(not 0 <= s < n for s in at) or (slots is None and n != len(factors)):
        raise ShapeError(f"slots: expected a variable 0..{n - 1} for each of {len(factors)} factors, got {at}")
    problem = closed.Problem(factors, at, law)
    if not closed.reaches(problem):
        answer = _numerical(problem, tolerance, seed)
    else:
        answer = _closed(problem)
    return _checked(answer, tolerance, strict)


def _closed(problem: closed.Problem) -> Answer:
    """Return the mean by `hermite.closed`. An indefinite covariance is made semidefinite before.

    Rounding can give a singular covariance an eigenvalue of -1e-17. The smallest sufficient number is then added to its
    diagonal. The answer for four times this number gives the error, because the answer depends on it at most like a
    square root.
    """
    law = problem.law
    if semidefinite(law.rows):
        return Answer(*closed.evaluate(problem, leaves.rule(problem)))
    rows = np.array(law.plain().rows)
    spread = np.sqrt(np.where(np.diag(rows) > 0, np.diag(rows), 1.0))
    least = float(np.linalg.eigvalsh(rows / np.outer(spread, spread))[0])
    raised = Fraction(max(-least, 0.0) + 8 * len(rows) * EPS)
    answers = []
    for share in (1, 4):
        mended = tuple(
            tuple(c * (1 + share * raised) if i == j else c for j, c in enumerate(row))
            for i, row in enumerate(law.rows)
        )
        moved = closed.Problem(problem.factors, problem.slots, Law(law.mean, mended))
        answers.append(Answer(*closed.evaluate(moved, leaves.rule(moved))))
    near, far = answers
    return Answer(near.value, near.error + far.error + 2 * abs(near.value - far.value), near.method)


def mean_of(
    integrand: Callable,
    covariance: Any,
    mean: Any = None,
    *,
    tolerance: float = 1e-3,
    log2_points: int = 14,
    strict: bool = False,
    seed: int = 0,
) -> Answer:
    """Return E[integrand(z)] of any vectorised function of the fields (softmax, top-1, a loss), quasi-randomly.

    Arguments: integrand, maps (n, points) to (points,); covariance (n, n) of any rank; mean (n,) or None; tolerance,
    relative to max(1, |value|): fewer points are used if they reach it; log2_points, 16 randomisations of 2^log2_points
    points at most; strict; seed. Returns an Answer whose error is 8 standard errors. Raises: as
    `hermite.quasi.evaluate`, NotReached. Source: Owen 1997.

    >>> answer = mean_of(lambda z: np.max(z, axis=0), np.eye(2), tolerance=1e-2)
    >>> abs(answer.value - math.pi**-0.5) < answer.error < 1e-2
    True
    """
    from hermite import quasi

    value, error = quasi.evaluate(integrand, covariance, mean, log2_points=log2_points, seed=seed, tolerance=tolerance)
    return _checked(Answer(value, error, "quasi-random"), tolerance, strict)


def _meets(answer: Answer, tolerance: float) -> bool:
    return answer.error <= tolerance * max(1.0, abs(answer.value))


def _checked(answer: Answer, tolerance: float, strict: bool) -> Answer:
    """Return the answer. Raise an error if it is not finite or, with `strict`, if its error exceeds the tolerance."""
    if not (math.isfinite(answer.value) and math.isfinite(answer.error)):
        raise DomainError(f"the mean or its error bound is not finite: {answer.value}, {answer.error}")
    if strict and not _meets(answer, tolerance):
        raise NotReached(
            f"{answer.method}: expected an error within {tolerance:.3g}, got {answer.error:.3g}; raise the tolerance"
        )
    return answer


def _numerical(problem: closed.Problem, tolerance: float, seed: int) -> Answer:
    """Return the mean by a product rule, the Hermite series or quasi-random points: the first within the tolerance, or
    the best.
    """
    from hermite import quasi, series, tensor

    factors, slots = problem.factors, problem.slots
    if any(f.singular for f in factors):
        raise NotReached(
            "a product of a delta function and factors without a closed form is not supported: condition on the "
            "variable of the delta function first"
        )
    law = problem.law.plain()
    at, rows = np.array(law.mean), np.array(law.rows)
    answers = []
    if all(f.smooth for f in factors):
        try:
            answers.append(Answer(*tensor.evaluate(factors, slots, at, rows), "tensor"))
        except NotReached:
            pass
    simple = sorted(slots) == list(range(len(at))) and 2 <= len(at) <= 4 and bool(np.all(np.diag(rows) > 0))
    if simple and not any(_meets(answer, tolerance) for answer in answers):
        order = np.argsort(slots)
        try:
            value = series.evaluate([factors[i] for i in order], at, rows, tolerance)
            answers.append(Answer(*value, "series"))
        except NotReached:
            pass
    if not any(_meets(answer, tolerance) for answer in answers):

        def product(z: np.ndarray) -> np.ndarray:
            total = np.ones(z.shape[1])
            for f, slot in zip(factors, slots, strict=True):
                total = total * f(z[slot])
            return total

        value, error = quasi.evaluate(product, rows, at, seed=seed, tolerance=tolerance)
        if value == 0:  # the integrand vanished at all points, so the scatter gives no error estimate
            error = max(error, series.largest(factors, slots, at, rows))
        answers.append(Answer(value, error, "quasi-random"))
    return min(answers, key=lambda answer: answer.error)
