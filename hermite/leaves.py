"""Gaussian means of one or two functions of the logistic ladder, by correlation functions or panels."""

import math
from collections.abc import Callable
from functools import lru_cache

from hermite.closed import Problem
from hermite.correlation_functions import Correlations
from hermite.errors import NotReached
from hermite.laws import EPS, Law
from hermite.panels import line, plane
from hermite.sigmoids import tanh

# correlation functions of more terms cost more than the panels
TERMS = 160


@lru_cache(maxsize=64)
def _correlations(slope: float, other: float):
    """Return the correlation functions of tanh(slope z), tanh(other z)."""
    return Correlations(tanh(TERMS, slope), tanh(TERMS, other))


def _series(law: Law, orders: tuple) -> tuple[float, float] | None:
    """Return (S_ab(rho), bound) of two centred logistic ladders, or None if the series is too short.

    T_-a(beta z) = (d/dz)^a tanh(beta z / 2) / (2 beta^a); beta is the deviation of y.
    """
    spreads = [math.sqrt(float(law.rows[j][j])) for j in (0, 1)]
    if max(spreads) > 8 or min(spreads) < 1e-3:
        return None
    rho = max(-1.0, min(1.0, float(law.rows[0][1]) / (spreads[0] * spreads[1])))
    a, b = (-order for order in orders)
    functions = _correlations(spreads[0] / 2, spreads[1] / 2)
    scale = 0.25 / (spreads[0] ** a * spreads[1] ** b)
    try:
        value = float(functions.evaluate(a, b, rho, tolerance=2e-13))
        cut = functions.truncation(
            a, b, functions.terms_needed(a, b, 1e-13 * functions.scale(a, b), abs(rho)), abs(rho)
        )
    except NotReached:
        return None
    # Horner's rounding, relative to the sum of sizes: at most S_ab(1) for equal functions
    return scale * value, scale * (cut + 2 * TERMS * EPS * functions.scale(a, b))


def rule(problem: Problem) -> Callable:
    """Return the leaf of `hermite.stein.Recursion`: (law, kinds, orders) -> (value, error, name of the method).

    For unit variances and zero means it uses correlation functions, which are cached between calls, otherwise panels.

    >>> from fractions import Fraction
    >>> one = Fraction(1)
    >>> law = Law((0, 0), ((one, one / 2), (one / 2, one)))
    >>> value, error, word = rule(Problem((), (), law))(law, ("logistic",) * 2, (0, 0))
    >>> word, abs(value - plane(law, ("logistic",) * 2, (0, 0))[0]) < 1e-13
    ('correlation', True)
    """
    unit = problem.law.centred and all(row[i] == 1 for i, row in enumerate(problem.law.rows))

    def leaf(law: Law, kinds: tuple, orders: tuple) -> tuple[float, float, str]:
        if len(kinds) == 1:
            return *line(law, kinds, orders), ""
        if unit and law.centred and kinds == ("logistic", "logistic") and max(orders) <= 0:
            found = _series(law, orders)
            if found is not None:
                return *found, "correlation"
        return *plane(law, kinds, orders), "panels"

    return leaf
