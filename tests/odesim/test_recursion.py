"""Recursions: whole steps, saved times, checkpoints, both back ends."""

import dataclasses

import numpy as np
import pytest

import odesim
from odesim import integration, recursion
from odesim.case import Case

SIZES = {"n": 4, "p": 2, "m": 6, "d": 5, "mode": "joint", "k": 2, "l": 2}


def case(**options) -> Case:
    """A small recursion."""
    return Case.build("pmoe", {**SIZES, "step": 0.25}, **options)


def test_steps_are_applied_one_after_the_other():
    problem = integration.prepare(case(until=2.0, save_points=9))
    y = problem.start
    for _ in range(8):
        y = y + 0.25 * problem.functions["flow"](0.0, y, *problem.arguments)
    run = recursion.solve(problem)
    end = np.concatenate([run.state[name].values[-1].ravel() for name in ("pre", "route")])
    assert np.array_equal(end, y)
    assert run.statistics["steps"] == 8


def test_given_times_must_be_whole_steps():
    problem = integration.prepare(case(until=2.0))
    run = recursion.solve(problem, np.array([0.0, 0.5, 1.75]))
    assert run.time.tolist() == [0.0, 0.5, 1.75]
    with pytest.raises(odesim.UsageError, match="whole numbers"):
        recursion.solve(problem, np.array([0.0, 0.6]))


def test_jax_takes_the_same_steps():
    runs = [integration.solve(case(until=2.0, save_points=3, backend=backend)) for backend in ("numba", "jax")]
    assert np.abs(runs[0].state["pre"].values - runs[1].state["pre"].values).max() < 1e-14


def test_a_hitting_time_is_the_first_step_past_the_threshold():
    from derivations.contract import Crossing

    problem = integration.prepare(case(until=2.0, save_points=9))
    free = recursion.solve(problem)
    series = free.state["pre"].values.reshape(9, -1)
    steady = np.flatnonzero(
        (np.diff(series, axis=0) > 1e-9).all(axis=0) | (np.diff(series, axis=0) < -1e-9).all(axis=0)
    )
    entry = int(steady[0])
    level = (series[3, entry] + series[4, entry]) / 2
    direction = 1 if series[4, entry] > series[3, entry] else -1
    crossing = Crossing("hit", "pre", float(level), direction)
    watched = dataclasses.replace(problem, equations=dataclasses.replace(problem.equations, crossings=(crossing,)))
    assert recursion.solve(watched).extras["hit"].values.reshape(-1)[entry] == pytest.approx(1.0)


def test_an_interrupted_recursion_goes_on(tmp_path):
    class Stop:
        """A progress that stops the run half way."""

        calls = 0

        def __call__(self, now: float, until: float) -> None:
            self.calls += 1
            if self.calls == 4:
                raise KeyboardInterrupt

    from odesim.store import Checkpoint

    request = case(until=2.0, save_points=9)
    checkpoint = Checkpoint(tmp_path, request.digest)
    with pytest.raises(KeyboardInterrupt):
        integration.solve(request, Stop(), checkpoint)
    again = integration.solve(request, None, checkpoint)
    whole = integration.solve(request)
    assert np.array_equal(again.state["pre"].values, whole.state["pre"].values)


def test_steps_that_blow_up_are_an_outcome():
    problem = integration.prepare(case(until=2.0, save_points=9))
    broken = dataclasses.replace(problem, functions={**problem.functions, "flow": lambda t, y, *a: y * np.inf})
    run = recursion.solve(broken)
    assert run.outcome.kind == "failed"
    assert run.outcome.time == 0.0
