"""Laws that judge case by case: a discrepancy that vanishes, a fact that is true."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from derivations.claim import Answer, Judgement, Samples, Sensitivity
from derivations.laws.sensitivity import of_cases
from derivations.laws.tools import EXCEPTIONS, failed, hiding, name_of, values


@dataclasses.dataclass(frozen=True)
class Vanishes:
    """Law: a discrepancy is zero up to the numerical error, |y| <= `tolerance` in every case.

    Above `refuted_above` (by default ten tolerances) it is not zero; in between the claim is left open. A discrepancy
    of an identity vanishes at all states if it vanishes at random ones. If y counts events of random draws,
    `exceptions` is the rate of exceptions that N draws must exclude, 3/N <= `exceptions`.

    Example:
        >>> Vanishes(1e-10).judge([({}, 0, 2e-12), ({}, 1, -3e-11)]).answer
        'confirmed'
        >>> Vanishes(1e-10).judge([({}, 0, 2e-12), ({}, 1, 0.1)]).reason
        'largest discrepancy 0.1 over 2 cases, tolerance 1e-10'
    """

    tolerance: float
    refuted_above: float | None = None
    meaning: str = "discrepancy"
    exceptions: float | None = None

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Confirmed if every discrepancy is within tolerance, refuted if one is clearly beyond it."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        found = np.abs(values(samples))
        worst = float(found.max())
        above = self.tolerance * 10 if self.refuted_above is None else self.refuted_above
        answer: Answer = "confirmed" if worst <= self.tolerance else "refuted" if worst > above else "inconclusive"
        where = name_of(dict(samples[int(found.argmax())][0]), samples)
        reason = f"largest {self.meaning} {worst:.3g}{f' at {where}' if where else ''} over {len(samples)} cases, "
        reason += f"tolerance {self.tolerance:g}"
        if answer == "confirmed" and (hidden := hiding(samples, self.exceptions)):
            answer, reason = "inconclusive", reason + hidden
        return Judgement(answer, 0.0, worst, None, reason, margin=self.tolerance)

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """A discrepancy of two tolerances: the numerical error may cancel one of the size of the tolerance."""
        if self.exceptions is not None:
            return (of_cases(len(samples), f"a {self.meaning} above {self.tolerance:g} in one case"),)
        size = 2 * self.tolerance
        what = f"a {self.meaning} of {size:.2g}" if size else f"any {self.meaning}"
        return (Sensitivity("one case", size, f"{what} in one case would have been detected"),)


@dataclasses.dataclass(frozen=True)
class Proven:
    """Law: a symbolic identity or an exact decision. A measurement is 0 (true) or 1 (false); one failure refutes.

    Several seeds are random draws: N of them must exclude a rate `exceptions` of failures, 3/N <= `exceptions`. `None`
    means that the cases are not random.

    Example:
        >>> Proven("the identity").judge([({}, 0, 0), ({}, 1, 1)]).reason
        'the identity fails in 1 of 2 cases'
        >>> Proven("the event").judge([({}, 0, 0), ({}, 1, 0)]).answer
        'inconclusive'
    """

    meaning: str
    exceptions: float | None = EXCEPTIONS

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Confirmed if all cases are true, refuted if one fails."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        failures = int((values(samples) != 0).sum())
        verb = f"fails in {failures} of" if failures else "holds exactly in all"
        answer: Answer = "refuted" if failures else "confirmed"
        reason = f"{self.meaning} {verb} {len(samples)} cases"
        if not failures and (hidden := hiding(samples, self.exceptions)):
            answer, reason = "inconclusive", reason + hidden
        return Judgement(answer, 0.0, float(failures), None, reason)

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """One false case, or the rate of exceptions that so many cases can miss."""
        return (of_cases(len(samples), f"one false case of {len(samples)}"),)
