"""The two forms of every rule, arrays and compiled loops, and of every shortcut, formula and loops, at random rows."""

import numpy as np
import pytest

from derivations.chen import routing_loops as chen
from derivations.chen import rules
from derivations.chen.route import probabilities
from derivations.equations.interpreter import Evaluator
from derivations.pmoe import routing_loops as pmoe
from derivations.pmoe.parameters import Parameters, settle
from derivations.pmoe.rules import soft_top
from derivations.pmoe.tiers import levels


@pytest.mark.parametrize("experts", [1, 2, 3, 8, 21])
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 5.0])
def test_winning(experts, scale):
    h = scale * np.random.default_rng(experts).standard_normal((experts, 300))
    found = np.empty_like(h)
    chen.winning(h, found)
    assert np.abs(found - rules.winning(h)).max() < 1e-14
    assert np.abs(found - probabilities(h.T).T).max() < 1e-13
    assert np.abs(found.sum(axis=0) - 1).max() < 1e-14


@pytest.mark.parametrize("experts", [2, 3, 6])
def test_pieces(experts):
    g = np.random.default_rng(experts).standard_normal((experts, 7))
    nodes, weights = rules.pieces(g, 0.4, 2.5)
    found = np.empty_like(nodes), np.empty_like(weights)
    chen.pieces(g, 0.4, 2.5, *found)
    assert np.abs(found[0] - nodes).max() < 1e-14
    assert np.abs(found[1] - weights).max() < 1e-14


@pytest.mark.parametrize("rank", [0, 1, 4])
def test_join_rest(rank):
    rng = np.random.default_rng(rank)
    filters, routers = rng.standard_normal((3, 2, rank)), rng.standard_normal((3, rank))
    wanted = rules.join_rest(filters, routers)
    found = np.full_like(wanted, np.nan)
    chen.join_rest(filters.reshape(3, 2 * rank), routers, found)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("width", [1e-3, 0.1, 2.0])
def test_soft_top(width):
    rng = np.random.default_rng(1)
    route, count = rng.standard_normal((4, 5)), rng.integers(0, 3, (9, 5)).astype(float)
    with np.errstate(over="ignore"):
        wanted = soft_top(route, count, 3, width)
    found = np.empty((4, 45))
    pmoe.soft_top(route, count, 3, width, found)
    assert np.abs(found.reshape(wanted.shape) - wanted).max() < 1e-9
    assert np.allclose(found.reshape(wanted.shape).sum(-1), np.minimum(count.sum(1), 3), rtol=1e-9)


@pytest.mark.parametrize("patterns", [3, 6, 20])
@pytest.mark.parametrize("tie_rule", ["hard", "jitter"])
def test_routing_by_an_order_is_that_of_its_formula(patterns, tie_rule):
    p = Parameters(mode="joint", p=patterns - 2, k=3, l=3, m=12, gate="sharp", tie_rule=tie_rule, jitters=2)
    stated, rng = levels.statement(settle(p, "joint"), "L1", "joint"), np.random.default_rng(patterns)
    route = rng.integers(-2, 3, (3, patterns)) / 2  # with ties
    count = rng.integers(0, 3, (15, patterns)).astype(float)
    given = {"k": 3, "M": 4, "P": patterns, "l": 3, "n_x": 15, "gram": np.eye(patterns), "count": count, "n_j": 2}
    given |= {"act": np.ones((3, patterns, patterns)), "label": np.ones(15), "weight": np.ones(15), "route": route}
    given |= {"jitter": rng.integers(-1, 2, (2, 3, patterns)) / 2, "response": np.zeros((3, patterns))}
    values = Evaluator(stated, given).values
    wanted, first = values["taken"], values["share"]
    g = values["g_j"].reshape(2, -1) if tie_rule == "jitter" else route
    shape = (len(g), wanted.size // len(g))
    taken, found = np.full(shape, np.nan), np.full(shape, np.nan)
    pmoe.top_copies(g, count, 3.0, taken)
    pmoe.leading(g, count, taken, found)
    assert np.array_equal(taken.reshape(wanted.shape), wanted)
    assert np.array_equal(found.reshape(first.shape), first)
    assert (taken.reshape(wanted.shape).sum(-1) == np.minimum(count.sum(1), 3)).all()
