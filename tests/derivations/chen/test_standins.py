"""The stand-ins' training: its gradient, its data, and a mixture that learns what a linear rule cannot."""

import dataclasses

import numpy as np
import pytest

from derivations.chen import standins
from derivations.chen.parameters import ACTIVATIONS

RNG = np.random.default_rng


def small(rng, B=40, P=3, d=5, D=4):
    """Random patches that have no meaning."""
    labels = np.where(rng.random(B) < 0.5, 1.0, -1.0)
    return standins.Sample(rng.normal(size=(B, P, d)), rng.normal(size=(B, D)), labels, rng.integers(0, 3, B))


def loss(net, s, kind, noise, balance):
    """Mean logistic loss of y pi f, and the balancing term with the shares held fixed."""
    chosen, gate, outputs = standins.forward(net, s, kind, noise)
    taken = gate[np.arange(len(chosen)), chosen]
    share = np.bincount(chosen, minlength=gate.shape[1]) / len(chosen)
    return np.log1p(np.exp(-s.labels * taken * outputs)).mean() + balance * gate.shape[1] * share @ gate.mean(axis=0)


@pytest.mark.parametrize("activation", ["cubic", "linear", "gelu"])
def test_the_gradient_is_that_of_the_loss(activation):
    rng, kind = RNG(3), ACTIVATIONS.index(activation)
    s = small(rng)
    net = standins.Network(0.4 * rng.normal(size=(3, 2, 5)), 0.5 * rng.normal(size=(3, 4)))
    noise = 5.0 * rng.random((40, 3))  # so large that a small change of the router changes no choice
    gradients = standins.descent(net, s, kind, noise, 0.3)
    for name, gradient in zip(("filters", "router"), gradients, strict=True):
        direction = rng.normal(size=gradient.shape)

        def at(h, name=name, direction=direction):
            moved = dataclasses.replace(net, **{name: getattr(net, name) + h * direction})
            return loss(moved, s, kind, noise, 0.3)

        assert (at(1e-6) - at(-1e-6)) / 2e-6 == pytest.approx((gradient * direction).sum(), rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_languages_contradict_each_other():
    train, test = standins.languages(RNG(0), count=3000)
    assert train.patches.shape == (3000, 1, 768) and set(test.clusters) == {0, 1, 2}
    x, y = train.whole, train.labels
    for c in range(3):
        rule = np.linalg.lstsq(x[train.clusters == c], y[train.clusters == c], rcond=None)[0]
        right = [float((np.sign(test.whole[test.clusters == k] @ rule) == test.labels[test.clusters == k]).mean())
                 for k in range(3)]  # fmt: skip
        assert right[c] > 0.99 and min(right) < 0.35
    one = np.linalg.lstsq(x, y, rcond=None)[0]
    assert (np.sign(test.whole @ one) == test.labels).mean() < 0.95


def test_four_linear_experts_learn_what_one_cannot():
    rng = RNG(1)
    train, test = standins.languages(rng, count=1500)
    found = {
        M: standins.measured(standins.train(train, M, "linear", rng, 15), test, "linear") for M in (1, 4)
    }  # fmt: skip
    assert found[1]["accuracy"] < 0.9 < 0.98 < found[4]["accuracy"]
    assert found[4]["entropy"] < 0.5 and np.sum(found[4]["dispatch"]) == 1500


def test_digits_are_turned_and_no_image_is_in_both():
    pytest.importorskip("sklearn")
    train, test = standins.rotated(RNG(0))
    assert train.patches.shape == (1300, 9, 64) and test.patches.shape == (497, 9, 64)
    assert abs(train.labels.mean()) < 0.1 and set(train.clusters) == set(range(10))
    known = {row.tobytes() for row in train.whole}
    assert not any(row.tobytes() in known for row in test.whole)
