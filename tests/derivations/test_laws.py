"""The laws confirm what they should, refute what they should, and leave the rest open."""

import dataclasses
import math

import numpy as np
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
    Vanishes,
)
from derivations.laws.agreement import score


def cases(*values: float):
    """Measurements of one point, one seed each."""
    return [({}, seed, value) for seed, value in enumerate(values)]


def grid(*values: float):
    """Measurements of one seed, one point each: no random draws."""
    return [({"k": k}, 0, value) for k, value in enumerate(values)]


@pytest.mark.parametrize(
    ("worst", "answer"), [(0.0, "confirmed"), (-1e-10, "confirmed"), (5e-10, "inconclusive"), (-2e-9, "refuted")]
)
def test_vanishes_has_a_grey_zone_of_ten_tolerances(worst, answer):
    assert Vanishes(1e-10).judge(cases(0.0, worst)).answer == answer


EVERY = {
    "vanishes": Vanishes(1e-10),
    "proven": Proven("it"),
    "equals": Equals(1.0, absolute=0.1),
    "equals exactly": Equals(1.0, absolute=0.1, error=0.0),
    "bounded": Bounded(0.0, 1.0),
    "power": Power(0.5),
    "probability": Probability(0.5),
    "mean": Mean(0.5),
    "premise": Premise(0.5, "it"),
}


@pytest.mark.parametrize("law", EVERY.values(), ids=EVERY.keys())
def test_what_is_not_a_number_is_no_evidence(law):
    judged_as = law.judge(
        [({"d": 10.0**k}, seed, math.nan if seed == 3 else 1.0) for k in range(5) for seed in range(6)]
    )
    assert judged_as.answer == "inconclusive"
    assert "not a number in 5 of 30 cases" in judged_as.reason
    assert law.judge([]).answer == "inconclusive"


def test_one_failure_refutes_what_is_proven():
    assert Proven("it").judge(grid(0, 0, 0, 0)).answer == "confirmed"
    assert Proven("it").judge(cases(0, 1, 0)).reason == "it fails in 1 of 3 cases"


def compared(*found):
    """Comparisons of means by ten batches with the value 1: (mean, standard error) each."""
    return [({}, seed, score(mean, error, 1.0, freedom=9)) for seed, (mean, error) in enumerate(found)]


def test_sampled_means_agree_where_their_intervals_lie_within_the_margin():
    law = Agrees(0.05)
    assert law.judge(compared((1.01, 0.005), (0.99, 0.005))).answer == "confirmed"
    assert law.judge(compared((1.2, 0.005))).answer == "refuted"
    assert law.judge(compared((1.2, 0.1))).answer == "inconclusive"
    assert law.judge(compared((0.9999, 0.1))).answer == "inconclusive"  # fewer samples do not confirm more easily
    assert "3 degrees of freedom is too uncertain" in law.judge([({}, 0, score(1.0, 0.0, 1.0, 3))]).reason


def test_the_interval_of_a_mean_is_that_of_student():
    # t of 9 degrees of freedom at 97.5 %: 2.2622.
    low, high = Agrees(0.05).judge(compared((1.01, 0.01))).interval
    assert (high - low) / 2 == pytest.approx(0.022622, rel=1e-4)


def test_the_largest_of_many_differences_is_judged_as_the_largest():
    rng = np.random.default_rng(8)
    widths = [Agrees(0.05).judge([({}, 0, score(np.ones(n), 0.01, 1.0))]).interval[1] for n in (1, 100)]
    # The normal quantiles at 1 - .025 and 1 - .025/100.
    assert widths == pytest.approx([0.0195996, 0.0348076], rel=1e-4)
    law, draws = Agrees(0.04), 500
    wrong = [score(1 + 0.08 * (np.arange(50) == 7) + 0.01 * rng.normal(size=50), 0.01, 1.0) for _ in range(draws)]
    assert sum(law.judge([({}, 0, one)]).answer == "confirmed" for one in wrong) == 0
    true = [score(1 + 0.01 * rng.normal(size=50), 0.01, 1.0) for _ in range(draws)]
    assert sum(law.judge([({}, 0, one)]).answer == "refuted" for one in true) == 0


def test_a_sampled_value_asks_for_the_whole_interval_of_every_point():
    law = Equals(2.0, relative=0.05)
    draw = np.random.default_rng(0).normal
    assert law.judge(cases(*draw(2.0, 0.02, 20))).answer == "confirmed"
    assert law.judge(cases(*draw(2.5, 0.02, 20))).answer == "refuted"
    assert law.judge(cases(*draw(2.1, 0.5, 20))).answer == "inconclusive"
    assert law.judge(cases(2.0, 2.0, 2.0, 2.0, math.inf)).answer == "refuted"
    assert law.judge(cases(2.0, 2.0, 2.0, 2.0)).answer == "inconclusive"  # four runs decide nothing


def test_one_wrong_point_of_four_is_seen():
    # A median over all points would let a quarter of them be wrong by 3.
    rng = np.random.default_rng(2)
    samples = [
        ({"eps": e}, seed, 0.5 + 0.001 * rng.normal() + 3.0 * (e == 1)) for e in (1, 2, 4, 8) for seed in range(6)
    ]
    found = Equals(0.5, absolute=0.05).judge(samples)
    assert found.answer == "refuted"
    assert "at eps = 1" in found.reason


def test_an_exact_value_is_judged_at_every_case():
    law = Equals(1.0, absolute=0.01, error=1e-9)
    assert law.judge(cases(1.0, 1.005, 0.995)).answer == "confirmed"
    assert law.judge(cases(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 6.0)).answer == "refuted"
    assert dataclasses.replace(law, error=0.02).judge(cases(1.005)).answer == "inconclusive"


def test_a_bound_is_confirmed_only_where_it_could_have_been_broken():
    law = Bounded(high=1.0, margin=1e-3)
    assert law.judge(grid(0.1, 0.95)).answer == "confirmed"
    found = law.judge(grid(0.1, 0.5))
    assert found.answer == "consistent"
    assert found.slack == pytest.approx(0.5)
    assert law.judge(grid(0.5, 1.0005)).answer == "inconclusive"
    assert law.judge(grid(0.5, 1.2)).answer == "refuted"
    assert Bounded(low=0.0, visible=math.inf, because="a sign").judge(grid(17.0)).answer == "confirmed"
    assert Bounded(low=0.0, visible=math.inf, because="a sign").judge(grid(17.0, -1e-9)).answer == "refuted"
    assert Bounded(high=1.0).judge(grid(math.inf)).answer == "refuted"


@pytest.mark.parametrize(
    ("successes", "answer"), [(95, "consistent"), (70, "confirmed"), (60, "inconclusive"), (30, "refuted")]
)
def test_probability_uses_the_interval_and_not_the_share(successes, answer):
    samples = cases(*[1.0] * successes, *[0.0] * (100 - successes))
    assert Probability(low=0.65).judge(samples).answer == answer


def test_probability_with_an_upper_end():
    samples = cases(*[1.0] * 5, *[0.0] * 95)
    assert Probability(high=0.08, visible=0.05).judge(samples).answer == "confirmed"
    assert Probability(high=0.5).judge(samples).answer == "consistent"
    assert Probability(high=0.005, visible=0.005).judge(samples).answer == "refuted"


def test_all_is_as_strong_as_its_weakest_part():
    law = All({"small": Vanishes(1e-10), "count": Bounded(high=3.0)})
    samples = [({}, 0, {"small": 0.0, "count": 2.9}) for _ in range(3)]
    assert law.judge(samples).answer == "confirmed"
    broken = law.judge([*samples, ({}, 0, {"small": 0.0, "count": 9.0})])
    assert broken.answer == "refuted"
    assert broken.estimate == 9.0
    assert broken.deciding == "count"
    assert broken.reason.startswith("count: ")  # what decided comes first
    assert law.judge([*samples, ({}, 0, {"small": 5e-10, "count": 1.0})]).answer == "inconclusive"
    assert law.judge([({}, 0, {"small": 0.0, "count": 1.0})]).answer == "consistent"


def test_a_mean_may_obey_a_bound_that_single_runs_break():
    found = np.random.default_rng(5).uniform(-0.02, 0.12, 60)
    assert found.min() < 0.0
    assert Bounded(low=0.0).judge(cases(*found)).answer == "refuted"
    mean = Mean(low=0.0, visible=math.inf, limits=(-0.2, 0.2))
    assert mean.judge(cases(*found)).answer == "confirmed"
    assert Mean(high=-0.05, limits=(-0.2, 0.2)).judge(cases(*found)).answer == "refuted"
    assert dataclasses.replace(mean, low=found.mean()).judge(cases(*found)).answer == "inconclusive"
    assert mean.judge(cases(*found[:4])).answer == "inconclusive"  # of four runs there is no interval


def test_the_weakest_point_decides_on_means():
    samples = [({"d": d}, seed, d + 0.001 * seed) for d in (1.0, 2.0) for seed in range(60)]
    limits = (0.0, 3.0)
    assert Mean(low=0.5, visible=0.6, limits=limits).judge(samples).answer == "confirmed"
    assert Mean(low=0.5, limits=limits).judge(samples).answer == "consistent"
    # 3/60 of the runs may lie at 0: 1.0295 less 1.0295/20 and the half width of the interval, about .005.
    assert Mean(low=0.5, limits=limits).judge(samples).slack == pytest.approx(0.473, abs=0.005)
    assert Mean(low=0.5, high=1.5, limits=limits).judge(samples).answer == "refuted"
    assert Mean(low=1.5, limits=limits).judge(samples).estimate == pytest.approx(1.0295)


def test_a_mean_of_what_has_no_limits_stays_open():
    found = cases(*[0.5] * 200)
    assert "limits of a run" in Mean(low=0.0).judge(found).reason
    assert "outside of its limits" in Mean(low=0.0, limits=(0.6, 1.0)).judge(found).reason


def test_runs_that_all_agree_may_hide_others():
    law = Mean(high=0.0, margin=0.1, limits=(0.0, 1.0))
    assert law.judge(cases(*[0.0] * 29)).answer == "inconclusive"  # 3/29 of the runs may be 1
    assert law.judge(cases(*[0.0] * 31)).answer == "confirmed"
    assert "up to 30 % of all runs" in Equals(1.0, relative=0.05).judge(cases(*[1.0] * 10)).reason


def test_a_skewed_sample_is_judged_by_its_typical_run():
    rng = np.random.default_rng(9)
    skewed = 1 + 0.02 * (np.exp(1.5 * rng.normal(size=40)) - 1)
    assert abs(skewed.mean() - 1) > 0.02
    low, high = Equals(1.0, relative=0.2).judge(cases(*skewed)).interval
    assert low < np.median(skewed) < skewed.mean() < high


def test_runs_of_a_point_that_share_a_component_widen_the_interval():
    rng = np.random.default_rng(10)
    shared = 1 + 0.03 * np.array([-1.2, -0.4, 0.1, 0.5, 1.3])
    samples = [({"k": k}, seed, value + 1e-4 * rng.normal()) for k, value in enumerate(shared) for seed in range(8)]
    found = Equals(1.0, relative=0.08).judge(samples)  # every point lies within .04
    assert found.answer == "inconclusive"
    assert found.interval[1] - found.interval[0] > 0.05
    alone = [({"k": k}, seed, 1 + 1e-4 * rng.normal()) for k in range(5) for seed in range(8)]
    assert Equals(1.0, relative=0.08).judge(alone).answer == "confirmed"


def test_statements_about_random_draws_need_enough_of_them():
    assert Proven("it").judge(cases(*[0.0] * 59)).answer == "inconclusive"
    assert "5.1 % (at most 5 %)" in Proven("it").judge(cases(*[0.0] * 59)).reason
    assert Proven("it").judge(cases(*[0.0] * 60)).answer == "confirmed"
    assert Proven("it", exceptions=0.2).judge(cases(*[0.0] * 15)).answer == "confirmed"
    assert Proven("it", exceptions=None).judge(cases(0.0, 0.0)).answer == "confirmed"
    assert Bounded(high=1.0).judge(cases(*[0.95] * 20)).answer == "inconclusive"
    assert Bounded(high=1.0).judge(cases(*[0.95] * 60)).answer == "confirmed"
    assert Bounded(high=1.0).judge(cases(*[0.95] * 20, 2.0)).answer == "refuted"
    assert Vanishes(0.0).judge(cases(0.0, 0.0)).answer == "confirmed"
    assert Vanishes(0.0, exceptions=0.05).judge(cases(0.0, 0.0)).answer == "inconclusive"


def trend(*successes: int):
    """Events of sixty runs at powers of ten."""
    return [({"d": 10.0**k}, seed, float(seed < n)) for k, n in enumerate(successes) for seed in range(60)]


@pytest.mark.parametrize(
    ("successes", "answer"),
    [
        ((10, 25, 45, 59), "confirmed"),
        ((60, 60, 60, 60), "confirmed"),
        ((59, 60, 58, 59), "confirmed"),
        ((10, 23, 30, 44), "inconclusive"),  # it rises, and is not there yet
        ((60, 58, 55, 50), "inconclusive"),  # it falls, and is still high
        ((50, 40, 30, 20), "refuted"),
        ((30, 30, 30, 30), "inconclusive"),  # sixty runs do not exclude a slow rise
        ((60, 60, 60), "inconclusive"),
        ((0,), "inconclusive"),
    ],
)
def test_an_asymptotic_statement_is_judged_by_its_trend(successes, answer):
    assert Tends().judge(trend(*successes)).answer == answer


def test_a_share_that_stays_below_one_is_refuted_by_enough_runs():
    rng = np.random.default_rng(12)
    samples = [({"d": d}, seed, float(rng.random() < 0.5)) for d in (10, 20, 40, 80) for seed in range(600)]
    assert Tends().judge(samples).answer == "refuted"


def test_a_mean_is_refuted_falsely_as_rarely_as_promised():
    rng = np.random.default_rng(6)
    law = Mean(low=0.0, limits=(-1.0, 1.0))
    answers = [law.judge(cases(*rng.uniform(-1.0, 1.0, 12))).answer for _ in range(2000)]
    assert answers.count("refuted") <= 20 + 3 * math.sqrt(20)  # one end of an interval of 99 %: 10 are expected


@pytest.mark.parametrize(
    ("dead", "answer"),
    [((0.0, 3.0, 0.0), "confirmed"), ((0.0, 0.0, 0.0), "inconclusive"), ((2.0, 1.0, 4.0), "confirmed")],
)
def test_a_premise_that_is_never_met_leaves_the_claim_open(dead, answer):
    law = All({"rest": Proven("they rest"), "dead": Premise(1.0, "starved experts")})
    samples = [({}, 0, {"rest": 0.0, "dead": value}) for value in dead]
    assert law.judge(samples).answer == answer
    assert law.judge([*samples, ({}, 0, {"rest": 1.0, "dead": 0.0})]).answer == "refuted"


def test_a_premise_is_asked_for_at_every_point():
    samples = [({"d": d}, seed, float(d == 100)) for d in (50, 100) for seed in range(3)]
    found = Premise(1.0, "errors").judge(samples)
    assert found.answer == "inconclusive"
    assert "in none at d = 50" in found.reason


def test_parts_share_the_doubt():
    samples = cases(*np.random.default_rng(4).normal(2.0, 0.1, 40))
    alone, among = (Equals(2.0, absolute=1.0).judge(samples, looks).interval for looks in (1, 1000))
    assert among[0] < alone[0] < alone[1] < among[1]


@pytest.mark.parametrize(
    "law", [Equals(2.0, absolute=0.057), Mean(1.85, 2.15, limits=(1.0, 3.0))], ids=["value", "mean"]
)
def test_an_answer_among_many_needs_more(law):
    found = np.random.default_rng(4).normal(0.0, 0.1, 30)
    found *= 0.1 / found.std(ddof=1)
    samples = cases(*(2.0 + found - found.mean()))  # the interval's half width: .037 at 95 %, .056 at 99.5 %
    assert law.judge(samples).answer == "confirmed"
    assert law.judge(samples, 20).answer == "inconclusive"


def test_laws_are_values():
    assert dataclasses.replace(Power(0.5), exponent=0.75) == Power(0.75)


@pytest.mark.parametrize("runs", [4, 5])
def test_fewer_than_six_runs_decide_nothing_and_the_reason_is_their_number(runs):
    found = Equals(1.0, absolute=0.5).judge(cases(*(1.0 + 1e-3 * k for k in range(runs))))
    assert found.answer == "inconclusive"
    assert f"{runs} runs a point, of which at least 6 are needed" in found.reason
