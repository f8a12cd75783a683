"""Choice of the quadrature points of a step of SGD. If rare samples dominate its covariance, points lie farther out.

Samples that are several standard deviations away dominate the covariance of a polynomial of high degree. Few random
samples lie there: with a kurtosis of 5,000 the error of the variance from 2^14 points is one half.
"""

from collections.abc import Callable

import numpy as np

from derivations.contract import Initial
from odesim.sgd.increments import Increments

WIDTHS = (1.25, 1.5, 1.75, 2.0)
"""Spreads of the points that are tried, in units of the standard deviation of the samples."""
KNOWN = 0.05
"""Relative error of the variance of an entry up to which no other spread is tried."""
MORE = 2
"""Largest number of doublings of the points."""


def known_best(
    increments_at: Callable[[int, float], Increments], initial: Initial, step: tuple[float, float], power: int
) -> tuple[Increments, float]:
    """Return the increments with the most accurate covariance at the start, and the spread of their points.

    Arguments:
        made: Increments at 2^power points of a spread.
        initial: The start.
        step: Dimension and step size.
        power: Points as a power of two.
    """
    plain = increments_at(power, 1.0)
    best = (relative_error(plain, initial, step), 1.0, plain)
    if best[0] <= KNOWN or np.ptp(plain.points.weights) > 0:  # or rules that are exact
        return plain, 1.0
    for width in WIDTHS:
        wider = increments_at(power, width)
        error = relative_error(wider, initial, step)
        if error >= best[0]:
            break
        best = (error, width, wider)
    for extra in range(1, MORE + 1):
        if best[0] <= KNOWN:
            break
        finer = increments_at(power + extra, best[1])
        best = (relative_error(finer, initial, step), best[1], finer)
    return best[2], best[1]


def relative_error(increments: Increments, initial: Initial, step: tuple[float, float]) -> float:
    """Return the largest standard error of a variance of the increments, relative to the variance, estimated as for
    random points.

    Exact rules have none. Scrambled Sobol points are better than random ones where the increments are smooth.
    """
    changes, _ = increments.of_step(initial, *step, 0.0)
    weights = increments.points.weights
    squares = (changes - weights @ changes) ** 2
    variances = weights @ squares
    moving = variances > 1e-12 * variances.max(initial=0.0)
    errors = np.sqrt(weights**2 @ (squares - variances)[:, moving] ** 2) / variances[moving]
    return float(errors.max(initial=0.0))
