"""Closed forms that the reduced tiers and the exact flow must meet."""

import math

import numpy as np
import pytest

import odesim


def passage(q, k):
    """int dq / (q^(k-1) (1 - q^2)): the exact time of one task alone, in units of its rate."""
    if k % 2 == 0:
        return math.log(q / math.sqrt(1 - q * q)) - sum(q**-j / j for j in range(2, k - 1, 2))
    return math.atanh(q) - sum(q**-j / j for j in range(1, k - 1, 2))


def one(kappa, nu=0.0, b=0.0):
    """One neuron, one cluster."""
    return {
        "kappa": np.array([[kappa]]),
        "xi": np.zeros(1),
        "nu": np.array([[nu]]),
        "a": np.ones(1),
        "b": np.array([b]),
    }


@pytest.mark.parametrize(
    ("tier", "k", "known"),
    [("exact", 3, 20.311), ("exact", 4, 203.10), ("exact", 5, 2686.5), ("exact", 6, 40202.7)]
    + [(tier, k, known) for tier in ("R1", "R2", "R4") for k, known in ((3, 20.311), (4, 203.10))],
)
def test_one_task_alone_takes_the_time_of_the_integral(k, known, tier):
    sigma = (0.0,) * k + (1.0,)
    run = odesim.integrate(
        "kawata", C=1, k_star=k, activation="polynomial", sigma=sigma, rho=0, s=(0,), d=400, threshold=0.9, tier=tier,
        initial=one(0.05), until=1e6, save_points=2,
    )  # fmt: skip
    exact = (passage(0.9, k) - passage(0.05, k)) / k
    assert exact * k == pytest.approx(known, rel=1e-4)
    assert run["T_kappa"][0, 0] == pytest.approx(exact, rel=3e-9)


@pytest.mark.parametrize(("rho", "kappa", "nu"), [(1, 0.9764, -0.2161), (2, 0.9830, -0.1837), (4, 0.9934, -0.1144)])
@pytest.mark.parametrize("tier", ["exact", "R4"])
def test_a_neuron_settles_beside_its_task_where_the_mean_raises_its_coefficient(rho, kappa, nu, tier):
    # The maximum of alpha_3(rho nu) kappa^3 on the circle, alpha_3 = t phi(t)/sqrt 6 up to sign, t = rho nu - 1/2.
    angle = np.linspace(-1.5, 1.5, 3_000_001)
    t = rho * np.sin(angle) - 0.5
    best = angle[np.argmax(-t * np.exp(-t * t / 2) * np.cos(angle) ** 3)]
    run = odesim.integrate("kawata", C=1, k_star=3, rho=rho, s=(0,), d=400, tier=tier, initial=one(0.3, 0.0, -0.5),
                           until=1e5, save_points=2)  # fmt: skip
    end = [run["kappa"][-1, 0, 0], run["nu"][-1, 0, 0]]
    np.testing.assert_allclose(end, [math.cos(best), math.sin(best)], atol=2e-6)
    np.testing.assert_allclose(end, [kappa, nu], atol=6e-5)


def test_the_paper_s_drift_forgets_the_means_and_reaches_its_task():
    run = odesim.integrate("kawata", C=1, k_star=3, rho=1, s=(0,), d=400, tier="paper", initial=one(0.3, 0.0, -0.5),
                           until=1e4, save_points=2)  # fmt: skip
    assert run["kappa"][-1, 0, 0] == pytest.approx(1.0, abs=1e-6)


def test_means_grow_with_the_square_of_the_local_overlap():
    # nu - nu(0) = rho sqrt(k+1) alpha_{k+1} / (2 k alpha_k) kappa^2; ReLU, k = 4, b = -1/2.
    b, k, rho = -0.5, 4, 1.0
    density = math.exp(-b * b / 2)
    ratio = math.sqrt(k + 1) * (-(b**3 - 3 * b) / math.sqrt(120)) / ((b * b - 1) / math.sqrt(24)) / (2 * k)
    assert density > 0
    a = -1.0  # alpha_4 < 0 at |b| < 1: the neuron grows with a = -1
    arrays = {**one(1e-3, 0.0, b), "a": np.array([a])}
    for level, tolerance in ((0.01, 2e-3), (0.03, 1e-2)):
        run = odesim.integrate("kawata", C=1, k_star=k, rho=rho, s=(0,), d=10**6, threshold=level, initial=arrays,
                               until=1e8, save_points=2)  # fmt: skip
        time = float(run["T_kappa"][0, 0])
        end = odesim.integrate("kawata", C=1, k_star=k, rho=rho, s=(0,), d=10**6, initial=arrays, until=time,
                               save_points=2)  # fmt: skip
        assert end["nu"][-1, 0, 0] == pytest.approx(rho * ratio * (level**2 - 1e-6), rel=tolerance)


def test_the_hidden_pair_conserves_its_energy_and_follows_the_exact_flow():
    rng = np.random.default_rng(0)
    xi, nu = np.abs(rng.normal(size=3)) * 1e-4, rng.normal(size=(3, 2)) * 1e-4
    arrays = {"kappa": np.zeros((3, 2)), "xi": xi, "nu": nu, "a": np.ones(3), "b": np.full(3, -0.5)}
    case = dict(C=2, k_star=4, d=10**8, initial=arrays, until=3e11, save_points=5, rtol=1e-10)
    leading = odesim.integrate("kawata", tier="R3", **case)
    exact = odesim.integrate("kawata", **case)
    assert leading.invariants["energy_change"] < 1e-9
    np.testing.assert_allclose(leading["xi"], exact["xi"], rtol=2e-3)
    np.testing.assert_allclose(leading["dn"], exact["nu"][..., 0] - exact["nu"][..., 1], rtol=2e-3, atol=1e-7)
