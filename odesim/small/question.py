"""Checked arguments for a small flow: the crossing, the end time and the tolerances."""

import functools
import math
from typing import Any

import numpy as np

from odesim.errors import UsageError
from odesim.request.parse import nearest, shortened
from odesim.request.saved_times import SAVED, read_times, require_end

ATOL = 1e-14
"""Default absolute tolerance of a step, unless the start is smaller than it resolves."""
Tolerances = tuple[float, float, bool]
"""Relative tolerance, absolute tolerance, and True if the latter follows the smallest entry of a start."""
Rule = tuple[int, float, float, float]
"""Crossing in the form of the compiled loops: place of the entry, level, direction, and 1 for its absolute value."""


def crossing_of(
    states: tuple[str, ...], entry: str, level: Any, direction: int, absolute: bool, until: Any, rtol: Any, atol: Any
) -> tuple[Rule, float, Tolerances]:
    """Return the crossing, `until` and the tolerances. Raises `UsageError` for invalid values."""
    follows = atol is None
    try:
        level, until, rtol, atol = float(level), float(until), float(rtol), ATOL if follows else float(atol)
    except (TypeError, ValueError):
        raise UsageError("level, until, rtol and atol of a hitting time are numbers") from None
    if not 0.0 < until < math.inf or not (rtol > 0.0 and atol >= 0.0):
        raise UsageError("a hitting time needs a finite until > 0, rtol > 0 and atol >= 0")
    return _rule(states, entry, level, direction, absolute), until, (rtol, atol, follows)


def saved_times(until: Any, save_points: int | None, save_at: Any) -> np.ndarray:
    """Return the times of a trajectory from 0 to `until`, or the given ones. Raises `UsageError` for anything else."""
    if save_at is not None:
        if save_points is not None:
            raise UsageError("save_points and save_at both determine the saved times; give only one of the two")
        times = read_times(save_at, "save_at")
        if until is not None:
            require_end(times, horizon(until), "save_at", "until")
        return np.array(times)
    points = SAVED if save_points is None else save_points
    if points < 2:
        raise UsageError(f"save_points must be at least 2 (both ends), but is {points}")
    return np.linspace(0.0, horizon(until), points)


def horizon(until: Any) -> float:
    """Return a finite end time above 0.  Raises `UsageError` for anything else."""
    try:
        end = float(until)
    except (TypeError, ValueError):
        end = math.nan
    if not 0.0 < end < math.inf:
        raise UsageError(f"until must be a finite number above 0, but {shortened(until)} was given")
    return end


@functools.lru_cache(maxsize=64)  # the same arguments come for flow after flow, and their check takes as long as a flow
def _rule(states: tuple[str, ...], entry: str, level: float, direction: int, absolute: bool) -> Rule:
    """Return the crossing of an entry that is one of `states`."""
    if entry not in states:
        raise UsageError(f"the flow has no entry {entry!r}; {nearest(entry, list(states))}")
    if direction not in (1, -1):
        raise UsageError(f"a hitting time needs direction 1 or -1, not {direction!r}")
    if not math.isfinite(level) or (absolute and direction < 0 and level < 0.0):
        raise UsageError(f"the level {level:g} cannot be reached")
    return states.index(entry), level, float(direction), float(absolute)
