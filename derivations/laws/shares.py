"""Probabilities of events that happen in a run or do not."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations import intervals
from derivations.claim import Deviation, Judgement, Samples
from derivations.laws.tools import DOUBT, confirmed_or_refuted, failed, values, with_values, within


@dataclasses.dataclass(frozen=True)
class Probability:
    """Events (measurements 0 or 1, one a run) have a probability between `low` and `high`.

    The Clopper-Pearson interval decides: confirmed within `visible` of [low, high], refuted where all of it lies
    farther away, and consistent where a bound stronger by more than `visible` would have been obeyed too.

    Example:
        >>> runs = [({}, seed, float(seed < 19)) for seed in range(60)]
        >>> Probability(low=0.65).judge(runs).answer
        'refuted'
        >>> Probability(low=0.25, visible=0.15).judge(runs).answer
        'confirmed'
        >>> Probability(low=0.05).judge(runs).answer
        'consistent'
    """

    low: float = 0.0
    high: float = 1.0
    meaning: str = "event"
    visible: float = 0.1
    because: str = ""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """The answer by the interval of the share, never by the share alone."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        found = values(samples)
        successes, trials = int(found.sum()), int(found.size)
        answer = confirmed_or_refuted(
            lambda level: intervals.share(successes, trials, level), (self.low, self.high), self.visible, looks
        )
        low, high = intervals.share(successes, trials, 1 - DOUBT / looks)
        slack = min(low - self.low if self.low > 0 else np.inf, self.high - high if self.high < 1 else np.inf)
        if answer == "confirmed" and np.isfinite(slack) and slack > self.visible:
            answer = "consistent"
        reason = f"{self.meaning} in {successes} of {trials} cases [{low:.3f}, {high:.3f}], "
        reason += f"claimed in [{self.low:g}, {self.high:g}] {within(self.visible, self.because)}"
        if answer == "consistent":
            reason += f"; a bound stronger by {slack:.2g} would have been obeyed"
        left = float(slack) if np.isfinite(slack) else None
        return Judgement(
            answer, [self.low, self.high], successes / trials, (low, high), reason, margin=self.visible, slack=left
        )

    def deviations(self, samples: Samples) -> Sequence[Deviation]:
        """A share of all runs flipped: to failures for s > 0, to successes for s < 0."""

        def disturb(given: Samples, size: float) -> Samples:
            found = values(given)
            places = np.flatnonzero(found == (1.0 if size > 0 else 0.0))
            found[places[: int(abs(size) * found.size + 1e-9)]] = 0.0 if size > 0 else 1.0
            return with_values(given, found)

        signs = tuple(sign for sign, bound in ((1, self.low > 0), (-1, self.high < 1)) if bound)
        return (Deviation("share of runs", disturb, 1.0, lambda s: f"{abs(s):.0%} of the runs otherwise", signs),)
