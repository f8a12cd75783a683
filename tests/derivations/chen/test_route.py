"""The law of top-1 routing under uniform noise: Monte Carlo, finite differences, closed forms, symmetries."""

import itertools

import numpy as np
import pytest

from derivations.chen import route
from derivations.chen.routing_loops import winning

LOGITS = (
    (0.0, 0.0, 0.0),
    (0.3, 0.1, -0.2, 0.0),
    (1.5, 0.4, 0.9, -3.0),
    (0.2, 0.2, -0.5, 0.9, 0.1, 0.1, -2.0, 0.6),
    (0.0, 0.7),
)


@pytest.mark.parametrize("h", LOGITS)
def test_probabilities_agree_with_a_million_draws(h):
    h, draws = np.array(h), 10**6
    rng = np.random.default_rng(len(h))
    counts = np.zeros(len(h))
    for _ in range(10):
        noisy = h + rng.random((draws // 10, len(h)))
        counts += np.bincount(noisy.argmax(axis=1), minlength=len(h))
    p = route.probabilities(h)
    error = np.sqrt(p * (1 - p) / draws)
    # 4.5 standard errors for 21 frequencies: a false alarm once in 7000 runs; the seeds are fixed.
    assert (np.abs(counts / draws - p) <= 4.5 * error + 1e-12).all()
    assert p.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("h", LOGITS[1:4])
def test_the_jacobian_is_the_derivative(h):
    h, step = np.array(h), 1e-5
    closed = route.jacobian(h)
    for k, unit in enumerate(np.eye(len(h))):
        numeric = (route.probabilities(h + step * unit) - route.probabilities(h - step * unit)) / (2 * step)
        # p is piecewise polynomial with bounded third derivatives; at ties the second jumps: error O(step).
        assert np.abs(closed[:, k] - numeric).max() < (1e-8 if len(set(h)) == len(h) else 1e-4)
    assert np.abs(closed.sum(axis=1)).max() < 1e-13 and np.abs(closed - closed.T).max() < 1e-13


def test_the_jacobian_at_equal_logits_is_that_of_an_exchangeable_law():
    # By symmetry (M delta - 1) times a constant, and P(m wins) rises by 1 per unit: prod F(1 + 0) - prod F(0) = 1.
    for m in (2, 3, 8):
        assert np.allclose(route.jacobian(np.zeros(m)), (m * np.eye(m) - 1) / (m - 1), atol=1e-13)


@pytest.mark.parametrize("gap", [0.0, 0.25, 0.6, 1.0, 1.7])
def test_two_experts_split_as_the_triangle(gap):
    lead = 1 - max(0.0, 1 - gap) ** 2 / 2  # P(r1 + gap > r2)
    assert np.allclose(route.probabilities(np.array([gap, 0.0])), [lead, 1 - lead], atol=1e-14)


@pytest.mark.parametrize(("above", "below"), [(1, 1), (2, 6), (1, 3), (3, 2)])
@pytest.mark.parametrize("gap", [0.0, 0.3, 0.8, 1.0, 2.0])
def test_two_levels_are_the_general_law(above, below, gap):
    p = route.probabilities(np.concatenate([np.full(above, gap), np.zeros(below)]))
    p_in, p_out = route.two_levels(above, below, gap)
    assert np.allclose(p, [p_in] * above + [p_out] * below, atol=1e-14)


def test_one_raised_logit_wins_with_its_closed_probability():
    for m, delta in itertools.product((2, 5, 8), (0.1, 0.9)):
        h = np.zeros(m)
        h[1] = delta
        assert route.probabilities(h)[1] == pytest.approx((1 - delta**m) / m + delta, abs=1e-14)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_symbolic_polynomials_are_the_quadrature(count):
    import sympy

    h, chances = route.symbolic(count)
    rng = np.random.default_rng(count)
    for _ in range(5):
        values = np.sort(rng.uniform(0, 0.99, count))[::-1]
        found = [float(chance.subs(dict(zip(h, values, strict=True)))) for chance in chances]
        assert np.allclose(found, route.probabilities(values), atol=1e-13)
    assert sympy.expand(sum(chances)) == 1


def test_the_winning_moment_is_the_mean_of_the_winning_logit():
    h, draws = np.array([0.3, 0.1, -0.2, 0.0]), 10**6
    noisy = h + np.random.default_rng(5).random((draws, 4))
    winner, top = noisy.argmax(axis=1), noisy.max(axis=1)
    for m, exact in enumerate(route.winning_moment(h, lambda u: u)):
        sample = np.where(winner == m, top, 0.0)
        assert abs(sample.mean() - exact) < 4 * sample.std() / draws**0.5


def test_entropies_of_three_published_dispatch_tables():
    # Chen et al. 2022, Tables 4, 5 and 6; the paper prints 0 for the first.
    first = np.zeros((4, 8))
    first[[0, 1, 2, 3], [5, 2, 7, 1]] = [3971, 4009, 4041, 3979]
    second = np.zeros((4, 8))
    second[0, 2] = 3971
    second[1, [5, 6]] = [4, 4005]
    second[2] = [8, 4, 4, 6, 0, 1304, 4, 2711]
    second[3, 0] = 3979
    third = [
        [0, 630, 1629, 1298, 27, 87, 4, 296],
        [136, 1107, 1884, 651, 0, 0, 0, 231],
        [0, 594, 1976, 1471, 0, 0, 0, 0],
        [0, 377, 1480, 1891, 0, 0, 0, 231],
    ]
    found = [route.entropy(np.array(table)) for table in (first, second, third)]
    assert found == pytest.approx([0.0, 0.0093, 1.3146], abs=5e-5)


def test_entropy_of_uniform_dispatch_is_the_logarithm_of_the_clusters():
    assert route.entropy(np.full((4, 8), 3.0)) == pytest.approx(np.log(4))
    assert route.entropy(np.diag([3.0, 1.0])) == 0


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 17, 40])
def test_the_compiled_law_is_the_same_after_any_other_type(size):
    rng = np.random.default_rng(size)
    scales = rng.permutation(np.repeat([0.0, 1e-3, 0.4, 1.0, 5.0, 900.0], 40))
    h = scales * rng.standard_normal((size, scales.size))  # side by side, and more than a block
    h[rng.integers(size)] = h[0]  # ties
    p = np.empty_like(h)
    winning(h, p)
    # A difference of logits of 900 is known to 1e-13 of itself, and so are probabilities.
    np.testing.assert_allclose(p, route.probabilities(h.T).T, rtol=0, atol=1e-13)
    alone = np.empty((size, 1))
    for k in range(0, scales.size, 50):
        winning(np.ascontiguousarray(h[:, k : k + 1]), alone)
        assert np.abs(alone[:, 0] - p[:, k]).max() < 1e-15


def test_the_most_experts_need_no_more_nodes():
    rng = np.random.default_rng(0)
    h = np.stack([np.zeros(512), 1e-3 * rng.standard_normal(512)], axis=1)
    p = np.empty_like(h)
    winning(h, p)
    assert np.abs(p[:, 0] * 512 - 1).max() < 1e-11  # products of 512 rounded factors
    assert np.abs(p - route.probabilities(h.T).T).max() < 1e-13
