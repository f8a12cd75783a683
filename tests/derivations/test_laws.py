"""The laws confirm what they should, refute what they should, and leave the rest open."""

import dataclasses
import math

import numpy as np
import pytest

from derivations.laws import LOGARITHMS, All, Bounded, Equals, Power, Probability, Proven, Vanishes
from odesim.verification import judge


def cases(*values: float):
    """Measurements of one point, one seed each."""
    return [({}, seed, value) for seed, value in enumerate(values)]


def sweep(exponent: float, logarithm: float = 0.0, shift: float = 0.0, seeds: int = 6, noise: float = 0.01):
    """d^exponent (log d)^logarithm + shift over five values of d."""
    rng = np.random.default_rng(1)
    return [
        ({"d": d}, seed, float(d**exponent * math.log(d) ** logarithm * math.exp(noise * rng.normal()) + shift))
        for d in (1e4, 1e6, 1e8, 1e10, 1e12)
        for seed in range(seeds)
    ]


@pytest.mark.parametrize(
    ("worst", "answer"), [(0.0, "confirmed"), (-1e-10, "confirmed"), (5e-10, "inconclusive"), (-2e-9, "refuted")]
)
def test_vanishes_has_a_grey_zone_of_ten_tolerances(worst, answer):
    assert Vanishes(1e-10).judge(cases(0.0, worst)).answer == answer


@pytest.mark.parametrize("worst", [math.inf, math.nan])
def test_vanishes_is_refuted_by_what_is_not_finite(worst):
    assert Vanishes(1e-10).judge(cases(worst)).answer == "refuted"


def test_proven_is_refuted_by_one_failure():
    assert Proven("it").judge(cases(0, 0, 0)).answer == "confirmed"
    judged = Proven("it").judge(cases(0, 1, 0))
    assert judged.answer == "refuted"
    assert judged.reason == "it fails in 1 of 3 cases"


def test_equals_asks_for_the_whole_interval():
    law = Equals(2.0, relative=0.05)
    assert law.judge(cases(*np.random.default_rng(0).normal(2.0, 0.02, 20))).answer == "confirmed"
    assert law.judge(cases(*np.random.default_rng(0).normal(2.5, 0.02, 20))).answer == "refuted"
    assert law.judge(cases(*np.random.default_rng(0).normal(2.1, 0.5, 20))).answer == "inconclusive"
    assert law.judge(cases(2.0, math.inf)).answer == "refuted"
    assert law.judge(cases(2.09)).answer == "confirmed"  # one measurement: no interval, the tolerance decides


def test_bounded_knows_both_ends_and_a_margin():
    law = Bounded(0.0, 1.0, margin=0.1)
    assert law.judge(cases(0.0, 0.5, 1.0)).answer == "confirmed"
    assert law.judge(cases(0.5, 1.05)).answer == "inconclusive"
    assert law.judge(cases(0.5, -0.2)).answer == "refuted"
    assert law.judge(cases(0.5, math.nan)).answer == "refuted"
    assert Bounded(high=1.0).judge(cases(-1e9)).answer == "confirmed"


def test_power_confirms_the_true_exponent_and_rejects_logarithms():
    judged = Power(0.5, rivals=tuple(LOGARITHMS)).judge(sweep(0.5))
    assert judged.answer == "confirmed"
    assert len(judged.rejected) == 3
    assert judged.estimate == pytest.approx(0.5, abs=0.005)


def test_power_is_refuted_by_another_exponent():
    assert Power(0.5).judge(sweep(0.75)).answer == "refuted"


@pytest.mark.parametrize("logarithm", [0.5, -1.0, 1.0])
def test_a_logarithm_on_top_of_the_power_is_never_confirmed(logarithm):
    assert Power(0.5, rivals=tuple(LOGARITHMS)).judge(sweep(0.5, logarithm)).answer != "confirmed"


def test_a_known_lag_is_subtracted_before_the_fit():
    samples = sweep(0.5, shift=400.0)
    assert Power(0.5, margin=0.01).judge(samples).answer != "confirmed"
    assert Power(0.5, margin=0.01, shift=400.0).judge(samples).answer == "confirmed"


def test_power_as_a_bound():
    assert Power(0.5, bound="at most").judge(sweep(0.2)).answer == "confirmed"
    assert Power(0.5, bound="at most").judge(sweep(0.8)).answer == "refuted"
    assert Power(-0.5, bound="at least").judge(sweep(-0.2)).answer == "confirmed"
    assert Power(-0.5, bound="at least").judge(sweep(-0.8)).answer == "refuted"


def lost(*seeds: int):
    """The sweep of d^0.5 with some seeds never reached at d = 1e4, one line of which is pulled down."""
    return [(p, seed, math.inf if seed in seeds and p["d"] == 1e4 else y) for p, seed, y in sweep(0.5, seeds=12)]


def test_a_law_claimed_with_a_probability_is_judged_on_the_seeds_that_are_reached_everywhere():
    assert Power(0.5).judge(lost(3)).answer == "refuted"
    held = Power(0.5, reached=0.65).judge(lost(3, 4))
    assert held.answer == "confirmed"
    assert "not reached in 2 of 60 runs" in held.reason
    assert Power(0.5, reached=0.99).judge(lost(3, 4)).answer == "inconclusive"  # 58 of 60 may be 99 %
    every = [(p, seed, math.inf if seed < 8 else y) for p, seed, y in sweep(0.5, seeds=12)]
    assert Power(0.5, reached=0.65).judge(every).answer == "refuted"  # 20 of 60


def test_a_time_that_is_never_reached_refutes_and_two_points_decide_nothing():
    samples = [*sweep(0.5), ({"d": 1e4}, 9, math.inf)]
    judged = Power(0.5, meaning="T*").judge(samples)
    assert judged.answer == "refuted"
    assert "not reached in 1 of 31 runs" in judged.reason
    few = [sample for sample in sweep(0.5) if sample[0]["d"] < 1e7]
    assert Power(0.5).judge(few).answer == "inconclusive"


@pytest.mark.parametrize(("successes", "answer"), [(95, "confirmed"), (65, "inconclusive"), (30, "refuted")])
def test_probability_uses_the_interval_and_not_the_share(successes, answer):
    samples = cases(*[1.0] * successes, *[0.0] * (100 - successes))
    assert Probability(low=0.65).judge(samples).answer == answer


def test_probability_with_an_upper_end():
    samples = cases(*[1.0] * 5, *[0.0] * 95)
    assert Probability(high=0.2).judge(samples).answer == "confirmed"
    assert Probability(low=0.0, high=0.01).judge(samples).answer == "refuted"


def test_all_is_as_strong_as_its_weakest_part():
    law = All({"small": Vanishes(1e-10), "count": Bounded(high=3.0)})
    samples = [({}, seed, {"small": 0.0, "count": 2.0}) for seed in range(3)]
    assert law.judge(samples).answer == "confirmed"
    broken = [*samples, ({}, 3, {"small": 0.0, "count": 9.0})]
    judged = law.judge(broken)
    assert judged.answer == "refuted"
    assert judged.estimate == 9.0
    assert judged.reason.startswith("small: ")
    unclear = [*samples, ({}, 3, {"small": 5e-10, "count": 1.0})]
    assert law.judge(unclear).answer == "inconclusive"


def test_an_answer_that_flips_between_groups_of_seeds_is_inconclusive():
    # Seeds 0, 3, 6, ... sit at 1 and the others at 2: the median of all is refuted, that of the first group is not.
    samples = cases(*(1.0 if seed % 3 == 0 else 2.0 for seed in range(60)))
    law = Equals(1.0, absolute=0.1)
    assert law.judge(samples).answer == "refuted"
    judged = judge(law, samples)
    assert judged.answer == "inconclusive"
    assert judged.reason.startswith("the answer flips between groups of seeds")


def test_steady_answers_pass_the_check_for_flips():
    law = Equals(1.0, absolute=0.1)
    assert judge(law, cases(*[1.0] * 60)).answer == "confirmed"
    assert judge(law, cases(*[2.0] * 60)).answer == "refuted"
    assert judge(law, cases(1.0, 1.0)).answer == "confirmed"  # too few seeds to be split


def test_laws_are_values():
    assert dataclasses.replace(Power(0.5), exponent=0.75) == Power(0.75)
