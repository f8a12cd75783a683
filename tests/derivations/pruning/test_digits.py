"""The stand-in on digits: its tokens, its curves against a plain program, and the stages against a short cut."""

import numpy as np
import pytest

pytest.importorskip("sklearn")

from derivations.pruning import criteria, digits, initial
from derivations.pruning.parameters import Parameters
from derivations.pruning.stages import with_constants
from figures.pruning import digits as figure
from odesim.flow import pipeline


@pytest.fixture(scope="module")
def divided():
    """Training and test images of one seed."""
    return digits.images(np.random.default_rng(3))


def pixels():
    """The images, all of them, and their digits, as scikit-learn has them."""
    from sklearn.datasets import load_digits  # pyright: ignore[reportMissingImports]

    found = load_digits()
    return found.images / 16.0, found.target  # pyright: ignore[reportAttributeAccessIssue]


def test_patches_are_squares_of_two_by_two_row_by_row():
    cut = digits.patches(np.arange(64.0).reshape(1, 8, 8))
    assert cut.shape == (1, 16, 4)
    assert list(cut[0, 0]) == [0, 1, 8, 9] and list(cut[0, 1]) == [2, 3, 10, 11]
    assert list(cut[0, 4]) == [16, 17, 24, 25] and list(cut[0, 15]) == [54, 55, 62, 63]


def test_every_position_has_codes_of_its_own_and_no_image_is_in_both_parts(divided):
    train, test = divided
    assert train.tokens.shape == (1300, 16) and test.tokens.shape == (497, 16)
    tokens = np.concatenate([train.tokens, test.tokens])
    assert (tokens // 8 == np.arange(16)).all() and tokens.max() < digits.PATTERNS == 128
    every = pixels()[1]
    assert (np.bincount(train.digits) + np.bincount(test.digits) == np.bincount(every)).all()
    order = np.random.default_rng(3).permutation(len(every))  # the first draw of the stream divides the images
    assert (train.digits == every[order[:1300]]).all() and (test.digits == every[order[1300:]]).all()


def test_codes_are_the_nearest_of_eight_means(divided):
    order = np.random.default_rng(3).permutation(1797)
    flat = pixels()[0][order].reshape(-1, 4, 2, 4, 2).swapaxes(2, 3).reshape(-1, 4)
    code = np.concatenate([part.tokens for part in divided]).ravel() % 8
    known = code[: 1300 * 16], flat[: 1300 * 16]  # the means are those of the training images alone
    means = np.array([known[1][known[0] == c].mean(axis=0) for c in range(8)])
    nearest = ((flat[:, None] - means) ** 2).sum(-1).argmin(axis=1)
    assert (nearest == code).mean() > 0.999  # k-means stops short of a fixed point by its tolerance


def test_labels_of_the_two_tasks(divided):
    train, _ = divided
    tokens, labels = train.parity()
    assert len(tokens) == 1300 and (labels[train.digits == 8] == 1).all() and (labels[train.digits == 3] == -1).all()
    own, signs = train.pair(3, 8)
    assert len(own) == np.isin(train.digits, (3, 8)).sum()
    assert (signs == 1).sum() == (train.digits == 3).sum() and (signs == -1).sum() == (train.digits == 8).sum()
    assert (own[signs == 1] == train.tokens[train.digits == 3]).all()


def test_accuracies_are_those_of_a_plain_program(divided):
    rng = np.random.default_rng(5)
    tokens, labels = divided[1].pair(8, 3)
    arrays = digits.experts(rng, k=6, m=3, size=0.7)
    start = initial.from_alignments(
        Parameters(data="empirical", d=128, n=16, k=6, l=4, m=3), arrays["w"], arrays["W"], arrays["a"]
    )
    ranks = rng.permutation(6).astype(float)
    found = digits.accuracies(
        with_constants(start, tokens=tokens, labels=labels), (tokens, labels), ranks
    )  # fmt: skip
    assert found.shape == (3,)
    for pruned in range(3):
        right = 0
        for row, y in zip(tokens, labels, strict=True):
            x, f = np.eye(128)[row], 0.0
            for sign in (1.0, -1.0):
                group = sorted(np.flatnonzero(arrays["a"] == sign), key=lambda s: -ranks[s])[: 3 - pruned]
                for s in group:
                    logits = x @ arrays["w"][s]
                    best = np.argsort(-logits)[:4]
                    gate = np.exp(logits[best]) / np.exp(logits[best]).sum()
                    f += sign * float(gate @ np.maximum(x[best] @ arrays["W"][s].T, 0).sum(axis=1))
            right += y * f > 0
        assert found[pruned] == pytest.approx(right / len(labels), abs=1e-12)


def test_pruning_by_the_stages_gives_the_points_of_the_curve(divided):
    train, test = divided
    experts = digits.experts(np.random.default_rng(0), k=8, m=4)
    table, unseen = train.pair(8, 3), test.pair(8, 3)
    whole = figure.tuned(experts, table, seed=1, steps=30)
    both = figure.curves(whole, unseen, np.random.default_rng(2))
    for name in ("router_norm_change", "importance", "neuron_norm_change_mean"):
        pruned = figure.tuned(experts, table, seed=1, steps=30, rho=0.75, criterion=name)[-1]
        assert pruned["h"].shape[1] == 2  # one of four of each sign
        end = initial.from_stage(Parameters(data="empirical", l=4), pipeline.ending(pruned))
        error, _ = criteria.error(with_constants(end, tokens=unseen[0], labels=unseen[1]), np.arange(2))
        assert both[1, figure.CRITERIA.index(name), -1] == pytest.approx(1 - error, abs=1e-12)


def test_experts_learn_two_digits_and_pretrained_ones_know_parity(divided):
    train, test = divided
    experts = figure.pretrained(train, np.random.default_rng(0), seed=0, steps=400)
    tokens, labels = test.parity()
    p = Parameters(data="empirical", d=128, n=16, k=16, l=4, m=16)
    start = initial.from_alignments(p, experts["w"], experts["W"], experts["a"], tokens=tokens, labels=labels)
    assert 1 - criteria.error(start, np.arange(16))[0] > 0.75  # a coin: 0.5 +- 0.03
    found = figure.curves(
        figure.tuned(experts, train.pair(8, 3), seed=0, steps=100), test.pair(8, 3), np.random.default_rng(2)
    )
    assert found.shape == (2, 7, 8) and (found[:, :, 0] > 0.85).all()
    assert np.ptp(found[:, :, 0], axis=1).max() < 1e-12  # nothing pruned: every criterion keeps all
