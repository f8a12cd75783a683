"""The default integrator: explicit while accuracy holds the steps down, implicit once stability does.

From the first step LSODA where the right-hand side has kinks and is exact between them.
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from odesim.flow.solvers import cvode, dop853, ndf, scipy
from odesim.flow.solvers.rest import Slope, Steps, until_rest
from odesim.flow.solvers.step import Leg, Segment, Solver, Statistics, StepFailure

WINDOW, EQUAL = 12, 2.0
"""So many explicit steps in a row, equal up to this factor, are held down by stability; their mean says what the rest
of the run would cost."""
MOST_STEPS = {"CVODE": 2400.0, "NDF": 4000.0}
"""What the whole run of an implicit method costs at a local tolerance of 1e-9, in explicit steps of a dozen
evaluations; NDF less, but its loops take ten seconds to compile, once.  What is found is an upper estimate: liao's
default run promises 3,000 steps where they are shortest, takes 1,700, and no longer than with NDF."""
FEW_STEPS = 40.0
"""That of CVODE where a right-hand side is a mean over samples, and dear: two or three evaluations a step."""
COST_EXPONENT = -0.18
"""How that grows with the tolerance."""
IMPLICIT = 1e-8
"""Below this relative tolerance the default method stays explicit: those of low order do not reach what is asked."""

NEVER = 1e6
"""So many steps of an explicit method are not waited for, whatever the accuracy."""
FAR = 1e12
"""Where the horizon is so many explicit steps away, the first implicit method is passed over for Radau: it drifts too
far before the horizon, or finds no first step."""
DENSE = 200
"""Up to so many numbers Radau's dense Jacobian and its factors are cheap; it reaches any horizon from a fixed point."""
MANY, HOPELESS = 20_000, 100_000
"""An implicit method that has taken `MANY` steps, and has `HOPELESS` of them left at its pace, gives up."""
ENDLESS = 1e9
"""So many steps are left at its pace where the last method gives up: they would take hours."""

SMALLEST = 64
"""With fewer numbers than this CVODE is done in a tenth of a second, and NDF's loops take five to compile."""

MOST_EVALUATIONS = 60
"""In one step of LSODA, which takes three or four on average until it finds the flow stiff: its Jacobian, by
differences, then takes one for every entry of the state."""
PACE, CREEPING = 100, 20_000
"""LSODA creeps where as many steps as it has just taken in a row say that so many more are left; its runs over chen's
tiers take hundreds.  At a state on a kink its estimate of the Jacobian is without bound, and holds its steps down."""


def automatic_steps(
    first: Steps, implicit: Sequence[tuple[str, Steps]], explicit: Steps, start: tuple[float, np.ndarray],
    until: float, most: float, statistics: Statistics,
) -> Iterator[Segment]:  # fmt: skip
    """The steps of DOP853 (`first`) until they end, or `until` is more than `most` of them away, then those of the
    `implicit` methods by name, from the second on where it is very far, and the next where one fails; after the last,
    as at a kink, DOP853 again (`explicit`).

    The explicit method is the more accurate one at equal cost until stability holds its steps down.  Whether it does
    is measured, not guessed: its steps stop changing, and their mean says how many more it would take.
    """
    recent: collections.deque[float] = collections.deque(maxlen=WINDOW)
    statistics.solver = "DOP853"
    (t, y), left = start, 0.0
    for segment in first(t, y):
        yield segment
        t, y = segment.t1, segment.y1
        recent.append(t - segment.t0)
        left = (until - t) * WINDOW / sum(recent)
        if len(recent) == WINDOW and max(recent) < EQUAL * min(recent) and left > most:
            break
    if t >= until:
        return
    if left > FAR:
        implicit = implicit[1:] or implicit
    before = f"DOP853 to time {t:.6g} ({statistics.evaluations} evaluations), then "
    yield from until_it_fails((*implicit, ("DOP853", explicit)), (t, y), statistics, before)


def until_it_fails(
    methods: Sequence[tuple[str, Steps]], start: tuple[float, np.ndarray], statistics: Statistics, before: str = ""
) -> Iterator[Segment]:
    """The steps of the first method, and from where one fails those of the next; `before` is told before them."""
    t, y = start
    for k, (name, method) in enumerate(methods):
        statistics.solver = before + name
        try:
            for segment in method(t, y):
                yield segment
                t, y = segment.t1, segment.y1
            return
        except StepFailure:
            if k + 1 == len(methods):
                raise
            before = f"{before}{name} to time {t:.6g}, then "


def patient(method: Steps, until: float, statistics: Statistics, hopeless: float = HOPELESS) -> Steps:
    """The steps of a method, which fails where it has taken many and is as far from the horizon as before.

    At a fixed point the corrector of CVODE stops at its tolerance, which over a horizon of 1e14 is a drift along
    directions without a restoring force; its steps were then seen to shrink to what 1e11 of them would cover.
    """

    def onward(t: float, y: np.ndarray) -> Iterator[Segment]:
        begun = statistics.steps
        for segment in method(t, y):
            yield segment
            taken = statistics.steps - begun
            if taken > MANY and hopeless * (segment.t1 - t) < taken * (until - segment.t1):
                left = taken * (until - segment.t1) / (segment.t1 - t)
                raise StepFailure(f"the steps do not grow: at their pace the horizon is {left:.2g} of them away")

    return onward


def through_kinks(
    lsoda: Steps, explicit: Steps, start: tuple[float, np.ndarray], until: float, statistics: Statistics
) -> Iterator[Segment]:
    """The steps of LSODA; where it fails, becomes dear (`held_down`) or creeps, those of DOP853 from there.

    A step of DOP853 that a kink falls into is repeated with other lengths until its error estimate, a difference of
    high order that knows nothing of kinks, happens to vanish: at a tolerance of 1e-10 chen's tiers were seen to be 160
    to 730 tolerances off, and SciPy's own DOP853 up to 14,000.  LSODA comes down to a low order there: 11 at most on
    the same runs, for fewer evaluations.
    """

    def onward(t: float, y: np.ndarray) -> Iterator[Segment]:
        recent: collections.deque[float] = collections.deque(maxlen=PACE)
        for segment in lsoda(t, y):
            yield segment
            recent.append(segment.t0)
            if len(recent) == PACE and CREEPING * (segment.t1 - recent[0]) < PACE * (until - segment.t1):
                raise StepFailure("LSODA creeps")

    return until_it_fails((("LSODA", onward), ("DOP853", explicit)), start, statistics)


def held_down(slope: Slope, statistics: Statistics) -> Slope:
    """The slope for a method that fails where one step takes more than `MOST_EVALUATIONS`."""
    before = [statistics.steps, statistics.evaluations]

    def flow(t: float, y: np.ndarray) -> np.ndarray:
        if statistics.steps != before[0]:
            before[:] = statistics.steps, statistics.evaluations
        if statistics.evaluations - before[1] > MOST_EVALUATIONS:
            raise StepFailure(f"a step took more than {MOST_EVALUATIONS} evaluations")
        return slope(t, y)

    return flow


def steps(leg: Leg) -> Iterator[Segment]:
    """The steps over a leg: explicit where an implicit method gains nothing, else as `automatic_steps` finds."""
    problem = leg.problem

    def explicit(t: float, y: np.ndarray) -> Iterator[Segment]:
        return dop853.steps(dataclasses.replace(leg, t=t, y=y))

    def lsoda(t: float, y: np.ndarray) -> Iterator[Segment]:
        span = dataclasses.replace(leg, t=t, y=y).span()
        slope = held_down(problem.slope(), leg.statistics)
        return scipy.scipy_steps("LSODA", slope, span, problem.smooth.between)

    smooth = problem.smooth
    # A mean over samples is known less well than what its kinks do to DOP853, which takes half the evaluations.
    if smooth.kinks and not smooth.rough:
        return through_kinks(lsoda, explicit, (leg.t, leg.y), leg.until, leg.statistics)
    dear = smooth.rough > 0.0 and not smooth.kinks
    compiled = leg.y.size >= SMALLEST and not dear and not ndf.objection(problem)
    (other,) = ndf.SOLVERS if compiled else cvode.SOLVERS

    def implicit(t: float, y: np.ndarray) -> Iterator[Segment]:
        return other.steps(dataclasses.replace(leg, t=t, y=y))

    def radau(t: float, y: np.ndarray) -> Iterator[Segment]:
        return scipy.steps(dataclasses.replace(leg, t=t, y=y), "Radau")

    slope = problem.slope()

    def enduring(method: Steps, hopeless: float = HOPELESS) -> Steps:
        patience = patient(method, leg.until, leg.statistics, hopeless)
        if not problem.autonomous or leg.y.size > DENSE:
            return patience
        return until_rest(patience, slope, leg.until, problem.within, leg.statistics)

    def strict(t: float, y: np.ndarray) -> Iterator[Segment]:
        return dop853.steps(dataclasses.replace(leg, t=t, y=y), strict=True)

    dense = (("Radau", enduring(radau)),) if leg.y.size <= DENSE else ()
    methods: tuple[tuple[str, Steps], ...] = ((other.name, enduring(implicit)), *dense)
    cost = smooth.cost or MOST_STEPS[other.name]
    most = FEW_STEPS if dear else cost * (problem.tolerances()[0] / 1e-9) ** COST_EXPONENT
    if problem.rtol < IMPLICIT or (dense and problem.escaping(leg.y)):
        methods, most = dense, NEVER
    if not methods:
        leg.statistics.solver = "DOP853"
        return explicit(leg.t, leg.y)
    # At tight tolerances the implicit methods of sampled means take three times the evaluations of DOP853.
    first = strict if dear and problem.rtol >= IMPLICIT else explicit
    last = enduring(explicit, ENDLESS)
    return automatic_steps(first, methods, last, (leg.t, leg.y), leg.until, most, leg.statistics)


SOLVERS = (Solver("automatic", steps, default=True),)
