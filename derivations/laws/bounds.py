"""Bounds for every case, and the distance of measurements from them."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations.claim import HOLDS, Answer, Judgement, Samples, Sensitivity
from derivations.laws.sensitivity import of_cases
from derivations.laws.tools import EXCEPTIONS, failed, hiding, name_of, values

ROOM = 0.1
"""A case tests a bound if its distance from the bound is at most this share of the bound."""


def room(bound: float, visible: float | None) -> float:
    """Return the distance from a bound within which it is confirmed: `visible`, by default a tenth of the bound."""
    return ROOM * abs(bound) if visible is None else visible


def in_words(low: float, high: float) -> str:
    """The existing bounds in words."""
    return " and ".join(f"{sign} {end:g}" for sign, end in ((">=", low), ("<=", high)) if abs(end) < np.inf)


def told(slack: float) -> str:
    """Return the sentence for a bound that is obeyed with room to spare."""
    return f"; a bound tighter by {slack:.3g} would have been obeyed"


@dataclasses.dataclass(frozen=True)
class Bounded:
    """Law: every measurement lies between `low` and `high`; one of them may be absent.

    A case beyond a bound by more than `margin`, the numerical error, refutes. If every case obeys, the claim is
    confirmed if one is within `visible` of a bound, so that a bound stronger by more would have been violated.
    `because` is the reason for `visible`; by default it is a tenth of the bound. Otherwise the claim is consistent and
    the slack is part of the answer. Several seeds are random draws: N of them confirm nothing unless the rate of
    exceptions that they can miss, 3/N, is at most `exceptions` (`None`: the cases are not random). `visible=inf` is for
    signs and orders, which have no stronger form.

    Example:
        >>> Bounded(high=1.0).judge([({"k": 1}, 0, 0.2), ({"k": 2}, 0, 0.97)]).answer
        'confirmed'
        >>> Bounded(high=1.0).judge([({}, seed, 0.4) for seed in range(60)]).answer
        'consistent'
        >>> Bounded(high=1.0).judge([({}, 0, 0.2), ({}, 1, 0.4)]).answer
        'inconclusive'
        >>> Bounded(high=1.0).judge([({}, 0, 0.2), ({}, 1, 1.4)]).answer
        'refuted'
    """

    low: float = -np.inf
    high: float = np.inf
    margin: float = 0.0
    meaning: str = "value"
    visible: float | None = None
    because: str = ""
    exceptions: float | None = EXCEPTIONS

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Refuted by any case beyond a bound, confirmed by a case near a bound if all obey."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        found = values(samples)
        least, most = float(found.min()), float(found.max())
        excess = max(self.low - least, most - self.high)
        slack = float(-excess)
        answer: Answer = "refuted" if excess > self.margin else "inconclusive" if excess > 0 else "confirmed"
        upper = most - self.high >= self.low - least
        if answer == "confirmed" and slack > room(self.high if upper else self.low, self.visible):
            answer = "consistent"
        hidden = hiding(samples, self.exceptions) if answer in HOLDS else ""
        worst = int(found.argmax() if upper else found.argmin())
        where = name_of(dict(samples[worst][0]), samples)
        reason = f"{self.meaning} in [{least:.6g}, {most:.6g}] over {found.size} case{'s' * (found.size != 1)}, "
        reason += in_words(self.low, self.high)
        if hidden:
            answer, reason = "inconclusive", reason + hidden
        elif answer == "consistent":
            reason += told(slack)
        elif answer == "confirmed":
            reason += f" ({self.because})" if self.because else ""
        else:
            beyond = int(((found < self.low) | (found > self.high)).sum())
            reason += f"; {beyond} beyond it, by up to {excess:.3g}" + (f" at {where}" if where else "")
        return Judgement(
            answer, [self.low, self.high], most if upper else least, (least, most), reason, margin=self.margin,
            slack=slack if answer in ("confirmed", "consistent") and np.isfinite(slack) else None,
        )  # fmt: skip

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """One case beyond a bound, or the rate of exceptions that so many cases can miss."""
        beyond = f" by more than {self.margin:.2g}" if self.margin else ""
        return (of_cases(len(samples), f"one case beyond the bound{beyond}"),)
