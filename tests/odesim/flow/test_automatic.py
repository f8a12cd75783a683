"""The default integrator at kinks: LSODA, and DOP853 from where that gives up."""

import functools
import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from odesim.flow.solvers import step
from odesim.flow.solvers.automatic import through_kinks
from odesim.flow.solvers.scipy import scipy_steps

START, END, RTOL = np.array([0.0, 0.2]), 1.8, 1e-8


def bent(seed):
    """A flow with a hundred kinks of its second derivative, at places that depend on the state."""
    rng = np.random.default_rng(seed)
    places, sizes = rng.uniform(0, 2, 100), rng.normal(size=100) / 10.0

    def slope(t, y):
        return np.array([1.0 + 0.3 * np.sin(y[1]), sizes @ np.maximum(y[0] - places, 0.0) ** 2 - y[1]])

    return slope


def steps(name, slope, statistics, t, y):
    return scipy_steps(name, slope, step.Span(t, y, END, RTOL, 1e-3 * RTOL, statistics))


def off(slope, found):
    """How far a final state is from that of short steps, in tolerances."""
    exact = solve_ivp(slope, (0.0, END), START, "DOP853", rtol=1e-13, atol=1e-15, max_step=1e-3).y[:, -1]
    return float((np.abs(found - exact) / (RTOL * (np.abs(exact) + 1e-3))).max())


@pytest.mark.parametrize("seed", range(4))
def test_kinks_are_passed_within_some_tolerances(seed):
    slope, statistics = bent(seed), step.Statistics("automatic")
    methods = [functools.partial(steps, name, slope, statistics) for name in ("LSODA", "DOP853")]
    last = list(through_kinks(*methods, (0.0, START), statistics))[-1]
    assert last.t1 == END and statistics.solver == "LSODA"
    assert off(slope, last.y1) < 30.0  # DOP853 is off by up to 700, with as many evaluations


def test_what_lsoda_gives_up_is_done_by_dop853_from_its_last_step():
    slope, statistics = bent(0), step.Statistics("automatic")

    def failing(t, y):
        yield from itertools.islice(steps("LSODA", slope, statistics, t, y), 20)
        raise step.StepFailure("it gives up")

    explicit = functools.partial(steps, "DOP853", slope, statistics)
    found = list(through_kinks(failing, explicit, (0.0, START), statistics))
    assert [a.t1 for a in found[:-1]] == [b.t0 for b in found[1:]]
    assert found[-1].t1 == END
    assert off(slope, found[-1].y1) < 1e3
    assert statistics.solver == f"LSODA to time {found[19].t1:.6g}, then DOP853"
