"""The default integrator: explicit while accuracy limits the steps, implicit once stability does.

For a right-hand side that has kinks and is exact between them, it is LSODA from the first step.
"""

import collections
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from odesim.flow.solvers import cvode, dop853, ndf, scipy
from odesim.flow.solvers.rest import Slope, Steps, until_rest
from odesim.flow.solvers.step import Leg, Segment, Solver, Statistics, StepFailure

WINDOW, EQUAL = 12, 2.0
"""Number of successive explicit steps that count as limited by stability, if they are equal up to the second factor.
Their mean gives the number of remaining steps.
"""
MOST_STEPS = {"CVODE": 2400.0, "NDF": 4000.0}
"""Cost of a whole implicit run at a local tolerance of 1e-9, in explicit steps of a dozen evaluations. NDF costs less,
but its loops take ten seconds to compile, once. The number is an upper estimate: liao's default run takes 1,700 steps,
where an explicit method would take 3,000 at its shortest steps, and no longer than with NDF.
"""
FEW_STEPS = 40.0
"""The same for CVODE if a right-hand side is an expensive mean over samples, with two or three evaluations per step."""
COST_EXPONENT = -0.18
"""Exponent of the growth of this cost with the tolerance."""
IMPLICIT = 1e-8
"""Relative tolerance below which the default method stays explicit, because methods of low order do not reach it."""

NEVER = 1e6
"""Number of explicit steps above which the method becomes implicit at any accuracy."""
FAR = 1e12
"""Number of explicit steps to the horizon above which Radau replaces the first implicit method, which drifts too far
before such a horizon, or has no first step.
"""
DENSE = 200
"""Largest number of entries at which Radau's dense Jacobian and its factors are cheap. Radau reaches any horizon from a
fixed point.
"""
MANY, HOPELESS = 20_000, 100_000
"""Numbers of steps: an implicit method gives up after `MANY` steps if `HOPELESS` steps remain at its pace."""
ENDLESS = 1e9
"""Number of remaining steps at which the last method gives up. They would take hours."""

SMALLEST = 64
"""Number of entries below which CVODE is used. It then takes a tenth of a second, and NDF's loops take five to
compile.
"""

MOST_EVALUATIONS = 60
"""Largest number of evaluations in one step of LSODA. The average is three or four, until it detects stiffness. Then
its Jacobian, by differences, takes one evaluation for every entry of the state.
"""
PACE, CREEPING = 100, 20_000
"""LSODA gives up if `PACE` successive steps predict more than `CREEPING` remaining ones; its runs over chen's tiers
take hundreds. On a kink its estimate of the Jacobian is unbounded and keeps the steps short.
"""


def automatic_steps(
    first: Steps, implicit: Sequence[tuple[str, Steps]], explicit: Steps, start: tuple[float, np.ndarray],
    until: float, most: float, statistics: Statistics,
) -> Iterator[Segment]:  # fmt: skip
    """Yield the steps of DOP853 (`first`) until they end, or more than `most` of them remain to `until`. Then yield
    those of the `implicit` methods, from the second on if `until` is very far. If a method fails, the next one
    continues, and after the last, DOP853 (`explicit`), as at a kink.

    At equal cost the explicit method is more accurate until stability limits its steps. This is measured: the steps
    stop changing, and their mean gives the number of remaining steps.
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
    """Yield the steps of the first method and, from the point where one fails, those of the next; `before` is the text
    before them.
    """
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
    """Yield the steps of a method. It fails after many steps if the horizon is no nearer.

    At a fixed point the corrector of CVODE stops at its tolerance. Over a horizon of 1e14 this is a drift along
    directions without a restoring force. Its steps were then observed to shrink until 1e11 of them would be necessary.
    """

    def onward(t: float, y: np.ndarray) -> Iterator[Segment]:
        begun = statistics.steps
        for segment in method(t, y):
            yield segment
            taken = statistics.steps - begun
            if taken > MANY and hopeless * (segment.t1 - t) < taken * (until - segment.t1):
                left = taken * (until - segment.t1) / (segment.t1 - t)
                raise StepFailure(f"the steps do not grow: at their pace {left:.2g} of them remain to the horizon")

    return onward


def through_kinks(
    lsoda: Steps, explicit: Steps, start: tuple[float, np.ndarray], until: float, statistics: Statistics
) -> Iterator[Segment]:
    """Yield the steps of LSODA. If it fails, becomes expensive (`held_down`) or very slow, DOP853 continues.

    A step of DOP853 across a kink is repeated with other lengths until its error estimate, a difference of high order
    for smooth functions, happens to vanish. At a tolerance of 1e-10 the errors on chen's tiers were 160 to 730
    tolerances, and up to 14,000 with SciPy's DOP853. LSODA lowers its order at a kink. On the same runs its errors were
    at most 11 tolerances, with fewer evaluations.
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
    """Return the slope for a method that fails if one step takes more than `MOST_EVALUATIONS`."""
    before = [statistics.steps, statistics.evaluations]

    def flow(t: float, y: np.ndarray) -> np.ndarray:
        if statistics.steps != before[0]:
            before[:] = statistics.steps, statistics.evaluations
        if statistics.evaluations - before[1] > MOST_EVALUATIONS:
            raise StepFailure(f"a step took more than {MOST_EVALUATIONS} evaluations")
        return slope(t, y)

    return flow


def steps(leg: Leg) -> Iterator[Segment]:
    """Yield the steps over a leg: explicit if an implicit method gains nothing, else by `automatic_steps`."""
    problem = leg.problem

    def explicit(t: float, y: np.ndarray) -> Iterator[Segment]:
        return dop853.steps(dataclasses.replace(leg, t=t, y=y))

    def lsoda(t: float, y: np.ndarray) -> Iterator[Segment]:
        span = dataclasses.replace(leg, t=t, y=y).span()
        slope = held_down(problem.slope(), leg.statistics)
        return scipy.scipy_steps("LSODA", slope, span, problem.smooth.between)

    smooth = problem.smooth
    # A mean over samples is less accurate than DOP853 at its kinks, and DOP853 takes half the evaluations.
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
