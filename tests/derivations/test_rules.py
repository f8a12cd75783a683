"""The two forms of every rule, arrays and compiled loops, at random rows."""

import numpy as np
import pytest

from derivations.chen import routing_loops as chen
from derivations.chen.route import probabilities
from derivations.chen.statements import rules
from derivations.pmoe import routing_loops as pmoe
from derivations.pmoe.statements.soft import soft_top


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
