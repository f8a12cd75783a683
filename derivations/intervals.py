"""Intervals of sampled quantities with honest coverage from few runs: means, medians and shares, from SciPy.

The unit is the independent run. `level` is the probability that the interval covers the truth. Every interval accounts
for the number of runs: n equal runs do not exclude that 3/n of all runs differ.
"""

import functools
from collections.abc import Sequence

import numpy as np

Numbers = Sequence[float] | np.ndarray
Interval = tuple[float, float]

LEVEL = 0.95
HIDDEN = 3.0
"""Numerator of the rule of three: N cases without an exception exclude a rate of exceptions above 3/N at 95 %."""


def hidden(count: int) -> float:
    """Return the share of other cases that `count` random cases without one cannot exclude, 3/count.

    Example:
        >>> hidden(60), hidden(2)
        (0.05, 1.0)
    """
    return min(1.0, HIDDEN / count) if count else 1.0


def union(*intervals: Interval) -> Interval:
    """Return the smallest interval that contains all of `intervals`.

    Example:
        >>> union((0.0, 1.0), (0.5, 2.0))
        (0.0, 2.0)
    """
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def bounded_mean(values: Numbers, limits: Interval, level: float = LEVEL) -> Interval:
    """Interval of the mean of a quantity that lies between `limits`: t interval, widened by the runs that n runs can
    miss.

    A share h = 3/n of the runs may lie at either limit R without one of them among n: the ends move to (1 - h) end + h
    R. Infinite if a limit is.

    Args:
        values: one number a run, at least two of them.
        limits: the least and the largest value that a run can have.
        level: the level of the t interval.

    Returns:
        Both ends.

    Example:
        >>> low, high = bounded_mean([0.5] * 30, (0.0, 1.0))
        >>> round(low, 6), round(high, 6)
        (0.45, 0.55)
        >>> bounded_mean([0.5] * 30, (0.0, float("inf")))
        (0.45, inf)
    """
    low, high = mean(values, level)
    share_of_others = hidden(len(values))
    return (
        float(low - share_of_others * max(0.0, low - limits[0])),
        float(high + share_of_others * max(0.0, limits[1] - high)),
    )


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
    """The interval of a median by order statistics: its coverage is at least `level` for any distribution.

    The ends are infinite if there are too few runs for the level (fewer than 6 at 95 %).

    Example:
        >>> median([5.0, 1.0, 2.0, 3.0, 4.0, 6.0])
        (1.0, 6.0)
        >>> median([1.0, 2.0])
        (-inf, inf)
    """
    data = np.sort(np.asarray(values, float))
    rank = _rank(data.size, round(level, 12))
    if rank < 1:
        return -np.inf, np.inf
    return float(data[rank - 1]), float(data[data.size - rank])


@functools.lru_cache(maxsize=1024)
def _rank(count: int, level: float) -> int:
    """Return the rank of the order statistics that bound a median: P(fewer runs below it) <= (1 - level)/2."""
    from scipy.stats import binom

    return int(binom.ppf((1 - level) / 2, count, 0.5))


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
