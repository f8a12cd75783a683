"""What the laws share: measurements as arrays, levels of their tests, and the words for what is missing."""

from collections.abc import Callable, Sequence

import numpy as np

from derivations import intervals
from derivations.claim import Answer, Judgement, Samples

DOUBT = 0.05
"""A law is confirmed by an interval that misses the truth with this probability, shared among the parts looked at."""
ALARM = 0.01
"""A law is refuted only by an interval that misses the truth this rarely: a false alarm costs more than silence."""
LEAST_RUNS = 5
"""Fewer independent runs of a sampled quantity decide nothing."""


def values(samples: Samples) -> np.ndarray:
    """The measurements as an array of numbers."""
    return np.array([float(value) for _, _, value in samples])


def failed(samples: Samples, meaning: str) -> Judgement | None:
    """An open answer where a measurement is not a number: what failed is no evidence for either side."""
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
    """A point by the coordinates in which the points of the sweep differ."""
    differ = [name for name in point if len({repr(other.get(name)) for other, _, _ in among}) > 1]
    return ", ".join(f"{name} = {point[name]}" for name in differ)


def within(margin: float, because: str) -> str:
    """The margin of a claim in words, with the reason for it."""
    return f"within {margin:.3g}" + (f" ({because})" if because else "")


def decided(low: float, high: float, target: tuple[float, float], margin: float) -> Answer:
    """Where the interval [low, high] lies: within `margin` of the target set, farther from it, or across the edge."""
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
    """An open answer where some point has fewer runs than an interval of their mean is made of."""
    fewest = min(group.size for group in groups)
    if fewest >= LEAST_RUNS:
        return None
    return open_because(f"{meaning}: {fewest} runs a point, of which at least {LEAST_RUNS} are needed", predicted)


def by_means(groups: Sequence[np.ndarray], target: tuple[float, float], margin: float, looks: int) -> Answer:
    """The answer of the weakest point, by the t interval of the mean of its runs."""
    tests = looks * len(groups)
    answers = [
        confirmed_or_refuted(lambda level, g=group: intervals.mean(g, level), target, margin, tests)  # type: ignore[misc]
        for group in groups
    ]
    return "refuted" if "refuted" in answers else "inconclusive" if "inconclusive" in answers else "confirmed"


def widest(groups: Sequence[np.ndarray], looks: int) -> float:
    """Return half the width of the widest t interval among the points, at the level that confirms."""
    level = 1 - DOUBT / (looks * len(groups))
    return max((high - low) / 2 for low, high in (intervals.mean(group, level) for group in groups))
