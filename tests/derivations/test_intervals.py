"""Intervals cover at the rate that they say, from few runs too."""

import numpy as np
import pytest
from scipy import stats

from derivations import intervals


@pytest.mark.parametrize("runs", [2, 3, 5, 12])
def test_the_mean_of_few_normal_runs_is_covered_at_the_rate_it_says(runs):
    rng = np.random.default_rng(runs)
    ends = np.array([intervals.mean(rng.normal(2.0, 1.0, runs)) for _ in range(4000)])
    covered = np.mean((ends[:, 0] <= 2.0) & (ends[:, 1] >= 2.0))
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / 4000))


def test_one_run_has_no_interval():
    with pytest.raises(ValueError, match="at least two runs, but got 1"):
        intervals.mean([1.0])


@pytest.mark.parametrize("runs", [6, 15, 40])
def test_the_median_is_covered_whatever_the_distribution(runs):
    rng = np.random.default_rng(runs)
    ends = np.array([intervals.median(rng.lognormal(0.0, 2.0, runs)) for _ in range(2000)])
    assert np.mean((ends[:, 0] <= 1.0) & (ends[:, 1] >= 1.0)) >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (10, 10), (7, 200)])
@pytest.mark.parametrize("level", [0.95, 0.99])
def test_a_share_has_the_exact_interval(successes, trials, level):
    reference = stats.binomtest(successes, trials).proportion_ci(level, method="exact")
    assert intervals.share(successes, trials, level) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert intervals.share(0, 0) == (0.0, 1.0)
