"""Sensitivity of an answer: the deviation from the claim that would have changed the answer with this design.

A law derives its sensitivity from the design: margin plus half the width of the interval from the scatter of the runs,
or the rate of exceptions that a number of cases can miss. At this deviation the answer changes in at least nine of ten
repetitions; `tests/derivations/test_sensitivity.py` simulates that for every law.
"""

import dataclasses

from derivations import intervals
from derivations.claim import HOLDS, Judgement, Law, Samples, Sensitivity

POWER = 0.95
"""Probability with which the stated deviation changes the answer, if it can be computed: above nine in ten."""


def judged(law: Law, samples: Samples) -> Judgement:
    """Return the law's answer with its sensitivity; an answer that refutes or is open contains the deviation itself."""
    judgement = law.judge(samples)
    if judgement.answer not in HOLDS:
        return judgement
    return dataclasses.replace(judgement, sensitivity=tuple(law.sensitivity(samples)))


def of_cases(count: int, what: str) -> Sensitivity:
    """Return the sensitivity of a statement about every case that was true in all of `count` cases.

    >>> of_cases(24, "one of them beyond the bound").sentence
    'one of them beyond the bound, or exceptions in 12 % of random cases, would have been detected'
    """
    share = intervals.hidden(count)
    percent = float(f"{100 * share:.2g}")  # two digits, and 100 instead of 1e+02
    exceptions = f", or exceptions in {percent:g} % of random cases," if count > 1 else ""
    return Sensitivity("share of cases", share, f"{what}{exceptions} would have been detected")
