"""States of a run at any time. Between two saved times a flow is integrated from the earlier one."""

import dataclasses
from typing import Any

import numpy as np

from derivations.contract import Independent, Stepped
from odesim.errors import NumericalError, UsageError
from odesim.flow import solve
from odesim.flow.assemble import assemble
from odesim.flow.problem import Past, Problem
from odesim.flow.record import Record
from odesim.machine.device import in_double
from odesim.request.parse import shortened
from odesim.request.saved_times import SAME, at_places
from odesim.request.trajectory import Outcome, Trajectory
from odesim.study import rebuild


@in_double
def values_at(run: Trajectory, time: Any) -> dict[str, Any]:
    """Return components and observables of a run at a time, or at an array of times (n,), by name.

    At saved times they are the saved ones. Between two of them a flow is integrated from the earlier one, by the
    integrator of its equations and with the tolerances of the run. The saved states are not interpolated by a
    polynomial, so the accuracy does not depend on their number. A recursion has states at whole steps only, and SGD at
    its saved times only.

    Arguments:
        run: A trajectory of a flow, or of SGD.
        time: A number or a one-dimensional array on the clock of the run, in any order.

    Returns:
        "time" and every variable with a time axis: without that axis for a number, with n entries on it for an
        array.

    Raises:
        UsageError: A time is outside of the run, or the run has no state there.
        NumericalError: The integration to a time fails.
    """
    times, scalar = _checked(run, time)
    saved = np.abs(run.time[_nearest(run.time, times)] - times) <= SAME * np.abs(times)
    filled = run if saved.all() else _merged(run, np.unique(times[~saved]))
    chosen = at_places(filled, _nearest(filled.time, times))
    by_name = {"time": times, **{name: v.values for name, v in chosen.state.items()}}
    if not scalar:
        return by_name
    axes = {"time": 0, **{name: v.dims.index("time") for name, v in chosen.state.items()}}
    return {name: np.take(values, 0, axes[name]) for name, values in by_name.items()}


def _checked(run: Trajectory, time: Any) -> tuple[np.ndarray, bool]:
    """Return the times (n,), and True if a single number was given. Raises `UsageError`."""
    try:
        times = np.asarray(time, float)
    except (TypeError, ValueError):
        raise UsageError(f"run(time) takes a time or an array of times, but {shortened(time)} was given") from None
    if times.ndim > 1 or not times.size:
        raise UsageError(f"run(time) takes a time or an array of times, but an array of shape {times.shape} was given")
    first, last = float(run.time[0]), float(run.time[-1])
    margin = SAME * abs(last)
    invalid = times[~((times >= first - margin) & (times <= last + margin))]
    if invalid.size:
        raise UsageError(
            f"time {invalid.ravel()[0]:g} is outside of the run, which has states from {first:g} to {last:g}: "
            "continue_(until=..) continues it"
        )
    return np.atleast_1d(times), times.ndim == 0


def _nearest(saved: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the places of the saved times nearest to some times."""
    right = np.clip(np.searchsorted(saved, times), 1, max(1, saved.size - 1))
    left = right - 1
    right = np.minimum(right, saved.size - 1)
    return np.where(times - saved[left] <= saved[right] - times, left, right)


def _merged(run: Trajectory, times: np.ndarray) -> Trajectory:
    """Return the run with states at more times (increasing, inside it, none of them saved)."""
    if run.origin.method != "flow":
        raise UsageError(
            f"a run by {run.origin.method} has states at its saved times only, and {times[0]:g} is not one of "
            "them: list the times that you need in save_at="
        )
    run.origin.required()  # raises an error for a system that odesim may not import by itself
    try:
        problem, states = rebuild.problem_of(run)
    except UsageError:
        raise UsageError(
            f"odesim knows this run of {run.origin.name} only at its saved times, because its initial state cannot be "
            "rebuilt from the stored arrays: integrate again with the times that you need in save_at="
        ) from None
    begin = float(run.time[0])
    rows = [problem.start]
    for origin, y, leg_times in _legs(problem, run.time, states, times):
        rows.extend(_followed(problem, y, leg_times - origin, leg_times))
    record = Record(np.concatenate([[0.0], times - begin]), np.array(rows), _unmet(problem))
    outcome = Outcome("completed", float(times[-1]), "")
    filled = assemble(dataclasses.replace(problem, past=Past(begin)), record, outcome, {})
    order = np.argsort(np.concatenate([run.time, times]), kind="stable")
    between = at_places(filled, np.arange(1, filled.time.size))
    joined = {
        name: type(v)(v.dims, np.concatenate([v.values, between.state[name].values])[order], v.meaning)
        for name, v in run.state.items()
    }
    return dataclasses.replace(run, time=np.concatenate([run.time, times])[order], state=joined)


def _legs(
    problem: Problem, saved: np.ndarray, states: np.ndarray, times: np.ndarray
) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Return the states (time, state) from which to integrate, and the times to reach from each.

    This is the saved state before the times. Equations that depend on time or on more than their state are integrated
    from the start of the run. Independent blocks are too, because many of them are at rest at any time, and a first
    step from rest can be so long that states inside it are not accurate.
    """
    if isinstance(problem.equations.advance, Stepped | Independent) or not _autonomous(
        problem, states[-1], float(times[-1])
    ):
        return [(float(saved[0]), states[0], times)]
    previous = np.searchsorted(saved, times) - 1
    return [(float(saved[k]), states[k], times[previous == k]) for k in np.unique(previous)]


def _autonomous(problem: Problem, y: np.ndarray, time: float) -> bool:
    """Return True unless the right-hand side differs between time 0 and a later one."""
    if problem.autonomous:
        return True
    slope = problem.slope()
    return bool(np.array_equal(slope(0.0, y), slope(time, y), equal_nan=True))


def _followed(problem: Problem, y: np.ndarray, durations: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the flat states at some `durations` after y; `times` are the readings of the run's clock."""
    components = problem.equations.unpack(y)
    case = dataclasses.replace(problem.case, until=float(durations[-1]))
    if problem.equations.advance.kind == "recursion":
        case = dataclasses.replace(case, options=case.options - {"rtol", "atol"})  # the run's, but it refuses them
    restarted = dataclasses.replace(
        problem, case=case, equations=dataclasses.replace(problem.equations, begin=lambda initial: components)
    )
    run = solve.follow(restarted, np.concatenate([[0.0], durations]))
    if run.outcome.kind == "failed" or run.time.size <= durations.size:
        raise NumericalError(f"the flow cannot be integrated to time {times[-1]:g}: {run.outcome.reason}")
    return rebuild.flat_states(restarted.equations, run, y.size)[1 : durations.size + 1]


def _unmet(problem: Problem) -> dict[str, np.ndarray]:
    """Return infinite hitting times for every crossing."""
    dims = problem.equations.unpack(problem.start)
    hits = {c.name: np.full(c.entries(dims[c.component]).shape, np.inf) for c in problem.equations.crossings}
    advance = problem.equations.advance
    if isinstance(advance, Stepped):
        hits |= {name: np.full(advance.width, np.inf) for name in advance.names}
    return hits
