"""The located flow: the recursion's limit, held ties, reduced tiers, first integral and closed forms."""

import numpy as np
import pytest
from scipy.integrate import quad

import odesim
from derivations.pruning import initial
from derivations.pruning.parameters import Parameters
from derivations.pruning.tiers.homogeneous import first_integral
from odesim.evidence.laboratory import Laboratory
from odesim.request.case import find_system

SYSTEM = find_system("pruning")
LAB = Laboratory(SYSTEM)


def test_recursion_approaches_the_flow_in_proportion_to_its_rates(tools):
    arrays = tools.reference_arrays()
    errors = []
    for factor in (1, 4, 16):
        rates = {"l": 3, "eta_r": 0.01 / factor, "eta_e": 0.02 / factor, "until": 500 * factor, "save_points": 6}
        flow = odesim.integrate(SYSTEM, initial=arrays, tier="flow", **rates)
        recursion = odesim.integrate(SYSTEM, initial=arrays, **rates)
        errors.append(np.abs(flow["h"] - recursion["h"]).max())
    # Order 1, up to where in its step the recursion passes a change of order.
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.25) and errors[1] / errors[2] == pytest.approx(4, rel=0.25)
    assert errors[2] < 5e-4


@pytest.mark.parametrize("seed", [2, 9, 14, 51])
def test_the_recursion_converges_to_the_flow_where_ties_are_held(tools, seed):
    arrays = tools.random_arrays(seed)
    options = {"l": 3, "eta_r": 0.02, "eta_e": 0.004, "until": 4000, "save_points": 41}
    flow = odesim.integrate(SYSTEM, initial=arrays, tier="flow", **options)
    gaps = np.abs(flow["h"][:, 0, :2, None] - flow["h"][:, 0, None, 2:])
    assert ((gaps < 1e-10).sum(axis=0) >= 2).any()  # a tie is held over several saved times
    coarse, fine = (
        np.abs(odesim.integrate(SYSTEM, initial=arrays, stride=stride, **options)["h"] - flow["h"]).max()
        for stride in (1.0, 0.1)
    )
    assert fine < 7e-4 and fine < coarse / 3


def test_tolerance_decides_the_error_of_the_flow(tools):
    options = {"l": 3, "eta_r": 0.01, "eta_e": 0.02, "until": 500, "save_points": 2, "tier": "flow"}
    runs = [odesim.integrate(SYSTEM, initial=tools.reference_arrays(), rtol=r, **options) for r in (1e-11, 1e-8, 1e-5)]
    errors = [np.abs(run["h"][-1] - runs[0]["h"][-1]).max() for run in runs[1:]]
    assert errors[0] < 1e-7 and errors[1] < 1e-4
    assert runs[1].invariants["router_sum"] < 1e-13 and runs[1].invariants["balance"] < 1e-13


def test_the_neurons_of_the_flow_are_those_of_the_recursion(tools):
    options = {"l": 3, "eta_r": 0.0005, "eta_e": 0.001, "until": 10000, "save_points": 5}
    flow, recursion = (
        odesim.integrate(SYSTEM, initial=tools.reference_arrays(), tier=tier, **options)
        for tier in ("flow", "recursion")
    )
    assert np.abs(flow["u"] - recursion["u"]).max() < 3e-3
    assert ((flow["u"] < 0) == (recursion["u"] < 0)).mean() > 0.99  # the moment of switching off differs by a step


def homogeneous(N=198, l=5, active=10, hq=0.0, gap=0.0, quiet=True):
    """One expert: h_1 = hq + gap, all irrelevant patterns alike, all neurons at 0 on o1 and negative (off) on q."""
    h = np.full((1, N + 2), hq)
    h[0, 0], h[0, 1] = hq + gap, hq - 50.0
    u = np.zeros((1, active, N + 2))
    if quiet:
        u[:, :, 1:] = -1.0
    return {"w": h, "W": u, "a": np.array([1.0])}, l


def gap_time(l, eta_r, eta_e, active, kappa):
    """The time at which the gap reaches log l from 0, by quadrature of dx/dtau with x = s^2."""
    energy = lambda x: x + np.expm1(x) / (l - 1)  # noqa: E731
    gate = lambda x: 1 / (1 + (l - 1) * np.exp(-x))  # noqa: E731
    integrand = lambda s: 2 * s / (gate(s * s) * (1 - gate(s * s)) * np.sqrt(2 * energy(s * s)))  # noqa: E731
    tau = quad(integrand, 0, np.sqrt(np.log(l)), epsabs=1e-12, epsrel=1e-12)[0]
    return 2 * tau / np.sqrt(eta_r * eta_e * active * kappa)


@pytest.mark.parametrize(("tier", "tolerance"), [("flow", 1e-6), ("recursion", 1e-4)])
def test_specialisation_takes_the_time_of_the_closed_form(tier, tolerance):
    arrays, l = homogeneous()
    run = odesim.integrate(
        SYSTEM, initial=arrays, l=l, eta_r=1e-5, eta_e=1e-3, tier=tier, until=60000, save_points=2, keep_u=False
    )
    assert run["T_gap"][0] == pytest.approx(gap_time(5, 1e-5, 1e-3, 10, 1 + 1 / 198), rel=tolerance)


def test_the_first_step_with_a_gap_of_log_l_is_49730():
    # All neurons alike and far above zero, so that those of the irrelevant patterns stay alive: m_eff = m (1 + 1/N).
    arrays, l = homogeneous(quiet=False)
    arrays["W"] = arrays["W"] + 10.0
    run = odesim.integrate(SYSTEM, initial=arrays, l=l, eta_r=1e-5, eta_e=1e-3, until=60000, save_points=2)
    assert abs(run["T_gap"][0] - 49730) <= 1


def test_the_homogeneous_tier_is_the_flow_of_equal_patterns_and_keeps_its_first_integral():
    arrays, l = homogeneous(gap=0.05, quiet=False)
    arrays["W"] = arrays["W"] + np.linspace(3.0, 4.0, 10)[None, :, None]  # all neurons stay active
    options = {"l": l, "eta_r": 1e-4, "eta_e": 1e-3, "until": 40000, "save_points": 7}
    full = odesim.integrate(SYSTEM, initial=arrays, tier="flow", **options)
    reduced = odesim.integrate(SYSTEM, initial=arrays, tier="homogeneous", **options)
    gap = full["h"][:, 0, 0] - full["h"][:, 0, 2]
    assert gap[-1] > 2 and np.abs(gap - reduced["x"][:, 0]).max() < 1e-6
    assert reduced.invariants["first_integral"] < 1e-7


def test_the_first_integral_drifts_at_the_order_of_the_integrator():
    # Euler steps of the recursion: order 1; an adaptive method: by the tolerance.
    arrays, l = homogeneous(gap=0.05, quiet=False)
    arrays["W"] = arrays["W"] + np.linspace(3.0, 4.0, 10)[None, :, None]
    drifts = []
    for stride in (8.0, 4.0, 2.0):
        run = odesim.integrate(
            SYSTEM, initial=arrays, l=l, eta_r=1e-4, eta_e=1e-3, stride=stride, until=20000, save_points=2
        )
        start = LAB.initial(d=200, k=2, important=1, missigned=0, weak=0)
        p = Parameters(d=200, k=1, l=l, m=10, eta_r=1e-4, eta_e=1e-3)
        start = initial.from_alignments(p, arrays["w"], arrays["W"], arrays["a"])
        gap = run["h"][:, :1, 0] - run["h"][:, :1, 2]
        D = run["u"][:, :1, 0, 0] - arrays["W"][:1, 0, 0]
        values = first_integral(start, gap, D)
        drifts.append(abs(values[-1, 0] - values[0, 0]))
    assert drifts[0] / drifts[1] == pytest.approx(2, rel=0.05) and drifts[1] / drifts[2] == pytest.approx(2, rel=0.05)


def test_a_router_that_dips_too_far_dies_exactly_at_the_predicted_rate():
    # delta_0 < 0: the gap first shrinks; eta_crit = 2 eta_e m_eff (C + (e^C - 1)/(l - 1))/(kappa delta_0^2).
    C, N, m, delta = 0.02, 50, 10, -3.0
    arrays, l = homogeneous(N=N, gap=C, active=m, quiet=False)
    arrays["W"][:, :, 0] = 1.0
    arrays["W"][:, :, 1:] = 1.0 - delta / m
    kappa, m_eff = 1 + 1 / N, m * (1 + 1 / N)
    critical = 2 * 1e-3 * m_eff * (C + np.expm1(C) / (l - 1)) / (kappa * delta**2)
    for factor, alive in ((0.999, True), (1.001, False)):
        run = odesim.integrate(
            SYSTEM, initial=arrays, l=l, eta_r=factor * critical, eta_e=1e-3, tier="flow", until=20000, save_points=21
        )
        assert (run["p1"][-1, 0] == 1.0) == alive, factor
        if not alive:  # dead for ever: nothing moves after the task token is lost
            assert np.array_equal(run["h"][-1], run["h"][-2])


def test_the_frozen_tier_is_off_by_the_motion_of_irrelevant_patterns():
    errors = []
    for d in (50, 200):
        runs = [odesim.integrate(SYSTEM, d=d, tier=tier, save_points=2, seed=4) for tier in ("flow", "frozen")]
        errors.append(abs(runs[1]["Delta"][-1, 0] / runs[0]["Delta"][-1, 0] - 1))
    assert errors[1] < errors[0] < 0.05


def test_without_neuron_rate_the_router_follows_its_own_closed_form():
    # eta_e = 0: 2x + e^x/(l-1) - (l-1) e^-x grows at the constant rate eta_r kappa delta_0/2.
    arrays, l = homogeneous(N=20, gap=0.1, quiet=True)
    arrays["W"][:, :, 0] = 0.2
    run = odesim.integrate(SYSTEM, initial=arrays, l=l, eta_r=0.01, eta_e=0.0, tier="flow", until=500, save_points=6)
    x = run["h"][:, 0, 0] - run["h"][:, 0, 2]
    law = 2 * x + np.exp(x) / (l - 1) - (l - 1) * np.exp(-x)
    assert law - law[0] == pytest.approx(0.01 * (1 + 1 / 20) * 2.0 / 2 * run.time, abs=1e-6)


def test_the_flow_is_for_one_repeated_pattern():
    with pytest.raises(odesim.UsageError, match="use tier recursion"):
        odesim.integrate(SYSTEM, d=20, data="iid", n=10, tier="flow", until=10)


def test_all_tokens_are_kept_where_there_are_no_more_than_l(tools):
    # n = l: plain attention over one task token and l - 1 copies, whatever the order of the logits.
    arrays = tools.random_arrays(3)
    run = odesim.integrate(
        SYSTEM, initial=arrays, l=3, n=3, eta_r=1e-3, eta_e=1e-3, tier="flow", until=1, save_points=2
    )
    h, sigma = arrays["w"][0], np.maximum(arrays["W"][0], 0).sum(0)
    gate = 1 / (1 + 2 * np.exp(-(h[0] - h[2:])))
    drift = (gate * (1 - gate) * (sigma[0] - sigma[2:])).mean() / 2
    assert (run["h"][-1, 0, 0] - h[0]) / 1e-3 == pytest.approx(drift, rel=2e-3)
