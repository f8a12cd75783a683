"""Single experts: trained where one can succeed, and never above the ceiling where theory sets one."""

import numpy as np
import pytest

from derivations.chen import singles
from derivations.chen.parameters import Parameters
from derivations.chen.singles import train


def test_without_feature_noise_a_single_expert_learns_everything():
    # gamma = 0 removes what Theorem 4.1 uses: feature and label agree in every example.
    easy = Parameters(P=3, d=8, J=8, activation="cubic", gamma=(0.0,))
    assert train(easy, 500, 150).test > 0.98


def test_with_feature_noise_it_stays_below_seven_eighths():
    hard = Parameters(P=3, d=8, J=16, activation="tanh")
    found = train(hard, 2000, 150)
    # Three standard errors of an accuracy on 2000 examples are 0.022.
    assert 0.6 < found.test < 0.875 + 0.022


def test_its_gradient_is_that_of_the_cross_entropy_whatever_the_blocks():
    p = Parameters(P=4, d=8, K=2, J=4, activation="tanh")
    rng = np.random.default_rng(0)
    x, y = singles.draw_inputs(p, rng, 30)
    weights, signs, kind = 0.2 * rng.normal(size=(4, 9)), np.array([-1.0, -1, 1, 1]), 6
    whole, value = singles.descent(weights, signs, kind, p, x, y)
    parts = [singles.descent(weights, signs, kind, p, x[part], y[part]) for part in (slice(0, 7), slice(7, 30))]
    assert np.abs(whole - sum(part[0] for part in parts)).max() < 1e-12

    def loss(w):
        logit = sum(s * np.tanh(x @ row[:-1] + row[-1]).sum(axis=1) for s, row in zip(signs, w, strict=True))
        return np.logaddexp(0, -y * logit).sum()

    assert value == pytest.approx(loss(weights), rel=1e-12)
    for index in np.ndindex(weights.shape):
        step = np.zeros_like(weights)
        step[index] = 1e-6
        assert (loss(weights + step) - loss(weights - step)) / 2e-6 == pytest.approx(whole[index], abs=1e-6)


def test_the_blocks_are_all_the_examples_once():
    found = singles.blocks(Parameters(P=4, J=512), 1000)
    assert len(found) > 1 and sum(len(range(1000)[part]) for part in found) == 1000
