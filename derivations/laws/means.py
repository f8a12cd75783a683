"""Bounds on means: what holds on average over independent runs, and not in each of them."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations import intervals
from derivations.claim import Judgement, Samples, Sensitivity
from derivations.laws.bounds import in_words, room, told
from derivations.laws.tools import (
    DOUBT,
    by_means,
    failed,
    of_few_runs,
    points_of,
    widest,
    within,
)


@dataclasses.dataclass(frozen=True)
class Mean:
    """The mean over runs lies between `low` and `high` at every point; one of them may be absent.

    The t interval decides, of at least five runs a point and corrected for the number of points: confirmed within
    `margin` of [low, high], refuted where all of it lies farther away, and consistent where a bound stronger by more
    than `visible` (a tenth of the bound unless given; inf for signs and orders) would have been obeyed too.
    `because` says where they come from.  `Bounded` is for what holds in every run; one unlucky run in twenty refutes
    that, and not this.

    Example:
        >>> runs = [({}, seed, value) for seed, value in enumerate((0.2, -0.1, 0.4, 0.3, 0.2, 0.1))]
        >>> Mean(low=0.0, visible=np.inf).judge(runs).answer
        'confirmed'
        >>> Mean(high=1.0).judge(runs).answer
        'consistent'
        >>> Mean(low=0.25).judge(runs).answer
        'inconclusive'
        >>> Mean(low=1.0).judge(runs).answer
        'refuted'
    """

    low: float = -np.inf
    high: float = np.inf
    margin: float = 0.0
    meaning: str = "value"
    visible: float | None = None
    because: str = ""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """The answer of the weakest point, by the interval of its mean."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        groups = [group for _, group in points_of(samples)]
        if (missing := of_few_runs(groups, self.meaning, [self.low, self.high])) is not None:
            return missing
        answer = by_means(groups, (self.low, self.high), self.margin, looks)
        worst = max(groups, key=self._excess)
        low, high = intervals.mean(worst, 1 - DOUBT / (looks * len(groups)))
        slack, bound = min((low - self.low, self.low), (self.high - high, self.high))
        if answer == "confirmed" and slack > room(bound, self.visible):
            answer = "consistent"
        reason = f"{self.meaning} {worst.mean():.6g} [{low:.6g}, {high:.6g}] on average over {worst.size} runs, "
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

    def _excess(self, group: np.ndarray) -> float:
        """How far a mean lies beyond the nearer bound, negative inside."""
        return float(max(self.low - group.mean(), group.mean() - self.high))

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The margin and half of the widest interval, beyond the bound."""
        size = self.margin + widest([group for _, group in points_of(samples)], looks)
        return (Sensitivity("one point", size, f"a mean beyond the bound by {size:.2g} would have been seen"),)
