"""The stand-in for MNIST, on prototypes in place of scikit-learn's digits (which are an extra)."""

import numpy as np
import pytest

from derivations.pmoe import digits


@pytest.fixture(scope="module")
def prototypes() -> tuple[np.ndarray, np.ndarray]:
    """300 noisy copies of ten random non-negative images of 64 pixels."""
    rng = np.random.default_rng(0)
    targets = np.arange(300) % 10
    return np.abs(rng.random((10, 64)))[targets] + 0.05 * rng.standard_normal((300, 64)), targets


def test_grids_have_one_discriminative_patch_and_balanced_labels(prototypes):
    pixels, targets = prototypes
    x, labels = digits.grids(pixels, targets, 40, np.random.default_rng(1))
    assert x.shape == (16, 40, 64)
    assert labels.sum() == 0
    own = np.array([np.flatnonzero((pixels == patch).all(axis=1))[0] for patch in x[0]])
    assert np.array_equal(targets[own], np.where(labels > 0, 1, 0))
    others = [targets[np.flatnonzero((pixels == patch).all(axis=1))[0]] for patch in x[1:].reshape(-1, 64)]
    assert min(others) >= 2


@pytest.mark.parametrize("mode", ["cnn", "separate", "joint"])
def test_a_step_is_the_gradient_of_the_loss(mode, prototypes):
    """Central differences of the batch loss with respect to a few weights."""
    rng = np.random.default_rng(2)
    x, labels = digits.grids(prototypes[0], prototypes[1], 6, rng)
    net = digits.start(mode, 64, rng)
    moved = digits.step(net, x, labels, 1.0, mode == "joint")

    def loss(hidden: np.ndarray, routers: np.ndarray) -> float:
        margin = digits.forward(digits.Network(hidden, net.out, routers, net.l, net.gate), x, labels)[-1]
        return float(np.log1p(np.exp(-margin)).mean())

    for index in ((0, 1, 5), (0, 3, 20)):
        change = np.zeros_like(net.hidden)
        change[index] = 1e-6
        slope = (loss(net.hidden + change, net.routers) - loss(net.hidden - change, net.routers)) / 2e-6
        assert (moved.hidden - net.hidden)[index] == pytest.approx(-slope, abs=1e-8)
    if mode == "joint":
        change = np.zeros_like(net.routers)
        change[2, 7] = 1e-6
        slope = (loss(net.hidden, net.routers + change) - loss(net.hidden, net.routers - change)) / 2e-6
        assert (moved.routers - net.routers)[2, 7] == pytest.approx(-slope, abs=1e-8)


def test_training_learns_the_prototypes(prototypes):
    rng = np.random.default_rng(3)
    x, labels = digits.grids(prototypes[0], prototypes[1], 100, rng)
    net = digits.train("joint", x, labels, rng, 40)
    tests = digits.grids(prototypes[0], prototypes[1], 200, rng)
    assert digits.accuracy(net, tests[0], tests[1]) > 0.9
    assert min(digits.top_gate(net, tests[0], tests[1])) > 0.5
