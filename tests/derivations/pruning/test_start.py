"""Starts and headline numbers of system `pruning`, each against its law or its definition."""

import numpy as np
import pytest
from scipy import stats

from derivations.pruning import initial, summary
from derivations.pruning.parameters import Parameters

RARE = 1e-3
"""A right law gives a smaller p-value once in a thousand times; seeds are fixed."""
SIZES = {"d": 400, "n": 40, "k": 8, "m": 3, "important": 1, "missigned": 1, "weak": 1}


def start(**given):
    return initial.enter(Parameters(**given), None, np.random.default_rng(13))


def proficiency(h, pi, task):
    """The chance of the irrelevant patterns that a router ranks below a task pattern."""
    return float(pi[h[2:] < h[task]].sum())


def test_random_weights_have_their_own_deviations():
    found = start(d=200, k=20, m=10, init="random", router_std=0.03, neuron_std=0.5)
    for name, size in (("h", 0.03), ("u", 0.5)):
        assert stats.kstest(found.state[name].ravel(), stats.norm(0, size).cdf).pvalue > RARE, name


def test_pretrained_neurons_and_logits_have_variances_over_d():
    found = start(**SIZES, C2=3.0, router_norm=0.7, init="pretrained", Cp=1e-9)
    assert stats.kstest(found.state["u"].ravel(), stats.norm(0, 3.0 / 20).cdf).pvalue > RARE
    size = 0.7 * np.log(5) / 20  # l = 5
    assert stats.kstest(found.state["h"][:, 2:].ravel(), stats.norm(0, size).cdf).pvalue > RARE


def test_experts_have_the_proficiency_of_their_kind_for_the_task_of_their_kind():
    p = Parameters(**SIZES, p_important=0.6, c0=8.0, init="pretrained")
    found = initial.enter(p, None, np.random.default_rng(1))
    h, pi, a = found.state["h"], found.constants["pi"], found.constants["a"]
    assert a.tolist() == [1.0] * 4 + [-1.0] * 4
    asked = {"important": 0.6, "missigned": 0.6, "weak": 8.0 / 400, "neutral": 0.0}
    for s in range(8):
        kind, own = ("important", "missigned", "weak", "neutral")[s % 4], int(s >= 4)
        task = 1 - own if kind == "missigned" else own
        assert proficiency(h[s], pi, task) == pytest.approx(asked[kind], abs=0.5 / 398 + 1e-12), kind
        assert proficiency(h[s], pi, 1 - task) == 0.0


def test_task_logits_keep_their_separation():
    p = Parameters(**SIZES, Cp=0.02, init="pretrained")
    h = initial.enter(p, None, np.random.default_rng(2)).state["h"]
    for s in range(8):
        for task in (0, 1):
            assert np.abs(h[s, 2:] - h[s, task]).min() >= 0.02 - 1e-12


def test_irrelevant_patterns_follow_zipf_s_law():
    pi = initial.law(Parameters(d=52, zipf=1.3))
    assert pi.sum() == pytest.approx(1.0, rel=1e-14)
    assert np.log(pi[0] / pi[9]) / np.log(10) == pytest.approx(1.3, rel=1e-12)
    assert np.ptp(initial.law(Parameters(d=52))) == 0


def test_what_lies_outside_the_patterns_is_kept_as_squares():
    rng = np.random.default_rng(3)
    frame = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    w, W = rng.normal(size=(2, 9)), rng.normal(size=(2, 3, 9))
    arrays = {"w": w, "W": W, "a": np.array([1.0, -1.0]), "P": frame[:5]}
    found = initial.enter(Parameters(k=2, m=3, d=5, n=3, l=2, important=0, missigned=0, weak=0), arrays, rng)
    assert np.allclose(found.state["h"], w @ frame[:5].T, atol=1e-14)
    assert np.allclose(found.constants["router_rest"], ((w @ frame[5:].T) ** 2).sum(-1), rtol=1e-12)
    assert np.allclose(found.constants["neuron_rest"], ((W @ frame[5:].T) ** 2).sum(-1), rtol=1e-12)


def test_observables_are_sums_of_active_neurons_and_norms_of_changes():
    begin = start(d=5, k=2, m=3, n=3, l=2, init="random", router_std=0.3, neuron_std=0.5)
    rng = np.random.default_rng(4)
    u, h = rng.normal(size=(2, 2, 3, 5)), rng.normal(size=(2, 2, 5))
    found = summary.observe(begin, {"u": u, "h": h})
    assert np.allclose(found["sigma"][1], np.where(u > 0, u, 0).sum(2))
    began = begin.constants["h_start"]
    assert np.allclose(found["dw"][1], np.linalg.norm(h - began, axis=-1), rtol=1e-13)
    assert np.allclose(found["Delta"][1], np.linalg.norm(h, axis=-1) - np.linalg.norm(began, axis=-1), atol=1e-14)


def test_headline_numbers_are_those_of_an_expert_s_own_task():
    begin = start(d=5, k=2, m=3, n=4, l=3, init="random")
    run = {
        "p1": np.array([[0.1, 0.2], [0.3, 0.4]]), "p2": np.array([[0.5, 0.6], [0.7, 0.8]]),
        "Delta": np.array([[0.0, 0.0], [1.0, 2.0]]), "f_error": np.array([0.5, 0.1]), "margin": np.array([0.0, 3.0]),
        "loss": np.array([2.0, 1.0]),
    }  # fmt: skip
    found = summary.summarise(begin, run)
    assert found["own_proficiency_initial"] == [0.1, 0.6] and found["own_proficiency_final"] == [0.3, 0.8]
    assert found["threshold_1.5_log_l"] == pytest.approx(1.5 * np.log(3))
    assert found["Delta"] == [1.0, 2.0] and found["f_error_final"] == 0.1 and found["margin_final"] == 3.0
    assert found["loss_final"] == 1.0


def test_invariants_see_what_moved():
    begin = start(d=4, k=2, m=2, n=3, l=2, init="random", neuron_std=1.0)
    h = np.zeros((2, 2, 4))
    h[1, 0] = [0.25, 0.0, 0.0, 0.0]
    u = np.stack([begin.state["u"], begin.state["u"] + 1.0])
    D = np.zeros((2, 2, 4))
    D[1, 1, 0] = -0.5
    found = summary.invariants(begin, {"h": h, "u": u, "D": D})
    assert found["router_sum"] == 0.25 and found["balance"] == 0.5
    assert found["inactive"] == pytest.approx(1.0)  # neurons that start below zero never move
