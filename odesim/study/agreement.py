"""Statistics of agreement: confidence intervals of the difference of two runs over the whole run.

Agreement is an equivalence test. Two runs agree if the interval of their difference lies inside a margin at every saved
time. A difference that is not significant does not prove agreement.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

MARGIN = 0.05
"""Margin of agreement as a share of the range of the first run's component."""
LEVEL = 0.05
"""Error probability: intervals are those of 95 %."""
ROUNDING = 1e-12
"""Relative size below which differences are rounding."""
SEPARATED = 0.5
"""Smallest distance of two groups of replicas, as a share of the range of the first run."""
SHARE = 0.95
"""Smallest share of the variance that two groups of replicas explain. For a normal distribution the share is .64."""
NOISY = 0.1
"""Value of step times d over batch above which the noise, which the flow neglects, moves overlaps as much as the
flow.
"""


@dataclasses.dataclass(frozen=True)
class Differences:
    """Differences of the means of two runs, second - first, with the half-widths of their intervals (time, entry).

    `pointwise` has the level at a single time and entry, for the test of agreement: every interval lies inside the
    margin. This is an intersection-union test, which needs no correction for the number of tests. `last` and `anywhere`
    are for differences: `last` is corrected for the number of entries, `anywhere` for entries and times, each with half
    of the level. `replicas` counts those of the last random run: 0 if neither run is random, 1 if a single replica
    gives no estimate of the noise.
    """

    mean: np.ndarray
    pointwise: np.ndarray
    last: np.ndarray
    anywhere: np.ndarray
    replicas: int


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Judgement of one component: "agree", "differ", "not distinguishable" or "unknown", and its sentence.

    `bound` is the largest absolute value inside any interval (`nan` if the noise is unknown), by time in `bounds`.
    """

    verdict: str
    sentence: str
    margin: float
    bound: float
    bounds: np.ndarray

    def record(self) -> dict[str, Any]:
        """Entries of the summary."""
        bound = self.bound if np.isfinite(self.bound) else None
        return {"verdict": self.verdict, "sentence": self.sentence, "margin": self.margin, "bound": bound}


def differences(first: np.ndarray, second: np.ndarray, random: tuple[bool, bool], error: float = 0.0) -> Differences:
    """Return the differences of means of two runs with their Student intervals.

    Args:
        first: values of the first run, (replica, time, entry).
        second: values of the second run, (replica, time, entry).
        random: for each run, True for random replicas, False for a flow.
        error: numerical error of either run, which widens every interval.

    Two random runs have Welch's degrees of freedom. A run of a single random replica makes intervals infinite.
    """
    mean = second.mean(axis=0) - first.mean(axis=0)
    random_runs = [run for run, is_random in zip((first, second), random, strict=True) if is_random]
    if not random_runs:
        flat = np.full(mean.shape, error)
        return Differences(mean, flat, flat, flat, 0)
    counts = [len(run) for run in random_runs]
    if min(counts) < 2:
        endless = np.full(mean.shape, np.inf)
        return Differences(mean, endless, endless, endless, 1)
    variances = [run.var(axis=0, ddof=1) / len(run) for run in random_runs]
    total = np.sum(variances, axis=0)
    parts = np.sum([v**2 / (n - 1) for v, n in zip(variances, counts, strict=True)], axis=0)
    degrees = np.where(parts > 0, total**2 / np.where(parts > 0, parts, 1.0), min(counts) - 1)
    times, entries = mean.shape

    def half(tests: float) -> np.ndarray:
        from scipy.special import stdtrit

        return stdtrit(degrees, 1 - LEVEL / 2 / tests) * np.sqrt(total) + error

    return Differences(mean, half(1.0), half(2.0 * entries), half(2.0 * entries * times), counts[-1])


def judge(statistics: Differences, times: np.ndarray, first: np.ndarray) -> Judgement:
    """Judge a component by its differences; `first` are the values of the first run, (replica, time, entry).

    The margin is `MARGIN` times the range of the first run. Differences are tested at the end and from there backwards
    until an interval contains zero. This fixed sequence of tests needs no correction for the number of times. For runs
    that meet again, differences are also tested at any time with Bonferroni's correction.
    """
    bad = ~np.isfinite(statistics.mean).all(axis=1)
    if bad.any():
        sentence = f"differ: values are not finite from t = {times[bad.argmax()]:.4g} on"
        return Judgement("differ", sentence, np.nan, np.nan, np.full(len(times), np.nan))
    size = float(np.abs(first).max(initial=0.0))
    span = float(np.ptp(first))
    margin = MARGIN * (span if span > ROUNDING * size else size)
    bounds = (np.abs(statistics.mean) + statistics.pointwise).max(axis=1)
    bound = float(bounds.max())
    largest = float(np.abs(statistics.mean).max())
    if statistics.replicas != 1 and bound <= ROUNDING * max(size, 1e-300):
        return Judgement("agree", "agree up to rounding", margin, bound, bounds)
    if statistics.replicas == 1:
        worst_time = times[np.abs(statistics.mean).max(axis=1).argmax()]
        sentence = f"off by {largest:.2g} at t = {worst_time:.4g}; one replica does not show whether this is noise"
        return Judgement("unknown", sentence, margin, np.nan, np.full(len(times), np.nan))
    if bound <= margin:
        sentence = f"agree within {bound:.2g} over the whole run (margin {margin:.2g})"
        return Judgement("agree", sentence, margin, bound, bounds)
    sentence = _difference(statistics, times, size, margin)
    if sentence:
        return Judgement("differ", sentence, margin, bound, bounds)
    seeds = f"{statistics.replicas} seeds" if statistics.replicas else "this numerical error"
    sentence = (
        f"not distinguishable with {seeds}: the difference could be as large as {bound:.2g} (margin {margin:.2g})"
    )
    return Judgement("not distinguishable", sentence, margin, bound, bounds)


def _difference(statistics: Differences, times: np.ndarray, size: float, margin: float) -> str:
    """Return the sentence on the largest significant difference, or ""."""
    if not statistics.replicas:  # without noise a difference counts as soon as it leaves the margin
        return _told(statistics, np.abs(statistics.mean) - statistics.last > margin, statistics.last, times)
    rounding = ROUNDING * size
    sequence = np.abs(statistics.mean) > statistics.last + rounding
    significant = np.flip(np.logical_and.accumulate(np.flip(sequence, axis=0), axis=0), axis=0)
    if significant[-1].any():
        return _told(statistics, significant, statistics.last, times)
    return _told(statistics, np.abs(statistics.mean) > statistics.anywhere + rounding, statistics.anywhere, times)


def _told(statistics: Differences, differs: np.ndarray, half: np.ndarray, times: np.ndarray) -> str:
    """Return the sentence on the largest of the differences marked by `differs` (time, entry)."""
    if not differs.any():
        return ""
    k, entry = np.unravel_index(np.where(differs, np.abs(statistics.mean), -1.0).argmax(), differs.shape)
    marked = times[differs.any(axis=1)]
    period = (
        f"from t = {marked[0]:.4g} on" if differs[-1].any() else f"between t = {marked[0]:.4g} and {marked[-1]:.4g}"
    )
    error = f" +- {half[k, entry]:.2g}" if half[k, entry] else ""
    return f"differ by {abs(statistics.mean[k, entry]):.2g}{error} {period}"


def two_groups(values: np.ndarray, span: float) -> np.ndarray | None:
    """Return the replicas in the upper of two groups, or None if the values (replica,) are one group.

    The values are cut where the groups explain most of their variance (Otsu's threshold). They are two groups if that
    is at least `SHARE` of it, and if the groups' means are apart by at least `SEPARATED` times `span`.

    >>> two_groups(np.array([0.0, 1.0, 0.01, 0.99]), 1.0)
    array([False,  True, False,  True])
    >>> two_groups(np.array([0.1, 0.2, 0.3, 0.4]), 1.0) is None
    True
    """
    count, total = len(values), float(((values - values.mean()) ** 2).sum())
    if count < 3 or total <= 0 or span <= 0:  # two values are always two groups
        return None
    order = np.sort(values)
    sizes = np.arange(1, count)
    low = np.cumsum(order)[:-1] / sizes
    high = (order.sum() - np.cumsum(order)[:-1]) / (count - sizes)
    explained = sizes * (count - sizes) / count * (high - low) ** 2 / total
    cut = int(explained.argmax())
    if explained[cut] < SHARE or high[cut] - low[cut] < SEPARATED * span:
        return None
    return values > (order[cut] + order[cut + 1]) / 2


def groups_sentence(second: np.ndarray, span: float) -> str:
    """Return a sentence on replicas that end in two groups, or "" if they do not.

    `second` are the values of one entry, (replica, time). If only one group has stayed near its start, the sentence
    says that some runs escaped.
    """
    end = second[:, -1]
    upper = two_groups(end, span)
    if upper is None:
        return ""
    start = float(second[:, 0].mean())
    means = float(end[~upper].mean()), float(end[upper].mean())
    displacements = sorted(abs(mean - start) for mean in means)
    counts = (
        f"{int((~upper).sum())} of {len(end)} replicas end near {means[0]:.2g}, {int(upper.sum())} near {means[1]:.2g}"
    )
    stayed = displacements[0] < 0.25 * (means[1] - means[0])
    return f"two groups: {counts}" + (" (some runs escaped, some did not)" if stayed else "")


def noise_sentence(step_size: float, dimension: float, batch: float) -> str:
    """Return a sentence on a large step times d over batch, or "" if it is small."""
    noise = step_size * dimension / batch
    if not noise > NOISY:
        return ""
    return f"step x d / batch = {noise:.2g} is large: the noise of SGD grows with it, and the flow neglects this noise"


def overall(judgements: Mapping[str, Judgement]) -> str:
    """Return the sentence on all components: the worst verdict, with the components that have it."""
    for verdict, words in (
        ("differ", "the runs differ in"),
        ("not distinguishable", "not distinguishable, and not shown to agree, in"),
        ("unknown", "one replica does not show whether the runs agree in"),
    ):
        names = [name for name, judgement in judgements.items() if judgement.verdict == verdict]
        if names:
            return f"{words} {', '.join(names)}"
    return "the runs agree over the whole run within the margin of every component"
