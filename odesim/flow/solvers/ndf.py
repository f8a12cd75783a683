"""Long horizons at the cost of compiled code: the loops of `ndf_loops` around a flow that the engine evaluates.

CVODE spends most of its time between Python and C where a right-hand side takes ten microseconds.  Here many steps are
one call, which comes back where an entry may have crossed its threshold, a state is to be saved, or the derivatives
are to be renewed.
"""

import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from odesim.flow.record import Recorder
from odesim.flow.solvers.coupled import DISPLACEMENT
from odesim.flow.solvers.step import INTERIOR, Entries, Leg, Segment, Solver, Span, StepFailure
from odesim.machine.processes import pool

if TYPE_CHECKING:
    from odesim.code.right_hand_side import RightHandSide
    from odesim.flow.problem import Problem

CHUNK = 500
"""Steps in one call; bounds how long Ctrl-C, progress and checkpoints wait."""
NOTHING = (np.zeros(0, np.uint64), np.zeros(0), np.zeros(0))
"""What is watched where it is not known what may cross: every step is looked at by the recorder."""
TOLERANCE = (3e-4, 1e-11)
"""As that of CVODE."""
LOOSE, DEAR = 0.2, 100
"""So far may the step be from that of Newton's matrix, whose inversion takes most of the time where it needs more
multiplications than so many for every entry of the state; a twentieth more evaluations are then cheaper."""
Labels = Callable[[np.ndarray], np.ndarray]
SMALL = 4
"""The status of `advance` where the step has shrunk to round-off."""


def objection(problem: "Problem") -> str:
    """Why these formulas cannot take a problem: they are compiled, and must know what is strongly coupled."""
    if problem.smooth.coupled is not None and problem.derivative is not None:
        return ""
    return (
        "--solver NDF needs equations that say which entries are strongly coupled, and --backend numba; "
        f"tier {problem.equations.about.name} on {problem.case.backend} can have --solver CVODE"
    )


def steps(leg: Leg) -> Iterator[Segment]:
    """The steps over a leg."""
    problem, coupled = leg.problem, leg.problem.smooth.coupled
    assert coupled is not None and problem.derivative is not None  # as `objection` says
    return ndf_steps(problem.derivative, coupled(problem.initial), leg.span(TOLERANCE), leg.recorder, leg.origin)


@functools.cache
def formulas() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """alpha, gamma and the error constants by order (Shampine & Reichelt 1997, Table 1)."""
    kappa = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
    gamma = np.append(0.0, np.cumsum(1 / np.arange(1, 6)))
    return (1 - kappa) * gamma, gamma, kappa * gamma + 1 / np.arange(1, 7)


class Blocks:
    """Which entries are strongly coupled, as the loops read it, and the derivatives between them."""

    def __init__(self, labels: np.ndarray) -> None:
        _, block, count = np.unique(labels, return_inverse=True, return_counts=True)
        order = np.lexsort((block, count[block]))
        sizes = np.sort(count)
        self.labels, self.members = labels, order.astype(np.uint64)
        self.first = np.append(0, np.cumsum(sizes))
        self.place = np.append(0, np.cumsum(sizes**2))
        self.J, self.inverse = np.zeros((sizes**2).sum()), np.zeros((sizes**2).sum())
        self.loose = LOOSE if (sizes.astype(float) ** 3).sum() > DEAR * labels.size else 0.0

    @property
    def pattern(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """members, first, place."""
        return self.members, self.first, self.place


def ndf_steps(
    flow: "RightHandSide", labels: Labels, span: Span, recorder: Recorder, origin: float = 0.0
) -> Iterator[Segment]:
    """The accepted steps in which something may happen that `recorder` waits for, and the last of every `CHUNK`.

    Entries of a state y that have the same of `labels(y)` are strongly coupled; `origin` is the time of the recorder at
    which that of the span begins.  Raises `StepFailure` when the step
    size has shrunk to round-off, as it does where the state is no longer finite.
    """
    from odesim.flow.solvers import ndf_loops as loops  # which compiles them

    table, statistics, program = formulas(), span.statistics, flow.program(span.y.size)
    t, y, until, rtol, atol = span.t, span.y, span.until, span.rtol, span.atol
    D, work, counts = np.empty((8, y.size)), tuple(np.empty((8, y.size))), np.zeros(3, np.int64)
    slope = flow(t, y)
    step = first_step(functools.partial(flow, t), y, slope, until - t, rtol, atol)
    loops.begin(y, slope, step, D)
    control = np.array([t, step, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, np.inf, 0.0])
    blocks, counted, status = Blocks(labels(y)), (statistics.steps, statistics.rejected or 0, statistics.evaluations), 3
    counts[2] = 2
    while control[0] < until:
        if status == 3:
            now = labels(D[0])
            blocks = blocks if np.array_equal(now, blocks.labels) else Blocks(now)
            slope = flow(t, D[0])
            used = loops.derivatives(D[0], slope, DISPLACEMENT, blocks.pattern, blocks.J, *program)
            counts[2] += 1 + used
            control[7] = control[9] = 0.0
            control[10] = blocks.loose
        watch, most = (recorder.watched, CHUNK) if recorder.watched is not None else (NOTHING, 1)
        before = control[0]
        method = (blocks.pattern, blocks.J, blocks.inverse, rtol, atol, table, work)
        status = loops.advance(D, control, counts, (until, recorder.due - origin), most, watch, method, *program)
        statistics.steps, statistics.rejected, statistics.evaluations = (
            a + int(b) for a, b in zip(counted, counts, strict=True)
        )
        if status == SMALL:
            raise StepFailure("the step size of the differentiation formulas has shrunk to the spacing of the numbers")
        if control[0] > before:
            yield _segment(D, control)


def right_hand_sides(flow: "RightHandSide", states: np.ndarray, workers: int = 1) -> np.ndarray:
    """dy/dt (states, size) at many flat states (states, size), shared out to `workers` threads."""
    from odesim.flow.solvers.ndf_loops import slopes

    states = np.ascontiguousarray(states, float)
    found = np.empty_like(states)
    parts = [part for part in np.array_split(np.arange(len(states)), workers) if part.size]

    def fill(part: np.ndarray) -> None:
        (W, T, N), kernels = flow.program(states.shape[1])
        # The engine works in W, which two threads must not share.
        slopes(states[part[0] : part[-1] + 1], found[part[0] : part[-1] + 1], (W.copy(), T, N), kernels)

    others = [pool(workers - 1, os.getpid()).submit(fill, part) for part in parts[1:]]
    for part in parts[:1]:
        fill(part)
    for other in others:
        other.result()
    return found


def _segment(D: np.ndarray, control: np.ndarray) -> Segment:
    """The last step, whose states are those of the method's own polynomial."""
    t1, length, order = float(control[0]), float(control[8]), int(control[2])
    differences = D[: order + 1].copy()

    def dense(t: float) -> np.ndarray:
        return _weights((t - t1) / length, order) @ differences

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        return t1 + (INTERIOR - 1.0) * length, _inside(order) @ differences[:, entries]

    t0 = t1 - length
    return Segment(t0, dense(t0), t1, differences[0], dense, interior)


def _weights(s: float, order: int) -> np.ndarray:
    """Those of the differences in the state s steps after the last: prod_{i < j} (s + i) / (i + 1), j = 0..order."""
    found = [1.0]
    for i in range(order):
        found.append(found[-1] * (s + i) / (i + 1))
    return np.array(found)


@functools.cache
def _inside(order: int) -> np.ndarray:
    """`_weights` of the states inside a step that a crossing is looked for at."""
    return np.array([_weights(s - 1.0, order) for s in INTERIOR])


def first_step(
    flow: Callable[[np.ndarray], np.ndarray], y: np.ndarray, slope: np.ndarray, most: float, rtol: float, atol: float
) -> float:
    """A step of the first order with an error of about a hundredth of the tolerance (Hairer, Norsett & Wanner 1993)."""
    scale = atol + rtol * np.abs(y)

    def size(x: np.ndarray) -> float:
        return float(np.sqrt(np.mean((x / scale) ** 2)))

    speed = size(slope)
    if speed == 0.0:
        return most
    guess = min(0.01 * size(y) / speed, most)
    bend = size(flow(y + guess * slope) - slope) / guess
    return min(100 * guess, np.sqrt(0.01 / max(speed, bend)), most)


SOLVERS = (Solver("NDF", steps, local=TOLERANCE, objection=objection),)
