"""Independent blocks: order and stability of the two methods, hitting times, save times, failures."""

import numpy as np
import pytest

from derivations.contract import Crossing
from odesim.code import compile
from odesim.errors import NumericalError
from odesim.flow import block_addresses, block_loops, blocks
from odesim.flow.problem import prepare
from odesim.request.case import Case


def bind(slope, jacobian=None):
    """Let the plain loops call these functions of (y) -> derivative, for tests without numba."""

    def block_slope(y, out, work, k, p):
        out[:] = slope(y)

    def block_jacobian(y, J, work, k, p):
        J[:] = jacobian(y) if jacobian is not None else 0.0

    vars(block_loops).update(
        block_slope=block_slope, block_jacobian=block_jacobian, block_start=lambda k, p: np.zeros((1, 1))
    )


def integrate(start, times, until, rtol, entries=(), rules=()):
    """All blocks with the plain loops: (saved, hits, counts, status)."""
    start = np.atleast_2d(np.array(start, float))
    count, n = start.shape
    saved = np.full((count, len(times), n), np.nan)
    hits = np.full((count, len(entries)), np.inf)
    counts, status = np.zeros((count, 3), np.int64), np.zeros(count, np.int64)
    block_loops.integrate_blocks(
        start, 0, np.array(times, float), float(until), (rtol, rtol * 1e-3, 100_000, np.inf),
        (np.array(entries, int), np.array([(*rule, 0.0) for rule in rules], float).reshape(-1, 4)),
        (saved, hits, counts, status), (blocks.coefficients(), ()),
    )  # fmt: skip
    return saved, hits, counts, status


def logistic(y):
    return y**2 * (1 - y**2)


def logistic_jacobian(y):
    return np.diag(2 * y - 4 * y**3)


def exact_time(q):
    return -1 / q + np.arctanh(q)


def test_hitting_times_are_those_of_the_closed_form_however_different_the_blocks():
    bind(logistic, logistic_jacobian)
    start = np.array([1e-2, 1e-3, 1e-5])
    _, hits, counts, status = integrate(start[:, None], [0.0], 1e7, 1e-10, [0], [(0.5, 1, 1)])
    np.testing.assert_allclose(hits[:, 0], exact_time(0.5) - exact_time(start), rtol=1e-9)
    assert not status.any() and counts[:, 0].max() < 400


def test_flows_that_end_at_their_crossing_find_the_same_times_in_fewer_steps():
    bind(logistic, logistic_jacobian)
    start = np.array([0.6, 1e-2, 1e-3, 1e-5])[:, None]
    crossing = Crossing("T", "m", 0.5)
    counted = []

    def integrate_and_count(*arguments):
        block_loops.integrate_blocks(*arguments)
        counted.append(arguments[6][2].copy())

    for workers in (1, 3):
        times = blocks.hitting_times(
            integrate_and_count, start, crossing, 0, 1e7, (1e-10, 1e-14, np.inf), workers=workers
        )
        np.testing.assert_allclose(times[1:], exact_time(0.5) - exact_time(start[1:, 0]), rtol=1e-9)
        assert times[0] == 0.0
    whole = integrate(start, [0.0], 1e7, 1e-10, [0], [(0.5, 1, 0)])[2]
    assert (counted[0][1:, 0] < whole[1:, 0]).all()
    below = blocks.hitting_times(block_loops.integrate_blocks, start[1:], crossing, 0, 50.0, (1e-8, 1e-12, np.inf))
    assert np.isinf(below).all()


def test_a_flow_that_fails_is_an_error(monkeypatch):
    monkeypatch.setattr(blocks, "MOST_STEPS", 500)
    bind(lambda y: np.where(y > 0.5, np.nan, y), lambda y: np.eye(y.size))
    with pytest.raises(NumericalError, match="in 1 of 2 flows"):
        blocks.hitting_times(
            block_loops.integrate_blocks,
            np.array([[1e-2], [0.4]]),
            Crossing("T", "m", 0.9),
            0,
            2.0,
            (1e-6, 1e-9, np.inf),
        )


def test_a_block_at_rest_costs_steps_like_the_logarithm_of_the_horizon():
    bind(logistic, logistic_jacobian)
    steps = [integrate([[0.1]], [0.0, t], t, 1e-9)[2][0, 0] for t in (1e3, 1e6, 1e12)]
    assert steps[2] - steps[0] < 40
    end = integrate([[0.1]], [0.0, 1e12], 1e12, 1e-9)[0]
    assert end[0, -1, 0] == pytest.approx(1.0, abs=1e-7)


def test_the_implicit_method_has_order_four():
    bind(logistic, logistic_jacobian)
    y, errors = np.array([0.3]), []
    exact = 0.3
    from scipy.integrate import solve_ivp

    for h in (0.4, 0.2):
        exact = solve_ivp(lambda t, y: logistic(y), (0, h), y, rtol=1e-13, atol=1e-15).y[0, -1]
        new, space = np.empty(1), (None, logistic_jacobian(y), np.empty(1), np.empty(1))
        block_loops.rosenbrock(y, logistic(y), h, new, (space, None, None, 0, ()))
        errors.append(abs(new[0] - exact))
    # A local error of order h^5.
    assert errors[0] / errors[1] == pytest.approx(32, rel=0.35)


def test_saved_states_do_not_depend_on_how_many_are_saved():
    bind(logistic, logistic_jacobian)
    few = integrate([[0.05]], [0.0, 30.0], 30.0, 1e-9)[0]
    many = integrate([[0.05]], np.linspace(0, 30, 31), 30.0, 1e-9)[0]
    assert few[0, -1, 0] == many[0, -1, 0]


def test_a_bump_inside_one_step_is_noticed():
    bind(lambda y: np.array([np.cos(y[1]), 1.0]), lambda y: np.array([[0, -np.sin(y[1])], [0, 0]]))
    _, hits, _, _ = integrate([[0.0, 0.0]], [0.0], 20.0, 1e-3, [0], [(0.8, 1, 0)])
    assert hits[0, 0] == pytest.approx(np.arcsin(0.8), rel=5e-3)


def test_a_crossing_after_one_that_only_the_cubic_shows_is_found():
    """y' = 1; a wrong slope at the end of the step lifts the cubic beyond the threshold long before."""
    bind(lambda y: np.ones(1))
    space = (np.empty((13, 1)), np.empty((1, 1)), np.empty(1), np.empty(1), np.empty((13, 1)), np.empty(1))
    hits = np.full(1, np.inf)
    step, watch = (
        (np.zeros(1), np.ones(1), np.ones(1), np.array([-30.0])),
        (np.array([0]), np.array([[0.9, 1.0, 0, 0]])),
    )
    block = (space, blocks.coefficients(), np.zeros((1, 1)), 0, ())
    block_loops.find_crossings(5.0, 1.0, step, False, watch, hits, block)
    assert hits[0] == pytest.approx(5.9, rel=1e-12)


def test_a_state_that_blows_up_is_a_failure_of_its_block_alone():
    bind(lambda y: np.where(y > 0.5, np.nan, y), lambda y: np.eye(y.size))
    with np.errstate(over="ignore", invalid="ignore"):
        _, _, _, status = integrate([[1.0], [-1.0]], [0.0], 5.0, 1e-6)
    assert status[0] != 0 and status[1] == 0


def test_all_models_share_the_machine_code_of_the_integrator():
    """Its results are those of one around the functions of the model, which are linked into it, up to rounding."""
    shared = compile.common(block_addresses.COMMON)["integrate_blocks"]
    for C, activation in ((2, "relu"), (3, "erf")):
        case = Case.build("kawata", {"C": C, "J": 3, "d": 100, "activation": activation}, until=1e5, save_points=3)
        problem = prepare(case)
        around = compile.compile_beside(problem.equations, "linked", blocks._texts).integrate_blocks
        size = 2 * C + 1
        start = np.ascontiguousarray(problem.start.reshape(-1, size))
        entries, rules, _ = blocks.tables(problem.equations, size)
        found = []
        for run in (blocks.compile_blocks(problem.equations, problem.arguments), around):
            saved, hits = np.full((len(start), 3, size), np.nan), np.full((len(start), len(entries)), np.inf)
            counts, status = np.zeros((len(start), 3), np.int64), np.zeros(len(start), np.int64)
            run(
                start.copy(), 0, np.linspace(0.0, 1e5, 3), 1e5, (1e-9, 1e-12, 10_000, np.inf), (entries, rules),
                (saved, hits, counts, status), (blocks.coefficients(), problem.arguments),
            )  # fmt: skip
            assert not status.any()
            found.append((saved, hits))
        for one, two in zip(*found, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-14)
    assert not shared.overloads and len(shared.bare().overloads) == 1


@pytest.mark.parametrize("until", [1e5, 1e6, 1e7, 1e9])
def test_a_block_that_starts_at_rest_stays_there(until):
    # At the float beside 0.3 the slope is rounding: a first step of a hundredth of size/slope is 1e14 long, its stages
    # leave |y| < 1, where the slope is 0, and its error estimate is 0.
    bind(lambda y: np.where(abs(y) < 1, -0.13 * (y - 0.3), 0.0), lambda y: -0.13 * (abs(y) < 1))
    times = np.concatenate([[0.0], np.geomspace(1e-4, 1, 30) * until])
    saved, _, counts, status = integrate([np.nextafter(0.3, 1)], times, until, 1e-8)
    assert status[0] == 0
    assert counts[0, 0] < 100
    np.testing.assert_allclose(saved[0, :, 0], 0.3, rtol=1e-8)
