"""Momentum in flow and online limit: a fixed beta and one with a time, and what is refused."""

import numpy as np
import pytest

import odesim

START = {"Q_ww": [[0.5, 0.05], [0.05, 0.5]], "M_ww": [[0.2, 0.0], [0.0, 0.1]]}
TIMED = {"step": 1.0, "momentum": {"time": 2}}


def committee(**training):
    """The committee of declaration 7 of the specification of training."""
    return odesim.declare(
        name="committee", student={"units": 2, "unit": "erf(w/sqrt(2))"}, teacher={"units": 2, "noise": 0.2},
        training={"limit": "online", "until": 10, **training}, start=START,
    )  # fmt: skip


KNOWN = [
    ({"step": 0.1, "momentum": 0.9, "nesterov": True}, [[0.602964, 0.370048], [0.339127, 0.567982]]),
    ({"step": 0.1, "momentum": 0.9}, [[0.602964, 0.370048], [0.339127, 0.567982]]),
    ({"step": 1.0}, [[0.602964, 0.370048], [0.339127, 0.567982]]),
    (TIMED, [[0.731356, 0.474943], [0.428942, 0.681666]]),
    ({**TIMED, "nesterov": True}, [[0.731356, 0.474943], [0.428942, 0.681666]]),
]


@pytest.mark.parametrize("backend", ["numba", "jax"])
@pytest.mark.parametrize(("training", "wanted"), KNOWN)
def test_the_committee_has_its_digits(training, wanted, backend):
    run = odesim.integrate(committee(**training), save_at=[0, 10], rtol=1e-10, backend=backend)
    assert np.asarray(run["M_ww"])[-1] == pytest.approx(np.array(wanted), abs=6e-7)


def test_a_fixed_momentum_is_a_larger_step():
    times = [0, 2, 5]
    one = odesim.integrate(committee(step=0.1, momentum=0.9, decay=0.05), save_at=times, rtol=1e-10)
    two = odesim.integrate(committee(step=1.0, decay=0.05), save_at=times, rtol=1e-10)
    for name in ("Q_ww", "M_ww"):
        assert np.asarray(one[name]) == pytest.approx(np.asarray(two[name]), abs=1e-9)
    # Without the factor it is another run.
    three = odesim.integrate(committee(step=0.1, momentum=0.9, decay=0.05), momentum=0.0, save_at=times)
    assert np.abs(np.asarray(three["M_ww"]) - np.asarray(two["M_ww"])).max() > 0.05


def test_a_fixed_momentum_of_a_flow_speeds_its_clock():
    tables = {
        "student": {"units": 2, "unit": "erf(w)", "output": "trained"},
        "teacher": {"units": 2},
        "start": {"overlap": 0.2},
    }
    for tier, rtol in (("exact", 1e-9), ("sampled", 1e-7)):
        model = odesim.declare(name="slow", **tables, training={"decay": 0.1, "momentum": 0.75})
        one = odesim.integrate(model, tier=tier, save_at=[0, 1], rtol=rtol)
        other = odesim.declare(name="fast", **tables, training={"decay": 0.1})
        two = odesim.integrate(other, tier=tier, save_at=[0, 4], rtol=rtol)
        for name in ("M_ww", "Q_ww", "a"):
            assert np.asarray(one[name])[-1] == pytest.approx(np.asarray(two[name])[-1], abs=1e-5)


def test_a_short_time_of_momentum_is_none():
    run = odesim.integrate(
        committee(step=1.0, momentum={"time": 2}), momentum_time=1e-3, save_at=[0, 10], solver="Radau"
    )
    assert np.asarray(run["M_ww"])[-1] == pytest.approx(np.array(KNOWN[0][1]), abs=2e-3)


def test_least_squares_is_a_linear_equation_of_second_order():
    """f = w . x in a flow: u'' = -u'/tau - (u - u*)/tau, which has a closed solution."""
    tau, until = 2.0, 3.0
    model = odesim.declare(
        name="linear", student={"unit": "w"}, teacher={}, training={"momentum": {"time": tau}},
        start={"Q_ww": [[1.0]], "M_ww": [[0.0]]},
    )  # fmt: skip
    run = odesim.integrate(model, save_at=[0, until], rtol=1e-11)
    rate, wave = 1 / (2 * tau), np.sqrt(1 / tau - 1 / (4 * tau**2))
    c = np.exp(-rate * until) * (np.cos(wave * until) + rate / wave * np.sin(wave * until))  # u - u* over its start
    s = -np.exp(-rate * until) * np.sin(wave * until) * (wave + rate**2 / wave)  # its slope, -v
    assert float(np.asarray(run["M_ww"])[-1, 0, 0]) == pytest.approx(1 - c, abs=1e-9)
    assert float(np.asarray(run["error"])[-1]) == pytest.approx(2 * c**2, abs=1e-9)
    assert float(np.asarray(run["VM_ww"])[-1, 0, 0]) == pytest.approx(s, abs=1e-9)
    assert float(np.asarray(run["VV_ww"])[-1, 0, 0]) == pytest.approx(2 * s**2, abs=1e-9)


REFUSED = [
    ({"momentum": 1.0}, "momentum is at least 0 and below 1, but 1 was given"),
    ({"momentum": -0.1}, "momentum is at least 0 and below 1"),
    ({"momentum": "0.9"}, "momentum must be a constant number"),
    ({"momentum": [[0, 0.9]]}, "momentum must be a constant number"),
    ({"momentum": True}, "momentum is a finite number"),
    ({"momentum": {"time": 0.0}}, "time must be above 0"),
    ({"momentum": {"time": "t"}}, "time is a finite number"),
    ({"momentum": {}}, "momentum needs its time"),
    ({"momentum": {"tau": 1.0}}, "unknown key 'tau'"),
    ({"nesterov": True}, "nesterov is a form of momentum"),
    ({"momentum": 0.9, "nesterov": 1}, "nesterov is true or false"),
    ({"momentum": 0.9, "weights": "sphere"}, "momentum on the sphere would need a transport of velocities"),
    ({"momentum": {"time": 1.0}, "weights": "normalised"}, "would need a transport of velocities"),
]


@pytest.mark.parametrize(("training", "said"), REFUSED)
def test_what_is_refused(training, said):
    with pytest.raises(odesim.UsageError, match=said):
        odesim.declare(student={"unit": "erf(w)"}, teacher={}, training={"limit": "online", **training})


def test_a_time_of_momentum_is_for_isotropic_inputs():
    tables = {"student": {"unit": "erf(w)"}, "teacher": {}, "inputs": {"blocks": [[2.0, 0.5], [0.5, 0.5]]}}
    with pytest.raises(odesim.UsageError, match=r"is only for inputs x ~ N\(0, I\)"):
        odesim.declare(**tables, training={"momentum": {"time": 1.0}})
    model = odesim.declare(**tables, training={"limit": "online", "momentum": 0.8, "step": 0.2})
    plain = odesim.declare(**tables, training={"limit": "online", "step": 1.0})
    one, two = (odesim.integrate(each, save_at=[0, 1], d=100, rtol=1e-9) for each in (model, plain))
    assert np.asarray(one["M_ww"]) == pytest.approx(np.asarray(two["M_ww"]), abs=1e-8)
    run = odesim.simulate(model, method="explicit", d=20, until=0.5, save_points=3)
    assert np.isfinite(np.asarray(run["M_ww"])).all()
    with pytest.raises(odesim.UsageError, match=r"compressed SGD with momentum supports only inputs x ~ N\(0, I\)"):
        odesim.simulate(model, method="compressed", d=20, until=0.5)


def test_numbers_of_a_run_are_looked_at():
    model = committee(momentum=0.9, step=0.1)
    with pytest.raises(odesim.UsageError, match=r"momentum is at least 0 and below 1, but 1\.5 was given"):
        odesim.integrate(model, momentum=1.5)
    with pytest.raises(odesim.UsageError, match="derived without momentum"):
        odesim.integrate(model, tier="leading")
    with pytest.raises(odesim.UsageError, match=r"momentum needs d >= 7 here"):
        odesim.simulate(model, method="compressed", d=6, until=0.5)
    timed = committee(**TIMED)
    with pytest.raises(odesim.UsageError, match=r"the time of momentum, 0\.01, is shorter than the time of one step"):
        odesim.integrate(timed, momentum_time=0.01, d=50)
    flow = odesim.declare(student={"unit": "erf(w)"}, teacher={}, training={"momentum": {"time": 0.1}})
    with pytest.raises(odesim.UsageError, match=r"is shorter than the time of one step of SGD, 0\.5"):
        odesim.simulate(flow, method="compressed", step_size=0.5, until=2.0, d=20)
    assert np.isfinite(np.asarray(odesim.integrate(flow, until=1.0)["M_ww"])).all()


def test_the_page_and_the_summary_say_what_momentum_is():
    text = str(odesim.derive(committee(momentum=0.9, nesterov=True)))
    assert "eta = step/(1 - beta)" in text and "momentum: v <- 0.9 v + g, u <- u - h (g + 0.9 v)" in text
    text = str(odesim.derive(committee(**TIMED)))
    for line in (
        "d/dt Q_ww[i,k] = -eta ((nu_i.w_k) + (nu_k.w_i))",
        "d/dt (nu_i.nu_k) = (D_i[nu_k] + D_k[nu_i] - 2 nu_i.nu_k)/tau + E_ik/(B tau^2)",
        "VQ_ww (unit, unit_): overlap of the velocity of w_i of student with w_j of student",
    ):
        assert line in text
    flow = odesim.declare(
        student={"unit": "erf(w)", "output": "trained"}, teacher={}, training={"momentum": {"time": 1.0}}
    )
    text = str(odesim.derive(flow))
    assert "d/dt nu^a_i = " in text and "/(B tau^2)" not in text
