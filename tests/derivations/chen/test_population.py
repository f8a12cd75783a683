"""The tiers of the flow: against an independent program's numbers, each other, both back ends, and exact limits."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from derivations.chen import initial, nodes
from derivations.chen.parameters import Parameters
from derivations.chen.tiers import explore
from odesim import integrate
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system


@pytest.fixture(scope="module")
def lab():
    return Laboratory(find_system("chen"))


def waves(**parameters):
    """K = 3, J = 2, M = 4 if not given: W = 0.4 sin(1 + m + 2 j + 3 l), Theta = 0.2 cos(m + 2 l) - their mean."""
    M = parameters.get("M", 4)
    m, j, k = np.ogrid[:M, :2, :6]
    w = 0.4 * np.sin(1 + m + 2 * j + 3 * k)
    theta = 0.2 * np.cos(np.arange(M)[:, None] + 2 * np.arange(6))
    theta -= theta.mean(axis=0)
    given = Parameters(**{"M": 4, "J": 2, "K": 3, "rho": 1.0, "d": 6, **parameters})
    return initial.from_overlaps(given, w[..., :3], w[..., 3:], theta[:, 3:], theta[:, :3])


def test_the_exact_flow_has_the_gradients_of_an_independent_program(lab):
    # -grad W[0, 0], -grad Theta[0], |grad W_0| and the loss, by a plain NumPy program with the same eight nodes.
    start = waves()
    functions = lab.functions(start, "p3")
    flow = functions.flow(start.state)
    expert = np.concatenate([flow["feat"][0, 0], flow["cen"][0, 0]]) * 0.0289214362
    assert expert == pytest.approx(
        [0.0211484433, 0.0159305011, 0.0021630382, 0.0074618356, -0.0004357809, -0.0005685636], abs=2e-10
    )
    router = np.concatenate([flow["gfeat"][0], flow["gcen"][0]])
    assert router == pytest.approx(
        [-0.0008629247, 0.0020659109, -0.0006927822, 0.002279917, -0.0013311557, 0.0014021823], abs=2e-10
    )
    assert functions.loss(start.state) == pytest.approx(0.697481202, abs=1e-9)
    run = lab.integrate(start=start, until=1e-3, save_points=2, M=4, J=2, K=3, d=6, rho=1.0)
    assert run["load"][0] == pytest.approx([0.3007953, 0.1915754, 0.2056606, 0.3019687], abs=1e-7)


@pytest.mark.parametrize(
    ("activation", "M"), [("cubic", 4), ("cubic", 5), pytest.param("gelu", 4, marks=pytest.mark.slow)]
)
def test_numba_and_jax_agree(activation, M):
    start = waves(activation=activation, nodes=3, power=2.5, M=M)
    found = []
    for backend in ("numba", "jax"):
        functions = Laboratory(find_system("chen"), backend=backend).functions(start, "p3")
        flow = functions.flow(start.state)
        found.append(np.concatenate([*(flow[name].ravel() for name in flow), [functions.loss(start.state)]]))
    assert np.abs(found[0] - found[1]).max() < 1e-12


def test_the_router_and_expert_drifts_are_the_gradient_of_the_selected_branch(lab):
    # With one expert the routing is trivial and -grad L is a plain derivative of the loss.
    rng = np.random.default_rng(1)
    start = initial.from_overlaps(
        Parameters(M=1, J=2, K=2, d=4, nodes=4),
        0.5 * rng.normal(size=(1, 2, 2)), 0.5 * rng.normal(size=(1, 2, 2)), np.zeros((1, 2)), np.zeros((1, 2)),
    )  # fmt: skip
    functions, step = lab.functions(start, "p3"), 1e-5
    flow, numeric = functions.flow(start.state), {}
    for name in ("feat", "cen"):
        numeric[name] = np.zeros((1, 2, 2))
        for index in np.ndindex(1, 2, 2):
            ends = []
            for sign in (1, -1):
                moved = {n: v.copy() for n, v in start.state.items()}
                moved[name][index] += sign * step
                ends.append(functions.loss(moved))
            numeric[name][index] = -(ends[0] - ends[1]) / (2 * step)
    norm = math.sqrt(sum((v**2).sum() for v in numeric.values()))
    for name, values in numeric.items():
        assert np.abs(flow[name] - values / norm).max() < 1e-8
    assert np.abs(flow["gcen"]).max() < 1e-14  # sum over experts of the router's drift vanishes (Lemma E.1)


def test_centres_and_router_features_stay_zero_where_they_start_at_zero():
    run = integrate("chen", M=4, J=2, K=3, nodes=3, until=1.5, save_points=4, seed=2, sigma_0=0.05, rho=16.0)
    arrays = {name: run[name][0] for name in ("feat", "gcen")}
    start = {**arrays, "cen": np.zeros((4, 2, 3)), "gfeat": np.zeros((4, 3))}
    laboratory = Laboratory(find_system("chen"))
    given = initial.from_state(Parameters(M=4, J=2, K=3, nodes=3, rho=16.0), start)
    again = laboratory.integrate(start=given, until=1.5, save_points=4, M=4, J=2, K=3, nodes=3, rho=16.0)
    assert np.abs(again["cen"]).max() < 1e-13 and np.abs(again["gfeat"]).max() < 1e-13
    assert again["feat"].max() > 1


@pytest.mark.parametrize(
    ("s", "gap", "gamma", "expected"),
    [
        (0.8, 0.1, (0.5, 2.0), 0.4608852226),
        (1.2, 0.5, (0.5, 2.0), 1.60148516),
        (1.2, 0.0, (0.5, 2.0), 0.6080206373),
        (0.8, 0.1, (0.5, 3.0), 0.5324110375),
    ],
)
@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_the_two_variable_reduction_has_an_independent_programs_drift(s, gap, gamma, expected, backend):
    start = initial.specialised(Parameters(M=8, J=1, K=4, rho=64.0, strength=s, contrast=gap, gamma=gamma))
    laboratory = Laboratory(find_system("chen"), backend=backend)
    assert float(laboratory.functions(start, "group2").flow(start.state)["D"]) == pytest.approx(expected, abs=2e-8)


@pytest.mark.parametrize("backend", ["numba", "jax"])
def test_the_manifold_flow_has_an_independent_programs_drift(backend):
    m = np.arange(8)
    feat = np.zeros((8, 1, 4))
    feat[m, 0, m % 4] = 0.5 + 0.1 * m
    g = 0.05 * np.sin(1 + 1.3 * m[:, None] + 0.7 * np.arange(4))
    g -= g.mean(axis=0)
    start = initial.from_overlaps(Parameters(M=8, J=1, K=4, rho=64.0), feat, 0 * feat, g, 0 * g)
    flow = Laboratory(find_system("chen"), backend=backend).functions(start, "spec").flow(start.state)
    assert flow["gcen"][0] == pytest.approx([0.0809903902, -0.0731412063, -0.020877428, -0.0797776912], abs=2e-9)
    assert flow["gcen"][5] == pytest.approx([-0.0862849784, 0.523770437, -0.0865337585, -0.1213232105], abs=2e-9)
    assert flow["strength"] == pytest.approx(1, abs=1e-14)


def test_the_manifold_is_invariant_under_the_exact_flow(lab):
    size = {"M": 4, "J": 2, "K": 2, "rho": 16.0, "init": "specialised", "strength": 0.6, "contrast": 0.2, "d": 4}
    exact = lab.integrate(until=0.6, save_points=4, nodes=10, **size)
    reduced_run = lab.integrate(until=0.6, save_points=4, tier="spec", **size)
    pair = lab.integrate(until=0.6, save_points=4, tier="group2", **size)
    # Ten nodes without cuts at the kinks of the routing: 1e-5.
    assert np.abs(exact["gcen"] - reduced_run["gcen"]).max() < 1e-5
    assert np.abs(exact["feat"] - reduced_run["feat"]).max() < 1e-6
    assert np.abs(reduced_run["gcen"] - pair["gcen"]).max() < 1e-8
    assert np.abs(exact["cen"]).max() == 0


def test_the_race_has_its_closed_form_and_its_limits():
    start = 0.01 * np.array([[1, 0.8], [0.5, -0.6]])
    times = np.array([0.01, 0.03, 0.1])
    closed = explore.closed_form(start, times)
    # An independent program's values, and the losers' limits feat/(1 - feat/max) = 0.04, 0.01, -0.00375.
    assert closed[0].ravel() == pytest.approx([0.01857381, 0.01268404, 0.00650029, -0.00469864], abs=1e-8)
    assert closed[2].ravel() == pytest.approx([0.10655691, 0.02908274, 0.00914205, -0.00388679], abs=1e-8)
    assert explore.closed_form(start, np.array([1e3]))[0].ravel()[1:] == pytest.approx([0.04, 0.01, -0.00375], rel=1e-4)
    given = {"M": 1, "J": 2, "K": 2, "d": 4, "tier": "explore"}
    state = initial.from_overlaps(Parameters(**given), start[None], 0 * start[None], np.zeros((1, 2)), np.zeros((1, 2)))
    run = Laboratory(find_system("chen")).integrate(start=state, until=0.1, save_points=11, **given)
    assert run["feat"][[1, 3, 10], 0] == pytest.approx(closed, abs=1e-9)
    assert run.invariants["inverse_gaps"] < 1e-9


def test_a_frozen_router_stalls_the_specialists_at_the_predicted_strength():
    # alpha = gamma = 1: E[q(c^3)] = tanh(c^3/2)/2 gives c^3 = ln 3, and s* = (M ln 3)^(1/3).
    ones = {"alpha": (1.0,), "gamma": (1.0,), "rho": 0.0}
    assert nodes.frozen_strength(Parameters(alpha=(1.0,), gamma=(1.0,))) == pytest.approx(math.log(3) ** (1 / 3))
    run = integrate("chen", preset="manifold", tier="group2", until=3.0, layer=1e-3, **ones)
    assert float(run["s"][-1]) == pytest.approx((8 * math.log(3)) ** (1 / 3), rel=1e-3)  # the layer's width
    assert nodes.frozen_strength(Parameters(gamma=(0.5, 3.0))) == pytest.approx(0.3437, abs=1e-4)


def test_permuting_experts_commutes_with_the_flow(lab):
    start, order = waves(nodes=3), [2, 0, 3, 1]
    turned = initial.from_overlaps(start.parameters, *(start.state[n][order] for n in ("feat", "cen", "gcen", "gfeat")))
    first, second = lab.functions(start, "p3").flow(start.state), lab.functions(turned, "p3").flow(turned.state)
    for name in first:
        assert np.abs(first[name][order] - second[name]).max() < 1e-13


def test_two_tiers_slide_alike_where_the_router_is_too_slow():
    # Setting 1 with a slow router: the specialists' gradient vanishes near c* M^(1/3) = 0.546 and the flow slides.
    size = {"M": 4, "J": 1, "K": 2, "d": 4, "init": "specialised", "strength": 0.1, "rho": 0.3, "gamma": (0.5, 3.0)}
    exact = integrate("chen", tier="p3", until=1.2, nodes=6, save_points=3, **size)
    reduced_run = integrate("chen", tier="spec", until=1.2, save_points=3, **size)
    strength = exact["feat"][-1].max(axis=(1, 2))
    assert exact.outcome.kind == "completed" and strength == pytest.approx(reduced_run["strength"][-1], abs=1e-4)
    assert strength[0] == pytest.approx(0.3437 * 4 ** (1 / 3), rel=0.03)


def test_a_race_whose_filters_all_come_to_zero_ends_there():
    sizes = {"tier": "explore", "J": 1, "M": 2, "K": 2}
    run = integrate("chen", seed=1, **sizes)
    assert run.outcome.kind == "stopped" and "not determined" in run.outcome.reason
    start, end = run.state["feat"].values[0], run.state["feat"].values[-1]
    doomed = (start < 0).all(axis=(1, 2))
    assert doomed.any() and np.abs(end[doomed]).max() < 1e-9
    # 1/x - 1/x' is conserved and the speed is 1: the time of arrival is a length, by quadrature over the larger one
    x = np.sort(start[doomed][0].ravel())
    gap = 1 / x[0] - 1 / x[1]
    length = quad(lambda u: np.sqrt(1 + (1 / (1 / u + gap) / u) ** 4), x[1], 0.0)[0]
    assert run.time[-1] == pytest.approx(length, rel=1e-7)
    assert integrate("chen", seed=0, **sizes).outcome.kind == "completed"  # a positive one wins


def test_states_inside_long_steps_are_as_accurate_as_those_at_their_ends():
    size = {
        "init": "specialised",
        "normaliser": "expert",
        "rho": 155.0,
        "strength": 0.0101,
        "tier": "p3",
        "laws": "uniform",
    }
    options = {**size, "seed": 540, "rtol": 1e-10, "solver": "DOP853"}
    whole = integrate("chen", until=0.08, save_points=9, **options)
    assert whole.statistics["steps"] < 5  # so that most saved states lie between two
    for k in (1, 4, 6):
        ended = integrate("chen", until=float(whole.time[k]), save_points=2, **options)
        for name in ("feat", "gcen"):
            np.testing.assert_allclose(whole[name][k], ended[name][-1], rtol=3e-9, atol=1e-14)


def test_kinks_of_the_routing_law_do_not_pass_between_the_stages_of_a_step():
    size = {"tier": "full", "M": 2, "data": "online", "data_seed": 2, "n_test": 1, "nodes": 2, "normaliser": "expert"}
    options = {**size, "sigma_0": 0.0042, "until": 0.589223, "save_points": 5, "seed": 116}
    exact = integrate("chen", **options, rtol=1e-13, solver="DOP853")
    run = integrate("chen", **options, rtol=1e-10)
    assert run.statistics["solver"] == "LSODA"
    np.testing.assert_allclose(run["gcen"][-1], exact["gcen"][-1], rtol=3e-10)
    # of 6e-6; DOP853 at this tolerance is off by 6e-12
    np.testing.assert_allclose(run["gfeat"][-1], exact["gfeat"][-1], rtol=0, atol=1e-12)
