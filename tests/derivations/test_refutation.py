"""Sentences on what would refute a claim, held against what the law says of such a finding."""

import pytest

from derivations.laws import (
    Agrees,
    All,
    Bounded,
    Equals,
    Mean,
    Power,
    Premise,
    Probability,
    Proven,
    Tends,
    Typical,
    Vanishes,
)
from derivations.laws.agreement import score
from derivations.laws.refutation import refutation


def runs(*values):
    return [({}, seed, value) for seed, value in enumerate(values)]


def power(exponent):
    return [({"d": 10.0**k}, 0, 10.0 ** (exponent * k)) for k in range(3, 9)]


CASES = [
    (Equals(2.0, absolute=0.01, error=1e-9), runs(2.02), "differs from 2 by more than 0.01"),
    (Equals(2.0, absolute=0.01), runs(*[2.02 + 1e-4 * k for k in range(8)]), "99% interval lies more than 0.01 from 2"),
    (Power(0.5, error=1e-9), power(0.6), "in the limit of the sizes, more than 0.03 from 0.5"),
    (Power(0.5, error=1e-9, bound="at most"), power(0.6), "more than 0.03 above 0.5"),
    (Power(0.5, error=1e-9, bound="at least"), power(0.4), "more than 0.03 below 0.5"),
    (Bounded(high=1.0, meaning="share"), runs(0.5, 1.4), "one case in which the share violates <= 1"),
    (Bounded(low=0.0, high=1.0, margin=0.1), runs(1.2), ">= 0 and <= 1 by more than 0.1"),
    (Mean(low=0.9, limits=(-1, 1)), runs(*[0.2 + 0.01 * (k % 7) for k in range(60)]), "a mean value at any point"),
    (Typical(low=1.0), runs(0.2, 0.1, 0.4, 0.3, 0.2, 0.3), "a typical value at any point"),
    (Probability(low=0.65), runs(*[float(k < 19) for k in range(60)]), "99% interval lies below 0.55"),
    (Vanishes(1e-9), runs(1e-7), "a discrepancy above 1e-08 in any case"),
    (Proven("the identity"), runs(1), "one case in which the identity fails"),
    (Agrees(0.05), [({}, 0, score(1.2, 0.004, 1.0))], "a relative difference in any entry"),
    (
        Tends(),
        [({"d": 10.0**k}, s, float(s < n)) for k, n in enumerate((50, 40, 30, 20)) for s in range(60)],
        "at the largest d that is below 0.9",
    ),
]


@pytest.mark.parametrize(("law", "samples", "words"), CASES, ids=lambda value: type(value).__name__)
def test_a_finding_like_the_sentence_refutes(law, samples, words):
    assert words in refutation(law)
    assert law.judge(samples).answer == "refuted"


def test_several_laws_name_each_of_their_parts_but_premises():
    law = All({"gap": Vanishes(1e-9), "share": Bounded(high=1.0), "starved": Premise(1.0, "starved experts")})
    assert refutation(law) == (
        "any of these: gap: a discrepancy above 1e-08 in any case; share: one case in which the value violates <= 1"
    )


def test_a_law_of_another_package_speaks_for_itself_or_is_named():
    class Own:
        pass

    class Speaking:
        def refutation(self):
            return "a blue value"

    assert refutation(Own()) == "measurements that the law Own rejects"
    assert refutation(Speaking()) == "a blue value"
