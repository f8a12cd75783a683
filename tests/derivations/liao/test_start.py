"""Starts and headline numbers of system `liao`, each against its law or its definition."""

import math

import numpy as np
import pytest
from scipy import stats

from derivations.liao import initial, summary
from derivations.liao.parameters import Parameters

RARE = 1e-3
"""A right law gives a smaller p-value once in a thousand times; seeds are fixed."""


def starts(count, **given):
    p, rng = Parameters(**given), np.random.default_rng(5)
    return [initial.enter(p, None, rng) for _ in range(count)]


@pytest.mark.parametrize("d", [6, 40])
def test_norms_of_experts_are_those_of_rows_with_entries_of_variance_1_over_d(d):
    """d |w|^2 is chi-squared with d degrees of freedom, of |v|^2, projected off w, with d - 1."""
    found = starts(1500, m=2, m_star=1, d=d)
    for name, freedom in (("norm_w", d), ("norm_v", d - 1)):
        squares = d * np.array([one.constants[name] for one in found]).ravel() ** 2
        assert stats.kstest(squares, stats.chi2(freedom).cdf).pvalue > RARE, name


@pytest.mark.parametrize("init", ["random", "orthogonal"])
def test_squared_alignments_are_beta_distributed(init):
    """The square of an entry of a uniform unit vector is Beta(1/2, (d - 1)/2), at any number of teachers."""
    for m_star, d in ((1, 8), (3, 10)):
        found = starts(2000, m=2, m_star=m_star, d=d, init=init)
        law = stats.beta(0.5, (d - 1) / 2).cdf
        for name in ("gamma2", "zeta2"):
            values = np.array([one.state[name][0, 0] for one in found])
            assert stats.kstest(values**2, law).pvalue > RARE, (name, d)
            assert stats.binomtest(int((values > 0).sum()), values.size).pvalue > RARE


def test_orthogonal_students_are_a_frame_before_their_overlaps_are_set():
    frame, a, b = initial.draw_orthogonal(3, 2, 20, np.random.default_rng(1))
    assert np.abs(frame @ frame.T - np.eye(6)).max() < 1e-13
    assert (a == 1).all() and (b == 1).all()


def test_a_start_has_the_scale_of_its_overlaps():
    found = starts(400, m=3, m_star=2, d=400)
    size = np.sqrt(np.mean([one.state["gamma2"] ** 2 for one in found]))
    assert found[0].scale == pytest.approx(size, rel=0.1)


def test_weights_give_their_own_overlaps_and_norms():
    rng = np.random.default_rng(2)
    V, W = rng.normal(size=(2, 3, 12)) * [[[2.0]], [[0.5]]]
    frame = np.linalg.qr(rng.normal(size=(12, 4)))[0].T
    arrays = {"V": V, "W": W, "V_star": frame[:2], "W_star": frame[2:]}
    found = initial.enter(Parameters(m=3, m_star=2, d=12), arrays, rng)
    unit = {"v": V / np.linalg.norm(V, axis=1)[:, None], "w": W / np.linalg.norm(W, axis=1)[:, None]}
    unit |= {"v*": frame[:2], "w*": frame[2:]}
    blocks = {
        "gamma1": "v v*",
        "gamma2": "w w*",
        "zeta1": "v w*",
        "zeta2": "w v*",
        "I1": "v v",
        "I2": "w w",
        "I3": "v w",
    }
    for name, pair in blocks.items():
        one, two = pair.split()
        assert np.abs(found.state[name] - unit[one] @ unit[two].T).max() < 1e-14, name
    assert np.allclose(found.constants["norm_v"], np.linalg.norm(V, axis=1), rtol=1e-15)
    assert np.allclose(found.constants["norm_w"], np.linalg.norm(W, axis=1), rtol=1e-15)


def test_a_teacher_is_matched_by_the_signed_overlap():
    overlap = np.array([[0.1, -0.9], [-0.8, 0.2], [0.05, 0.01]])
    assert initial.greedy_matching(overlap).tolist() == [0, 1]  # not the experts at -0.8 and -0.9
    assert initial.greedy_matching(overlap[:1]).tolist() == [0, -1]
    taken = np.array([[0.9, 0.8], [0.7, 0.1]])
    assert initial.greedy_matching(taken).tolist() == [0, 1]  # its second best is taken


def test_anti_aligned_pairs_are_counted_once_and_by_sign():
    I2 = np.array([np.eye(3), [[1, -0.95, 0.95], [-0.95, 1, -0.5], [0.95, -0.5, 1]]])
    found = summary.observe(starts(1, m=3, m_star=1, d=100)[0], {"I2": I2})
    assert found["anti_aligned"][1].tolist() == [0, 1]
    assert found["min_I2"][1].tolist() == [0.0, -0.95]


def test_headline_numbers_are_those_of_the_end_and_of_whole_pairs():
    inf = math.inf
    run = {
        "T_gamma1": np.array([[3.0, inf], [inf, inf]]), "T_gamma2": np.array([[1.0, inf], [inf, 2.0]]),
        "T_I2": np.array([[inf, 7.0], [7.0, inf]]), "anti_aligned": np.array([0, 2, 1]),
        "min_I2": np.array([0.0, -0.99, -0.4]), "loss": np.array([3.0, 2.0, 1.0]),
    }  # fmt: skip
    found = summary.summarise(starts(1, m=2, m_star=2, d=100)[0], run)
    assert found["recovered"] == 1 and found["pair_recovery_times"] == [3.0]
    assert found["expert_recovery_times"] == [1.0, 2.0] and found["router_recovery_times"] == [3.0]
    assert found["first_anti_alignment_time"] == 7.0
    assert found["anti_aligned_pairs"] == 1 and found["min_I2"] == -0.4
    assert (found["loss_initial"], found["loss_final"]) == (3.0, 1.0)
