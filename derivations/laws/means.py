"""Bounds on means and on typical runs: statements about the average or the majority, and not about every run."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations import intervals
from derivations.claim import Answer, Judgement, Samples, Sensitivity
from derivations.laws.bounds import in_words, room, told
from derivations.laws.tools import (
    ALARM,
    DOUBT,
    confirming,
    decided,
    failed,
    of_few_runs,
    open_because,
    others,
    points_of,
    refuting,
    values,
    within,
)


@dataclasses.dataclass(frozen=True)
class Mean:
    """Law: the mean over runs lies between `low` and `high` at every point; one of them may be absent.

    `limits` is the range of the quantity. Without it n runs do not determine a mean, because a share of 3/n rare runs
    may dominate it. The t interval of at least six runs per point decides; it is widened by the rare runs that n runs
    can miss. The claim is confirmed if the interval is within `margin` of [low, high], and refuted if all of it is
    farther away. It is consistent if a bound stronger by more than `visible` would have been obeyed too (by default a
    tenth of the bound; inf for signs and orders). `because` is the reason for both. `Bounded` is for statements about
    every run.

    Example:
        >>> runs = [({}, seed, 0.2 + 0.01 * (seed % 7)) for seed in range(60)]
        >>> Mean(low=0.0, visible=np.inf, limits=(-1.0, 1.0)).judge(runs).answer
        'confirmed'
        >>> Mean(high=1.0, limits=(-1.0, 1.0)).judge(runs).answer
        'consistent'
        >>> Mean(low=0.22, limits=(-1.0, 1.0)).judge(runs).answer
        'inconclusive'
        >>> Mean(low=0.9, limits=(-1.0, 1.0)).judge(runs).answer
        'refuted'
        >>> Mean(low=0.0).judge(runs).reason
        'value: a mean is bounded only where the limits of a run are known'
    """

    low: float = -np.inf
    high: float = np.inf
    margin: float = 0.0
    meaning: str = "value"
    visible: float | None = None
    because: str = ""
    limits: tuple[float, float] = (-np.inf, np.inf)

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """The answer of the weakest point, by the interval of its mean."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        groups = [group for _, group in points_of(samples)]
        if (missing := of_few_runs(groups, self.meaning, [self.low, self.high])) is not None:
            return missing
        if (missing := self._without_limits(values(samples))) is not None:
            return missing
        tests = looks * len(groups)
        answer = self._answer(groups, tests)
        worst = max(groups, key=self._excess)
        low, high = self._interval(worst, DOUBT, tests)
        slack, bound = min((low - self.low, self.low), (self.high - high, self.high))
        if answer == "confirmed" and slack > room(bound, self.visible):
            answer = "consistent"
        reason = f"{self.meaning} {worst.mean():.6g} [{low:.6g}, {high:.6g}] {self._words(worst.size)}, "
        reason += in_words(self.low, self.high)
        if self.margin:
            reason += f" {within(self.margin, self.because)}"
        elif self.because:
            reason += f" ({self.because})"
        reason += told(slack) if answer == "consistent" else ""
        return Judgement(
            answer, [self.low, self.high], float(worst.mean()), (low, high), reason, margin=self.margin,
            slack=slack if answer in ("confirmed", "consistent") else None,
        )  # fmt: skip

    def _without_limits(self, found: np.ndarray) -> Judgement | None:
        """Return an open answer if the range of the quantity is not known, or a run lies outside of it."""
        if not np.isfinite(self.limits).all():
            return open_because(f"{self.meaning}: a mean is bounded only where the limits of a run are known")
        if found.min() < self.limits[0] or found.max() > self.limits[1]:
            return open_because(f"{self.meaning}: a run lies outside of its limits {list(self.limits)}")
        return None

    def _words(self, runs: int) -> str:
        return f"on average over {runs} runs in {list(self.limits)}"

    def _interval(self, group: np.ndarray, doubt: float, tests: int) -> intervals.Interval:
        return intervals.bounded_mean(group, self.limits, 1 - doubt / tests)

    def _answer(self, groups: Sequence[np.ndarray], tests: int) -> Answer:
        target = (self.low, self.high)
        if any(decided(*self._interval(g, ALARM, tests), target, self.margin) == "refuted" for g in groups):
            return "refuted"
        inside = all(decided(*self._interval(g, DOUBT, tests), target, self.margin) == "confirmed" for g in groups)
        return "confirmed" if inside else "inconclusive"

    def _excess(self, group: np.ndarray) -> float:
        """Return the distance of a mean beyond the nearer bound, negative inside."""
        return float(max(self.low - group.mean(), group.mean() - self.high))

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The margin and half of the widest interval, beyond the bound."""
        groups = [group for _, group in points_of(samples)]
        ends = [self._interval(group, DOUBT, looks * len(groups)) for group in groups]
        size = self.margin + max((high - low) / 2 for low, high in ends)
        return (Sensitivity("one point", size, f"a mean beyond the bound by {size:.2g} would have been detected"),)


@dataclasses.dataclass(frozen=True)
class Typical(Mean):
    """Law: the typical run lies between `low` and `high` at every point; one of them may be absent.

    As `Mean`, for the median of the runs in place of their mean. The interval contains Student's and that of the
    median, and needs no `limits`. Deviating runs with a rate below 3/n are not excluded, as the answer states.

    Example:
        >>> runs = [({}, seed, value) for seed, value in enumerate((0.2, 0.1, 0.4, 0.3, 0.2, 0.3))]
        >>> Typical(low=0.0, visible=np.inf).judge(runs).answer
        'confirmed'
        >>> Typical(low=1.0).judge(runs).answer
        'refuted'
    """

    def _without_limits(self, found: np.ndarray) -> Judgement | None:
        return None

    def _words(self, runs: int) -> str:
        return f"in the typical of {runs} runs ({others(runs)})"

    def _interval(self, group: np.ndarray, doubt: float, tests: int) -> intervals.Interval:
        return confirming(group, tests) if doubt == DOUBT else refuting(group, tests)
