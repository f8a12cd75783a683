"""The default integrator: explicit while accuracy holds the steps down, implicit once stability does."""

import collections
from collections.abc import Callable, Iterator

import numpy as np

from odesim.steppers import Segment, Statistics

WINDOW, EQUAL = 12, 2.0
"""So many explicit steps in a row, equal up to this factor, are held down by stability; their mean says what the rest
of the run would cost."""
MOST_STEPS = {"CVODE": 2400.0, "NDF": 2500.0}
"""What the whole run of an implicit method costs at a local tolerance of 1e-9, in explicit steps of a dozen
evaluations; NDF less, but it is to be compiled once."""
COST_EXPONENT = -0.18
"""How that grows with the tolerance."""


def automatic_steps(
    explicit: Iterator[Segment],
    implicit: Callable[[float, np.ndarray], Iterator[Segment]],
    name: str,
    until: float,
    rtol: float,
    statistics: Statistics,
) -> Iterator[Segment]:
    """The steps of DOP853 (`explicit`, at a local tolerance `rtol`) for as long as it will reach `until` soon, then
    those of `implicit(t, y)`, the method called `name`.

    The explicit method is the more accurate one at equal cost until stability holds its steps down.  Whether it does
    is measured, not guessed: its steps stop changing, and their mean says how many more it would take.
    """
    most = MOST_STEPS[name] * (rtol / 1e-9) ** COST_EXPONENT
    recent: collections.deque[float] = collections.deque(maxlen=WINDOW)
    for segment in explicit:
        yield segment
        t, y = segment.t1, segment.y1
        recent.append(t - segment.t0)
        if len(recent) == WINDOW and max(recent) < EQUAL * min(recent) and (until - t) * WINDOW > most * sum(recent):
            evaluations = statistics.evaluations
            yield from implicit(t, y)
            statistics.solver = f"DOP853 to time {t:.6g} ({evaluations} evaluations), then {name}"
            return
