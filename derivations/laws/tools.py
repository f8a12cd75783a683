"""Common parts of the laws: measurements as arrays, levels of tests, and sentences on missing values."""

from collections.abc import Callable, Sequence

import numpy as np

from derivations import intervals
from derivations.claim import Answer, Judgement, Samples

DOUBT = 0.05
"""Error probability of the interval that confirms a law, shared among all parts."""
ALARM = 0.01
"""Error probability of the interval that refutes a law; it is small, because a false alarm is worse than an open
answer.
"""
EXCEPTIONS = 0.05
"""The rate of exceptions that a statement about all random draws must exclude, unless it gives another."""
LEAST_RUNS = 6
"""Smallest number of independent runs: the interval of a median at 95 % needs six."""


LEAST_SIZES = 4
"""Smallest number of sizes for a trend."""


def values(samples: Samples) -> np.ndarray:
    """The measurements as an array of numbers."""
    return np.array([float(value) for _, _, value in samples])


def failed(samples: Samples, meaning: str) -> Judgement | None:
    """An open answer if a measurement is not a number: a failed measurement is no evidence for either side."""
    found = values(samples)
    missing = int(np.isnan(found).sum())
    if not found.size or missing:
        what = f"{meaning} is not a number in {missing} of {found.size} cases" if found.size else "nothing was measured"
        return open_because(what)
    return None


def open_because(reason: str, predicted: object = None) -> Judgement:
    """An inconclusive judgement with its reason."""
    return Judgement("inconclusive", predicted, None, None, reason)


def points_of(samples: Samples) -> list[tuple[dict[str, object], np.ndarray]]:
    """The measurements of every distinct point of the sweep, in the order of the sweep."""
    found: dict[str, tuple[dict[str, object], list[float]]] = {}
    for point, _, value in samples:
        found.setdefault(repr(sorted(point.items(), key=lambda item: item[0])), (dict(point), []))[1].append(value)
    return [(point, np.array(measured, float)) for point, measured in found.values()]


def name_of(point: dict[str, object], among: Samples) -> str:
    """A point by the coordinates that differ among the points of the sweep."""
    differ = [name for name in point if len({repr(other.get(name)) for other, _, _ in among}) > 1]
    return ", ".join(f"{name} = {point[name]}" for name in differ)


def within(margin: float, because: str) -> str:
    """The margin of a claim in words, with the reason for it."""
    return f"within {margin:.3g}" + (f" ({because})" if because else "")


def decided(low: float, high: float, target: tuple[float, float], margin: float) -> Answer:
    """Position of the interval [low, high]: within `margin` of the target set, farther from it, or across the edge."""
    if low >= target[0] - margin and high <= target[1] + margin:
        return "confirmed"
    if high < target[0] - margin or low > target[1] + margin:
        return "refuted"
    return "inconclusive"


def confirmed_or_refuted(
    interval: Callable[[float], tuple[float, float]], target: tuple[float, float], margin: float, looks: int
) -> Answer:
    """The answer of a sampled quantity: confirmed at the level of `DOUBT`, refuted at that of `ALARM`.

    `interval(level)` gives the interval at a level; both are corrected for the number of `looks`.
    """
    if decided(*interval(1 - DOUBT / looks), target, margin) == "confirmed":
        return "confirmed"
    refuted = decided(*interval(1 - ALARM / looks), target, margin) == "refuted"
    return "refuted" if refuted else "inconclusive"


def of_few_runs(groups: Sequence[np.ndarray], meaning: str, predicted: object) -> Judgement | None:
    """Return an open answer if a point has too few runs for an interval."""
    fewest = min(group.size for group in groups)
    if fewest >= LEAST_RUNS:
        return None
    return open_because(f"{meaning}: {fewest} runs a point, of which at least {LEAST_RUNS} are needed", predicted)


def confirming(runs: np.ndarray, looks: int = 1) -> intervals.Interval:
    """Return the confirming interval of the typical run: it contains the t interval and that of the median.

    The first shares its level among the looks. The second needs no assumption on the distribution of the runs, and no
    correction: a claim of several parts is wrongly confirmed only if a wrong part is (an intersection-union test).
    """
    return intervals.union(intervals.mean(runs, 1 - DOUBT / looks), intervals.median(runs, 1 - DOUBT))


def refuting(runs: np.ndarray, looks: int = 1) -> intervals.Interval:
    """Return the refuting interval of the typical run: as `confirming`, at the level of `ALARM`.

    If there are too few runs for the interval of a median at this level, it is the range of all runs.
    """
    low, high = intervals.median(runs, 1 - ALARM / looks)
    middle = (low, high) if np.isfinite(low) else (float(runs.min()), float(runs.max()))
    return intervals.union(intervals.mean(runs, 1 - ALARM / looks), middle)


def between(groups: Sequence[np.ndarray], doubt: float = DOUBT) -> float:
    """Return half the width that the scatter between points adds to the interval of each of them.

    Runs at one point with a common component (a data set, a start) have a common error. If the means of three points or
    more scatter more than their runs explain (F test at 5 %), the scatter between the points replaces that between the
    runs: t times the standard deviation of the means.
    """
    from scipy import special

    if len(groups) < 3:
        return 0.0
    means, free = np.array([group.mean() for group in groups]), sum(group.size - 1 for group in groups)
    within = sum(((group - group.mean()) ** 2).sum() for group in groups) / free / np.mean([g.size for g in groups])
    scatter = means.var(ddof=1)
    if scatter <= within * special.fdtri(len(groups) - 1, free, 1 - DOUBT):
        return 0.0
    return float(special.stdtrit(len(groups) - 1, 1 - doubt / 2) * np.sqrt(scatter))


def widened(interval: intervals.Interval, centre: float, extra: float) -> intervals.Interval:
    """Return the interval, at least `extra` wide on each side of the mean of the runs (`between`)."""
    return intervals.union(interval, (centre - extra, centre + extra))


def by_runs(groups: Sequence[np.ndarray], target: tuple[float, float], margin: float, looks: int) -> Answer:
    """Return the answer of the weakest point, by the interval of its typical run.

    A point is tested against the scatter between the other points, so that one wrong point does not increase its own
    margin.
    """
    tests, extra = looks * len(groups), between(groups)
    for k, group in enumerate(groups):
        aside = between([*groups[:k], *groups[k + 1 :]], ALARM / tests)
        if decided(*widened(refuting(group, tests), group.mean(), aside), target, margin) == "refuted":
            return "refuted"
    ends = [widened(confirming(group, tests), group.mean(), extra) for group in groups]
    inside = all(decided(*interval, target, margin) == "confirmed" for interval in ends)
    return "confirmed" if inside else "inconclusive"


def widest(groups: Sequence[np.ndarray], looks: int) -> float:
    """Return half the width of the widest confirming interval among the points."""
    extra = between(groups)
    ends = [widened(confirming(group, looks * len(groups)), group.mean(), extra) for group in groups]
    return max((high - low) / 2 for low, high in ends)


def others(runs: int) -> str:
    """Return in words the largest share of deviating runs that a sample of this size does not exclude."""
    return f"up to {100 * intervals.hidden(runs):.2g} % of all runs may behave differently"


def hiding(samples: Samples, exceptions: float | None) -> str:
    """Return the reason why cases without an exception do not confirm a statement about all draws; empty if they do.

    Several seeds are random draws: N of them exclude a rate 3/N of exceptions, which must be at most `exceptions`. One
    seed (a grid, an exact decision) or `None` (an identity) is not random.
    """
    allowed = 1.0 if exceptions is None or len({seed for _, seed, _ in samples}) == 1 else exceptions
    left = intervals.hidden(len(samples))
    if left <= allowed:
        return ""
    return (
        f"; {len(samples)} random draws do not exclude exceptions in {100 * left:.2g} % (at most {100 * allowed:g} %)"
    )
