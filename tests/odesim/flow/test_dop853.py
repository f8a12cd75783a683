"""DOP853 takes SciPy's steps to the last bit; what is its own is measured against the flow itself."""

import numpy as np
import pytest
import scipy.integrate
from scipy.optimize import brentq

from odesim.flow.roots import brent
from odesim.flow.solvers.dop853 import dop853_steps
from odesim.flow.solvers.step import Span, Statistics, StepFailure, distance


def flow(seed, n):
    """A smooth flow with couplings, a clock, and terms that hold it back."""
    weights = np.random.default_rng(seed).normal(size=(n, n))
    return lambda t, y: np.tanh(weights @ y) * np.cos(3 * t) - y**3


def span(y, until, rtol, **bounds):
    return Span(0.0, y, until, rtol, 1e-2 * rtol, Statistics("DOP853"), **bounds)


@pytest.mark.parametrize("rtol", [1e-4, 1e-9, 1e-12])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_without_bounds_the_steps_are_scipys(n, rtol):
    slope, start = flow(n, n), np.random.default_rng(n).normal(size=n)
    theirs = scipy.integrate.DOP853(slope, 0.0, start, 7.0, rtol=rtol, atol=1e-2 * rtol)
    ours = dop853_steps(slope, span(start, 7.0, rtol))
    while theirs.status == "running":
        theirs.step()
        segment = next(ours)
        assert segment.t1 == theirs.t
        np.testing.assert_array_equal(segment.y1, theirs.y)
    assert next(ours, None) is None


@pytest.mark.parametrize("between", ["step", "interpolant"])
def test_states_between_two_steps_lie_on_the_flow(between):
    slope, start = flow(3, 3), np.random.default_rng(3).normal(size=3)
    exact = scipy.integrate.solve_ivp(slope, (0.0, 7.0), start, "Radau", rtol=1e-12, atol=1e-14, dense_output=True).sol
    for segment in dop853_steps(slope, span(start, 7.0, 1e-9), between):
        for t in np.linspace(segment.t0, segment.t1, 7)[1:-1]:
            assert np.abs(segment.dense(t) - exact(t)).max() < 1e-8


def test_a_long_step_is_halved_for_its_interpolant():
    """At the ends y = exp(-t) is right to the tolerance; between them one polynomial would be 60 tolerances off."""
    asked = span(np.ones(1), 50.0, 1e-4)
    worst = 0.0
    for segment in dop853_steps(lambda t, y: np.array([np.cos(t)]), asked, "interpolant"):
        start = segment.y0[0] - np.sin(segment.t0)
        for t in np.linspace(segment.t0, segment.t1, 9):
            worst = max(worst, abs(segment.dense(t)[0] - start - np.sin(t)))
    assert worst < 20 * 1e-4


def test_strict_steps_end_before_one_whose_interpolant_is_not_accurate():
    asked, found = span(np.ones(1), 50.0, 1e-4), []

    def slope(t, y):
        return np.array([np.cos(t)])

    found = list(dop853_steps(slope, asked, "interpolant", strict=True))
    assert asked.statistics.steps == len(found)
    end = found[-1].t1 if found else 0.0
    assert end < 50.0
    for segment in found:
        start = segment.y0[0] - np.sin(segment.t0)
        for t in np.linspace(segment.t0, segment.t1, 9):
            assert abs(segment.dense(t)[0] - start - np.sin(t)) < 20 * 1e-4


def test_errors_are_measured_from_the_bounds():
    """y approaches its bound 1 as exp(-t): the distance to it stays as accurate as y was when it left 0."""
    bounds = (np.array([-np.inf]), np.array([1.0]))
    last = list(dop853_steps(lambda t, y: 1.0 - y, span(np.zeros(1), 12.0, 1e-6, bounds=bounds)))[-1]
    assert distance(np, last.y1, bounds)[0] == pytest.approx(np.exp(-12.0), rel=1e-4)


def test_a_state_that_blows_up_ends_with_a_sentence():
    seen = []
    with pytest.raises(StepFailure, match=r"spacing between numbers|no longer finite"):
        seen.extend(dop853_steps(lambda t, y: y * y, span(np.ones(1), 2.0, 1e-8)))  # which keeps what came before
    assert seen[-1].t1 == pytest.approx(1.0, abs=1e-6) and np.isfinite(seen[-1].y1).all()


def test_brents_method_takes_scipys_steps():
    rng, compared = np.random.default_rng(0), 0
    for _ in range(2000):
        (a, b, c), r = rng.normal(size=3) * 10 ** rng.uniform(-2, 2, 3), rng.uniform(-1, 1)
        ours, theirs = [], []

        def value(x, seen, a=a, b=b, c=c, r=r):
            seen.append(x)
            return a * (x - r) + b * (x - r) ** 3 + c * np.sin(x - r)

        if value(-2.0, []) * value(2.0, []) >= 0.0:
            continue
        root = brent(lambda x, s=ours, f=value: f(x, s), -2.0, 2.0, 1e-13, 1e-15)
        assert root == brentq(lambda x, s=theirs, f=value: f(x, s), -2.0, 2.0, xtol=1e-13, rtol=1e-15)
        assert ours == theirs
        compared += 1
    assert compared > 500


def test_an_end_that_is_the_root_and_ends_of_one_sign():
    assert brent(lambda x: x, 0.0, 1.0, 1e-13, 1e-15) == 0.0
    with pytest.raises(ValueError, match="same sign"):
        brent(lambda x: 1.0 + x * x, -1.0, 1.0, 1e-13, 1e-15)
