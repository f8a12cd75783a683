"""Values: exact ones in every case, sampled ones by the interval of the mean at every point."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations.claim import Answer, Judgement, Samples, Sensitivity
from derivations.laws.tools import (
    between,
    by_runs,
    confirming,
    failed,
    name_of,
    of_few_runs,
    others,
    points_of,
    values,
    widened,
    widest,
    within,
)


@dataclasses.dataclass(frozen=True)
class Equals:
    """Law: a quantity equals `value` within the margin relative |value| + absolute.

    `error=None`: sampled, of the typical run. At every point (at least six runs) the t interval of the mean and the
    interval of the median must lie within the margin; both outside refute. Deviating runs with a rate below 3/n are not
    excluded, as the answer states. `error=e`: deterministic with relative numerical error e; every single case is
    judged. `because` is the reason for the margin.

    Example:
        >>> Equals(2.0, absolute=0.01, error=1e-9).judge([({}, 0, 2.001), ({}, 1, 1.996)]).answer
        'confirmed'
        >>> Equals(2.0, absolute=0.01, error=1e-9).judge([({}, 0, 2.001), ({}, 1, 7.0)]).answer
        'refuted'
        >>> Equals(2.0, absolute=0.01).judge([({}, seed, 2.0 + 0.01 * seed) for seed in range(4)]).reason
        'value: 4 runs a point, of which at least 6 are needed'
    """

    value: float
    relative: float = 0.0
    absolute: float = 0.0
    meaning: str = "value"
    error: float | None = None
    because: str = ""

    @property
    def margin(self) -> float:
        """The largest deviation from the value that still confirms."""
        return self.relative * abs(self.value) + self.absolute

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Confirmed if every point is within the margin, refuted if one is clearly outside."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        found = values(samples)
        if not np.isfinite(found).all():
            count = int((~np.isfinite(found)).sum())
            reason = f"{self.meaning} is infinite (never reached) in {count} of {found.size} cases"
            return Judgement("refuted", self.value, None, None, reason, margin=self.margin)
        return self._sampled(samples, looks) if self.error is None else self._exact(samples, self.error)

    def _exact(self, samples: Samples, error: float) -> Judgement:
        found = values(samples)
        away = np.abs(found - self.value)
        own = error * np.maximum(np.abs(found), abs(self.value))
        worst = int(away.argmax())
        answer: Answer = "inconclusive"
        if (away + own <= self.margin).all():
            answer = "confirmed"
        elif (away - own > self.margin).any():
            answer = "refuted"
        where = name_of(dict(samples[worst][0]), samples)
        reason = (
            f"{self.meaning} in [{found.min():.6g}, {found.max():.6g}] over {found.size} case{'s' * (found.size != 1)}"
        )
        reason += f", farthest {found[worst]:.6g}{f' at {where}' if where else ''}"
        bounds = (float(found.min()), float(found.max()))
        return self._judgement(answer, float(found[worst]), bounds, reason)

    def _sampled(self, samples: Samples, looks: int) -> Judgement:
        groups = points_of(samples)
        runs = [group for _, group in groups]
        if (missing := of_few_runs(runs, self.meaning, self.value)) is not None:
            return missing
        answer = by_runs(runs, (self.value, self.value), self.margin, looks)
        worst = max(range(len(groups)), key=lambda k: abs(groups[k][1].mean() - self.value))
        point, group = groups[worst]
        low, high = widened(confirming(group, looks * len(groups)), group.mean(), between(runs))
        where = name_of(dict(point), samples)
        at = f" at {where}, the farthest of {len(groups)} points" if where else ""
        reason = f"{self.meaning} {group.mean():.6g} [{low:.6g}, {high:.6g}]{at}, {min(map(len, runs))} runs a point"
        reason += f" ({others(min(map(len, runs)))})"
        return self._judgement(answer, float(group.mean()), (low, high), reason)

    def _judgement(self, answer: Answer, estimate: float, bounds: tuple[float, float], reason: str) -> Judgement:
        reason += f", predicted {self.value:.6g} {within(self.margin, self.because)}"
        return Judgement(answer, self.value, estimate, bounds, reason, margin=self.margin)

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The margin and half of the widest interval; of exact data the margin and twice their error."""
        if self.error is not None:
            half = 2 * self.error * max(float(np.abs(values(samples)).max()), abs(self.value))
        else:
            half = widest([group for _, group in points_of(samples)], looks)
        size = self.margin + half
        words = f"a {self.meaning} off by {size:.2g} at one point would have been detected"
        return (Sensitivity("one point", size, words),)
