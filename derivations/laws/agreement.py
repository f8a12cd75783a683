"""Agreement of sampled means with expected values: an equivalence test with a relative margin."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from derivations.claim import Answer, Judgement, Samples, Sensitivity
from derivations.laws.tools import ALARM, DOUBT, failed, name_of, open_because, within

Score = Mapping[str, float]
"""The measurement of `Agrees`, made by `score`."""
LEAST_FREEDOM = 4
"""Smallest degrees of freedom of a standard error on which an answer can rest."""
EXACT = 1e9
"""Degrees of freedom of a standard error that is known exactly."""


def score(mean: Any, error: Any, expected: Any, freedom: float = EXACT, size: float | None = None) -> Score:
    """Return the comparison of sampled means with expected values, all entries together.

    Args:
        mean: the sampled means, of any shape.
        error: their standard errors, of the same shape or one for all.
        expected: the expected values, of the same shape or one for all.
        freedom: the degrees of freedom of the standard errors: the number of independent batches less one, or
            `EXACT` if the errors are known.
        size: the unit of a relative difference; by default the largest expected value.

    Returns:
        `difference`, the largest difference, with its sign; `error`, the largest standard error; `size`; `freedom`;
        and `cases`, the number of entries. The largest difference together with the largest error bounds every
        entry.

    Example:
        >>> found = score([1.01, 0.0], [0.004, 0.002], [1.0, 0.0], freedom=19)
        >>> round(found["difference"], 3), found["error"], found["size"], found["cases"]
        (0.01, 0.004, 1.0, 2.0)
    """
    off = np.atleast_1d(np.asarray(mean, float) - np.asarray(expected, float)).ravel()
    largest = off[np.abs(off).argmax()]
    scale = float(np.abs(np.asarray(expected, float)).max()) if size is None else size
    return {
        "difference": float(largest),
        "error": float(np.max(error)),
        "size": scale,
        "freedom": float(freedom),
        "cases": float(off.size),
    }


def relative(found: Score) -> float:
    """Return the largest difference of a score over its size."""
    return abs(found["difference"]) / max(found["size"], 1e-300)


@dataclasses.dataclass(frozen=True)
class Agrees:
    """Sampled means agree with expected values within a relative `margin`.

    Every measurement is a `score`. The claim is confirmed if the t intervals of all entries lie within the margin, and
    refuted if one lies outside. All entries of all measurements share both levels (a correction for multiple tests).
    `because` is the reason for the margin.

    Example:
        >>> Agrees(0.05).judge([({}, 0, score(1.01, 0.004, 1.0)), ({}, 1, score(0.99, 0.004, 1.0))]).answer
        'confirmed'
        >>> Agrees(0.05).judge([({}, 0, score(1.2, 0.004, 1.0))]).answer
        'refuted'
        >>> Agrees(0.05).judge([({}, 0, score(1.01, 0.04, 1.0))]).answer
        'inconclusive'
    """

    margin: float = 0.02
    meaning: str = "difference"
    because: str = ""

    def judge(self, samples: Samples, looks: int = 1) -> Judgement:
        """Return the answer of the weakest measurement."""
        numbers = [(point, seed, float(found["difference"] + found["error"])) for point, seed, found in samples]
        if (missing := failed(numbers, self.meaning)) is not None:
            return missing
        fewest = min(found["freedom"] for _, _, found in samples)
        if fewest < LEAST_FREEDOM:
            return open_because(
                f"{self.meaning}: a standard error of {fewest:g} degrees of freedom is too uncertain for an answer", 0.0
            )
        wide, narrow = (self._halves(samples, level, looks) for level in (DOUBT, ALARM))
        off = np.array([relative(found) for _, _, found in samples])
        answer: Answer = "inconclusive"
        if (off + wide <= self.margin).all():
            answer = "confirmed"
        elif (off - narrow > self.margin).any():
            answer = "refuted"
        worst = int((off + wide).argmax()) if answer != "refuted" else int((off - narrow).argmax())
        where, entries = name_of(dict(samples[worst][0]), samples), self._entries(samples)
        reason = (
            f"largest relative {self.meaning} {off[worst]:.2g} +- {wide[worst]:.2g}{f' at {where}' if where else ''}"
        )
        reason += f" of {entries} entries, claimed {within(self.margin, self.because)}"
        bounds = (float(off[worst] - wide[worst]), float(off[worst] + wide[worst]))
        return Judgement(answer, 0.0, float(off[worst]), bounds, reason, margin=self.margin)

    def _halves(self, samples: Samples, level: float, looks: int) -> np.ndarray:
        """Return half the width of the interval of every measurement, relative to its size."""
        from scipy import special

        tail = level / (2 * looks * self._entries(samples))
        return np.array(
            [
                special.stdtrit(found["freedom"], 1 - tail) * found["error"] / max(found["size"], 1e-300)
                for _, _, found in samples
            ]
        )

    def _entries(self, samples: Samples) -> int:
        return int(sum(found["cases"] for _, _, found in samples))

    def sensitivity(self, samples: Samples, looks: int = 1) -> Sequence[Sensitivity]:
        """The margin and half of the widest interval."""
        size = self.margin + float(self._halves(samples, DOUBT, looks).max())
        words = f"a relative {self.meaning} of {size:.2g} in one entry would have been detected"
        return (Sensitivity("one entry", size, words),)
