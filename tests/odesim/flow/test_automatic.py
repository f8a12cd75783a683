"""The default integrator at kinks: LSODA, and DOP853 from where that gives up."""

import functools
import itertools

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import odesim
from odesim.flow.solvers import step
from odesim.flow.solvers.automatic import MOST_EVALUATIONS, PACE, automatic_steps, held_down, through_kinks
from odesim.flow.solvers.dop853 import dop853_steps
from odesim.flow.solvers.scipy import scipy_steps

START, END, RTOL = np.array([0.0, 0.2]), 1.8, 1e-8


def bent(seed):
    """A flow with a hundred kinks of its second derivative, at places that depend on the state."""
    rng = np.random.default_rng(seed)
    places, sizes = rng.uniform(0, 2, 100), rng.normal(size=100) / 10.0

    def slope(t, y):
        return np.array([1.0 + 0.3 * np.sin(y[1]), sizes @ np.maximum(y[0] - places, 0.0) ** 2 - y[1]])

    return slope


def steps(name, slope, statistics, t, y, until=END):
    span = step.Span(t, y, until, RTOL, 1e-3 * RTOL, statistics)
    return dop853_steps(slope, span) if name == "DOP853" else scipy_steps(name, slope, span)


def off(slope, found):
    """Difference of a final state from that of short steps, in units of the tolerance."""
    exact = solve_ivp(slope, (0.0, END), START, "DOP853", rtol=1e-13, atol=1e-15, max_step=1e-3).y[:, -1]
    return float((np.abs(found - exact) / (RTOL * (np.abs(exact) + 1e-3))).max())


@pytest.mark.parametrize("seed", range(4))
def test_kinks_are_passed_within_some_tolerances(seed):
    slope, statistics = bent(seed), step.Statistics("automatic")
    methods = [functools.partial(steps, name, slope, statistics) for name in ("LSODA", "DOP853")]
    last = list(through_kinks(*methods, (0.0, START), END, statistics))[-1]
    assert last.t1 == END and statistics.solver == "LSODA"
    assert off(slope, last.y1) < 30.0  # DOP853 is off by up to 700, with as many evaluations


def test_what_lsoda_gives_up_is_done_by_dop853_from_its_last_step():
    slope, statistics = bent(0), step.Statistics("automatic")

    def failing(t, y):
        yield from itertools.islice(steps("LSODA", slope, statistics, t, y), 20)
        raise step.StepFailure("it gives up")

    explicit = functools.partial(steps, "DOP853", slope, statistics)
    found = list(through_kinks(failing, explicit, (0.0, START), END, statistics))
    assert [a.t1 for a in found[:-1]] == [b.t0 for b in found[1:]]
    assert found[-1].t1 == END
    assert off(slope, found[-1].y1) < 1e3
    assert statistics.solver == f"LSODA to time {found[19].t1:.6g}, then DOP853"


def test_lsoda_ends_where_its_jacobian_takes_an_evaluation_for_every_entry():
    rates, start = np.geomspace(1.0, 3e3, 300), np.ones(300)
    statistics = step.Statistics("automatic")

    def slope(t, y):
        return -rates * (y - np.cos(t))

    def method(name, t, y):
        held = held_down(slope, statistics) if name == "LSODA" else slope
        return steps(name, held, statistics, t, y, 0.5)

    found = list(
        through_kinks(*(functools.partial(method, n) for n in ("LSODA", "DOP853")), (0.0, start), 0.5, statistics)
    )
    switched = statistics.solver.removeprefix("LSODA to time ").removesuffix(", then DOP853")
    assert 0.0 < float(switched) < 0.1 < found[-1].t1 == 0.5
    first = sum(segment.t1 <= float(switched) * (1 + 1e-5) for segment in found)
    assert statistics.evaluations < 5 * first + MOST_EVALUATIONS + 25 * (len(found) - first)
    exact = (rates**2 * np.cos(0.5) + rates * np.sin(0.5)) / (1 + rates**2)
    exact += (1 - rates**2 / (1 + rates**2)) * np.exp(-rates * 0.5)
    np.testing.assert_allclose(found[-1].y1, exact, rtol=1e-6)


def test_what_lsoda_would_take_for_ever_is_done_by_dop853():
    slope, statistics = bent(1), step.Statistics("automatic")

    def creeping(t, y):
        while True:
            yield from steps("DOP853", slope, statistics, t, y, t + 1e-8)
            t, y = t + 1e-8, y + 1e-8 * slope(t, y)

    explicit = functools.partial(steps, "DOP853", slope, statistics)
    found = list(through_kinks(creeping, explicit, (0.0, START), END, statistics))
    assert [a.t1 for a in found[:-1]] == [b.t0 for b in found[1:]]
    assert found[PACE - 1].t1 == pytest.approx(PACE * 1e-8)
    assert statistics.solver == f"LSODA to time {found[PACE - 1].t1:.6g}, then DOP853"
    assert found[-1].t1 == END and off(slope, found[-1].y1) < 1e3


def relaxing(t, y):
    """A slow and a fast rate: stability holds the steps of DOP853 down once the fast one has died out."""
    return -np.array([1.0, 200.0]) * (y - np.cos(t))


@pytest.mark.parametrize(("most", "handed"), [(10.0, True), (1e6, False)])
def test_dop853_hands_over_where_the_rest_is_many_steps_away(most, handed):
    statistics = step.Statistics("automatic")
    explicit, implicit = (
        functools.partial(steps, name, relaxing, statistics, until=3.0) for name in ("DOP853", "Radau")
    )
    found = list(automatic_steps(explicit, (("Radau", implicit),), explicit, (0.0, START), 3.0, most, statistics))
    assert found[-1].t1 == 3.0 and [a.t1 for a in found[:-1]] == [b.t0 for b in found[1:]]
    assert ("then Radau" in statistics.solver) == handed
    exact = solve_ivp(relaxing, (0.0, 3.0), START, "Radau", rtol=1e-11, atol=1e-13).y[:, -1]
    np.testing.assert_allclose(found[-1].y1, exact, atol=1e-6)


def test_steps_that_end_early_are_gone_on_with_by_the_other_method():
    statistics = step.Statistics("automatic")
    explicit, implicit = (
        functools.partial(steps, name, relaxing, statistics, until=3.0) for name in ("DOP853", "Radau")
    )

    def first(t, y):
        return itertools.islice(explicit(t, y), 5)

    def failing(t, y):
        yield from itertools.islice(implicit(t, y), 7)
        raise step.StepFailure("it gives up")

    for other, last in ((implicit, "Radau"), (failing, "DOP853")):
        found = list(automatic_steps(first, (("Radau", other),), explicit, (0.0, START), 3.0, 1e6, statistics))
        assert found[-1].t1 == 3.0 and [a.t1 for a in found[:-1]] == [b.t0 for b in found[1:]]
        assert statistics.solver.startswith(f"DOP853 to time {found[4].t1:.6g} (")
        assert statistics.solver.endswith(f"then {last}")


def test_at_tight_tolerances_sampled_means_stay_explicit():
    # Radau took 12,300 right-hand sides to time 100 of a committee of 8 and 4 where DOP853 takes 4,100.
    model = odesim.declare(
        student={"unit": "erf(w/sqrt(2))", "units": 3, "output": "trained"}, teacher={"units": 2},
        training={"limit": "online", "step": 0.5},
    )  # fmt: skip
    run = odesim.integrate(model, tier="mixed", rtol=1e-9, until=10, points=1024, save_points=3)
    assert run.statistics["solver"] == "DOP853" and run.outcome.kind == "completed"
