"""The laws that claims are judged by: each says what confirms it, what refutes it, and what leaves it open.

Every law has the same two methods: `judge(samples, looks)` answers, and `sensitivity(samples, looks)` states the
deviations at which an answer that holds would have been lost.
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
