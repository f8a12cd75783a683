"""What an answer would have noticed: the smallest deviation of the recorded samples at which it changes."""

import dataclasses
import math

from derivations.claim import HOLDS, Deviation, Judgement, Law, Samples, Sensitivity

DIGITS = 0.01
"""Sizes are found to two digits."""
REACH = 1e15
"""Sizes are sought from the largest down to this part of it."""


def judged(law: Law, samples: Samples) -> Judgement:
    """The law's answer with the sizes of the deviations at which it would have been another one.

    Only an answer that the claim holds has a sensitivity: what refutes or stays open says how far it is itself.
    """
    judgement = law.judge(samples)
    if judgement.answer not in HOLDS:
        return judgement
    found = tuple(measure(law, samples, judgement.answer, deviation) for deviation in law.deviations(samples))
    return dataclasses.replace(judgement, sensitivity=found)


def measure(law: Law, samples: Samples, answer: str, deviation: Deviation) -> Sensitivity:
    """The smallest size that changes the answer, by bisection; of two directions the one that is seen later."""
    sizes = {sign: _smallest(law, samples, answer, deviation, sign) for sign in deviation.signs}
    seen = {sign: size for sign, size in sizes.items() if size is not None}
    if not seen or len(seen) < len(sizes):
        unseen = f"{deviation.sentence(deviation.largest)} would not have been seen"
        return Sensitivity(deviation.kind, None, unseen, deviation.part)
    either = " or ".join(dict.fromkeys(deviation.sentence(sign * size) for sign, size in sorted(seen.items())))
    return Sensitivity(deviation.kind, max(seen.values()), f"{either} would have been seen", deviation.part)


def _smallest(law: Law, samples: Samples, answer: str, deviation: Deviation, sign: int) -> float | None:
    """Bisection in the logarithm of the size: `within` keeps the answer, `beyond` does not."""

    def changes(size: float) -> bool:
        return law.judge(deviation.disturb(samples, sign * size)).answer != answer

    beyond = deviation.largest
    if not changes(beyond):
        return None
    within = beyond / REACH
    if changes(within):
        return within
    while beyond > within * (1 + DIGITS):
        middle = math.sqrt(within * beyond)
        if changes(middle):
            beyond = middle
        else:
            within = middle
    return beyond
