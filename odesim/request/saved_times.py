"""Saved times of a run: those of the user, or equally spaced ones with early ones if a stage takes decades of time."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Dynamics, UsageError
from odesim.request.parse import real_number, shortened
from odesim.request.trajectory import Trajectory, Variable

if TYPE_CHECKING:
    from odesim.request.case import Case

SAVED = 201
"""Default number of equally spaced saved times, both ends included."""
EARLY = 40
"""Number of early saved times in a decade."""
SAME = 1e-12
"""Relative difference up to which two times count as equal; it covers the rounding of decimal numbers."""


def has_early_times(case: "Case") -> bool:
    """Return True for a stage that takes decades of time (`decades`) if the user gives no saved times."""
    stage = case.system.stage(case.stage)
    given = case.save_at is not None or "save_points" in case.options
    return isinstance(stage, Dynamics) and stage.decades and not given


def saved_times(case: "Case", last: float, most: int | None = None) -> np.ndarray:
    """Return equally spaced times from 0 to `last`, at most `most`, and early ones for a logarithmic axis of time.

    There are `EARLY` early times in a decade. They begin four decades before the end, and end where the equal spacing
    is finer. They do not change the states at other times, because states are interpolated between the steps of the
    integrator.
    """
    even = np.linspace(0.0, last, min(case.save_points, most or case.save_points))
    if not has_early_times(case):
        return even
    return np.union1d(even, np.geomspace(1e-4 * last, 1e-1 * last, 3 * EARLY + 1))


def read_times(value: Any, name: str = "--save-at") -> tuple[float, ...]:
    """Return the times in the option called `name`: a string "1,10,100", a list, or an array (n,) of any library.

    Raises `UsageError` unless they are finite, at least 0 and increasing.

    >>> read_times("1,10,1e2"), read_times(np.array([0, 2]))
    ((1.0, 10.0, 100.0), (0.0, 2.0))
    """
    if isinstance(value, str):
        items: Any = [word for word in value.strip("[] ").split(",") if word.strip()]
    elif np.ndim(value) == 1:
        items = np.asarray(value).tolist()
    else:
        raise UsageError(f"{name} is a list of times such as 1,10,100, but {shortened(value)} was given")
    times = tuple(real_number(item, f"a time of {name}") for item in items)
    if not times or times[0] < 0 or times[-1] <= 0 or (np.diff(times) <= 0).any():
        raise UsageError(
            f"{name} needs increasing times of at least 0, the last above 0, but {shortened(value)} was given"
        )
    return times


def require_end(times: tuple[float, ...], until: float, name: str = "--save-at", end: str = "--until") -> None:
    """Raise `UsageError` if the end time is not the last saved time."""
    if abs(until - times[-1]) > SAME * times[-1]:
        raise UsageError(
            f"a run ends at the last time of {name}, which is {times[-1]:g}, but {end} is {until:g}: leave {end} out, "
            "or make it the last time"
        )


def with_start(times: np.ndarray) -> np.ndarray:
    """Return increasing times that begin at 0, where every run begins."""
    return times if times[0] == 0 else np.concatenate([[0.0], times])


def without_start(trajectory: Trajectory) -> Trajectory:
    """Return a trajectory without its first saved state, which the user did not request. A single state is kept."""
    if trajectory.time.size < 2:
        return trajectory
    return at_places(trajectory, np.arange(1, trajectory.time.size))


def at_places(trajectory: Trajectory, places: np.ndarray) -> Trajectory:
    """Return the trajectory at some of its saved times, given by their indices from 0."""
    state = {
        name: Variable(v.dims, np.take(v.values, places, v.dims.index("time")), v.meaning)
        for name, v in trajectory.state.items()
    }
    step = None if trajectory.step is None else trajectory.step[places]
    return dataclasses.replace(trajectory, time=trajectory.time[places], state=state, step=step)
