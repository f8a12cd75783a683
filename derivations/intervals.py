"""Intervals of sampled quantities with honest coverage from few runs: means, medians and shares, from SciPy.

The unit is the independent run.  `level` is the probability that the interval covers the truth.
"""

from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray
Interval = tuple[float, float]

LEVEL = 0.95


def mean(values: Numbers, level: float = LEVEL) -> Interval:
    """Student's t interval of the mean of independent runs.

    Args:
        values: one number a run, at least two of them.
        level: the probability of covering the mean, exact for normal runs.

    Returns:
        Both ends; equal where all runs agree.

    Raises:
        ValueError: fewer than two runs, of which no interval can be made.

    Example:
        >>> low, high = mean([1.0, 2.0, 3.0])
        >>> round(low, 4), round(high, 4)
        (-0.4841, 4.4841)
    """
    from scipy import special

    data = np.asarray(values, float)
    if data.size < 2:
        raise ValueError(f"an interval of a mean needs at least two runs, but got {data.size}")
    centre, scatter = data.mean(), data.std(ddof=1) / np.sqrt(data.size)
    width = special.stdtrit(data.size - 1, (1 + level) / 2) * scatter
    return float(centre - width), float(centre + width)


def median(values: Numbers, level: float = LEVEL) -> Interval:
    """The interval of a median by order statistics: it covers with at least `level`, whatever the distribution.

    Infinite ends where there are too few runs for the level (fewer than 6 at 95 %).

    Example:
        >>> median([5.0, 1.0, 2.0, 3.0, 4.0, 6.0])
        (1.0, 6.0)
        >>> median([1.0, 2.0])
        (-inf, inf)
    """
    from scipy.stats import binom

    data = np.sort(np.asarray(values, float))
    rank = int(binom.ppf((1 - level) / 2, data.size, 0.5))  # P(fewer than `rank` below the median) <= (1 - level)/2
    if rank < 1:
        return -np.inf, np.inf
    return float(data[rank - 1]), float(data[data.size - rank])


def share(successes: int, trials: int, level: float = LEVEL) -> Interval:
    """The Clopper-Pearson interval of a probability: it covers with at least `level` for every number of trials.

    Example:
        >>> low, high = share(0, 10)
        >>> low, round(high, 4)
        (0.0, 0.3085)
    """
    from scipy import special

    if trials == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = special.betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = special.betaincinv(successes + 1, trials - successes, 1 - tail) if successes < trials else 1.0
    return float(low), float(high)
