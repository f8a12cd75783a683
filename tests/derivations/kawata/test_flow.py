"""The exact flow: quadrature of the mean gradient, published numbers, invariances, back ends and integrators."""

import dataclasses
import math

import numpy as np
import pytest

import odesim
from derivations.contract import Independent
from derivations.equations.interpreter import Evaluator
from derivations.kawata import initial, tiers
from derivations.kawata.initial import join
from derivations.kawata.parameters import ACTIVATIONS, Parameters
from derivations.kawata.shifted import shifted
from odesim.evidence.laboratory import Laboratory
from odesim.flow.problem import compile_functions
from odesim.request.case import find_system

LAB = Laboratory(find_system("kawata"))


def slope(start, tier=None):
    """dm/dt of all neurons (N, 2C + 1)."""
    return join(LAB.functions(start, tier).flow(start.state))


@pytest.mark.parametrize(("C", "mix"), [(1, 0.0), (1, 0.3), (2, 0.0)])
@pytest.mark.parametrize("name", ["relu", "polynomial", "erf", "cos"])
def test_flow_equals_a_quadrature_of_the_mean_gradient(tools, name, C, mix):
    links = ((0, 0, 0, 0.8, 0.3), (0, 0, 0, -0.5, 0.4), (0, 0, 0, 0.6, 0.2))[:C] + ((0, 0, 0, 0.7, -0.4),)
    s = (0.8, -0.6)[:C]
    sigma = (0, 0.2, 0, 0.7, 0.4) if name == "polynomial" else ()
    frame, w = tools.vectors(C, 2 * C + 2, 1, seed=4, mix=mix)
    start = tools.initial(
        frame, w, np.array([-1.0]), np.array([0.4]), activation=name, sigma=sigma, link=links, s=s, rho=1.3
    )
    expected = tools.drift(
        w[0], frame, links, s, 1.3, -1.0, 0.4, tools.slope(name, sigma), kink=name == "relu"
    )  # fmt: skip
    np.testing.assert_allclose(slope(start)[0], expected, rtol=1e-9, atol=1e-12)


def test_the_published_example_and_the_drift_that_leaves_out_the_means():
    arrays = {"kappa": np.array([[0.6]]), "xi": np.zeros(1), "nu": np.array([[0.8]]), "a": np.ones(1), "b": np.zeros(1)}
    case = dict(C=1, k_star=4, rho=2, s=(0,), activation="polynomial", sigma=(0, 0, 0, 0, 0.7, 0.4, 0.2), d=100)
    start = LAB.initial(initial=arrays, **case)
    # Direct two-dimensional quadrature of the mean gradient gives these digits.
    np.testing.assert_allclose(slope(start)[0], [1.624401226, 0.0, -1.218300920], atol=1e-9)
    assert slope(start, "paper")[0, 0] == pytest.approx(1.953747719, abs=1e-9)


@pytest.mark.parametrize(
    ("tier", "mix"),
    [*((tier, 0.0) for tier in ("exact", "paper", "R1", "R2", "R4")), ("exact", 0.2), ("paper", 0.2)],
)
def test_back_ends_agree_and_the_jacobian_is_the_derivative(tools, tier, mix):
    frame, w = tools.vectors(2, 9, 5, seed=1, mix=mix)
    rng = np.random.default_rng(0)
    start = tools.initial(frame, w, rng.choice([-1.0, 1.0], 5), rng.normal(size=5), k_star=3, rho=1.5, s=(1, -0.5))
    equations = tiers.equations(start.parameters, tier)
    y, numbers = equations.start(start), equations.arguments(start)
    numba, plain = compile_functions(equations, "numba"), compile_functions(equations, "numpy")
    reference = plain["flow"](0.0, y, *numbers)
    np.testing.assert_allclose(numba["flow"](0.0, y, *numbers), reference, rtol=1e-12, atol=1e-14)
    assert numba["loss"](y, *numbers) == pytest.approx(float(plain["loss"](y, *numbers)), rel=1e-12)
    if not isinstance(equations.advance, Independent):
        return
    rates, along = numba["derivative"](numbers).programs
    for j in range(5):
        unit = np.tile(np.eye(5)[j], (5, 1))
        found = along.new(np.hstack([y.reshape(5, 5), unit]).ravel()).reshape(5, 10)
        above, below = (rates.new(y + h * unit.ravel()).reshape(5, 5) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(found[:, :5], reference.reshape(5, 5), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found[:, 5:], (above - below) / 2e-6, atol=1e-8)


def test_the_gradient_is_that_of_every_term_of_the_potential():
    """U = a/(J C) sum_c q_c sum_i alpha_i(rho nu_c + b) (beta_ci kappa_c^i + s_c gamma_i xi^i), degree by degree."""
    rng, degree = np.random.default_rng(4), 6
    link = tuple(tuple(np.concatenate([[0.0], rng.normal(size=degree)])) for _ in range(3))
    p = Parameters(C=2, M=1, J=3, d=100, activation="cos", link=link, s=(1.0, -0.7), rho=1.3, neurons=3)
    statement = tiers.phase1(p, "exact")
    start = initial.enter(p, None, rng)
    state = {
        "kappa": rng.uniform(-0.6, 0.6, (3, 2)),
        "xi": rng.uniform(-0.6, 0.6, 3),
        "nu": rng.normal(size=(3, 2)) / 3,
    }
    known = Evaluator(statement, {**statement.numbers(start), **state}).values
    a, b = start.constants["a"], start.constants["b"]
    t = p.rho * state["nu"] + b[:, None]
    alpha = np.array(shifted(np, ACTIVATIONS.index("cos"), a[:, None] + 0 * t, t, np.zeros((1, 1)), degree + 1))
    by = {name: np.zeros((3, 2)) for name in ("kappa", "xi", "nu")}
    for i in range(1, degree + 1):
        local, remote = np.array([row[i] for row in link[:2]]), link[2][i] * np.array([1.0, -0.7])
        kappa, xi = state["kappa"], state["xi"][:, None]
        by["kappa"] += i * alpha[i] * local * kappa ** (i - 1)
        by["xi"] += i * alpha[i] * remote * xi ** (i - 1)
        by["nu"] += p.rho * math.sqrt(i + 1) * alpha[i + 1] * (local * kappa**i + remote * xi**i)
    np.testing.assert_allclose(known["U_kappa"], by["kappa"] / 6, rtol=1e-12)
    np.testing.assert_allclose(known["U_xi"], by["xi"].sum(1) / 6, rtol=1e-12)
    np.testing.assert_allclose(known["U_nu"], by["nu"] / 6, rtol=1e-12)


@pytest.mark.parametrize("tier", ["exact", "R3"])
def test_polynomials_of_each_neuron_that_are_alike_are_the_common_one(tier):
    """Also where a neuron's shift rho nu + b is 0, and its powers have no logarithm."""
    rng, sigma = np.random.default_rng(6), (0.0, 0.2, 0.0, 0.7, 0.4)
    arrays = {"kappa": rng.normal(size=(3, 2)) / 4, "xi": rng.normal(size=3) / 4, "nu": rng.normal(size=(3, 2)) / 4}
    arrays |= {"a": np.ones(3), "b": np.array([0.0, 0.3, -0.2])}
    arrays["nu"][0] = 0.0
    case = dict(C=2, d=100, k_star=3, s=(1, -1), activation="polynomial", tier=tier)
    one, own = (LAB.initial(initial={**arrays, "sigma": np.tile(sigma, (n, 1))}, **case) for n in (1, 3))
    assert own.parameters.signs and not one.parameters.signs
    first, second = (LAB.functions(start, tier).flow({**start.state, "dn": arrays["nu"][:, 0]}) for start in (one, own))
    for name, values in first.items():
        np.testing.assert_allclose(second[name], values, rtol=1e-13, atol=1e-16)


def test_integrators_and_back_ends_agree():
    case = dict(C=2, d=1000, neurons=6, seed=3, activation="erf", k_star=3, bias=(-1, 1), rho=1.5, until=2000,
                save_points=6, rtol=1e-9)  # fmt: skip
    runs = [odesim.integrate("kawata", **case, **kind) for kind in ({}, {"solver": "DOP853"}, {"backend": "jax"})]
    reached = np.isfinite(runs[0]["T_kappa"])
    assert reached.any()
    for other in runs[1:]:
        np.testing.assert_allclose(runs[0]["kappa"], other["kappa"], atol=1e-8)
        np.testing.assert_allclose(runs[0]["T_kappa"][reached], other["T_kappa"][reached], rtol=1e-9)


def test_the_loss_falls_and_neurons_stay_in_the_ball():
    run = odesim.integrate("kawata", C=3, d=200, neurons=40, k_star=4, rho=2, s=(1, 0, -1), save_points=60)
    assert run.invariants["loss_increase"] <= 1e-15 and run.invariants["ball_excess"] < 1e-8


def test_tasks_at_zero_stay_there_and_even_links_are_symmetric():
    rng = np.random.default_rng(2)
    m = 0.3 * rng.normal(size=(4, 5))
    m[0, 0] = m[1, 2] = 0.0
    arrays = {"kappa": m[:, :2], "xi": m[:, 2], "nu": m[:, 3:], "a": np.ones(4), "b": rng.normal(size=4)}
    start = LAB.initial(initial=arrays, C=2, k_star=4, d=100)
    at = slope(start)
    assert at[0, 0] == 0.0 and at[1, 2] == 0.0
    flipped = dataclasses.replace(start, state={**start.state, "kappa": -start.state["kappa"]})
    np.testing.assert_allclose(slope(flipped), at * [-1, -1, 1, 1, 1], rtol=1e-13)


def test_the_ratio_of_two_overlaps_does_not_feel_the_projection():
    start = LAB.initial(C=2, k_star=4, d=50, neurons=5, rho=1.5, bias=(-0.5,))
    m, at = join(start.state), slope(start)
    paper = slope(start, "paper")
    for i, j in ((0, 1), (0, 2)):
        exact = at[:, i] / m[:, i] - at[:, j] / m[:, j]
        np.testing.assert_allclose(exact, paper[:, i] / m[:, i] - paper[:, j] / m[:, j], rtol=1e-8, atol=1e-12)


def test_without_means_the_cancelled_task_has_no_force():
    start = LAB.initial(C=2, k_star=4, d=50, neurons=5, rho=0, bias=(-0.5,))
    m, at = join(start.state), slope(start)
    R = -at[:, 3] / m[:, 3]
    np.testing.assert_allclose(at[:, 2], -m[:, 2] * R, rtol=1e-10)


def test_time_scales_with_the_width_and_with_the_square_of_the_experts():
    arrays = {"kappa": np.array([[0.1, -0.2]]), "xi": np.array([0.2]), "nu": np.array([[0.1, 0.0]]), "a": np.ones(1),
              "b": np.array([-0.5])}  # fmt: skip
    base = slope(LAB.initial(initial=arrays, C=2, d=100))
    np.testing.assert_allclose(
        slope(LAB.initial(initial=arrays, C=2, d=100, J=7, M=3)), base / 63, rtol=1e-14, atol=1e-20
    )
