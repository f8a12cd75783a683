"""The exact Gram flow against explicit vectors: gradients, invariants, exact reductions, the optimum."""

import dataclasses

import numpy as np
import pytest

from derivations.contract import Initial
from derivations.equations import arrays
from derivations.equations.lower import lower
from derivations.equations.setup import setup
from derivations.liao import initial, overlaps
from derivations.liao.claims import tools
from derivations.liao.gate import correlations_at, gate_table
from derivations.liao.parameters import Parameters
from derivations.liao.tiers import equations, statement
from odesim.flow.problem import compile_functions

C1, C3 = 0.20662096414190703726, -0.062396483959259193493
"""Hermite coefficients of the logistic function, to twenty digits (mpmath, independent of this program)."""


def functions(parameters, backend="numba"):
    """`flow` and `loss` of the exact tier."""
    return compile_functions(equations(parameters, "exact"), backend)


def evaluate(start: Initial, name="flow", backend="numba"):
    """The flat derivative (as components) or the loss at an initial condition."""
    exact = equations(start.parameters, "exact")
    y, arguments = exact.start(start), exact.arguments(start)
    compiled = functions(start.parameters, backend)
    if name == "loss":
        return float(compiled["loss"](y, *arguments))
    return exact.unpack(np.asarray(compiled["flow"](0.0, y, *arguments)))


def state_of(m, m_star=0, a=None, b=None, **overlaps) -> Initial:
    """An initial condition with given overlaps, every other one zero, orthonormal teacher."""
    shapes = dict.fromkeys(("gamma1", "gamma2", "zeta1", "zeta2"), (m, m_star)) | {"I3": (m, m)}
    state = {name: np.zeros(shape) for name, shape in shapes.items()}
    state |= {"I1": np.eye(m), "I2": np.eye(m)}
    state |= {name: np.asarray(values, float) for name, values in overlaps.items()}
    constants = {
        "norm_v": np.ones(m) if a is None else np.asarray(a),
        "norm_w": np.ones(m) if b is None else np.asarray(b),
    }
    constants["teacher_gram"] = np.eye(2 * m_star)
    return Initial(Parameters(m=m, m_star=m_star, d=10**6), state, constants, 1e-3)


def loss_of_rows(parameters, rows: np.ndarray) -> float:
    """The closed-form loss of explicit rows [V, W, V*, W*], through the program's own loss."""
    m, s = parameters.m, parameters.m_star
    arrays = {
        "V": rows[:m],
        "W": rows[m : 2 * m],
        "V_star": rows[2 * m : 2 * m + s],
        "W_star": rows[2 * m + s :],
    }
    return evaluate(initial.from_weights(parameters, arrays), "loss")


def numerical_gradient(parameters, rows: np.ndarray, h=2e-3) -> np.ndarray:
    """dL/d(student rows) by eighth-order central differences."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    gradient = np.zeros((2 * parameters.m, rows.shape[1]))
    for index in np.ndindex(gradient.shape):
        for k, weight in weights.items():
            for sign in (1, -1):
                moved = rows.copy()
                moved[index] += sign * k * h
                gradient[index] += sign * weight * loss_of_rows(parameters, moved) / h
    return gradient


@pytest.mark.parametrize(
    ("degree", "gate", "temperature"), [(3, "logistic", 1.0), (2, "probit", 1.0), (4, "logistic", 1.7)]
)
def test_gram_flow_is_minus_the_gradient_of_the_loss_in_weight_space(vectors, degree, gate, temperature):
    v = vectors(degree=degree, gate=gate, temperature=temperature)
    p, rows = v.parameters, np.vstack(list(v.arrays.values()))
    gradient = numerical_gradient(p, rows)
    norms = np.linalg.norm(rows, axis=1)
    unit = rows / norms[:, None]
    students = 2 * p.m
    # d(unit row) = -(I - u u^T) grad / norm, for raw rows moving along -grad
    moving = -gradient / norms[:students, None]
    moving -= (moving * unit[:students]).sum(1, keepdims=True) * unit[:students]
    rate = np.zeros((len(rows), len(rows)))
    rate[:students] = moving @ unit.T
    expected = initial.components(rate + rate.T, p.m, p.m_star)
    found = evaluate(v.initial)
    for name, values in expected.items():
        derivative = found[name] - np.eye(p.m) if name in ("I1", "I2") else found[name]
        assert np.abs(derivative - values).max() < 1e-9, name


def test_gradient_flow_conserves_the_norms_of_raw_rows(vectors):
    v = vectors(m=2, m_star=1, d=6)
    rows = np.vstack(list(v.arrays.values()))
    gradient = numerical_gradient(v.parameters, rows)
    assert np.abs((gradient * rows[: len(gradient)]).sum(1)).max() < 1e-9


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("degree", [3, 4])
def test_back_ends_agree_at_random_states(vectors, backend, degree):
    v = vectors(m=4, m_star=3, d=9, seed=3, degree=degree)
    numba, other = evaluate(v.initial), evaluate(v.initial, backend=backend)
    for name, values in numba.items():
        assert np.abs(values - other[name]).max() < 1e-12, name
    assert evaluate(v.initial, "loss") == pytest.approx(evaluate(v.initial, "loss", backend), abs=1e-12)


def test_right_hand_side_agrees_with_thirty_digit_arithmetic(vectors):
    mpmath = pytest.importorskip("mpmath")
    v = vectors(m=2, m_star=1, d=5, seed=8)
    exact, stated = equations(v.parameters, "exact"), statement(v.parameters, "exact")
    y, arguments = exact.start(v.initial), exact.arguments(v.initial)
    precise = np.vectorize(mpmath.mpf, otypes=[object])
    with mpmath.workdps(30):
        state = {name: precise(values) for name, values in v.initial.state.items()}
        program = lower(stated, stated.numbers(v.initial), frozenset(("I1", "I2")))["lift"]
        numbers = {name: precise(x) for name, x in setup(program, stated.numbers(v.initial)).items()}
        reference = arrays.evaluate(program, numbers, state)
        wanted = exact.layout.pack({name: values.astype(float) for name, values in reference.items()})
    assert np.abs(functions(v.parameters)["flow"](0.0, y, *arguments) - wanted).max() < 1e-14


def test_flow_is_the_mean_of_one_sgd_step_by_monte_carlo(vectors):
    v = vectors(m=2, m_star=1, d=6, seed=2, norms=(0.9, 1.1))
    p, rows = v.parameters, np.vstack(list(v.arrays.values()))
    norms = np.linalg.norm(rows, axis=1)
    unit, m = rows / norms[:, None], p.m
    rng = np.random.default_rng(11)
    batches = []
    for _ in range(200):
        x = rng.normal(size=(5000, p.d))
        f = x @ unit.T
        gate, h = 1 / (1 + np.exp(-f[:, :m])), f[:, m : 2 * m] ** 3 - 3 * f[:, m : 2 * m]
        target = f[:, 2 * m + 1] ** 3 - 3 * f[:, 2 * m + 1]
        residual = (gate * h).sum(1) - target / (1 + np.exp(-f[:, 2 * m]))
        coefficient = np.hstack([gate * (1 - gate) * h, gate * 3 * (f[:, m : 2 * m] ** 2 - 1)]) * residual[:, None]
        g = coefficient.T @ x / len(x)
        g -= (g * unit[: 2 * m]).sum(1, keepdims=True) * unit[: 2 * m]
        rate = np.zeros((len(rows), len(rows)))
        rate[: 2 * m] = -(g / norms[: 2 * m, None] ** 2) @ unit.T
        batches.append(rate + rate.T)
    mean, error = np.mean(batches, axis=0), np.std(batches, axis=0, ddof=1) / np.sqrt(len(batches))
    predicted = evaluate(v.initial)
    expected = overlaps.assemble_gram(
        {n: a - np.eye(m) if n in ("I1", "I2") else a for n, a in predicted.items()}, np.zeros((2, 2))
    )
    moving = error > 1e-9  # the entries fixed by normalisation have no spread
    z = (mean - expected)[moving] / error[moving]
    assert np.abs(z).max() < 4
    assert moving.sum() > 20


def test_one_expert_and_one_teacher_reduce_to_two_equations():
    g1, g2, a, b = 0.4, 0.6, 1.2, 0.8
    start = state_of(1, 1, [a], [b], gamma1=[[g1]], gamma2=[[g2]])
    found = evaluate(start)
    s00 = float(correlations_at(start.parameters, g1)[0, 0])
    h = 1e-5
    s11 = float((correlations_at(start.parameters, g1 + h) - correlations_at(start.parameters, g1 - h))[0, 0])
    assert found["gamma2"][0, 0] == pytest.approx(18 / b**2 * s00 * g2**2 * (1 - g2**2), abs=1e-13)
    assert found["gamma1"][0, 0] == pytest.approx(6 / a**2 * s11 / (2 * h) * g2**3 * (1 - g1**2), abs=1e-9)
    for name in ("zeta1", "zeta2", "I3"):
        assert np.abs(found[name]).max() < 1e-15
    assert evaluate(start, "loss") == pytest.approx(3 - 6 * C1 - 6 * s00 * g2**3, abs=1e-13)


def test_two_students_without_teacher_repel_or_annihilate():
    i1, i2, a, b = -0.3, -0.5, np.array([1.1, 0.9]), np.array([0.8, 1.3])
    off = np.array([[0, 1], [1, 0]])
    start = state_of(2, 0, a, b, I1=np.eye(2) + i1 * off, I2=np.eye(2) + i2 * off)
    found = evaluate(start)
    s00 = float(correlations_at(start.parameters, i1)[0, 0])
    expected = -18 * (1 / b**2).sum() * s00 * i2**2 * (1 - i2**2)
    assert found["I2"][0, 1] == pytest.approx(expected, abs=1e-13)
    assert found["I2"][0, 1] < 0, "a negative overlap of two students falls further, to -1"
    assert evaluate(start, "loss") == pytest.approx(3 - 6 * C1 + 6 * s00 * i2**3, abs=1e-13)


def test_one_expert_alone_turns_its_gate_and_feature_orthogonal():
    p = 0.37
    found = evaluate(state_of(1, 0, [1.2], [0.7], I3=[[p]]))
    c5, c7 = 0.064379973249044120669, -0.12258043626292642735
    force = -18 * C3 * p - 18 * c5 * p**3 - 3 * c7 * p**5
    assert found["I3"][0, 0] == pytest.approx(-(1 / 1.2**2 + 1 / 0.7**2) * (1 - p**2) * force, abs=1e-13)


def test_loss_at_initialisation_and_at_the_optimum():
    parameters = Parameters(m=25, m_star=5, d=10**12)
    start = initial.enter(parameters, None, np.random.default_rng(4))
    assert evaluate(start, "loss") == pytest.approx(30 * (3 - 6 * C1) / 2, abs=1e-4)  # 26.404 as d -> infinity
    m = 3
    eye = np.eye(m)
    best = state_of(m, m, gamma1=eye, gamma2=eye)
    assert abs(evaluate(best, "loss")) < 1e-13
    assert max(np.abs(v - (eye if n in ("I1", "I2") else 0)).max() for n, v in evaluate(best).items()) < 1e-13


def test_flow_near_the_optimum_has_the_spectrum_of_the_exact_hessian():
    m = 2
    start = state_of(m, m, gamma1=np.eye(m), gamma2=np.eye(m))
    parameters = dataclasses.replace(start.parameters, tier="linear")
    start = dataclasses.replace(start, parameters=parameters)
    rates = np.linalg.eigvals(tools.jacobian(start, tools.optimum(start)))
    assert np.abs(rates.imag).max() < 1e-9
    rates = np.sort(-rates.real)
    for eigenvalue in (0.26901745, 1.81440973, 5.28082265, 6.47267177):
        assert np.abs(rates - eigenvalue).min() < 1e-8
    # 1 - gamma is quadratic in the displacement and decays twice as fast; the slowest overlap sets D2's rate
    assert np.abs(rates - 2 * (C1 - C3)).min() < 1e-9
    assert 2 * (C1 - C3) == pytest.approx(0.5380348962, abs=1e-9)
    assert rates[0] == pytest.approx(C1 - C3, abs=1e-9)


def rates_of(start, tier):
    """The components of the rates of a tier at the state in which it begins from an initial condition."""
    stated = equations(start.parameters, tier)
    y = stated.start(start)
    return stated.unpack(compile_functions(stated, "numba")["flow"](0.0, y, *stated.arguments(start)))


def test_the_cascade_is_the_exact_flow_of_one_pair():
    start = state_of(1, 1, [1.2], [0.8], gamma1=[[0.4]], gamma2=[[0.6]])
    exact, cascade = rates_of(start, "exact"), rates_of(start, "cascade")
    for name in ("gamma1", "gamma2"):
        assert cascade[name][0] == pytest.approx(exact[name][0, 0], rel=1e-12)


def test_the_linear_tier_is_the_jacobian_of_the_exact_one():
    m, rng = 3, np.random.default_rng(7)
    a, b = rng.uniform(0.7, 1.4, m), rng.uniform(0.7, 1.4, m)
    start = state_of(m, m, a, b, gamma1=np.eye(m)[[1, 2, 0]], gamma2=np.eye(m)[[1, 2, 0]])
    layout, centre = equations(start.parameters, "exact").layout, tools.optimum(start)
    y = layout.pack(centre) + 0.01 * rng.normal(size=layout.pack(centre).size)
    expected = tools.jacobian(start, centre) @ (y - layout.pack(centre))
    stated = equations(start.parameters, "linear")
    found = compile_functions(stated, "numba")["flow"](0.0, y, *stated.arguments(start))
    assert np.abs(found - expected).max() < 1e-13


def test_the_leading_order_is_that_of_the_exact_flow():
    rng, eps, m = np.random.default_rng(3), 1e-4, 3
    off = np.triu(rng.normal(size=(m, m)), 1)
    overlaps = {"gamma2": eps * rng.normal(size=(m, 2)), "I2": np.eye(m) + eps * (off + off.T)}
    start = state_of(m, 2, [1.2, 0.9, 1.0], [0.8, 1.1, 1.0], **overlaps)
    exact, leading = rates_of(start, "exact"), rates_of(start, "riccati")
    everything, upper = (slice(None), slice(None)), np.triu_indices(m, 1)
    for name, order, entries in (("gamma1", 3, everything), ("gamma2", 2, everything), ("I2", 2, upper)):
        rates, wanted = leading[name][entries], exact[name][entries]
        assert np.abs(rates - wanted).max() < 1e-2 * np.abs(wanted).max(), name
        assert np.abs(wanted).max() < 100 * eps**order


def test_small_overlaps_follow_the_leading_order_with_the_missing_repulsion():
    rng = np.random.default_rng(0)
    m, s = 3, 2
    shape = rng.normal(size=(2 * m + 2 * s, 2 * m + 2 * s))
    shape = (shape + shape.T) / 2
    np.fill_diagonal(shape, 0)
    shape[2 * m :, 2 * m :] = 0
    worst = {"I2": [], "gamma2": []}
    for eps in (1e-3, 1e-4):
        gram = np.eye(len(shape)) + eps * shape
        gram[np.arange(m), m + np.arange(m)] = gram[m + np.arange(m), np.arange(m)] = 0
        start = initial.from_gram(Parameters(m=m, m_star=s, d=10**6), gram, np.ones(m), np.ones(m))
        found = evaluate(start)
        upper = np.triu_indices(m, 1)
        worst["I2"].append(np.abs(found["I2"][upper] / (-9 * start.state["I2"][upper] ** 2) - 1).max())
        worst["gamma2"].append(np.abs(found["gamma2"] / (4.5 * start.state["gamma2"] ** 2) - 1).max())
    for name, (coarse, fine) in worst.items():
        assert fine < 0.3 * coarse, f"the ratio of {name} must tend to 1 with the overlaps"
        assert fine < 0.05, name


def test_probit_gate_gives_the_arcsine_formula():
    table = gate_table("probit", 1.0, 3)
    for rho in (-0.9, 0.2, 1.0):
        value = table.shift[0] + rho * np.polynomial.polynomial.polyval(rho**2, table.series[0])
        assert value == pytest.approx(0.25 + np.arcsin(rho / 2) / (2 * np.pi), abs=1e-14)


@pytest.mark.parametrize(
    ("gate", "temperature"), [("logistic", 1.0), ("probit", 1.0), ("logistic", 3.0), ("probit", 0.2)]
)
def test_term_count_may_fall_with_the_overlap_without_losing_accuracy(gate, temperature):
    table = gate_table(gate, temperature, 3)
    assert table.reach[0, -1] == 1.0 and (np.diff(table.reach) > 0).all()
    for level, (largest, last) in zip(table.levels, table.reach.T, strict=True):
        x = np.linspace(0.0, largest, 400)
        full, short = (np.polynomial.polynomial.polyval(x, rows.T) for rows in (table.series, level))
        rounding = 4e-16 * np.polynomial.polynomial.polyval(x, np.abs(table.series).T)
        assert not level[:, int(last) + 1 :].any()
        # At temperature 1 all are polynomials, which leave a hundredth of what the series does.
        assert (np.abs(full - short) <= (1e-16 if temperature == 1.0 else 1e-14) + rounding).all()


def test_polynomials_are_half_as_long_as_the_series():
    table = gate_table("logistic", 1.0, 3)
    assert table.series.shape[1] >= 36 and table.levels.shape[2] == 17
