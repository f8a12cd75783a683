"""Scores, horizons, starts and bounds, each against its explicit definition."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import odesim
from derivations.pruning import criteria, initial, model
from derivations.pruning.parameters import Parameters
from derivations.pruning.stages import evaluate


@pytest.mark.parametrize(("k", "l", "C2", "eta_e"), [(2, 3, 1.0, 1e-3), (6, 3, 1.0, 1e-3), (6, 9, 0.5, 2e-3)])
def test_post_pruning_fine_tuning_lasts_as_long_as_theorem_4_5_has_it(k, l, C2, eta_e):
    p = Parameters(k=k, l=l, C2=C2, eta_e=eta_e, K_post=2.0, n=20)
    assert p.post_horizon == math.floor(2.0 * k * C2 * l * l * math.sqrt(math.log(l)) / eta_e)
    assert Parameters(k=k, l=l, T_post=17).post_horizon == 17.0


def by_hand(start, pattern_law, count):
    """(importance, p_1, p_2) (k,) by going through all inputs of independent tokens one by one."""
    p, h = start.parameters, start.state["h"]
    importance, seen = np.zeros(p.k), np.zeros((2, p.k))
    for task in (0, 1):
        for chosen in itertools.product(range(p.N), repeat=count):
            chance = float(np.prod(pattern_law[list(chosen)]))
            tokens = np.array([task, *(q + 2 for q in chosen)])
            for s in range(p.k):
                order = sorted(range(tokens.size), key=lambda i: (-h[s, tokens[i]], i))[: p.l]
                raised = np.exp(h[s, tokens[order]])
                gates = dict(zip(order, raised / raised.sum(), strict=True))
                importance[s] += chance / 2 * max(gates.values())
                seen[task, s] += chance * (gates.get(0, 0.0) >= 1 / p.l)
    return importance, *seen


def test_importance_and_proficiency_are_those_of_all_inputs_of_independent_tokens():
    rng = np.random.default_rng(3)
    p = Parameters(d=6, n=5, k=8, l=3, m=2, data="iid", n_test="all")
    pi = np.array([0.4, 0.3, 0.2, 0.1])
    start = initial.from_alignments(
        p, rng.standard_normal((8, 6)), rng.standard_normal((8, 2, 6)), np.where(np.arange(8) % 2, 1.0, -1.0), pi=pi
    )  # fmt: skip
    importance, first, second = by_hand(start, pi, p.n - 1)
    assert criteria.scores(start, rng)["importance"] == pytest.approx(importance, abs=1e-12)
    found = criteria.proficiency(start)
    assert found[0] == pytest.approx(first, abs=1e-12) and found[1] == pytest.approx(second, abs=1e-12)
    # A task token can be among the l and yet have less than an even share: these experts tell the two apart.
    kept = np.array([[(h[t] > np.sort(h[2:])[:2].max()) for h in start.state["h"]] for t in (0, 1)], float)
    assert np.abs(kept - np.stack([first, second])).max() > 0.05


def test_a_neuron_at_zero_is_active_in_every_program():
    value, slope = model.activate(np.array([-1e-300, 0.0, 2.0]))
    assert value.tolist() == [0.0, 0.0, 2.0] and slope.tolist() == [0.0, 1.0, 1.0]
    zero = {"w": np.array([[0.3, -0.2, 0.1, 0.0]]), "W": np.zeros((1, 2, 4)), "a": np.array([1.0])}
    rates = {"l": 2, "n": 4, "eta_r": 1e-3, "eta_e": 1e-2, "until": 3, "save_points": 2}
    run = odesim.integrate("pruning", initial=zero, **rates)
    assert (run["u"][-1, 0, :, 0] > 0).all()  # of the class that the head sign pushes up: it has begun to move


def test_a_token_that_stands_several_times_weighs_as_often_where_tokens_choose():
    rng = np.random.default_rng(4)
    logits, activation = rng.standard_normal((3, 2, 1)), rng.random((3, 2, 1))
    rule = (2, 1, 0, np.array([1.0, -1.0, 1.0]))
    neurons, routers, output = model.weigh(logits, activation, np.array([[1.0], [4.0]]), np.ones(1), *rule)
    wide = [np.concatenate([x[:, :1], *[x[:, 1:]] * 4], axis=1) for x in (logits, activation)]
    apart = model.weigh(*wide, np.ones((5, 1)), np.ones(1), *rule)
    assert output == pytest.approx(apart[2], rel=1e-13)
    for joint, one in ((neurons, apart[0]), (routers, apart[1])):
        assert joint[:, 0] == pytest.approx(one[:, 0], rel=1e-13)
        assert joint[:, 1] == pytest.approx(one[:, 1:].sum(axis=1), rel=1e-13)


def test_all_inputs_of_one_pattern_are_listed_with_their_copies_and_chances():
    p = Parameters(d=6, n=5, k=2, l=3, m=1)
    pi = np.array([0.4, 0.3, 0.2, 0.1])
    start = initial.from_alignments(p, np.zeros((2, 6)), np.ones((2, 1, 6)), np.array([1.0, -1.0]), pi=pi)
    found = model.inputs(start)
    assert found.copies.tolist() == [[1.0] * 8, [4.0] * 8]  # a task token and n - 1 others
    assert found.tokens.tolist() == [[0] * 4 + [1] * 4, [2, 3, 4, 5] * 2]
    assert found.weight == pytest.approx(np.tile(pi, 2) / 2)


def test_norms_count_what_lies_outside_the_patterns():
    rng = np.random.default_rng(6)
    p = Parameters(d=8, n=6, k=2, l=3, m=2)
    h, u = rng.standard_normal((2, 8)), rng.standard_normal((2, 2, 8))
    outside = {"router_rest": np.array([3.0, 0.5]), "neuron_rest": np.array([[1.0, 2.0], [0.0, 4.0]])}
    start = initial.from_alignments(p, h, u, np.array([1.0, -1.0]), **outside)
    found = criteria.scores(start, rng)
    wide = [np.append(h[s], math.sqrt(outside["router_rest"][s])) for s in (0, 1)]
    assert found["router_norm"] == pytest.approx([np.linalg.norm(row) for row in wide], rel=1e-12)
    lengths = [
        [np.linalg.norm(np.append(u[s, r], math.sqrt(outside["neuron_rest"][s, r]))) for r in (0, 1)] for s in (0, 1)
    ]
    assert found["neuron_norm_mean"] == pytest.approx(np.mean(lengths, axis=1), rel=1e-12)


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_a_pretrained_router_beats_the_patterns_of_the_chance_asked_for(chance):
    p = Parameters(d=22, l=3)
    h = initial.router(p, np.full(20, 0.05), 0, chance, np.random.default_rng(1))
    assert int((h[0] > h[2:]).sum()) == round(20 * chance)
    assert np.abs(h[0] - h[2:]).min() >= p.separation - 1e-12
    uneven = np.array([0.5, *np.full(19, 0.5 / 19)])
    h = initial.router(p, uneven, 1, 0.8, np.random.default_rng(2))
    assert uneven[h[1] > h[2:]].sum() == pytest.approx(0.8, abs=0.5 / 19)
    assert h[0] < h[1:].min()


@pytest.mark.parametrize("wrong", [0, 3, 40])
def test_the_bound_of_an_error_seen_in_a_sample_is_missed_once_in_twenty(monkeypatch, wrong):
    p = Parameters(d=8, n=6, k=2, l=3, m=1, data="iid", n_test=40)
    start = initial.from_alignments(p, np.zeros((2, 8)), np.ones((2, 1, 8)), np.array([1.0, -1.0]))
    monkeypatch.setattr(criteria, "error", lambda initial, kept: (wrong / 40, 0.0))
    upper = evaluate(start, np.random.default_rng(0)).summary["f_error_upper_95"]
    assert upper == 1.0 if wrong == 40 else stats.binom.cdf(wrong, 40, upper) == pytest.approx(0.05)


def test_a_neuron_switched_off_stays_off_when_its_pattern_is_pushed_up_again():
    """Irrelevant patterns are pushed down while the own task has the larger gate, and up once the other one has."""
    h, u = np.array([[1.5, 0.3, 0.0, 0.0, 0.0, 0.0]]), -np.ones((1, 3, 6))
    u[0, :, 2:] = np.array([0.02, 0.6, 1.5])[:, None]
    start = {"w": h, "W": u, "a": np.array([1.0])}
    rates = {"l": 3, "eta_r": 0.005 / 8, "eta_e": 0.02 / 8, "until": 8 * 2000, "save_points": 41}
    flow = odesim.integrate("pruning", initial=start, tier="flow", **rates)
    recursion = odesim.integrate("pruning", initial=start, **rates)
    last, least = flow["u"][:, 0, 2, 2], flow["u"][:, 0, 0, 2]
    assert last.min() < 1.4 and last[-1] > 3.0  # down by more than the first neuron had, and up again
    assert (least[flow.time > flow.time[last.argmin()]] <= 1e-12).all()
    assert np.abs(flow["u"] - recursion["u"]).max() < 5e-3
