"""Powers are confirmed where they should be, and held against their rivals."""

import dataclasses
import math

import numpy as np
import pytest

from derivations.laws import LOGARITHMS, Power
from derivations.scaling import Form, rivals


def sweep(exponent: float, logarithm: float = 0.0, shift: float = 0.0, seeds: int = 6, noise: float = 0.01):
    """d^exponent (log d)^logarithm + shift over five values of d."""
    rng = np.random.default_rng(1)
    return [
        ({"d": d}, seed, float(d**exponent * math.log(d) ** logarithm * math.exp(noise * rng.normal()) + shift))
        for d in (1e4, 1e6, 1e8, 1e10, 1e12)
        for seed in range(seeds)
    ]


def exact(function, sizes=range(4, 10)):
    """A deterministic function of d over powers of ten."""
    return [({"d": 10.0**k}, 0, float(function(10.0**k))) for k in sizes]


def lost(*seeds: int):
    """The sweep of d^0.5 with some seeds never reached at d = 1e4."""
    return [(p, seed, math.inf if seed in seeds and p["d"] == 1e4 else y) for p, seed, y in sweep(0.5, seeds=12)]


def test_a_sampled_power_is_confirmed_with_its_rivals_rejected():
    found = Power(0.5, rivals=tuple(LOGARITHMS)).judge(sweep(0.5))
    assert found.answer == "confirmed"
    assert len(found.rejected) == 9  # those named, the four with a logarithm, and two fractions
    assert found.rejected[3:] == (
        "d^0.5 (log d)^-1",
        "d^0.5 (log d)^-0.5",
        "d^0.5 (log d)^0.5",
        "d^0.5 (log d)^1",
        "d^1/3",
        "d^2/3",
    )
    assert "within 0.03" in found.reason
    assert Power(0.5).judge(sweep(0.75)).answer == "refuted"


@pytest.mark.parametrize("exponent", [-1 / 3, -2 / 3])
def test_a_third_does_not_pass_as_a_half(exponent):
    rng = np.random.default_rng(7)
    sizes = (250, 500, 1000, 2000, 4000)
    for _ in range(60):
        samples = [({"n": n}, s, n**exponent * math.exp(0.3 * rng.normal())) for n in sizes for s in range(6)]
        assert Power(-0.5, over="n", margin=0.1).judge(samples).answer != "confirmed"


@pytest.mark.parametrize("logarithm", [0.5, -1.0, 1.0])
@pytest.mark.parametrize("error", [None, 1e-9])
def test_a_logarithm_on_top_of_the_power_is_never_confirmed(logarithm, error):
    law = Power(0.5, rivals=tuple(LOGARITHMS), error=error)
    samples = sweep(0.5, logarithm) if error is None else sweep(0.5, logarithm, seeds=1, noise=0.0)
    assert law.judge(samples).answer != "confirmed"


def test_the_limit_of_local_exponents_decides_exact_data():
    slowly = exact(lambda d: d**0.5 * (1 + 3 / d**0.25))
    assert Power(0.5, margin=0.01, error=1e-9, correction=0.25).judge(slowly).answer == "confirmed"
    assert Power(0.5, margin=0.01, error=1e-9).judge(slowly).answer == "inconclusive"  # or is the correction 1 / log d?
    assert Power(0.5, error=1e-9).judge(exact(lambda d: d**0.5 * (1 + 3 / d**0.5))).answer == "confirmed"
    assert Power(0.5, error=1e-9).judge(exact(lambda d: d**0.45)).answer == "refuted"
    assert Power(0.5, error=1e-9).judge(exact(lambda d: d**0.5 + d**0.6 / 50)).answer != "confirmed"  # drifts away
    rivals = (Form("sqrt(d) log d", logarithm=1.0, exponent=0.5),)
    slow = exact(lambda d: d**0.5 * math.log(d) ** 0.01)
    assert "sqrt(d) log d" in Power(0.5, margin=0.001, error=1e-9, rivals=rivals).judge(slow).rejected


def test_a_limit_at_small_coordinates():
    samples = [({"eps": 10.0**-k}, 0, 10.0 ** (-2 * k) * (1 + 3 * 10.0**-k)) for k in range(1, 6)]
    small = Power(2.0, over="eps", margin=0.01, error=1e-12, toward="small")
    assert small.judge(samples).answer == "confirmed"
    assert small.judge(samples).estimate == pytest.approx(2.0, abs=1e-4)
    assert dataclasses.replace(small, toward="large").judge(samples).answer != "confirmed"


def test_a_law_that_misses_is_not_saved_by_a_rival_that_misses_more():
    law = Power(0.5, margin=0.01, error=1e-9, rivals=(Form("d", exponent=1.0),))
    assert law.judge(exact(lambda d: d**0.55)).answer == "refuted"


def test_a_slope_that_still_changes_leaves_a_sampled_law_open():
    rng = np.random.default_rng(3)
    bent = [
        ({"d": d}, s, math.exp(0.5 * math.log(d) + 0.02 * (math.log(d) - 18) ** 2 + 0.01 * rng.normal()))
        for d in (1e4, 1e6, 1e8, 1e10, 1e12)
        for s in range(6)
    ]
    found = Power(0.5, margin=0.5).judge(bent)
    assert found.answer == "inconclusive" or "slope changes" not in found.reason
    assert "the slope changes from" in Power(0.5, margin=0.1).judge(bent).reason


def test_a_known_lag_is_subtracted_before_the_fit():
    samples = sweep(0.5, shift=400.0)
    assert Power(0.5, margin=0.01).judge(samples).answer != "confirmed"
    assert Power(0.5, margin=0.01, shift=400.0).judge(samples).answer == "confirmed"


def test_power_as_a_bound():
    assert Power(0.5, bound="at most").judge(sweep(0.2)).answer == "consistent"
    assert Power(0.5, bound="at most").judge(sweep(0.5)).answer == "confirmed"
    assert Power(0.5, bound="at most").judge(sweep(0.8)).answer == "refuted"
    assert Power(-0.5, bound="at least").judge(sweep(-0.2)).answer == "consistent"
    assert Power(-0.5, bound="at least").judge(sweep(-0.8)).answer == "refuted"
    assert Power(0.5, bound="at most").judge(sweep(0.2)).slack == pytest.approx(0.3, abs=0.01)


def test_a_law_claimed_with_a_probability_is_judged_on_the_seeds_that_are_reached_everywhere():
    held = Power(0.5, reached=0.65).judge(lost(3, 4))
    assert held.answer == "confirmed"
    assert "10 runs" in held.reason
    assert "not reached in 2 of 60 runs" in held.reason
    assert Power(0.5, reached=0.99).judge(lost(3, 4)).answer == "inconclusive"  # 58 of 60 may be 99 %
    every = [(p, seed, math.inf if seed < 8 else y) for p, seed, y in sweep(0.5, seeds=12)]
    assert Power(0.5, reached=0.65).judge(every).answer == "refuted"  # 20 of 60


def test_a_time_that_is_never_reached_refutes_what_is_always_reached():
    found = Power(0.5, meaning="T*").judge(lost(3))
    assert found.answer == "refuted"
    assert "not reached in 1 of 60 runs" in found.reason


def test_few_sizes_and_few_runs_decide_nothing():
    assert "3 values of d" in Power(0.5).judge([s for s in sweep(0.5) if s[0]["d"] < 1e9]).reason
    assert "4 runs" in Power(0.5).judge(sweep(0.5, seeds=4)).reason
    assert "not positive" in Power(0.5).judge(sweep(0.5, shift=-1e3)).reason


def test_what_all_runs_of_a_size_share_widens_the_interval_of_an_exponent():
    rng = np.random.default_rng(11)
    x = 10.0 ** np.arange(2, 7)
    y = x**0.5 * np.exp(0.2 * rng.normal(size=5) + 1e-3 * rng.normal(size=(12, 5)))
    found = Power(0.5, margin=0.03).judge([({"d": x[k]}, s, y[s, k]) for k in range(5) for s in range(12)])
    assert found.answer == "inconclusive"
    assert found.interval[1] - found.interval[0] > 0.05  # the slopes of the runs scatter by 1e-4


def test_few_sizes_need_a_reason():
    few = [one for one in sweep(0.5) if one[0]["d"] < 1e12]
    found = Power(0.5).judge(few)
    assert found.answer == "inconclusive"
    assert "4 sizes over 6 decades, fewer than 5 over 2, without a reason" in found.reason
    assert Power(0.5, short="a larger one takes a day").judge(few).answer == "confirmed"
    narrow = [({"d": 10 ** (1 + k / 4)}, 0, 10 ** (k / 8)) for k in range(5)]
    assert Power(0.5, error=1e-9).judge(narrow).answer == "inconclusive"
    assert Power(0.4, error=1e-9).judge(narrow).answer == "refuted"


@pytest.mark.parametrize("logarithm", [-1.0, -0.5, 0.5, 1.0])
def test_a_logarithm_is_a_rival_of_every_power(logarithm):
    for margin in (0.02, 0.1, 0.3):
        assert Power(0.5, margin=margin).judge(sweep(0.5, logarithm)).answer != "confirmed"
    assert (
        Power(0.5, margin=0.1, no_log_rival="an expansion in powers").judge(sweep(0.5, logarithm / 4)).answer
        == "confirmed"
    )


@pytest.mark.parametrize("written", [-1 / 3, -0.3333333, -0.333, -0.33])
def test_a_fraction_written_in_decimals_is_no_rival_of_itself(written):
    names = [form.name for form in rivals(written, "d", False)]
    assert names == ["d^-1/2", "d^0"]
    found = Power(written, over="d").judge(sweep(-1 / 3, noise=0.001))
    assert found.answer == "confirmed", found.reason


def test_an_exponent_beside_a_fraction_has_it_as_a_rival():
    assert [form.name for form in rivals(0.34, "d", False)] == ["d^1/3", "d^1/2"]
