"""Fits of scalings on synthetic data whose exponents are known."""

import math

import numpy as np
import pytest

from derivations import scaling
from derivations.scaling import Form


def noisy(exponent: float, logarithm: float = 0.0, seeds: int = 12, noise: float = 0.05, seed: int = 0):
    """x and y = 3 x^exponent (log x)^logarithm with lognormal noise, ten decades, some seeds each."""
    rng = np.random.default_rng(seed)
    x = np.repeat(10.0 ** np.arange(2, 13, 2), seeds)
    return x, 3 * x**exponent * np.log(x) ** logarithm * np.exp(noise * rng.normal(size=x.size))


@pytest.mark.parametrize("exponent", [-1.5, 0.0, 0.5, 2.0])
def test_a_power_without_noise_is_recovered_exactly(exponent):
    x = 10.0 ** np.arange(1, 6)
    fit = scaling.fit(x, 7 * x**exponent, Form("power"))
    assert fit.exponent == pytest.approx(exponent, abs=1e-12)
    assert fit.prefactor == pytest.approx(7, rel=1e-10)
    assert fit.residual < 1e-12
    assert fit.points == 5


def test_the_interval_of_the_exponent_covers_the_truth_about_as_often_as_it_says():
    covered = 0
    for seed in range(40):
        low, high = scaling.fit(*noisy(0.5, seed=seed), Form("power"), seed).interval
        covered += low <= 0.5 <= high
    # 95 % of 40 is 38; the bootstrap of a median of twelve is rough, and fewer than 30 would be a wrong interval
    assert covered >= 30


def test_the_interval_shrinks_with_the_noise():
    wide, narrow = (scaling.fit(*noisy(0.5, noise=noise), Form("power")).interval for noise in (0.2, 0.02))
    assert np.ptp(narrow) < np.ptp(wide) / 4


def test_a_logarithm_is_not_mistaken_for_a_power():
    x, y = noisy(0.5, logarithm=1.0, noise=0.01)
    assert scaling.fit(x, y, Form("power")).exponent > 0.53  # the slope alone is misled
    assert scaling.fit(x, y, Form("with log", logarithm=1.0)).exponent == pytest.approx(0.5, abs=0.005)


@pytest.mark.parametrize("logarithm", [1.0, 0.5, -1.0])
def test_logarithms_lose_against_a_true_power_and_win_when_true(logarithm):
    law, rival = Form("law", exponent=0.5), Form("rival", logarithm=logarithm, exponent=0.5)
    assert scaling.compare(*noisy(0.5, noise=0.02), law, [rival])["rival"] == pytest.approx(1)
    assert scaling.compare(*noisy(0.5, logarithm=logarithm, noise=0.02), law, [rival])["rival"] == 0


def test_medians_ignore_one_outlier():
    x, y = scaling.medians([1, 2, 1, 2, 1, 2], [5, 7, 5, 7, 1e9, 7])
    assert x.tolist() == [1, 2]
    assert y.tolist() == [5, 7]


def test_a_fit_says_why_it_cannot_be_made():
    with pytest.raises(ValueError, match="at least three different x, but got 2"):
        scaling.fit([1.0, 2.0], [1.0, 2.0], Form("power"))
    with pytest.raises(ValueError, match="positive finite medians"):
        scaling.fit([1.0, 2.0, 3.0], [1.0, -2.0, 3.0], Form("power"))
    with pytest.raises(ValueError, match="positive finite medians"):
        scaling.fit([1.0, 2.0, 3.0], [1.0, math.inf, 3.0], Form("power"))


def test_wilson_interval_against_closed_values():
    # p = 1/2, n = 4: centre 1/2, half-width z sqrt(1/16 + z^2/64) / (1 + z^2/4) with z = 1.96
    z = 1.96
    half = z * math.sqrt(1 / 16 + z**2 / 64) / (1 + z**2 / 4)
    assert scaling.wilson(2, 4) == pytest.approx((0.5 - half, 0.5 + half))
    # no success in n: the upper end is z^2 / (n + z^2)
    low, high = scaling.wilson(0, 10)
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(z**2 / (10 + z**2))
    assert scaling.wilson(10, 10) == pytest.approx((1 - high, 1.0))
    assert scaling.wilson(0, 0) == (0.0, 1.0)


def test_wilson_interval_covers_at_its_rate():
    rng = np.random.default_rng(3)
    successes = rng.binomial(50, 0.3, size=2000)
    covered = np.mean([low <= 0.3 <= high for low, high in (scaling.wilson(int(k), 50) for k in successes)])
    assert 0.93 < covered < 0.97


def test_bootstrap_of_a_median_covers_and_collapses():
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(40):
        low, high = scaling.bootstrap_median(rng.normal(2.0, 1.0, size=30).tolist())
        covered += low <= 2.0 <= high
    assert covered >= 32
    assert scaling.bootstrap_median([4.0, 4.0, 4.0]) == (4.0, 4.0)


def test_columns_pick_a_coordinate():
    samples = [({"d": 10, "m": 3}, 0, 1.5), ({"d": 20, "m": 3}, 1, 2.5)]
    assert scaling.columns(samples, "d") == ([10.0, 20.0], [1.5, 2.5])
