"""What is asked of a small flow: the crossing, the horizon and the tolerances, checked."""

import functools
import math
from typing import Any

from odesim.errors import UsageError
from odesim.request.parse import nearest

ATOL = 1e-14
"""The absolute tolerance of a step, unless one is given or the start is smaller than it resolves."""
Tolerances = tuple[float, float, bool]
"""Relative, absolute, and whether the absolute one follows the smallest entry of a start."""
Rule = tuple[int, float, float, float]
"""A crossing as compiled loops take it: place of the entry, level, direction, and 1 where its size counts."""


def crossing_of(
    states: tuple[str, ...], entry: str, level: Any, direction: int, absolute: bool, until: Any, rtol: Any, atol: Any
) -> tuple[Rule, float, Tolerances]:
    """The crossing, `until` and the tolerances; raises `UsageError` for what makes no sense."""
    follows = atol is None
    try:
        level, until, rtol, atol = float(level), float(until), float(rtol), ATOL if follows else float(atol)
    except (TypeError, ValueError):
        raise UsageError("level, until, rtol and atol of a hitting time are numbers") from None
    if not 0.0 < until < math.inf or not (rtol > 0.0 and atol >= 0.0):
        raise UsageError("a hitting time needs a finite until > 0, rtol > 0 and atol >= 0")
    return _rule(states, entry, level, direction, absolute), until, (rtol, atol, follows)


@functools.lru_cache(maxsize=64)  # the same question is asked of flow after flow, and its check takes as long as a flow
def _rule(states: tuple[str, ...], entry: str, level: float, direction: int, absolute: bool) -> Rule:
    """The crossing of an entry that is one of `states`."""
    if entry not in states:
        raise UsageError(f"the flow has no entry {entry!r}; {nearest(entry, list(states))}")
    if direction not in (1, -1):
        raise UsageError(f"a hitting time needs direction 1 or -1, not {direction!r}")
    if not math.isfinite(level) or (absolute and direction < 0 and level < 0.0):
        raise UsageError(f"the level {level:g} can never be reached")
    return states.index(entry), level, float(direction), float(absolute)
