"""The laws that claims are judged by: each says what confirms it, what refutes it, and what leaves it open."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations import scaling
from derivations.claim import Answer, Judgement, Samples


def values(samples: Samples) -> np.ndarray:
    """The measurements as an array of numbers."""
    return np.array([float(value) for _, _, value in samples])


@dataclasses.dataclass(frozen=True)
class Vanishes:
    """The measured discrepancy is zero: at most `tolerance` everywhere; above `refuted_above` it is not."""

    tolerance: float
    refuted_above: float | None = None
    meaning: str = "discrepancy"

    def judge(self, samples: Samples) -> Judgement:
        """Confirmed when every discrepancy is within tolerance, refuted when one is clearly beyond it."""
        worst = float(np.abs(values(samples)).max())
        above = self.tolerance * 10 if self.refuted_above is None else self.refuted_above
        answer: Answer = "inconclusive"
        if worst <= self.tolerance:
            answer = "confirmed"
        elif worst > above or not np.isfinite(worst):
            answer = "refuted"
        reason = f"largest {self.meaning} {worst:.3g} over {len(samples)} cases, tolerance {self.tolerance:g}"
        return Judgement(answer, 0.0, worst, None, reason)


@dataclasses.dataclass(frozen=True)
class Proven:
    """A symbolic identity or an exact decision: every measurement is 0 (holds) or 1 (fails)."""

    meaning: str

    def judge(self, samples: Samples) -> Judgement:
        """Confirmed when all hold, refuted when one fails."""
        failures = int((values(samples) != 0).sum())
        answer: Answer = "refuted" if failures else "confirmed"
        verb = "holds exactly" if not failures else f"fails in {failures} of {len(samples)} cases"
        return Judgement(answer, 0.0, float(failures), None, f"{self.meaning} {verb}")


@dataclasses.dataclass(frozen=True)
class Equals:
    """The median equals `value` within `relative` (of the value) plus `absolute`."""

    value: float
    relative: float = 0.0
    absolute: float = 0.0
    meaning: str = "value"

    def judge(self, samples: Samples) -> Judgement:
        """Confirmed when the interval of the median lies within the tolerance, refuted when all of it is outside."""
        found = values(samples)
        if not np.isfinite(found).all():
            return Judgement("refuted", self.value, None, None, f"{self.meaning} is not finite in some cases")
        estimate = float(np.median(found))
        low, high = scaling.bootstrap_median(found) if found.size > 1 else (estimate, estimate)
        width = self.relative * abs(self.value) + self.absolute
        inside = abs(low - self.value) <= width and abs(high - self.value) <= width
        outside = low > self.value + width or high < self.value - width
        answer: Answer = "confirmed" if inside else "refuted" if outside else "inconclusive"
        reason = f"{self.meaning} {estimate:.6g} [{low:.6g}, {high:.6g}], predicted {self.value:.6g} within {width:.2g}"
        return Judgement(answer, self.value, estimate, (low, high), reason)


@dataclasses.dataclass(frozen=True)
class Bounded:
    """Every measurement lies between `low` and `high` (one of them may be absent), with an optional safety margin."""

    low: float = -np.inf
    high: float = np.inf
    margin: float = 0.0
    meaning: str = "value"

    def judge(self, samples: Samples) -> Judgement:
        """Refuted by any measurement beyond a bound by more than the margin; inconclusive within the margin."""
        found = values(samples)
        least, most = float(found.min()), float(found.max())
        excess = max(self.low - least, most - self.high)
        answer: Answer = "confirmed" if excess <= 0 else "inconclusive" if excess <= self.margin else "refuted"
        if not np.isfinite(found).all():
            answer = "refuted"
        estimate = most if np.isfinite(self.high) else least
        reason = (
            f"{self.meaning} in [{least:.6g}, {most:.6g}] over {found.size} cases, bounds [{self.low:g}, {self.high:g}]"
        )
        return Judgement(answer, [self.low, self.high], estimate, (least, most), reason)


@dataclasses.dataclass(frozen=True)
class Power:
    """y ~ x^exponent against the coordinate `over`, within `margin`; `rivals` must fit worse.

    With `bound` "at most" or "at least" the exponent is a bound and not a value.  `shift` is subtracted from y first
    (a known finite-size lag).  A measurement that is infinite was never reached: the law is claimed to hold with a
    probability of at least `reached`, and is judged on the finite ones where enough of them are.
    """

    exponent: float
    over: str = "d"
    margin: float = 0.03
    rivals: tuple[scaling.Form, ...] = ()
    bound: str = ""
    shift: float = 0.0
    reached: float = 1.0
    meaning: str = "y"

    def judge(self, samples: Samples) -> Judgement:
        """Fit the exponent with a bootstrap interval over seeds and compare the rivals on the same points."""
        finite = [sample for sample, value in zip(samples, values(samples), strict=True) if np.isfinite(value)]
        low, high = scaling.wilson(len(finite), len(samples))
        missing = f"{self.meaning} is not reached in {len(samples) - len(finite)} of {len(samples)} runs"
        if len(finite) < len(samples) and low < self.reached:
            answer = "refuted" if self.reached >= 1 or high < self.reached else "inconclusive"
            return Judgement(answer, self.exponent, None, None, f"{missing}, claimed for {self.reached:.0%}")
        x, y = scaling.columns(_complete(finite, samples), self.over)
        y = [value - self.shift for value in y]
        try:
            fitted = scaling.fit(x, y, scaling.Form("power"))
        except ValueError as error:
            return Judgement("inconclusive", self.exponent, None, None, str(error))
        law = scaling.Form("law", exponent=self.exponent)
        wins = scaling.compare(x, y, law, self.rivals) if self.rivals else {}
        rejected = tuple(name for name, share in wins.items() if share >= 0.95)
        answer = self._answer(fitted.interval, len(rejected) == len(self.rivals))
        relation = {"at most": "<= ", "at least": ">= "}.get(self.bound, "")
        reason = (
            f"{self.meaning} ~ {self.over}^{fitted.exponent:.4f} "
            f"[{fitted.interval[0]:.4f}, {fitted.interval[1]:.4f}] over {fitted.points} values of {self.over}, "
            f"predicted exponent {relation}{self.exponent:g}"
        )
        if len(finite) < len(samples):
            reason += f"; {missing}"
        if self.rivals:
            standing = [name for name in wins if name not in rejected]
            reason += f"; rivals rejected: {', '.join(rejected) or 'none'}" + (
                f"; not rejected: {', '.join(standing)}" if standing else ""
            )
        return Judgement(answer, self.exponent, fitted.exponent, fitted.interval, reason, rejected)

    def _answer(self, interval: tuple[float, float], rivals_rejected: bool) -> Answer:
        low, high = interval
        if self.bound == "at most":
            return (
                "confirmed"
                if high <= self.exponent + self.margin
                else "refuted"
                if low > self.exponent + self.margin
                else "inconclusive"
            )
        if self.bound == "at least":
            return (
                "confirmed"
                if low >= self.exponent - self.margin
                else "refuted"
                if high < self.exponent - self.margin
                else "inconclusive"
            )
        if low > self.exponent + self.margin or high < self.exponent - self.margin:
            return "refuted"
        close = abs(low - self.exponent) <= 2 * self.margin and abs(high - self.exponent) <= 2 * self.margin
        return "confirmed" if close and rivals_rejected else "inconclusive"


def _complete(finite: Samples, samples: Samples) -> Samples:
    """The finite samples of the seeds that are finite at every point, so that points are compared seed by seed.

    Where fewer than three seeds are left, all finite samples.
    """
    kept = {id(sample) for sample in finite}
    gone = {sample[1] for sample in samples if id(sample) not in kept}
    paired = [sample for sample in finite if sample[1] not in gone]
    return paired if len({seed for _, seed, _ in paired}) >= 3 else finite


@dataclasses.dataclass(frozen=True)
class Probability:
    """Events (measurements 0 or 1) happen with a probability of at least `low` and at most `high`."""

    low: float = 0.0
    high: float = 1.0
    meaning: str = "event"

    def judge(self, samples: Samples) -> Judgement:
        """Confirmed when the Wilson interval lies inside, refuted when it lies outside, otherwise open."""
        found = values(samples)
        successes, trials = int(found.sum()), int(found.size)
        low, high = scaling.wilson(successes, trials)
        answer: Answer = "inconclusive"
        if (self.low <= 0 or low >= self.low) and (self.high >= 1 or high <= self.high):
            answer = "confirmed"
        elif high < self.low or low > self.high:
            answer = "refuted"
        reason = f"{self.meaning} in {successes} of {trials} cases [{low:.3f}, {high:.3f}], "
        reason += f"claimed in [{self.low:g}, {self.high:g}]"
        return Judgement(answer, [self.low, self.high], successes / trials, (low, high), reason)


@dataclasses.dataclass(frozen=True)
class All:
    """Several laws on several numbers: the measurement is a mapping, `parts[name]` judges its entry `name`."""

    parts: dict[str, Any]

    def judge(self, samples: Samples) -> Judgement:
        """Refuted when one part is, confirmed when all are; the reasons are joined."""
        judged = {n: law.judge([(p, s, v[n]) for p, s, v in samples]) for n, law in self.parts.items()}
        answers = [j.answer for j in judged.values()]
        answer: Answer = (
            "refuted" if "refuted" in answers else "inconclusive" if "inconclusive" in answers else "confirmed"
        )
        leading = next((j for j in judged.values() if j.answer == answer), next(iter(judged.values())))
        reason = "; ".join(f"{name}: {j.reason}" for name, j in judged.items())
        return Judgement(answer, leading.predicted, leading.estimate, leading.interval, reason, leading.rejected)


LOGARITHMS: Sequence[scaling.Form] = (
    scaling.Form("sqrt(d) log d", logarithm=1.0, exponent=0.5),
    scaling.Form("sqrt(d log d)", logarithm=0.5, exponent=0.5),
    scaling.Form("sqrt(d) / log d", logarithm=-1.0, exponent=0.5),
)
"""The rivals of a square root that a log-log slope alone would let pass."""
