"""Starts and headline numbers of system `pmoe`, each against its law or its definition."""

import numpy as np
import pytest
from scipy import stats

from derivations.pmoe import initial, summary, world
from derivations.pmoe.parameters import Parameters, settle

RARE = 1e-3
"""A right law gives a smaller p-value once in a thousand times; seeds are fixed."""


def joint(**given):
    return settle(Parameters(mode="joint", **given), "joint")


def test_neurons_have_entries_of_variance_1_over_m_and_output_weights_of_variance_1():
    p = joint(k=4, m=8000, n=5, p=3, delta_d=0.4)
    gram = world.gram_of(p)
    pre, out = initial.neurons(p, gram, np.random.default_rng(0))
    assert pre.shape == (4, 2000, len(gram)) and out.shape == (4, 2000)
    flat = pre.reshape(-1, len(gram))
    for z in range(len(gram)):
        assert stats.kstest(flat[:, z], stats.norm(0, np.sqrt(gram[z, z] / 8000)).cdf).pvalue > RARE
    assert stats.kstest(out.ravel(), stats.norm.cdf).pvalue > RARE
    products = 8000 * flat[:, :, None] * flat[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(flat))
    assert (np.abs(products.mean(axis=0) - gram) < 4.5 * error + 1e-12).all()


def test_paired_neurons_are_opposite_in_their_output_alone():
    p = joint(k=2, l=2, m=12, n=5, p=3, init="paired")
    pre, out = initial.neurons(p, world.gram_of(p), np.random.default_rng(1))
    assert (pre[:, :3] == pre[:, 3:]).all() and (out[:, :3] == -out[:, 3:]).all()


def test_random_routers_have_the_gram_matrix_of_the_patterns():
    p = joint(k=4000, m=8000, n=5, p=3, delta_d=0.6, sigma_r=0.2, routers="random")
    gram = world.gram_of(p)
    route = initial.start_routers(p, gram, np.random.default_rng(2), "joint")
    products = route[:, :, None] * route[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(route))
    assert (np.abs(products.mean(axis=0) - 0.04 * gram) < 4.5 * error + 1e-12).all()


def test_perfect_routers_rank_their_class_first_and_the_other_last():
    for name, given in (("perfect", 4), ("single", 4)):
        p = joint(k=given, m=8, n=5, p=3, routers=name)
        route = initial.start_routers(p, world.gram_of(p), np.random.default_rng(3), "joint")
        own = np.arange(given) % 2
        busy = range(2) if name == "single" else range(given)
        for s in busy:
            assert route[s].argmax() == own[s] and route[s].argmin() == 1 - own[s]
        for s in set(range(given)) - set(busy):  # those that see no class pattern
            assert route[s, :2].max() < route[s, 2:].min()
            assert route[s, 0] != route[s, 1]  # ranked at random, and not tied


def test_activities_and_responses_are_sums_over_active_neurons():
    rng = np.random.default_rng(4)
    pre, out = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5))
    for s in range(2):
        for z in range(3):
            relu = sum(out[s, r] * pre[s, r, z] for r in range(5) if pre[s, r, z] > 0)
            assert initial.response(pre, out)[s, z] == pytest.approx(relu, rel=1e-14)
            for w in range(3):
                both = sum(out[s, r] ** 2 for r in range(5) if pre[s, r, z] >= 0 and pre[s, r, w] >= 0)
                assert initial.activity(pre, out)[s, z, w] == pytest.approx(both, rel=1e-14)


def test_activities_of_several_outputs_are_sums_of_products():
    rng = np.random.default_rng(5)
    pre, out = rng.normal(size=(1, 4, 2)), rng.normal(size=(1, 4, 3))
    found = initial.activity(pre, out)
    for i in range(3):
        for j in range(3):
            active = (pre[0, :, 0] >= 0) & (pre[0, :, 1] >= 0)
            assert found[0, i, j, 0, 1] == pytest.approx((out[0, active, i] * out[0, active, j]).sum(), rel=1e-13)
    mean = (out[0, :, 1] * np.maximum(pre[0, :, 0], 0)).sum()
    assert initial.response(pre, out)[0, 1, 0] == pytest.approx(mean, rel=1e-13)


def test_headline_numbers_are_margins_at_the_end_and_distances_from_the_start():
    p = joint(k=2, l=2, m=4, n=5, p=2, sigma_r=0.5, routers="random")
    start = initial.enter_joint(p, None, np.random.default_rng(6))
    route = np.zeros((2, 2, 4))  # time, expert, pattern
    route[1] = [[3.0, -1.0, 0.5, 1.0], [0.0, 2.0, 1.5, -4.0]]
    ends = {name: np.array([4.0, 1.0]) for name in ("loss", "error", "v1", "v2")}
    found = summary.summarise(start, {"route": route, "assumption": np.array([1.0, 0.0]), **ends})
    assert found["o1_above"] == 2.0 and found["o2_above"] == 0.5  # above the largest irrelevant pattern
    assert found["router_displacement"] == 4.0 and found["displacement_over_sigma_r"] == 8.0
    assert found["assumption_4_4"] is False
    assert (found["loss_initial"], found["loss_final"]) == (4.0, 1.0)
