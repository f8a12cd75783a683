"""Numbers of the entries on layers of two rates and on momentum, by equations for vectors that are written here."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

import odesim
from derivations import outside
from tests.derivations.gallery.test_closed_forms import stated

SIGNS = np.array([1.0, -1.0])


def components(a, s):
    """Coefficients of degree 1 and 2 of two neurons a_i (s_i z + s_i^2 He_2(z)/sqrt(2))/2 along the teacher."""
    a, s = np.asarray(a), np.asarray(s)
    return np.array([(a * s).mean(), (a * s**2).mean()])


def two_rates(eps, until, signs=SIGNS, **options):
    """The flow of two neurons on the teacher's line: da/dt = (r.p)/eps, ds/dt = a r.p', r = 1 - mean(a p)."""

    def velocity(_, y):
        a, s = y[:2], y[2:]
        left = 1 - components(a, s)
        return np.concatenate([(left[0] * s + left[1] * s**2) / eps, a * (left[0] + 2 * left[1] * s)])

    return solve_ivp(velocity, (0, until), [*signs, 1e-9, 1e-9], method="LSODA", rtol=1e-10, atol=1e-14, **options)


def test_a_network_of_two_rates_is_that_of_its_components():
    times = np.linspace(0.0, 1.0, 11)
    own = two_rates(1e-3, 1.0, t_eval=times)
    run = odesim.integrate("berthier_2023", eps=1e-3, save_at=times.tolist(), rtol=1e-10)
    expected = [((1 - components(y[:2], y[2:])) ** 2).sum() for y in own.y.T]
    assert np.asarray(run["error"]) == pytest.approx(expected, abs=2e-7)
    assert 2 * np.asarray(run["a"]) == pytest.approx(own.y[:2].T, rel=1e-6)
    assert np.asarray(run["M_ww"])[:, :, 0] == pytest.approx(own.y[2:].T, abs=1e-7)


def test_the_time_of_degree_two_falls_with_the_fourth_root():
    def half(_, y):
        return components(y[:2], y[2:])[1] - 0.5

    half.terminal = True  # type: ignore[attr-defined]
    rates = 10.0 ** -np.arange(9, 13)
    times = [two_rates(eps, 1.0, events=half).t_events[0][0] for eps in rates]
    exponents = np.diff(np.log(times)) / np.diff(np.log(rates))
    assert (np.abs(exponents - 0.25) < 0.02).all() and abs(exponents[-1] - 0.25) < abs(exponents[0] - 0.25)


def test_degree_one_is_a_logistic_rise_between_conserved_differences():
    # eps a^2 - s^2 = eps is conserved: p = a s obeys p' = (1 - p) sqrt(1 + 4 p^2/eps), and degree 2 is 0 by symmetry.
    eps = 1e-10

    def slope(u):
        p = math.exp(u)
        return p / ((1 - p) * math.sqrt(1 + 4 * p**2 / eps))

    time, _ = quad(slope, math.log(eps) - 6, math.log(0.5), limit=400, epsabs=0, epsrel=1e-11)
    assert stated("berthier_2023", "degree-one") == pytest.approx(time, rel=1e-8)
    leading = math.sqrt(eps) * math.log(1 / eps) / 4
    assert 1.0 < time / leading < 1.2  # the next term is a constant beside the logarithm


def test_the_plateau_ends_where_the_equations_of_the_components_say():
    def left(_, y):
        return ((1 - components(y[:2], y[2:])) ** 2).sum() - 0.25

    own = two_rates(1e-10, 0.02, events=left)
    assert stated("berthier_2023", "plateau") == pytest.approx(own.t_events[0][0], rel=1e-5)


def phase_retrieval(step, noise, overlap, until, norm=1.0, **options):
    """Overlap m and squared norm q of w under online SGD on (w.x)^2, by Wick's theorem: sums over pairings."""

    def velocity(_, y):
        m, q = y
        along, own = 2 * (3 * q * m - 3 * m), 2 * (3 * q * q - q - 2 * m * m)
        square = 4 * (15 * q**3 - 2 * (3 * q * q + 12 * q * m * m) + 3 * q + 12 * m * m + noise**2 * q)
        return [-step * along, -2 * step * own + step**2 * square]

    return solve_ivp(velocity, (0, until), [overlap * norm, norm**2], rtol=1e-11, atol=1e-13, **options)


def error(y):
    return 3 * y[1] ** 2 + 3 - 2 * (y[1] + 2 * y[0] ** 2)


def test_momentum_is_a_larger_step():
    def near(_, y):
        return error(y) - 0.1

    own = phase_retrieval(0.05, 0.2, 0.5, 100.0, events=near)
    assert stated("jagannath_2025", "time") == pytest.approx(own.t_events[0][0], rel=1e-7)
    for claim, step in (("floor", 0.05), ("larger-step", 0.05), ("same-step", 0.005)):
        assert stated("jagannath_2025", claim) == pytest.approx(4 * step * 0.04 / (2 - 12 * step), rel=1e-10)
    assert error(own.y[:, -1]) == pytest.approx(stated("jagannath_2025", "floor"), rel=1e-6)


@pytest.mark.parametrize(("step", "falls"), [(0.16, True), (0.18, False)])
def test_the_threshold_of_the_effective_step(step, falls):
    own = phase_retrieval(step, 0.0, 0.99, 20.0)
    assert (error(own.y[:, -1]) < error(own.y[:, 0])) == falls
    run = odesim.integrate("jagannath_2025", step=step / 10, noise=0.0, overlap=0.99, until=20.0, rtol=1e-10)
    assert run["error"][-1] == pytest.approx(error(own.y[:, -1]), rel=1e-5)


@pytest.mark.slow
def test_sgd_with_momentum_follows_the_larger_step():
    # A fixed beta differs from its limit by 1/((1 - beta) d) = 1/500 of the drift, and 40 runs scatter by about 1/50.
    runs = odesim.simulate("jagannath_2025", method="compressed", d=5000, seeds=40, until=40.0)
    flow = odesim.integrate("jagannath_2025", until=40.0)
    end = np.asarray(runs["error"])[:, -1]
    spread = end.std(ddof=1) / math.sqrt(end.size)
    assert abs(end.mean() - flow["error"][-1]) < 4 * spread + 0.02 * flow["error"][-1]


def test_claims_say_when_numbers_were_derived_here():
    tables = tomllib.loads(Path(outside.gallery()["jagannath_2025"]).read_text(encoding="utf-8"))
    assert all("published" not in claim for claim in tables["claim"] if "equals" in claim["law"])
