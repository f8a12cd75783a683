"""Numbers of gallery entries, found again by quadrature, by finite chains, or by equations written here."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.stats import norm

import odesim
from derivations import outside

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def stated(entry, claim):
    """The value that a claim of the entry states."""
    tables = tomllib.loads(Path(outside.gallery()[entry]).read_text(encoding="utf-8"))
    (found,) = (table for table in tables["claim"] if table["id"] == claim)
    return found["law"]["equals"]


def erf_moments():
    """E[g'^2] and E[g'^4] of g = erf(z/sqrt 2), by quadrature."""
    slope = math.sqrt(2 / math.pi) * np.exp(-(NODES**2) / 2)
    return WEIGHTS @ slope**2, WEIGHTS @ slope**4


def test_the_critical_step_of_one_erf_unit():
    # A small distance s to the teacher obeys s' = -2 eta E[g'^2] s + eta^2 E[g'^4] s.
    second, fourth = erf_moments()
    assert 2 * second / fourth == pytest.approx(stated("critical_step", "critical"), rel=1e-9)
    assert math.pi * math.sqrt(5 / 3) == pytest.approx(stated("critical_step", "critical"), rel=1e-12)


def test_the_error_that_label_noise_leaves_one_erf_unit():
    # The same equation with the noise eta^2 sigma^2 E[g'^2]; the error is E[g'^2] s.
    second, fourth = erf_moments()
    eta, noise = 1.0, 0.01
    distance = eta * noise**2 * second / (2 * second - eta * fourth)
    assert second * distance == pytest.approx(stated("goldt_2019_committee", "single"), rel=1e-9)


@pytest.mark.parametrize(("claim", "units"), [("four", 4), ("twelve", 12)])
def test_the_error_of_linear_units_is_that_of_one_unit_of_a_larger_step(claim, units):
    # The sum of all units moves by units x eta: E' = -h (2 - h) E + h^2 sigma^2, h = units x eta.
    h = units * 0.1
    assert h * 0.01 / (2 - h) == pytest.approx(stated("goldt_2019", claim), rel=1e-9)


@pytest.mark.parametrize(("claim", "eta"), [("best", 4.0), ("short", 2.0)])
def test_batches_of_least_squares_at_a_finite_dimension(claim, eta):
    # The factor of a step, (1 - h)^2 + (d + 1) h^2/m, h = eta/d.
    d, m = 10**7, 4
    factor = (1 - eta / d) ** 2 + (d + 1) * (eta / d) ** 2 / m
    assert math.log(0.01) / math.log(factor) / d == pytest.approx(stated("bordelon_pehlevan_2022", claim), rel=1e-6)


def test_the_factor_of_a_step_is_that_of_samples():
    d, m, h, draws = 20, 4, 0.1, 20_000
    rng = np.random.default_rng(0)
    v = np.zeros(d)
    v[0] = 1.0
    x = rng.standard_normal((draws, m, d))
    after = ((v - h * np.einsum("smd,sm->sd", x, x @ v) / m) ** 2).sum(1)
    expected = (1 - h) ** 2 + (d + 1) * h**2 / m
    assert abs(after.mean() - expected) < 4 * after.std() / math.sqrt(draws)


def test_hebbs_rule_on_samples():
    # Weights y x/d summed over t d samples: means of the overlap and of the squared norm, by Monte Carlo.
    d, t, runs = 400, 10, 200
    rng = np.random.default_rng(1)
    overlaps, norms = np.zeros(runs), np.zeros(runs)
    for k in range(runs):
        x = rng.standard_normal((t * d, d))
        w = np.sign(x[:, 0]) @ x / d
        overlaps[k], norms[k] = w[0], w @ w
    for found, expected in (
        (overlaps, math.sqrt(2 / math.pi) * t),
        (norms, t + 2 / math.pi * t**2 - 2 * t / (math.pi * d)),
    ):
        assert abs(found.mean() - expected) < 4 * found.std() / math.sqrt(runs)
    assert stated("hebb_rule", "overlap") == pytest.approx(math.sqrt(2 / math.pi) * 1000, rel=1e-12)
    assert stated("hebb_rule", "norm") == pytest.approx(1000 + 2e6 / math.pi, rel=1e-12)
    cosine = 1 / math.sqrt(1 + math.pi / 20)
    assert stated("hebb_rule", "error") == pytest.approx(4 * math.acos(cosine) / math.pi, rel=1e-9)


def test_a_mode_of_a_deep_linear_network():
    def velocity(_, y):
        a, w = y
        return (1 - a * w) * w, (1 - a * w) * a

    def half(_, y):
        return y[0] * y[1] - 0.5

    half.terminal = True  # type: ignore[attr-defined]
    run = solve_ivp(velocity, (0, 5), [0.1, 0.1], rtol=1e-11, atol=1e-13, events=half)
    assert run.t_events[0][0] == pytest.approx(stated("saxe_2019", "half"), rel=1e-8)


@pytest.mark.parametrize(("claim", "early", "late"), [("hard-first", 1.0, 0.1), ("easy-first", 0.1, 1.0)])
def test_the_order_of_label_noise(claim, early, late):
    # E' = -eta (2 - eta) E + eta^2 sigma(t)^2 at eta = 1/2.
    error = 1.0
    for noise in (early, late):
        run = solve_ivp(lambda _, e, s=noise: -0.75 * e + 0.25 * s**2, (0, 5), [error], rtol=1e-11, atol=1e-14)
        error = run.y[0, -1]
    assert error == pytest.approx(stated("mignacco_mori_2025", claim), rel=1e-8)


def corrected(q, eta):
    """dq/dt at overlap 0 of the unit (z^3 - 3 z)/6 with a teacher of the variance 1/6 and the noise 0.1."""
    z = math.sqrt(q) * NODES
    f, slope = (z**3 - 3 * z) / 6, (z**2 - 1) / 2
    noise = 1 / 6 + 0.01
    return -2 * eta * (WEIGHTS @ (f * slope * z)) + eta**2 * (WEIGHTS @ ((f**2 + noise) * slope**2))


def test_the_fixed_point_at_the_critical_scale_of_the_step():
    found = brentq(corrected, 1e-6, 0.1, args=(0.2,), xtol=1e-15)
    assert found == pytest.approx(stated("rangriz_2025", "fixed-point"), rel=1e-9)
    run = odesim.integrate("rangriz_2025", until=400, step=0.5, save_points=3, rtol=1e-10)
    assert run["Q_ww"][-1, 0, 0] == pytest.approx(brentq(corrected, 1e-6, 0.3, args=(0.5,), xtol=1e-15), rel=1e-6)


def median_escape(d):
    """Median escape time of phase retrieval on the sphere at the best step: an unstable diffusion, then the flow."""
    eta, noise = 1 / 12.09, 0.09
    x = eta * (12 + noise)
    rate, k = 2 * eta * (2 - x), 2 * (1 - 6 * eta) / (2 - x)
    level = math.log(0.5 / math.sqrt(1 - k / 4))
    return (0.5 * math.log(d) + level - math.log(math.sqrt(2 / (2 - x)) * norm.ppf(0.75))) / rate


def test_the_median_escape_time_from_a_random_start():
    for claim, d in (("thousand", 1000), ("ten-thousand", 10_000)):
        assert median_escape(d) == pytest.approx(stated("ben_arous_2022", claim), rel=1e-7)


@pytest.mark.slow
def test_half_of_all_runs_of_sgd_have_escaped_at_this_time():
    until, runs = median_escape(1000), 400
    sgd = odesim.simulate("ben_arous_2022", method="compressed", d=1000, seeds=runs, fresh_initial=True, until=until)
    escaped = (np.abs(np.asarray(sgd["M_ww"])).reshape(runs, -1).max(axis=1) >= 0.5).sum()
    assert abs(escaped - runs / 2) < 3.5 * math.sqrt(runs) / 2


def test_one_relu_unit_along_its_teacher():
    # c' = -(c - 1) E[relu(z)^2] = -(c - 1)/2, error (1 - c)^2/2.
    assert stated("relu_committee", "single") == pytest.approx(math.log(0.5 * 0.3**2 / 4.5e-4), rel=1e-9)


@pytest.mark.parametrize("beta", [0.75, 2.0])
def test_least_squares_on_a_power_law_is_the_solution_of_its_equation(beta):
    # v_j' = -2 eta l_j v_j + eta^2 l_j f E, v_j = (w - w*)_j^2, E = sum l_j v_j, f = 1/d: every eigenvalue for itself.
    d, eta = 60, 0.5
    j = np.arange(1.0, d + 1)
    eigenvalue = j**-2.0 / np.mean(j**-2.0)
    start = j ** (-2 * beta) / np.sum(j ** (-2 * beta))

    def velocity(_, v):
        return -2 * eta * eigenvalue * v + eta**2 * eigenvalue / d * (eigenvalue @ v)

    run = odesim.integrate("paquette_2024", d=d, beta=beta, until=20, save_points=6, rtol=1e-10)
    found = solve_ivp(velocity, (0, 20), start, t_eval=run.time, method="LSODA", rtol=1e-10, atol=1e-16)
    assert np.asarray(run["error"]) == pytest.approx(eigenvalue @ found.y, rel=1e-5)


def test_a_linear_network_on_a_power_law_is_a_sum_of_exponentials():
    d = 60
    j = np.arange(1.0, d + 1)
    eigenvalue = j**-2.0 / np.mean(j**-2.0)
    run = odesim.integrate("worschech_rosenow_2024_linear", d=d, until=5, save_points=6, rtol=1e-10)
    expected = (eigenvalue[:, None] * np.exp(-2 * eigenvalue[:, None] * run.time)).mean(axis=0)
    assert np.asarray(run["error"]) == pytest.approx(expected, rel=1e-5)


def test_the_scale_of_the_step_is_that_of_the_dimension():
    # Veiga et al. 2022: a step gamma d^-delta is that number, whatever d the run has.
    options = {"noise": 0.1, "until": 40.0, "save_points": 5, "rtol": 1e-9}
    scaled = odesim.integrate("veiga_2022", dimension=1e4, delta=0.5, gamma=4.0, **options)
    given = odesim.integrate("veiga_2022", step=0.04, **options)
    assert np.asarray(scaled["error"]) == pytest.approx(np.asarray(given["error"]), rel=1e-7)
