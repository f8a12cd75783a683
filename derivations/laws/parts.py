"""Several laws on several numbers of one measurement."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from derivations.claim import Judgement, Law, Samples, Sensitivity
from derivations.laws.tools import failed, name_of, open_because, points_of

ORDER = ("refuted", "inconclusive", "consistent", "confirmed")
"""Order of the answers, weakest first: refuted, open, consistent, confirmed."""


@dataclasses.dataclass(frozen=True)
class All:
    """Law: all parts are true. The measurement is a mapping, and `parts[name]` judges its entry `name`.

    The sampled parts share the error probability (Bonferroni), so that more parts do not give more false alarms.

    Example:
        >>> from derivations.laws import Bounded, Vanishes
        >>> law = All({"gap": Vanishes(1e-9), "share": Bounded(high=1.0)})
        >>> found = law.judge([({}, 0, {"gap": 0.0, "share": 1.7})])
        >>> found.answer, found.deciding
        ('refuted', 'share')
    """

    parts: Mapping[str, Any]

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """The answer of the weakest part, which is first in the reason and gives the estimate."""
        judged = {name: law.judge(entry(samples, name), looks * len(self.parts)) for name, law in self.parts.items()}
        ordered = sorted(judged.items(), key=lambda item: ORDER.index(item[1].answer))
        name, leading = ordered[0]
        reason = "; ".join(f"{part}: {found.reason}" for part, found in ordered)
        return dataclasses.replace(leading, reason=reason, deciding=name)

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """Return the sensitivities of every part, each on its own entry of the samples."""
        return tuple(
            dataclasses.replace(found, part=name, sentence=f"{name}: {found.sentence}")
            for name, law in self.parts.items()
            for found in part_of(law).sensitivity(entry(samples, name), looks * len(self.parts))
        )


@dataclasses.dataclass(frozen=True)
class Premise:
    """Assumption of a claim: the measurement is at least `low` in one case or more of every point.

    If it is satisfied, the other parts decide. Otherwise nothing was tested, and the claim is left open. A premise
    never refutes. Cases that violate it do not count, because they are consistent with any claim.

    Example:
        >>> law = Premise(low=1.0, meaning="starved experts")
        >>> law.judge([({}, 0, 0.0), ({}, 1, 3.0)]).answer
        'confirmed'
        >>> law.judge([({}, 0, 0.0), ({}, 1, 0.0)]).answer
        'inconclusive'
    """

    low: float
    meaning: str

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Open if no case satisfies the premise."""
        if (missing := failed(samples, self.meaning)) is not None:
            return missing
        groups = points_of(samples)
        met = [int((found >= self.low).sum()) for _, found in groups]
        reason = f"{self.meaning}, at least {self.low:g}, in {sum(met)} of {len(samples)} cases"
        if min(met) > 0:
            return Judgement("confirmed", None, None, None, reason)
        where = name_of(groups[met.index(0)][0], samples)
        return open_because(f"{reason}, and in none{f' at {where}' if where else ''}: nothing was tested")

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """None: no deviation of a premise contradicts the claim."""
        return ()


def part_of(law: Any) -> Law:
    """A part, as a law."""
    part: Law = law
    return part


def entry(samples: Samples, name: str) -> Samples:
    """The samples of one entry of the measurements."""
    return [(point, seed, value[name]) for point, seed, value in samples]
