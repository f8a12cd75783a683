"""Level L3 and its closed form, against the integrated flow and numbers of an independent program."""

import math

import numpy as np
import pytest

import odesim
from derivations.pmoe import closed, signal
from derivations.pmoe.claims.descent import cnn_rate

FIXED = {"n": 9, "p": 1, "counts": (8,), "composition": "deterministic", "init": "paired", "d": 3}


def margin(run) -> np.ndarray:
    """u = log(1/v - 1) of class +1."""
    return np.log(1 / run.state["v1"].values - 1)


def test_lambert_solves_its_equation():
    t = np.linspace(0, 1e6, 50)
    u = closed.lambert(-0.4, 0.02, t)
    assert np.allclose(u + np.exp(u), -0.4 + math.exp(-0.4) + 0.02 * t, rtol=1e-12)
    assert closed.lambert(0.0, 1.0, 1e300) == pytest.approx(math.log(1e300), rel=1e-10)


@pytest.mark.parametrize("delta_d", [-0.5, 0.0, 0.5])
def test_the_cnn_of_one_composition_follows_the_closed_form(delta_d):
    run = odesim.integrate("pmoe", mode="cnn", tier="L2", delta_d=delta_d, until=1000.0, rtol=1e-10, **FIXED)
    assert np.abs(margin(run) - closed.lambert(0.0, cnn_rate(delta_d, 9), run.time)).max() < 1e-9


@pytest.mark.parametrize("delta_d", [0.0, 0.3])
def test_separate_training_depends_on_l_alone(delta_d):
    """R = 1/(4 l^2), for every delta_d: no expert receives both o1 and o2."""
    run = odesim.integrate(
        "pmoe", mode="separate", l=3, routers="perfect", tier="L2", delta_d=delta_d, until=300.0, rtol=1e-10, **FIXED
    )
    assert np.abs(margin(run) - closed.lambert(0.0, 1 / 36, run.time)).max() < 1e-9


def test_euler_steps_are_within_their_step_of_the_closed_form():
    """Level L0 with many neurons is the Euler map of the flow: paired neurons, step 1, within the width's 5 %."""
    run = odesim.integrate("pmoe", mode="cnn", tier="L0", m=20_000, step=1.0, until=200.0, save_points=3, **FIXED)
    exact = closed.lambert(0.0, cnn_rate(0.0, 9), run.time)
    assert np.abs(margin(run)[1:] / exact[1:] - 1).max() < 0.05


def test_times_to_v_of_another_program():
    """Flow to v = 0.1 for the CNN, delta_d = 0: 2610 at n = 8 and 10441 at n = 16."""
    assert closed.time_to(0.1, 0.0, cnn_rate(0.0, 8)) == pytest.approx(2610, abs=1)
    assert closed.time_to(0.1, 0.0, cnn_rate(0.0, 16)) == pytest.approx(10441, abs=2)


def test_the_factor_in_delta_d():
    """1/(1 - 2 delta_d kappa0): 0.957, 0.886, 0.857, 1, 1.5, 4.36, 18.3, 65.7."""
    x = np.array([-0.99, -0.9, -0.5, 0, 0.5, 0.9, 0.99, 0.999])
    found = 1 / (1 - 2 * x * signal.kappa0(x))
    assert np.allclose(found, [0.957, 0.886, 0.857, 1, 1.5, 4.36, 18.3, 65.7], rtol=2e-3)


def test_separate_training_is_faster_by_n_over_l_squared_at_right_angles():
    assert (1 / 36) / cnn_rate(0.0, 9) == pytest.approx((9 / 3) ** 2)


def test_opposite_classes_decouple():
    """delta_d = -1, n = 1, no irrelevant pattern: kappa0(-1) = 0, two half-lines, R = 1/4."""
    run = odesim.integrate(
        "pmoe", mode="cnn", tier="L2", n=1, p=0, d=2, delta_d=-1.0, init="paired", until=50.0, rtol=1e-10
    )
    assert np.abs(margin(run) - closed.lambert(0.0, 0.25, run.time)).max() < 1e-8


@pytest.mark.parametrize("mode", ["cnn", "separate"])
def test_two_numbers_carry_any_geometry(mode):
    options = {"n": 6, "p": 3, "counts": (2, 2, 1), "composition": "deterministic", "delta_d": 0.3, "d": 8, "m": 40,
               "irrelevant": "random", "mode": mode, "until": 200.0, "save_points": 11, "rtol": 1e-10}  # fmt: skip
    first, second = (odesim.integrate("pmoe", tier=tier, **options) for tier in ("L2", "L3"))
    for name in ("response", "route", "loss", "error", "v1", "v2"):
        assert np.abs(first.state[name].values - second.state[name].values).max() < 1e-8, name


def test_a_tilted_pattern_breaks_the_closed_form_and_not_the_pair():
    run = odesim.integrate("pmoe", mode="cnn", tier="L3", b1=(0.5,), b2=(-0.5,), until=1000.0, rtol=1e-10, **FIXED)
    gap = run.state["margin"].values[:, 0] - closed.lambert(0.0, cnn_rate(0.0, 9), run.time)
    assert np.abs(gap).max() > 0.02


def test_rates_of_the_pair():
    coupling = np.array([[0.5, -0.2], [-0.2, 0.5]])
    assert closed.rate(np.zeros(2), coupling) == pytest.approx(0.3)
    assert math.isnan(closed.rate(np.array([0.0, 1.0]), coupling))


def test_many_compositions_are_refused():
    with pytest.raises(odesim.UsageError, match="two samples"):
        odesim.integrate("pmoe", tier="L3", until=1.0)
    with pytest.raises(odesim.UsageError, match="frozen routers"):
        odesim.integrate("pmoe", tier="L3", mode="joint", until=1.0)


def test_the_signal_constant_is_a_half_for_orthonormal_patterns():
    """gamma^3 = p^-3 at right angles; towards delta_d = 1 the exact constant vanishes like sqrt(1 - delta_d)."""
    schur, cube = signal.signal_constants(np.eye(6))
    assert schur == pytest.approx(0.5)
    assert cube == pytest.approx(4.0**-3)

    def near(gap: float) -> float:
        gram = np.eye(2)
        gram[0, 1] = gram[1, 0] = 1 - gap
        return signal.signal_constants(gram)[0]

    assert near(1e-8) / near(1e-6) == pytest.approx(0.1, rel=0.02)
