"""The data: Gram matrices, compositions by enumeration and by draws, thresholds."""

import math

import numpy as np
import pytest

from derivations.contract import UsageError
from derivations.pmoe import model, router, world
from derivations.pmoe.checks import check
from derivations.pmoe.parameters import Parameters, settle


def test_patterns_have_the_products_asked_for():
    p = Parameters(p=3, delta_d=0.4, b1=(0.5, -0.2, 0.1), b2=(0.0, 0.3, 0.1))
    gram = world.gram_of(p)
    assert np.allclose(gram[2:, 0], p.b1)
    assert np.allclose(gram[2:, 1], p.b2)
    assert gram[0, 1] == 0.4
    assert (np.diag(gram) == 1).all()
    # what is left of q_i and q_j beyond the span of o1, o2 is orthogonal
    inside = np.linalg.inv(gram[:2, :2])
    b = gram[2:, :2]
    rest = gram[2:, 2:] - b @ inside @ b.T
    assert np.abs(rest - np.diag(np.diag(rest))).max() < 1e-15


def test_random_patterns_are_unit_vectors_of_the_right_rank():
    gram = world.gram_of(Parameters(p=6, d=5, irrelevant="random", delta_d=0.2))
    assert np.linalg.matrix_rank(gram) == 5
    assert gram[0, 1] == pytest.approx(0.2)


@pytest.mark.parametrize(("total", "parts"), [(0, 3), (5, 1), (9, 4), (15, 3)])
def test_multisets_are_all_and_each_once(total, parts):
    found = world.multisets(total, parts)
    assert len(found) == math.comb(total + parts - 1, parts - 1)
    assert (found.sum(axis=1) == total).all()
    assert len(np.unique(found, axis=0)) == len(found)


def test_the_exact_law_has_the_moments_of_a_multinomial():
    p = settle(Parameters(n=10, p=4, pi=(0.1, 0.2, 0.3, 0.4)))
    counts, label, weight = world.population(p)
    assert len(label) == 2 * math.comb(12, 3)
    assert weight.sum() == pytest.approx(1, abs=1e-14)
    pi = np.array(p.pi)
    mean = weight @ counts[:, 2:]
    assert np.allclose(mean, 9 * pi, atol=1e-13)
    second = (counts[:, 2:].T * weight) @ counts[:, 2:]
    assert np.allclose(second - np.outer(mean, mean), 9 * (np.diag(pi) - np.outer(pi, pi)), atol=1e-12)
    assert np.allclose(router.moments(p)[1], second)


def test_a_pool_stands_for_the_population_within_its_error():
    few = settle(Parameters(n=10, p=4, exact=1, pool=4000))
    counts, _, weight = world.population(few)
    assert np.abs(weight @ counts[:, 2:] - 9 / 4).max() < 5 * math.sqrt(9 * 3 / 16 / 4000)


def test_draws_have_the_law_of_the_population():
    p = settle(Parameters(n=7, p=3, composition="bounded_close", close=2, b1=(0.4, 0, 0), b2=(-0.4, 0, 0)))
    counts, _, weight = world.population(p)
    atoms, copies, labels = model.draw(np.random.default_rng(0).random((7, 40_000)), *model.law(p))
    drawn = np.stack([(atoms == z).sum(axis=0) for z in range(5)])
    assert (copies == 1).all()
    assert (drawn[2] == 2).all()
    assert (drawn[:2].sum(axis=0) == 1).all()
    assert np.abs(drawn.mean(axis=1) - weight @ counts).max() < 0.04
    assert abs(labels.mean()) < 5 / math.sqrt(40_000)


def test_samples_of_files_are_compressed_without_loss():
    index = np.array([[0, 2, 3], [3, 0, 2], [1, 2, 2]])
    counts, label, weight = world.empirical(index, np.array([1, 1, -1]), 4)
    assert len(label) == 2
    assert weight @ label == pytest.approx(1 / 3)
    assert np.allclose(weight @ counts, np.array([2, 1, 4, 2]) / 3)


def test_the_threshold_of_the_paper_is_above_the_sharp_one():
    """<o1 - o2, q> = 0.7 (1 - delta_d): close by Definition D.3, harmless in the population."""
    p = settle(Parameters(n=8, p=2, composition="bounded_close", close=3, b1=(0.35, 0.0), b2=(-0.35, 0.0)), "router")
    gram = world.gram_of(p)
    assert router.l_star(p, gram) == 4
    assert router.thresholds(p, gram) == (1, 1)
    assert router.thresholds(p, gram, 0.5) == (4, 1)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"l": 20, "n": 8}, "at most n"),
        ({"mode": "separate", "k": 3}, "k = 2"),
        ({"delta_d": 1.0}, "coincide"),
        ({"b1": (0.9,), "b2": (-0.9,)}, "no unit vector"),
        ({"m": 7}, "divide"),
        ({"p": 0}, "irrelevant"),
        ({"d": 3}, "span"),
        ({"composition": "deterministic"}, "sum to n - 1"),
        ({"composition": "deterministic", "n": 1}, "needs 6 counts"),
        ({"pi": (0.5, 0.5)}, "one number for each"),
        ({"mode": "cnn", "l": 3}, "mode cnn"),
        ({"lam": -0.5}, "negative"),
        ({"init": "paired", "m": 6, "mode": "separate"}, "even"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_with_a_reason(given, says):
    with pytest.raises(UsageError, match=says):
        check(Parameters(**given))


@pytest.mark.parametrize(
    ("gram", "says"),
    [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "not one of vectors"),
        (np.ones((2, 2)), "coincide"),
        (np.array([[1.0, 0.3], [0.1, 1.0]]), "symmetric"),
        (np.diag([1.0, 0.0]), "zero"),
    ],
)
def test_a_matrix_that_is_no_gram_matrix_is_refused(gram, says):
    with pytest.raises(UsageError, match=says):
        world.require_gram(gram)


def test_the_mode_follows_from_the_number_of_experts():
    assert settle(Parameters()).mode == "separate"
    assert settle(Parameters(k=1)).mode == "cnn"
    assert settle(Parameters(k=1, l=2)).mode == "joint"
    assert settle(Parameters(k=3)).mode == "joint"
    assert settle(Parameters(), "joint").k == 4
    with pytest.raises(UsageError, match="stage"):
        settle(Parameters(mode="cnn"), "joint")
