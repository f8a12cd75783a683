"""Initial condition and flat states of a trajectory, from which its equations can be evaluated again."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Equations, UsageError, load
from odesim.flow.problem import Problem, clocked, prepare
from odesim.machine import streams
from odesim.request.case import Case
from odesim.request.trajectory import Trajectory

SAME = 1e-9
"""Relative difference that is allowed between a rebuilt and the stored initial condition, due to rounding of unit
vectors.
"""


def problem_of(trajectory: Trajectory) -> tuple[Problem, np.ndarray]:
    """Return the problem that a trajectory of a flow solves, and its flat states (time, n).

    Its initial condition is drawn again from the seed if that gives the stored start, otherwise made of the stored
    components and constants. Raises `UsageError` if neither reproduces the start of the run.
    """
    origin = trajectory.origin
    if origin.method != "flow":
        raise UsageError(f"expected a flow, but this is a run of {origin.method} SGD: integrate the flow instead")
    case = _case(trajectory)
    stage, start = case.system.stage(case.stage), trajectory.arrays(0)
    for previous in (None, start):
        try:
            if previous is None:  # given vectors may lie in fewer dimensions than a draw needs
                case.system.check(case.parameters)
            initial = load(stage.enter)(case.parameters, previous, streams.generator(case.seed, "initial"))
        except (UsageError, KeyError):  # a stage that cannot begin like this; the other way is tried next
            continue
        problem = prepare(case, initial)
        clocked_initial = clocked(problem.equations, initial, float(trajectory.time[0]))  # it may be a continued run
        if clocked_initial is not initial:
            problem = dataclasses.replace(
                problem, initial=clocked_initial, arguments=problem.equations.arguments(clocked_initial)
            )
        states = flat_states(problem.equations, trajectory, problem.start.size)
        if _same(problem, trajectory, states[0]):
            return problem, states
    raise UsageError(
        f"the initial condition of this run of {origin.name} cannot be reconstructed from the stored arrays: "
        "give the Case (odesim.request.case.Case.build) instead"
    )


def _case(trajectory: Trajectory) -> Case:
    """The case of a trajectory, without the arrays of its file."""
    origin = trajectory.origin
    named = ("rtol", "atol", "backend", "solver", "step")
    options = {name: origin.options[name] for name in named if name in origin.options}
    return Case.build(
        origin.required(), origin.parameters, stage=origin.stage, seed=origin.seed,
        until=max(float(trajectory.time[-1]), 1e-300), continued=True, **options,
    )  # fmt: skip


def places(equations: Equations, size: int) -> dict[str, np.ndarray]:
    """Return for each component the places of its entries in the flat state, -1 for constants."""
    return {c.name: equations.layout.places(c.name, size) for c in equations.state}


def flat_states(equations: Equations, trajectory: Trajectory, size: int) -> np.ndarray:
    """The flat states (time, n) from the components of a trajectory. Raises `UsageError` if entries are missing."""
    flat = np.full((trajectory.time.size, size), np.nan)
    for name, place in places(equations, size).items():
        if name not in trajectory.state:
            continue
        values = trajectory.state[name].values.reshape(len(flat), -1)
        chosen = place.reshape(-1) >= 0
        if values.shape[1] == chosen.size:
            flat[:, place.reshape(-1)[chosen]] = values[:, chosen]
    if np.isnan(flat).any():
        raise UsageError("the run does not have the complete state of its equations: give its Case instead")
    return flat


def _same(problem: Problem, trajectory: Trajectory, y: np.ndarray) -> bool:
    """Return True if the start and the constants of a problem are those of a run."""
    close = _close(problem.start, y)
    for name, (_, values, _) in problem.equations.observables.constants(problem.initial).items():
        if name in trajectory.extras:
            close = close and _close(np.asarray(values), trajectory.extras[name].values)
    return close


def _close(first: np.ndarray, second: np.ndarray) -> bool:
    if first.shape != second.shape:
        return False
    if first.dtype.kind not in "fiub":
        return bool((first == second).all())
    size = float(np.abs(second[np.isfinite(second)]).max(initial=0.0))
    return bool(np.isclose(first, second, rtol=SAME, atol=SAME * size, equal_nan=True).all())


def replaced(equations: Equations, y: np.ndarray, state: Mapping[Any, Any]) -> np.ndarray:
    """Return the flat state with some components replaced; entries that appear twice (symmetric matrices) must agree.

    Raises `UsageError` for an unknown component, a shape that disagrees, or a constant entry that is changed.
    """
    positions, y = places(equations, y.size), y.copy()
    for name, component in {str(name): values for name, values in state.items()}.items():
        if name not in positions:
            raise UsageError(f"there is no component {name!r} to replace; there are {', '.join(positions)}")
        place, values = positions[name], np.asarray(component, float)
        if values.shape != place.shape:
            raise UsageError(f"component {name} must have shape {place.shape}, but has {values.shape}")
        chosen = place >= 0
        y[place[chosen]] = values[chosen]
        if not np.allclose(equations.unpack(y)[name], values, rtol=0, atol=1e-12):
            raise UsageError(
                f"component {name} is not a valid state: a constant entry (a diagonal) or its symmetry was changed"
            )
    return y
