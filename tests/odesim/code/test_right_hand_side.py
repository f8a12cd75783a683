"""Compiled right-hand sides: the same numbers by every way of calling, and steps that are those of NumPy."""

import gc

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import odesim
from odesim.flow import solve
from odesim.flow.problem import compile_functions, prepare
from odesim.flow.solvers import dop853
from odesim.flow.solvers.step import Span, Statistics
from odesim.request.case import Case

SMALL = {"unit": "erf(w/sqrt(2))", "units": 3}


def problem():
    return prepare(Case.build(odesim.declare(student=SMALL, teacher={**SMALL, "units": 2}), {}, until=1.0))


def test_states_of_any_kind_are_taken():
    given = problem()
    pair, fixed = np.stack([given.start, given.start], axis=1), given.start.copy()
    fixed.flags.writeable = False
    expected = given.derivative(0.0, given.start)
    for y in (pair[:, 0], fixed, given.start.astype(">f8").astype(float)):
        assert np.array_equal(given.derivative(0.0, y), expected)


def test_arguments_are_kept_for_as_long_as_they_are_lent():
    derivative = problem().derivative
    gc.collect()
    rubbish = [np.full(size, np.nan) for size in (20, 200, 2000) for _ in range(50)]
    again = problem()
    assert np.array_equal(derivative(0.0, again.start), again.derivative(0.0, again.start)) and rubbish


def test_no_call_leaves_memory_behind():
    given = problem()
    given.derivative.loss(given.start)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(50):
            given.derivative(0.0, given.start)
            given.derivative.loss(given.start)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free


def test_other_arguments_are_another_derivative():
    one, other = (prepare(Case.build("liao", {"m": 4, "m_star": 3, "d": 200}, seed=seed)) for seed in (0, 1))
    flow = one.functions["flow"]
    first, second = flow(0.0, one.start, *one.arguments), flow(0.0, one.start, *other.arguments)
    assert np.abs(first - second).max() > 1e-6
    assert np.array_equal(flow(0.0, one.start, *one.arguments), first)


def test_a_derivative_is_that_of_the_arrays():
    given = problem()
    flow = compile_functions(given.equations, "numpy")["flow"]
    found = given.derivative(0.0, given.start)
    np.testing.assert_allclose(found, flow(0.0, given.start, *given.arguments), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("bounded", [False, True])
def test_compiled_steps_are_those_of_numpy(bounded):
    given, h = problem(), 0.07
    bound = 1.1 * np.abs(given.start).max()  # nearer than 0 for the largest entries
    bounds = (np.full(given.start.size, -bound), np.full(given.start.size, bound)) if bounded else (-np.inf, np.inf)
    span = Span(0.0, given.start, 1.0, 1e-9, 1e-12, Statistics("DOP853"), bounds)
    f, found = given.derivative(0.0, given.start), []
    for attempts in (dop853._CompiledAttempts, dop853._Attempts):
        K = np.empty((16, f.size))
        found.append((*attempts(given.derivative, span).attempt(0.0, given.start, f, h, K), K[:13]))
    (new, error, K), (other, other_error, other_K) = found
    np.testing.assert_allclose(new, other, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(K, other_K, rtol=1e-11, atol=1e-13)
    assert error == pytest.approx(other_error, rel=1e-4) and error > 0  # a difference of sums that nearly cancel
    assert span.statistics.evaluations == 24


def test_a_step_at_rest_has_no_error():
    given = problem()
    still, K = np.zeros_like(given.start), np.empty((16, given.start.size))
    span = Span(0.0, given.start, 1.0, 1e-9, 1e-12, Statistics("DOP853"), given.bounds)
    new, error = dop853._CompiledAttempts(given.derivative, span).attempt(0.0, given.start, still, 0.0, K)
    assert error == 0.0 and np.array_equal(new, given.start)


def test_steps_are_compiled_where_they_are_many_numbers():
    small, large = prepare(Case.build("liao", {"m": 4, "m_star": 3})), prepare(Case.build("liao", {}))
    for given, kind in ((small, dop853._Attempts), (large, dop853._CompiledAttempts)):
        span = Span(0.0, given.start, 1.0, 1e-9, 1e-12, Statistics("DOP853"))
        assert type(dop853._attempts(given.derivative, span)) is kind
        assert type(dop853._attempts(given.slope().__call__, span)) is dop853._Attempts
    assert small.start.size < dop853.LARGE <= large.start.size == large.equations.layout.least


def test_a_state_that_is_no_number_fails_and_keeps_the_last_good_one():
    given = problem()
    case = given.case
    span = Span(0.0, given.start * np.nan, 2.0, 1e-9, 1e-12, Statistics("DOP853"), given.bounds)
    with pytest.raises(dop853.StepFailure):
        list(dop853.dop853_steps(given.derivative, span))
    assert solve.solve(case).outcome.kind == "completed"
