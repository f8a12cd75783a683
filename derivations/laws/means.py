"""Bounds on means and on typical runs: what holds on average or mostly, and not in every run."""

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
    """The mean over runs lies between `low` and `high` at every point; one of them may be absent.

    A run lies within `limits`, the range of the quantity, without which n runs say nothing of a mean: 3/n of other
    runs may carry it.  The t interval decides, of at least six runs a point, widened by the runs that n can hide:
    confirmed within `margin` of [low, high], refuted where all of it lies farther away, and consistent where a bound
    stronger by more than `visible` (a tenth of the bound unless given; inf for signs and orders) would have been
    obeyed too.  `because` says where they come from.  `Bounded` is for what holds in every run.

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
        """Return an open answer where the range of the quantity is not known, or a run lies outside of it."""
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
        return (Sensitivity("one point", size, f"a mean beyond the bound by {size:.2g} would have been seen"),)


@dataclasses.dataclass(frozen=True)
class Typical(Mean):
    """The typical run lies between `low` and `high` at every point; one of them may be absent.

    As `Mean`, of the median of the runs in place of their mean: the interval covers Student's and that of the median,
    and needs no `limits`.  Runs of another kind in less than 3/n are not excluded, which the answer says.

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
