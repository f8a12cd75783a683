"""Starts and headline numbers of system `chen`, each against its law or its definition."""

import numpy as np
import pytest
from scipy import stats

from derivations.chen import initial, summary
from derivations.chen.parameters import Parameters

RARE = 1e-3
"""A right law gives a smaller p-value once in a thousand times; seeds are fixed."""


def start(**given):
    return initial.enter(Parameters(**given), None, np.random.default_rng(11))


def test_filters_start_normal_and_routers_at_zero():
    found = start(M=8, J=64, K=4, sigma_0=0.03)
    for name in ("feat", "cen"):
        assert stats.kstest(found.state[name].ravel(), stats.norm(0, 0.03).cdf).pvalue > RARE, name
    assert abs(np.corrcoef(found.state["feat"].ravel(), found.state["cen"].ravel())[0, 1]) < 0.1
    assert not found.state["gcen"].any() and not found.state["gfeat"].any()


@pytest.mark.parametrize("d", [64, 400])
def test_the_released_code_s_entries_are_uniform_within_a_thousandth_of_1_over_sqrt_d(d):
    p = Parameters(M=4, J=4, K=4, d=d, variant="released")
    entries = initial.draw_entries(p, np.random.default_rng(0), (20_000,))
    assert stats.kstest(entries, stats.uniform(-1e-3 / d**0.5, 2e-3 / d**0.5).cdf).pvalue > RARE


def test_lengths_outside_the_signals_have_d_less_2_k_degrees_of_freedom():
    p = Parameters(M=2, J=2, K=2, P=4, d=12, sigma_0=0.5, tier="full")
    rng = np.random.default_rng(2)
    found = np.array([initial.draw_residual(p, rng) for _ in range(3000)])
    squares = (found[:, :4] ** 2).sum(-1) / 0.25
    for column in squares.T:
        assert stats.kstest(column, stats.chi2(12 - 4).cdf).pvalue > RARE
    cosines = (found[:, 0] * found[:, 3]).sum(-1) / np.sqrt(squares[:, 0] * squares[:, 3]) / 0.25
    assert stats.kstest(cosines**2, stats.beta(0.5, (8 - 1) / 2).cdf).pvalue > RARE
    assert not found[:, 4:].any()  # routers start at zero


def test_the_specialised_start_has_the_contrast_between_a_group_and_the_others():
    found = start(M=5, J=3, K=2, init="specialised", strength=0.2, contrast=0.7)
    feat, gcen = found.state["feat"], found.state["gcen"]
    own = np.array([0, 1, 0, 1, 0])
    assert (feat[np.arange(5), 0, own] == 0.2).all() and np.count_nonzero(feat) == 5
    for k in range(2):
        inside, outside = gcen[own == k, k], gcen[own != k, k]
        assert np.ptp(inside) == 0 and np.ptp(outside) == 0
        assert inside[0] - outside[0] == pytest.approx(0.7, rel=1e-14)
    assert np.abs(gcen.sum(axis=0)).max() < 1e-15
    assert found.constants["kstar"].tolist() == own.tolist() and not found.constants["jstar"].any()


def test_professions_name_feature_and_filter():
    feat = np.zeros((2, 3, 4))
    feat[0, 2, 1], feat[0, 0, 3], feat[1, 1, 2] = 0.5, -0.9, 0.1
    kstar, jstar = initial.professions(feat)
    assert kstar.tolist() == [1, 2] and jstar.tolist() == [2, 1]


def test_the_scale_of_a_start_is_that_of_its_overlaps():
    found = start(M=8, J=64, K=4, sigma_0=0.03)
    assert found.scale == pytest.approx(0.03 * 2**0.5, rel=0.05)  # both overlaps of a filter with a cluster
    assert start(sigma_0=0.0).scale == 1.0


def test_headline_numbers_are_those_of_the_end():
    feat = np.zeros((2, 2, 3, 2))  # time, expert, filter, feature
    feat[0] = 9.0
    feat[1, 0, 2, 1], feat[1, 0, 1, 0], feat[1, 1, 0, 0] = 0.4, -0.8, 0.3
    gcen, gfeat = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    gcen[0, 0, 0], gcen[1, 0, 1], gcen[1, 1, 1], gfeat[1, 1, 0] = 5.0, 0.1, -0.6, -0.2
    ends = {"loss": np.array([2.0, 1.0]), "entropy": np.array([3.0, 0.5]), "accuracy": np.array([0.5, 0.9])}
    found = summary.summarise(start(M=2, J=3, K=2), {"feat": feat, "gcen": gcen, "gfeat": gfeat, **ends})
    assert found["final_profession"] == [1, 0] and found["strength"] == [0.4, 0.3]
    assert (found["max_gcen"], found["max_gfeat"]) == (0.6, 0.2)
    assert (found["loss_initial"], found["loss_final"]) == (2.0, 1.0)
    assert (found["final_entropy"], found["final_accuracy"]) == (0.5, 0.9)
