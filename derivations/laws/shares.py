"""Probabilities of events that either happen in a run or not."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations import intervals
from derivations.claim import Judgement, Samples, Sensitivity
from derivations.laws.sensitivity import POWER
from derivations.laws.tools import DOUBT, confirmed_or_refuted, failed, values, within


@dataclasses.dataclass(frozen=True)
class Probability:
    """Law: events (measurements 0 or 1, one per run) have a probability between `low` and `high`.

    The Clopper-Pearson interval decides. The claim is confirmed if the interval is within `visible` of [low, high],
    refuted if all of it is farther away, and consistent if a bound stronger by more than `visible` would have been
    obeyed too.

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
        """The answer by the interval of the share, and not by the share itself."""
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

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The probability nearest to the claimed range at which nine of ten samples of this size change the answer."""
        trials = len(samples)
        found = []
        for bound, word, mirrored in ((self.low, "or less", False), (1 - self.high, "or more", True)):
            if bound <= 0:
                continue
            probability = lost_at(bound, self.visible, trials, looks)
            if probability is None:
                found.append(
                    Sensitivity("share of runs", None, f"no probability would have been detected in {trials} runs")
                )
                continue
            shown = 1 - probability if mirrored else probability
            sentence = f"a probability of {shown:.2g} {word} would have been detected"
            found.append(Sensitivity("share of runs", bound - probability, sentence))
        return tuple(found)


def lost_at(low: float, visible: float, trials: int, looks: int) -> float | None:
    """Return the largest probability below `low` at which a lower bound is not confirmed with probability `POWER`.

    The answer changes for k successes or fewer; P(K <= k) decreases with the probability p, and is `POWER` at 1 - p =
    I^{-1}_{POWER}(trials - k, k + 1), the inverse of the regularised incomplete beta function.

    Args:
        low: the claimed bound.
        visible: the margin below it.
        trials: the number of runs.
        looks: the number of parts that share the error probability.

    Returns:
        The probability, or `None` if no probability has this property.
    """
    from scipy import special

    level = 1 - DOUBT / looks
    lost = [k for k in range(trials + 1) if intervals.share(k, trials, level)[0] < low - visible]
    if not lost or lost[-1] == trials:
        return None
    return float(1 - special.betaincinv(trials - lost[-1], lost[-1] + 1, POWER))
