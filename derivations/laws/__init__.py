"""The laws that judge claims: each defines the results that confirm, refute, or leave a claim open.

Every law has the same two methods: `judge(samples, looks)` returns the answer, and `sensitivity(samples, looks)`
returns the deviations that would have changed it.
"""

from derivations.laws.agreement import Agrees
from derivations.laws.bounds import Bounded
from derivations.laws.cases import Proven, Vanishes
from derivations.laws.means import Mean, Typical
from derivations.laws.parts import All, Premise
from derivations.laws.power import LOGARITHMS, Power
from derivations.laws.shares import Probability
from derivations.laws.trends import Tends
from derivations.laws.values import Equals

__all__ = [
    "LOGARITHMS",
    "Agrees",
    "All",
    "Bounded",
    "Equals",
    "Mean",
    "Power",
    "Premise",
    "Probability",
    "Proven",
    "Tends",
    "Typical",
    "Vanishes",
]
