"""Starts and headline numbers of system `kawata`, each against its law or its definition."""

import math

import numpy as np
import pytest
from scipy import stats

from derivations.kawata import initial, summary
from derivations.kawata.parameters import Parameters

RARE = 1e-3
"""A right law gives a smaller p-value once in a thousand times; seeds are fixed."""


def start(**given):
    return initial.enter(Parameters(**given), None, np.random.default_rng(7))


@pytest.mark.parametrize(("C", "d"), [(1, 4), (2, 12)])
def test_squared_overlaps_are_beta_distributed_at_any_dimension(C, d):
    found = start(C=C, J=4000, d=d)
    values = initial.join(found.state)
    for column in values.T:
        assert stats.kstest(column**2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > RARE


def test_overlaps_with_a_skew_frame_have_its_gram_matrix():
    """E m m^T = G / d, and no overlap is beyond what a unit vector can have."""
    p, rng = Parameters(C=1, J=1, d=9), np.random.default_rng(1)
    gram = np.array([[1.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 1.0]])
    m = initial.join(initial.draw_overlaps(p, 20_000, gram, rng))
    products = m[:, :, None] * m[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(m))
    assert (np.abs(products.mean(axis=0) - gram / 9) < 4.5 * error).all()
    assert initial.outside(initial.split(m, 1), gram).min() > 0


@pytest.mark.parametrize("d", [3, 8])
def test_inner_products_of_a_random_frame_are_those_of_random_directions(d):
    p, rng = Parameters(C=1, d=d, orthogonal=False), np.random.default_rng(3)
    frames = np.array([initial.draw_gram(p, rng) for _ in range(3000)])
    assert np.abs(np.diagonal(frames, axis1=1, axis2=2) - 1).max() < 1e-14
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert stats.kstest(frames[:, i, j] ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > RARE, (i, j)


@pytest.mark.parametrize("d", [4, 9])
def test_directions_outside_the_frame_are_random_and_independent(d):
    rng = np.random.default_rng(4)
    grams = np.array([initial.draw_directions(4, d, rng) for _ in range(3000)])
    for i, j in ((0, 1), (1, 3), (2, 3)):
        assert stats.kstest(grams[:, i, j] ** 2, stats.beta(0.5, (d - 1) / 2).cdf).pvalue > RARE, (i, j)


def test_signs_are_fair_and_biases_uniform():
    found = start(C=1, J=4000, d=100, bias=(-1.0, 3.0))
    a, b = found.constants["a"], found.constants["b"]
    assert set(a) == {-1.0, 1.0} and stats.binomtest(int((a > 0).sum()), a.size).pvalue > RARE
    assert stats.kstest(b, stats.uniform(-1.0, 4.0).cdf).pvalue > RARE


def test_a_neuron_is_updated_by_the_samples_that_both_routings_send_it():
    """Of M experts a neuron's is active for 1/M of the samples, and chosen for the update for 1/M of these."""
    assert (start(C=2, M=4, J=2, d=50).constants["share"] == 1 / 16).all()
    assert initial.expert_of(Parameters(C=2, M=3, J=4, d=50), 6).tolist() == [0, 0, 1, 1, 2, 2]


def test_quartiles_are_those_of_all_neurons_and_the_horizon_censors_them():
    inf = math.inf
    found = summary.times("local", np.array([5.0, 1.0, inf, 2.0, 3.0, inf, 4.0, inf]))
    assert (found["local_reached"], found["local_censored"]) == (5, 3)
    assert found["local_time_quartiles"] == [3.0, 5.0, None]


def test_headline_numbers_are_those_of_the_end():
    inf = math.inf
    run = {
        "T_kappa": np.array([[1.0, inf], [inf, inf], [inf, inf]]), "T_xi": np.array([inf, 4.0, inf]),
        "kappa": np.array([np.ones((3, 2)), [[0.9, -0.1], [0.2, -0.3], [0.0, 0.1]]]),
        "xi": np.array([np.ones(3), [0.1, -0.8, 0.2]]), "loss": np.array([2.0, 1.0]), "horizon": np.array(9.0),
    }  # fmt: skip
    found = summary.summarise(start(C=2, J=3, d=50), run)
    assert found["censored"] == 1  # the third neuron reached nothing
    assert (found["local_reached"], found["global_reached"]) == (1, 1)
    assert (found["largest_local"], found["median_local"]) == (0.9, 0.3)
    assert (found["largest_global"], found["median_global"]) == (0.8, 0.2)
    assert (found["loss_initial"], found["loss_final"], found["horizon"]) == (2.0, 1.0, 9.0)
