"""The exact population recursion: published numbers, enumeration, invariants, other laws of the tokens."""

import numpy as np
import pytest

import odesim
from derivations.pruning import initial, population
from derivations.pruning.parameters import Parameters
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions
from odesim.request.case import find_system

SYSTEM = find_system("pruning")
LAB = Laboratory(SYSTEM)
# t, h_1, h_q[0], h_q[19], sigma_1, sigma_q[0], |h| of the reference expert, by an independent NumPy program.
REFERENCE = np.array([
    [0, 0.25, -0.5, 0.5, 0.35, 0.35, 2.0382848827],
    [100, 0.2962564754, -0.5031971787, 0.5, 1.3154879909, 0.2722695451, 2.0476123277],
    [200, 0.4613934739, -0.5132088964, 0.5, 2.4382098091, 0.1936981703, 2.0853124004],
    [300, 0.8145736022, -0.5307492130, 0.4856009515, 3.8908682086, 0.1327106474, 2.1953460002],
    [400, 1.3482825259, -0.5542083251, 0.4578396526, 5.6880376951, 0.0807154918, 2.4497836429],
    [500, 1.9777306701, -0.5784038909, 0.4200681929, 7.8844202163, 0.0396924845, 2.8517990985],
])  # fmt: skip


@pytest.fixture(scope="module")
def reference(tools):
    return odesim.integrate(
        SYSTEM, initial=tools.reference_arrays(), l=3, eta_r=0.01, eta_e=0.02, until=500, save_points=6
    )


def test_recursion_gives_the_reference_values(reference):
    h, sigma = reference["h"][:, 0], reference["sigma"][:, 0]
    found = [reference.time, h[:, 0], h[:, 2], h[:, 21], sigma[:, 0], sigma[:, 2], np.linalg.norm(h, axis=1)]
    assert np.abs(np.transpose(found) - REFERENCE).max() < 6e-11
    assert (h[:, 1] == -1.5).all()


def test_the_growth_of_the_norm_is_the_difference_of_norms(reference):
    norms = np.linalg.norm(reference["h"][:, 0], axis=1)
    assert reference["Delta"][:, 0] == pytest.approx(norms - norms[0], abs=1e-14)


def test_invariants_hold_to_round_off(reference):
    assert reference.invariants["router_sum"] < 1e-14
    assert reference.invariants["inactive"] == 0.0
    # Balanced classes: the displacements of a pattern whose neurons are all active sum to zero over patterns.
    top = reference["u"][1, 0, 1] - reference["u"][0, 0, 1]
    assert abs(top.sum()) < 1e-14


def test_selection_is_hit_at_a_whole_step_between_the_saved_ones(reference, tools):
    fine = odesim.integrate(
        SYSTEM, initial=tools.reference_arrays(), l=3, eta_r=0.01, eta_e=0.02, until=500, save_points=501
    )
    lead = fine["h"][:, 0, 0] - fine["h"][:, 0, 2:].max(axis=1)
    assert reference["T_selected"][0] == np.argmax(lead >= 0)
    assert reference["T_gap"][0] == np.argmax(lead >= np.log(3))


def slopes(start):
    """(dPhi/dh, dPhi/dsigma, the loss) of the single expert of a start, all rates 1."""
    equations = population.equations(start.parameters, "recursion")
    functions = compile_functions(equations, "numba")
    y, arguments = equations.start(start), equations.arguments(start)
    d = start.parameters.d
    slope = functions["flow"](0.0, y, *arguments)
    return slope[:d], slope[d:], functions["loss"](y, *arguments)


def test_independent_tokens_have_the_reference_moments(tools):
    h = np.concatenate([[0.3, -0.2], np.linspace(-1, 1, 10)])
    sigma = np.concatenate([[2.0, 1.0], np.linspace(0.5, 1.4, 10)])
    pi = np.full(10, 0.1)
    dh, g, loss = slopes(tools.moments_start("iid", h, sigma, pi, 6, 3))
    assert 2 * g[0] == pytest.approx(0.204003542056, abs=1e-12)
    assert 2 * dh[0] == pytest.approx(0.116873756482, abs=1e-12)
    assert abs(g.sum()) < 1e-13 and abs(dh.sum()) < 1e-13
    loss = slopes(tools.moments_start("distinct", h, sigma, pi, 6, 3))[2]
    assert 1 - loss == pytest.approx((1.399727746536 - 1.199533711047) / 2, abs=1e-12)


@pytest.mark.parametrize("data", ["iid", "distinct"])
@pytest.mark.parametrize(("N", "count", "l"), [(4, 4, 2), (5, 4, 4), (5, 5, 3), (6, 3, 2)])
def test_moments_equal_an_enumeration_of_all_inputs(tools, data, N, count, l):
    rng = np.random.default_rng(100 * N + 10 * count + l)
    h, sigma = 1.5 * rng.standard_normal(N + 2), rng.random(N + 2)
    pi = rng.dirichlet(np.ones(N)) if data == "iid" else np.full(N, 1 / N)
    dh, g, loss = slopes(tools.moments_start(data, h, sigma, pi, count + 1, l))
    mean, right_h, right_g = tools.enumerate_moments(h, sigma, pi, count, l, data == "distinct")
    assert np.abs(dh - right_h).max() < 1e-12 and np.abs(g - right_g).max() < 1e-12
    assert 1 - loss == pytest.approx((mean[0] - mean[1]) / 2, abs=1e-12)


@pytest.mark.parametrize("data", ["single", "multi_copy", "iid", "distinct"])
def test_the_slope_is_the_gradient_of_one_potential(data):
    rng = np.random.default_rng(3)
    p = Parameters(
        d=9, n=5, k=1, l=3, m=1, data=data, copies=2 if data == "multi_copy" else 1, eta_r=1.0, eta_e=1.0
    )  # fmt: skip
    h, sigma = rng.standard_normal(9), 0.2 + rng.random(9)

    def potential(h, sigma):
        return 1 - slopes(initial.from_alignments(p, h[None], sigma[None, None], np.array([1.0])))[2]

    dh, g, _ = slopes(initial.from_alignments(p, h[None], sigma[None, None], np.array([1.0])))
    step = 1e-6
    for i in range(9):
        move = step * (np.arange(9) == i)
        assert (potential(h + move, sigma) - potential(h - move, sigma)) / (2 * step) == pytest.approx(dh[i], abs=1e-8)
        assert (potential(h, sigma + move) - potential(h, sigma - move)) / (2 * step) == pytest.approx(g[i], abs=1e-8)


def test_several_copies_equal_the_law_of_the_best_of_them():
    # Uniform draws with replacement: the pattern of rank r is the best of c with (1-(r-1)/N)^c - (1-r/N)^c.
    rng = np.random.default_rng(1)
    h, sigma = rng.standard_normal(14), rng.random(14)
    p = Parameters(d=14, n=20, k=1, l=4, m=1, eta_r=1.0, eta_e=1.0)
    several = Parameters(d=14, n=20, k=1, l=4, m=1, eta_r=1.0, eta_e=1.0, data="multi_copy", copies=3)
    rank = np.empty(12)
    rank[np.argsort(-h[2:])] = np.arange(1, 13)
    law = (1 - (rank - 1) / 12) ** 3 - (1 - rank / 12) ** 3
    one = slopes(initial.from_alignments(p, h[None], sigma[None, None], np.array([1.0]), pi=law))
    two = slopes(initial.from_alignments(several, h[None], sigma[None, None], np.array([1.0])))
    assert np.abs(one[0] - two[0]).max() < 1e-14 and np.abs(one[1] - two[1]).max() < 1e-14


def test_a_table_of_all_inputs_equals_their_law():
    # Two independent tokens of three equally likely patterns: nine rows for each label, all of chance 1/18.
    rng = np.random.default_rng(5)
    pairs = np.array([(i, j) for i in range(3) for j in range(3)]) + 2
    tokens = np.concatenate([np.column_stack([np.full(9, task), pairs]) for task in (0, 1)])
    labels = np.repeat([1.0, -1.0], 9)
    h, sigma = rng.standard_normal(5), rng.random(5)
    shared = {"d": 5, "n": 3, "k": 1, "l": 2, "m": 1, "eta_r": 1.0, "eta_e": 1.0}
    given = (h[None], sigma[None, None], np.array([1.0]))
    table = slopes(
        initial.from_alignments(Parameters(**shared, data="empirical"), *given, tokens=tokens, labels=labels)
    )  # fmt: skip
    law = slopes(initial.from_alignments(Parameters(**shared, data="iid"), *given))
    assert np.abs(table[0] - law[0]).max() < 1e-13 and np.abs(table[1] - law[1]).max() < 1e-13


def test_numba_and_numpy_agree_under_both_losses():
    start = LAB.initial(d=30, k=14, important=2)
    for loss in ("linear", "hinge"):
        for copies in (1, 3):
            data = "multi_copy" if copies > 1 else "single"
            if loss == "hinge" and copies > 1:
                continue
            p = Parameters(d=30, k=14, l=5, m=20, loss=loss, data=data, copies=copies)
            begin = initial.from_alignments(p, start.state["h"], 0.3 * start.state["u"], start.constants["a"])
            equations = population.equations(p, "recursion")
            found = []
            for backend in ("numba", "numpy"):
                functions, arguments = compile_functions(equations, backend), equations.arguments(begin)
                y = equations.start(begin)
                found.append(np.append(functions["flow"](0.0, y, *arguments), functions["loss"](y, *arguments)))
            assert np.abs(found[0] - found[1]).max() < 1e-15 + 1e-13 * np.abs(found[0]).max()


def test_experts_do_not_feel_each_other_under_the_linear_loss_and_do_under_the_hinge():
    start = LAB.initial(d=20, k=14)
    for loss, same in (("linear", True), ("hinge", False)):
        options = {"d": 20, "l": 5, "m": 20, "loss": loss, "eta_r": 0.01, "eta_e": 0.02, "until": 200, "save_points": 2}
        arrays = {"w": start.state["h"], "W": start.state["u"], "a": start.constants["a"]}
        together = odesim.integrate(SYSTEM, initial=arrays, **{k: v for k, v in options.items() if k != "d"})
        alone = odesim.integrate(
            SYSTEM, initial={name: values[:1] for name, values in arrays.items()},
            **{k: v for k, v in options.items() if k != "d"},
        )  # fmt: skip
        assert np.array_equal(together["h"][-1, 0], alone["h"][-1, 0]) == same


def test_swapping_classes_and_signs_gives_the_mirror_image(tools):
    arrays = tools.random_arrays(7, d=12, k=4)
    swap = np.array([1, 0, *range(2, 12)])
    mirror = {"w": arrays["w"][:, swap], "W": arrays["W"][:, :, swap], "a": -arrays["a"]}
    options = {"l": 3, "eta_r": 0.02, "eta_e": 0.01, "until": 400, "save_points": 3}
    one, two = (odesim.integrate(SYSTEM, initial=given, **options) for given in (arrays, mirror))
    assert np.abs(one["h"][:, :, swap] - two["h"]).max() < 1e-13
    assert np.abs(one["sigma"][:, :, swap] - two["sigma"]).max() < 1e-13


def test_an_expert_that_selects_no_task_token_never_moves():
    run = odesim.integrate(SYSTEM, d=50, eta_e=1.0, until=300, save_points=2)
    neutral = [4, 5, 6, 11, 12, 13]
    assert (run["Delta"][-1, neutral] == 0).all() and (run["sigma"][-1, neutral] == run["sigma"][0, neutral]).all()


def test_frozen_routers_gain_activation_at_half_the_gate():
    # eta_r = 0: D_1 = eta_e t S/2 with constant S, here 1/(1 + (l-1) e^-x) with x = 2.
    h = np.array([[1.0, -3.0, *([-1.0] * 6)]])
    arrays = {"w": h, "W": np.full((1, 2, 8), 1.0), "a": np.array([1.0])}
    run = odesim.integrate(SYSTEM, initial=arrays, l=4, eta_r=0.0, eta_e=0.01, until=100, save_points=2)
    gate = 1 / (1 + 3 * np.exp(-2.0))
    assert run["sigma"][-1, 0, 0] - 2.0 == pytest.approx(2 * 0.01 * 100 * gate / 2, rel=1e-12)
    assert run["Delta"][-1, 0] == 0.0


def test_tolerances_are_refused_for_a_recursion():
    with pytest.raises(odesim.UsageError, match="no meaning for tier recursion"):
        odesim.integrate(SYSTEM, d=20, rtol=1e-6, until=10)
