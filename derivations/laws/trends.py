"""Asymptotic statements about events: "with probability 1 - o(1)" is judged by the trend over the sizes."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations import intervals
from derivations.claim import Answer, Judgement, Samples, Sensitivity
from derivations.laws.shares import lost_at
from derivations.laws.tools import ALARM, DOUBT, LEAST_SIZES, failed, open_because, within


@dataclasses.dataclass(frozen=True)
class Tends:
    """Law: the probability of an event (measurements 0 or 1, one per run) tends to one as the coordinate `over` grows.

    Let p(x) be the share at size x. The rise is the slope of the events against log x by least squares, times the range
    of log x. The claim is confirmed if the Clopper-Pearson interval of the last size lies above `last` - `visible`, and
    the share rises (the interval of the rise lies above 0) or was as high at every size. It is refuted if the last
    share lies below `last` and the interval of the rise below `visible`: the share is constant or decreases. Fewer than
    four sizes leave the claim open. `because` is the reason for `last`.

    Example:
        >>> def runs(*successes):
        ...     return [({"d": 10.0**k}, s, float(s < n)) for k, n in enumerate(successes) for s in range(60)]
        >>> Tends().judge(runs(10, 30, 50, 59)).answer
        'confirmed'
        >>> Tends().judge(runs(50, 40, 30, 20)).answer
        'refuted'
        >>> Tends().judge(runs(10, 20, 30, 40)).answer
        'inconclusive'
        >>> Tends().judge(runs(20)).reason
        'event in 20/60 cases at 1 value of d, of which an asymptotic statement needs 4'
    """

    over: str = "d"
    last: float = 0.9
    visible: float = 0.1
    meaning: str = "event"
    because: str = ""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Return the answer by the share at the largest size and by the trend."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        sizes, events = self._columns(samples)
        distinct = np.unique(sizes)
        counts = [(int(events[sizes == x].sum()), int((sizes == x).sum())) for x in distinct]
        shown = ", ".join(f"{hits}/{runs}" for hits, runs in counts)
        if distinct.size < LEAST_SIZES:
            number = f"{distinct.size} value{'s' if distinct.size > 1 else ''} of {self.over}"
            words = f"{self.meaning} in {shown} cases at {number}, of which an asymptotic statement needs {LEAST_SIZES}"
            return open_because(words, [self.last, 1.0])
        low, high = self._rise(sizes, events, DOUBT / looks)
        alarmed = self._rise(sizes, events, ALARM / looks)[1]
        ends = [intervals.share(hits, runs, 1 - DOUBT / looks) for hits, runs in counts]
        floor, everywhere = self.last - self.visible, min(lower for lower, _ in ends)
        answer: Answer = "inconclusive"
        if ends[-1][0] >= floor and (low > 0 or (everywhere >= floor and high >= 0)):
            answer = "confirmed"
        elif alarmed < self.visible and intervals.share(*counts[-1], 1 - ALARM / looks)[1] < self.last:
            answer = "refuted"
        reason = f"{self.meaning} in {shown} cases at {self.over} = {', '.join(f'{x:g}' for x in distinct)}, a rise of "
        reason += f"[{low:.3f}, {high:.3f}]; at the last [{ends[-1][0]:.3f}, {ends[-1][1]:.3f}], claimed to tend to 1, "
        reason += f"held against {self.last:g} {within(self.visible, self.because)}"
        share = counts[-1][0] / counts[-1][1]
        return Judgement(answer, [self.last, 1.0], share, ends[-1], reason, margin=self.visible)

    def _columns(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return the size and the event of every run."""
        return np.array([float(point[self.over]) for point, _, _ in samples]), np.array([float(v) for *_, v in samples])

    def _rise(self, sizes: np.ndarray, events: np.ndarray, doubt: float) -> intervals.Interval:
        """Return the interval of the rise of the share over the sweep."""
        from scipy import special, stats

        if np.ptp(events) == 0:
            return 0.0, 0.0
        logs = np.log(sizes)
        fit: Any = stats.linregress(logs, events)
        half = float(special.stdtrit(events.size - 2, 1 - doubt / 2) * fit.stderr)
        width = float(np.ptp(logs))
        return (float(fit.slope) - half) * width, (float(fit.slope) + half) * width

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """Return the largest share at the last size at which nine of ten samples of this size change the answer."""
        sizes, _ = self._columns(samples)
        probability = lost_at(self.last, self.visible, int((sizes == sizes.max()).sum()), looks)
        if probability is None:
            return (Sensitivity("share of runs", None, "no share at the last size would have been detected"),)
        words = f"a share of {probability:.2g} or less at {self.over} = {sizes.max():g} would have been detected"
        return (Sensitivity("share of runs", self.last - probability, words),)
