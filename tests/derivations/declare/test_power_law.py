"""The slope beside the error: its exponent is that of theory, and it is drawn where the error follows it."""

import numpy as np
import pytest
from scipy.special import zeta

import odesim
from derivations.declare import power_law
from odesim.show.plot import figures


def spectrum(alpha, d):
    return np.arange(1.0, d + 1) ** -alpha


@pytest.mark.parametrize(("alpha", "beta"), [(1.5, 0.75), (2.0, 0.0), (3.0, 0.75), (1.2, 0.55)])
def test_the_exponent_of_a_power_law_is_that_of_theory(alpha, beta):
    law = power_law.power_law(spectrum(alpha, 20_000), spectrum(2 * beta, 20_000))
    # The last coordinates bend E by (j/d)^(alpha + 2 beta - 1), below 1 % for a decade of j.
    assert law.exponent == pytest.approx((alpha + 2 * beta - 1) / alpha, rel=0.01)
    assert law.end / law.start > 1000


def test_spectra_without_a_power_law_have_none():
    for eigenvalue in (np.ones(100), np.array([1.6, 0.4]), np.array([1.0, 1e-3, 1e-6]), np.linspace(1, 0.5, 50)):
        assert power_law.power_law(eigenvalue, np.ones_like(eigenvalue)) is None
    # Rates that are even in their logarithm, with parts that are not powers of them.
    lam = np.logspace(0, -6, 200)
    assert power_law.power_law(lam, np.exp(-(np.log(lam) ** 2))) is None


def lines(run):
    """The lines of theory in the panel of the error."""
    made = figures(run)["order_parameters"]
    (axis,) = (axis for axis in made.axes if axis.get_label() == "error")
    return axis, [line for line in axis.lines if line.get_gid() == "theory"]


@pytest.mark.parametrize(
    ("name", "rate"),
    [("power_law_least_squares", 1.0), ("braun_2025", 4 * zeta(3.0) / zeta(1.5))],  # modes learn at 4 S lam_l
)
def test_the_slope_lies_along_the_error_of_a_run(name, rate):
    run = odesim.integrate(name, d=10**7)
    assert power_law._learned(run.dataset())[1] == pytest.approx(rate, rel=0.05)  # between saved times
    axis, (line,) = lines(run)
    assert axis.get_xscale() == axis.get_yscale() == "log"
    assert line.get_label() == "linear learning: $t^{-1.33}$"
    t, y = line.get_data()
    assert np.diff(np.log(y)) / np.diff(np.log(t)) == pytest.approx(np.full(len(t) - 1, -4 / 3), rel=1e-3)
    late = t > 100
    ratio = y[late] / np.exp(np.interp(np.log(t[late]), np.log(run.time[1:]), np.log(run["error"][1:])))
    # The law has an own error of t^(-1/3) and escape/t.
    assert ratio == pytest.approx(np.full(late.sum(), power_law.ABOVE), rel=0.1)


@pytest.mark.parametrize(("until", "scale"), [(1000, "log"), (3, "linear")])
def test_time_is_logarithmic_where_the_line_is_drawn(until, scale):
    made = odesim.declare(
        student={"unit": "w"}, teacher={"spread": "j^(-0.75)"}, inputs={"spectrum": "j^(-1.5)"},
        start={"norm": 1e-9, "overlap": 0.0},
    )  # fmt: skip
    axis, drawn = lines(odesim.integrate(made, until=until))
    assert (axis.get_xscale(), len(drawn)) == (scale, int(scale == "log"))


@pytest.mark.parametrize(
    "changed",
    [
        {"inputs": {"blocks": [[1.0, 0.5], [0.01, 0.5]]}, "teacher": {}},
        {"training": {"limit": "online", "step": 0.1, "until": 1e3, "decades": True}},
        {"training": {"decay": 0.01, "until": 1e3, "decades": True}},
        {"inputs": {"spectrum": "j^(-1.5)", "cluster": [{"p": 0.5}, {"p": 0.5, "scale": 0.5}]}},
    ],
    ids=["two eigenvalues", "online", "weight decay", "clusters"],
)
def test_an_error_that_has_no_reason_to_follow_it_has_no_slope(changed):
    tables = {
        "student": {"unit": "w"}, "teacher": {"spread": "j^(-0.75)"}, "inputs": {"spectrum": "j^(-1.5)"},
        "training": {"until": 1e3, "decades": True}, "start": {"norm": 1e-9, "overlap": 0.0},
    }  # fmt: skip
    assert len(lines(odesim.integrate(odesim.declare(**tables)))[1]) == 1
    assert lines(odesim.integrate(odesim.declare(**{**tables, **changed})))[1] == []
