"""Results of the literature that must come out of a declaration, at the digits at which they are known."""

import math

import numpy as np
import pytest
from scipy.linalg import expm

import odesim
from derivations.declare import exact, initial
from odesim.flow.problem import compile_functions

ERF = "erf(w/sqrt(2))"
FINE = {"rtol": 1e-12, "atol": 1e-14}


def functions(system, **changed):
    """(flow, equations, parameters, arguments(initial)) of the exact tier."""
    parameters = system.parameters(**changed)
    equations = exact.equations(parameters)
    return compile_functions(equations, "numba")["flow"], equations, parameters


def derivative(system, state, **changed):
    """The derivative of all components at given overlaps."""
    flow, equations, parameters = functions(system, **changed)
    arrays = {name: np.array(values) for name, values in state.items()}
    found = initial.enter(parameters, arrays, np.random.default_rng(0))
    return equations.unpack(flow(0.0, equations.start(found), *equations.arguments(found)))


@pytest.mark.parametrize(
    ("units", "error"), [(2, 0.0116108403127), (3, 0.0202965886570), (10, 0.0744533430006)]
)  # fmt: skip
def test_the_plateau_of_a_soft_committee(units, error):
    # Saad & Solla 1995: all units alike, R = 1/sqrt(K (2K - 1)), Q = 1/(2K - 1).
    system = odesim.declare(student={"unit": ERF, "units": units}, teacher={"units": units})
    start = {"Q_ww": np.full((units, units), 0.2), "M_ww": np.full((units, units), 0.1)}
    run = odesim.integrate(system, initial=start, until=60.0, **FINE)
    assert run["M_ww"][-1] == pytest.approx(np.full((units, units), 1 / math.sqrt(units * (2 * units - 1))), abs=1e-10)
    assert run["Q_ww"][-1] == pytest.approx(np.full((units, units), 1 / (2 * units - 1)), abs=1e-10)
    exact = units / math.pi * (math.pi / 6 - units * math.asin(1 / (2 * units)))
    assert run["error"][-1] / 2 == pytest.approx(exact, abs=1e-10)
    assert exact == pytest.approx(error, abs=1e-12)


def test_the_critical_step_of_one_erf_unit():
    # The fixed point R = Q = 1 of the online limit loses its stability at eta = 4.055778676.
    system = odesim.declare(student={"unit": ERF}, teacher={}, training={"limit": "online"})

    def largest(step: float) -> float:
        flow, equations, parameters = functions(system, step=step)
        found = initial.enter(parameters, {"Q_ww": np.eye(1), "M_ww": np.eye(1)}, np.random.default_rng(0))
        y, arguments, h = equations.start(found), equations.arguments(found), 1e-4
        columns = []
        for k in range(2):
            e = h * np.eye(2)[k]
            # Central differences of fourth order.
            values = [flow(0.0, y + s * e, *arguments) for s in (-2, -1, 1, 2)]
            columns.append((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h))
        return float(np.linalg.eigvals(np.array(columns).T).real.max())

    low, high = 3.0, 5.0
    while high - low > 1e-11:
        middle = (low + high) / 2
        low, high = (middle, high) if largest(middle) < 0 else (low, middle)
    assert low == pytest.approx(4.055778676, abs=2e-9)


@pytest.mark.parametrize("teachers", [2, 4])
def test_one_unit_with_trained_readout_for_many(teachers):
    # Simsek et al. 2023: a = k, |w| = 1/sqrt(2k - 1), loss k/3 - (2 k^2/pi) asin(1/2k).  Far from it the flow is slow
    # (a = 1.97 for k = 2 at time 400): it is held to rest there, and to come back from near it.
    system = odesim.declare(student={"unit": ERF, "output": "trained"}, teacher={"units": teachers})
    square = 1 / (2 * teachers - 1)
    there = {
        "Q_ww": [[square]], "M_ww": np.full((1, teachers), math.sqrt(square / teachers)), "a": [float(teachers)],
    }  # fmt: skip
    for values in derivative(system, there).values():
        assert values == pytest.approx(np.zeros_like(values), abs=1e-13)
    near = {**there, "Q_ww": [[square + 1e-3]], "a": [teachers - 1e-3]}
    run = odesim.integrate(system, initial=near, until=100.0, **FINE)
    exact = teachers / 3 - 2 * teachers**2 / math.pi * math.asin(1 / (2 * teachers))
    assert run["error"][-1] == pytest.approx(exact, abs=1e-7)
    assert odesim.integrate(system, initial=there, until=1.0, **FINE)["error"][-1] == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize(("k", "time"), [(2, 4.05581403915387), (3, 98.5393058109807), (4, 5002.05581403915)])
def test_a_single_index_on_the_sphere(k, time):
    # Ben Arous et al. 2021: dm/dt = k k! m^(k-1) (1 - m^2) from .01 to .5.
    system = odesim.declare(
        student={"unit": f"He({k}, w)"}, training={"loss": "correlation", "weights": "sphere"}, teacher={},
        start={"overlap": 0.01}, event=[{"name": "T", "of": "M_ww", "threshold": 0.5}],
    )  # fmt: skip
    rate = k * math.factorial(k)
    run = odesim.integrate(system, until=1.1 * time / rate, **FINE)
    assert float(run["T"].squeeze()) * rate == pytest.approx(time, rel=1e-10)
    leading = odesim.integrate(system, until=0.9 * time / rate, tier="leading")
    assert leading.summary["information_exponent"] == k
    assert leading.summary["rate"] == pytest.approx(rate, rel=1e-10)


def test_phase_retrieval_online():
    # Arnaboldi et al. 2023: dm/dt = eta m [4 (1 - 6 eta)(1 - m^2) - 2 eta noise^2] with time steps/d.
    system = odesim.declare(
        student={"unit": "w^2"}, teacher={"noise": 0.3}, training={"limit": "online", "weights": "sphere", "step": 0.1}
    )
    for m in (-0.7, 0.05, 0.9):
        for eta, noise in ((0.1, 0.3), (0.05, 0.0), (0.2, 1.0)):
            found = derivative(system, {"Q_ww": [[1.0]], "M_ww": [[m]]}, step=eta, noise=noise)
            expected = eta * m * (4 * (1 - 6 * eta) * (1 - m**2) - 2 * eta * noise**2)
            assert found["M_ww"][0, 0] == pytest.approx(expected, abs=1e-13)
            assert found["Q_ww"][0, 0] == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize(("p", "k", "critical"), [(3, 5, 1 / 6), (4, 5, 2 / 7), (6, 3, 4 / 7)])
def test_the_average_direction_of_many_indices(p, k, critical):
    # Simsek et al. 2025: for k unit vectors of overlap beta it attracts from beta_c = (p - 2)/(k + p - 2) on.
    system = odesim.declare(
        student={"unit": f"He({p}, w)"}, teacher={"units": k}, training={"loss": "correlation", "weights": "sphere"}
    )
    away = np.zeros(k)
    away[:2] = 1.0, -1.0

    def rate(beta: float) -> float:
        average = (1 + (k - 1) * beta) / math.sqrt(k * (1 + (k - 1) * beta))
        ends = []
        for sign in (1, -1):
            # A little less than on the sphere, so that some unit vector has these overlaps.
            state = {"Q_ww": [[1.0]], "M_ww": [(1 - 1e-7) * (average + sign * 1e-4 * away)]}
            ends.append(derivative(system, state, gram=beta)["M_ww"][0])
        return float((ends[0] - ends[1]) @ away / (2e-4 * 2))

    low, high = 0.01, 0.95
    while high - low > 1e-11:
        middle = (low + high) / 2
        low, high = (middle, high) if rate(middle) > 0 else (low, middle)
    # The quotient of differences is off by the square of its step.
    assert low == pytest.approx(critical, abs=1e-6)


def test_quadratic_units_follow_the_matrix_riccati_equation():
    # dW/dt = 4 (T - W W^T) W for units wick(2, w): a whole trajectory in closed form.
    rng = np.random.default_rng(3)
    units, teachers, d = 3, 2, 6
    weights, target = 0.4 * rng.normal(size=(units, d)), rng.normal(size=(teachers, d)) / 2
    system = odesim.declare(student={"unit": "wick(2, w)", "units": units}, teacher={"units": teachers})
    run = odesim.integrate(system, initial={"w": weights, "w_star": target}, until=0.8, save_points=7, **FINE)
    T, W = target.T @ target, weights.T
    values, vectors = np.linalg.eigh(T)
    for t, gram, overlap in zip(run.time, run["Q_ww"], run["M_ww"], strict=True):
        grown = np.where(values > 1e-12, np.expm1(8 * values * t) / np.where(values > 1e-12, values, 1.0), 8 * t)
        inner = np.eye(units) + W.T @ (vectors * grown) @ vectors.T @ W
        moved = expm(4 * T * t) @ W
        # W(t) is this up to a rotation of the units, which the closed form of W W^T does not need.
        product = moved @ np.linalg.solve(inner, moved.T)
        assert np.linalg.eigvalsh(gram)[::-1] == pytest.approx(np.linalg.eigvalsh(product)[::-1][:units], abs=1e-9)
        assert overlap.T @ overlap == pytest.approx(target @ product @ target.T, abs=1e-9)


def test_many_indices_are_learned_one_after_the_other():
    # Ren et al. 2025: teacher j of weight a_j is found in a time proportional to 1/a_j.
    system = odesim.declare(
        student={"unit": "He(3, w)", "units": 4}, teacher={"units": 4, "output": "j^(-1.5)"}, start={"overlap": 0.01},
        training={"loss": "correlation", "weights": "sphere"},
        event=[{"name": "T", "of": "M_ww", "threshold": 0.5}],
    )  # fmt: skip
    run = odesim.integrate(system, until=60.0, **FINE)
    times = np.diagonal(run["T"])
    assert times * np.arange(1, 5) ** -1.5 == pytest.approx(np.full(4, 98.5393058109807 / 18), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "expected"), [(1000, 0.0168), (10_000, 0.0053), (100_000, 0.00168)])
def test_compressed_sgd_approaches_the_online_limit(d, expected):
    # Fluctuations are of order 1/sqrt(d): from .0053 at d = 10^4, seen before, .0168 and .00168 follow.
    system = odesim.declare(
        student={"unit": ERF, "units": 3}, teacher={"units": 3}, training={"limit": "online", "step": 0.5},
        start={"norm": 0.5},
    )  # fmt: skip
    found = odesim.compare(system, method="compressed", seeds=4, until=20, d=d, seed=0).summary()
    assert found["distance_median"] == pytest.approx(expected, rel=0.4)


def test_liao_as_a_declaration():
    system = odesim.declare(
        student={"unit": "logistic(beta*v)*He(3, w)", "units": 3}, teacher={"units": 2},
        training={"weights": "normalised"}, parameters={"beta": 1.0},
    )  # fmt: skip
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(10, 12))
    rows[6:] = np.linalg.qr(rows[6:].T)[0].T
    rows[:6] /= np.linalg.norm(rows[:6], axis=1)[:, None]
    v, w, v_star, w_star = rows[:3], rows[3:6], rows[6:8], rows[8:]
    one = odesim.integrate(
        system, initial={"v": v, "w": w, "v_star": v_star, "w_star": w_star}, until=2.0, save_points=5, **FINE
    )
    two = odesim.integrate(
        "liao", initial={"V": v, "W": w, "V_star": v_star, "W_star": w_star}, until=2.0, save_points=5, **FINE
    )
    names = {
        "M_vv": "gamma1",
        "M_ww": "gamma2",
        "M_vw": "zeta1",
        "M_wv": "zeta2",
        "Q_vv": "I1",
        "Q_ww": "I2",
        "Q_vw": "I3",
    }
    for ours, theirs in names.items():
        assert one[ours] == pytest.approx(two[theirs], abs=1e-11), ours
    assert one["loss"] == pytest.approx(two["loss"], abs=1e-11)
