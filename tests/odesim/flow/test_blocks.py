"""Independent blocks: order and stability of the two methods, hitting times, save times, failures."""

import numpy as np
import pytest

from derivations.contract import Crossing
from odesim.errors import NumericalError
from odesim.flow import block_loops, blocks
from odesim.flow.tableau import weights


@pytest.fixture(autouse=True)
def plain_loops(monkeypatch):
    """Let Python run the loops, so that a test can hand them any functions."""
    for name, value in list(vars(block_loops).items()):
        if hasattr(value, "py_func") and name != "no_kernel":
            monkeypatch.setattr(block_loops, name, value.py_func)
    monkeypatch.setattr(blocks, "_steps", lambda: [block_loops.take_step])
    monkeypatch.setattr(block_loops, "hold_functions", lambda slope, jacobian: [slope, jacobian])


def bind(slope, jacobian=None, count=1):
    """Blocks of these functions of y."""

    def block_slope(y, out, tables, kernels):
        out[:] = slope(y)

    def block_jacobian(y, out, tables, kernels):
        out[:] = np.ravel(jacobian(y)) if jacobian is not None else 0.0

    return blocks.of_functions(block_slope, block_jacobian, np.zeros((count, 0)))


def integrate(functions, start, times, until, rtol, entries=(), rules=()):
    """All blocks with the plain loops: (saved, hits, counts, status)."""
    start = np.atleast_2d(np.array(start, float))
    found = blocks.Found.empty(start, len(times), len(entries))
    watch = blocks.Watch(np.array(entries, int), np.array([(*rule, 0.0) for rule in rules], float).reshape(-1, 4))
    control = blocks.Control(rtol, rtol * 1e-3, 100_000, np.inf, float(until))
    bind(*functions, count=len(start)).integrate(start, np.array(times, float), control, watch, found)
    return found


def logistic(y):
    return y**2 * (1 - y**2)


def logistic_jacobian(y):
    return np.diag(2 * y - 4 * y**3)


LOGISTIC = (logistic, logistic_jacobian)


def exact_time(q):
    return -1 / q + np.arctanh(q)


def test_hitting_times_are_those_of_the_closed_form_however_different_the_blocks():
    start = np.array([1e-2, 1e-3, 1e-5])
    _, hits, counts, status = integrate(LOGISTIC, start[:, None], [0.0], 1e7, 1e-10, [0], [(0.5, 1, 1)])
    np.testing.assert_allclose(hits[:, 0], exact_time(0.5) - exact_time(start), rtol=1e-9)
    assert not status.any() and counts[:, 0].max() < 400


def test_flows_that_end_at_their_crossing_find_the_same_times_in_fewer_steps(monkeypatch):
    start = np.array([0.6, 1e-2, 1e-3, 1e-5])[:, None]
    crossing, counted = Crossing("T", "m", 0.5), []
    plain = block_loops.integrate_block

    def integrate_and_count(control, watch, result, *rest):
        status = plain(control, watch, result, *rest)
        counted.append(result[3][0])
        return status

    monkeypatch.setattr(block_loops, "integrate_block", integrate_and_count)
    times = blocks.hitting_times(bind(*LOGISTIC, count=4), start, crossing, 0, 1e7, (1e-10, 1e-14, np.inf))
    np.testing.assert_allclose(times[1:], exact_time(0.5) - exact_time(start[1:, 0]), rtol=1e-9)
    assert times[0] == 0.0
    ended, counted[:] = list(counted), []
    integrate(LOGISTIC, start, [0.0], 1e7, 1e-10, [0], [(0.5, 1, 0)])
    assert all(few < many for few, many in zip(ended[1:], counted[1:], strict=True))
    below = blocks.hitting_times(bind(*LOGISTIC, count=3), start[1:], crossing, 0, 50.0, (1e-8, 1e-12, np.inf))
    assert np.isinf(below).all()


def test_a_flow_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_STEPS", 500)
    functions = bind(lambda y: np.where(y > 0.5, np.nan, y), lambda y: np.eye(y.size), count=2)
    with pytest.raises(NumericalError, match="in 1 of 2 flows"):
        blocks.hitting_times(
            functions, np.array([[1e-2], [0.4]]), Crossing("T", "m", 0.9), 0, 2.0, (1e-6, 1e-9, np.inf)
        )


def test_a_block_at_rest_costs_steps_like_the_logarithm_of_the_horizon():
    steps = [integrate(LOGISTIC, [[0.1]], [0.0, t], t, 1e-9)[2][0, 0] for t in (1e3, 1e6, 1e12)]
    assert steps[2] - steps[0] < 40
    end = integrate(LOGISTIC, [[0.1]], [0.0, 1e12], 1e12, 1e-9)[0]
    assert end[0, -1, 0] == pytest.approx(1.0, abs=1e-7)


def test_the_implicit_method_has_order_four():
    from scipy.integrate import solve_ivp

    errors = []
    for h in (0.4, 0.2):
        exact = solve_ivp(lambda t, y: logistic(y), (0, h), [0.3], rtol=1e-13, atol=1e-15).y[0, -1]
        room = np.zeros((block_loops.J + 2, 1))
        y = np.array([0.3])
        room[block_loops.Y], room[block_loops.F], room[block_loops.J] = y, logistic(y), logistic_jacobian(y)
        block = (room, weights(), *bind(*LOGISTIC).functions, None, None)
        block_loops.take_step(h, True, 0, block_loops.END, block)
        errors.append(abs(room[block_loops.END, 0] - exact))
    # A local error of order h^5.
    assert errors[0] / errors[1] == pytest.approx(32, rel=0.35)


def test_saved_states_do_not_depend_on_how_many_are_saved():
    few = integrate(LOGISTIC, [[0.05]], [0.0, 30.0], 30.0, 1e-9)[0]
    many = integrate(LOGISTIC, [[0.05]], np.linspace(0, 30, 31), 30.0, 1e-9)[0]
    assert few[0, -1, 0] == many[0, -1, 0]


def test_a_bump_inside_one_step_is_noticed():
    swing = (lambda y: np.array([np.cos(y[1]), 1.0]), lambda y: np.array([[0, -np.sin(y[1])], [0, 0]]))
    _, hits, _, _ = integrate(swing, [[0.0, 0.0]], [0.0], 20.0, 1e-3, [0], [(0.8, 1, 0)])
    assert hits[0, 0] == pytest.approx(np.arcsin(0.8), rel=5e-3)


def test_a_crossing_after_one_that_only_the_cubic_shows_is_found():
    """y' = 1; a wrong slope at the end of the step lifts the cubic beyond the threshold long before."""
    room = np.zeros((block_loops.J + 2, 1))
    room[[block_loops.Y, block_loops.F, block_loops.END, block_loops.SLOPE], 0] = 0.0, 1.0, 1.0, -30.0
    hits, watch = np.full(1, np.inf), (np.array([0]), np.array([[0.9, 1.0, 0, 0]]))
    block = (room, weights(), *bind(lambda y: np.ones(1)).functions, None, None)
    block_loops.find_crossings(5.0, 1.0, False, watch, hits, block_loops.take_step, block)
    assert hits[0] == pytest.approx(5.9, rel=1e-12)


def test_a_state_that_blows_up_is_a_failure_of_its_block_alone():
    breaking = (lambda y: np.where(y > 0.5, np.nan, y), lambda y: np.eye(y.size))
    with np.errstate(over="ignore", invalid="ignore"):
        _, _, _, status = integrate(breaking, [[1.0], [-1.0]], [0.0], 5.0, 1e-6)
    assert status[0] != 0 and status[1] == 0


@pytest.mark.parametrize("until", [1e5, 1e6, 1e7, 1e9])
def test_a_block_that_starts_at_rest_stays_there(until):
    # At the float beside 0.3 the slope is rounding: a first step of a hundredth of size/slope is 1e14 long, its stages
    # leave |y| < 1, where the slope is 0, and its error estimate is 0.
    resting = (lambda y: np.where(abs(y) < 1, -0.13 * (y - 0.3), 0.0), lambda y: -0.13 * (abs(y) < 1))
    times = np.concatenate([[0.0], np.geomspace(1e-4, 1, 30) * until])
    saved, _, counts, status = integrate(resting, [np.nextafter(0.3, 1)], times, until, 1e-8)
    assert status[0] == 0
    assert counts[0, 0] < 100
    np.testing.assert_allclose(saved[0, :, 0], 0.3, rtol=1e-8)
