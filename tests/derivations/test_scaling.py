"""Local exponents and their limits on functions whose exponents are known."""

import numpy as np
import pytest

from derivations import scaling
from derivations.scaling import Form

X = 10.0 ** np.arange(3, 10)


def limit(log_y, correction="", error=1e-13):
    """The limit of the local exponents over seven decades."""
    return scaling.limit(X, scaling.local_exponents(X, log_y), error, correction)


@pytest.mark.parametrize("exponent", [-1.5, 0.0, 0.5, 2.0])
@pytest.mark.parametrize("correction", ["", "log", 0.5])
def test_a_pure_power_is_its_own_limit(exponent, correction):
    found = limit(exponent * np.log(X), correction)
    assert found.value == pytest.approx(exponent, abs=1e-11)
    assert found.error < 1e-10


@pytest.mark.parametrize("power", [0.25, 0.5, 1.0])
def test_the_error_covers_the_truth_where_a_correction_dies_as_a_power(power):
    found = limit(0.5 * np.log(X) + np.log1p(3 * X**-power))
    assert abs(found.value - 0.5) <= found.error
    assert limit(0.5 * np.log(X) + np.log1p(3 * X**-power), power).value == pytest.approx(0.5, abs=2e-2)


@pytest.mark.parametrize("logarithm", [-1.0, 0.5, 1.0])
def test_the_error_covers_the_truth_under_a_logarithm(logarithm):
    log_y = 0.5 * np.log(X) + logarithm * np.log(np.log(X))
    found = limit(log_y)
    assert abs(found.value - 0.5) <= found.error
    # The local slope at 3e8 is still off by q/19.6; extrapolated in 1/log x the error is of second order.
    assert limit(log_y, "log").value == pytest.approx(0.5, abs=2e-3)
    assert abs(scaling.local_exponents(X, log_y)[-1] - 0.5) > 0.02


def test_an_error_of_the_exponents_is_handed_on():
    assert limit(0.5 * np.log(X) + 1 / np.log(X), "log", error=1e-3).error > 1e-3
    settled = limit(0.5 * np.log(X), error=1e-3)
    assert (settled.value, settled.error) == (pytest.approx(0.5), 2e-3)


def test_a_form_takes_its_logarithm_out():
    form = Form("with log", logarithm=1.0)
    assert form.remove(X, np.log(X**0.5 * np.log(X))) == pytest.approx(0.5 * np.log(X), rel=1e-14)


def test_least_squares_recovers_a_power_and_a_fixed_exponent_keeps_its_own():
    slope, constant, residual = scaling.least_squares(X, 7 * X**0.5, Form("power"))
    assert (slope, np.exp(constant)) == pytest.approx((0.5, 7))
    assert residual < 1e-12
    assert scaling.least_squares(X, 7 * X**0.5, Form("fixed", exponent=0.25))[0] == 0.25


def test_medians_ignore_one_outlier():
    x, y = scaling.medians([1, 2, 1, 2, 1, 2], [5, 7, 5, 7, 1e9, 7])
    assert x.tolist() == [1, 2]
    assert y.tolist() == [5, 7]


def test_a_table_keeps_the_runs_that_are_measured_everywhere():
    samples = [({"d": d, "m": m}, s, 10.0 * d + s) for d in (1, 2) for m in (3, 4) for s in (0, 1)]
    x, runs, y = scaling.table(samples, "d")
    assert (x.tolist(), runs.tolist()) == ([1, 2], [0, 1])
    assert y == pytest.approx(np.array([[10.0, 20.0], [11.0, 21.0]]))
    missing = [*samples[:-1], (samples[-1][0], 1, np.inf)]
    assert scaling.table(missing, "d")[1].tolist() == [0]
