"""Numerical differentiation formulas for long horizons: the compiled loops of `ndf_loops`, for a flow that the engine
evaluates.

If a right-hand side takes ten microseconds, CVODE spends most of its time between Python and C. Here one call takes
many steps. It returns when an entry may have crossed its threshold, a state is saved, or the derivatives must be
renewed.
"""

import functools
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from odesim.flow.solvers.coupled import DISPLACEMENT
from odesim.flow.solvers.step import INTERIOR, Entries, Leg, Segment, Solver, Span, StepFailure
from odesim.machine.processes import pool

if TYPE_CHECKING:
    from odesim.code.right_hand_side import RightHandSide
    from odesim.flow.problem import Problem
    from odesim.flow.record import Recorder

CHUNK = 500
"""Steps in one call. They limit the delay of Ctrl-C, progress and checkpoints."""
NOTHING = (np.zeros(0, np.uint64), np.zeros(0), np.zeros(0))
"""Watched entries if the possible crossings are unknown: the recorder then checks every step."""
TOLERANCE = (3e-4, 1e-11)
"""The same as for CVODE."""
LOOSE, DEAR = 0.2, 100
"""Largest relative distance of the step from that of Newton's matrix, if the inversion of this matrix is expensive:
more than the second number of multiplications for every entry. A twentieth more evaluations are then cheaper than
inversions.
"""
Labels = Callable[[np.ndarray], np.ndarray]
SMALL = 4
"""Status of `advance` if the step has shrunk to round-off."""


def objection(problem: "Problem") -> str:
    """Return the reason why these formulas do not support a problem, or "". They need compiled equations and the
    coupled entries.
    """
    if problem.smooth.coupled is not None and problem.derivative is not None:
        return ""
    return (
        "--solver NDF needs equations that say which entries are strongly coupled, and --backend numba; "
        f"tier {problem.equations.about.name} on {problem.case.backend} can have --solver CVODE"
    )


def steps(leg: Leg) -> Iterator[Segment]:
    """Yield the steps over a leg."""
    problem, coupled = leg.problem, leg.problem.smooth.coupled
    assert coupled is not None and problem.derivative is not None  # as `objection` checks
    return ndf_steps(problem.derivative, coupled(problem.initial), leg.span(TOLERANCE), leg.recorder, leg.origin)


@functools.cache
def formulas() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return alpha, gamma and the error constants by order (Shampine & Reichelt 1997, Table 1)."""
    kappa = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
    gamma = np.append(0.0, np.cumsum(1 / np.arange(1, 6)))
    return (1 - kappa) * gamma, gamma, kappa * gamma + 1 / np.arange(1, 7)


class Blocks:
    """Strongly coupled entries in the form of the loops, and the derivatives between them."""

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
        """Tuple of members, first and place."""
        return self.members, self.first, self.place


def ndf_steps(
    flow: "RightHandSide", labels: Labels, span: Span, recorder: "Recorder", origin: float = 0.0
) -> Iterator[Segment]:
    """Yield the accepted steps that `recorder` must see (a possible crossing or a save time), and the last of every
    `CHUNK`.

    Entries of a state y with the same value of `labels(y)` are strongly coupled. `origin` is the time of the recorder
    at the beginning of the span. Raises `StepFailure` if the step size has shrunk to round-off, as it does if the state
    is no longer finite.
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
    """Return dy/dt (states, size) at many flat states (states, size), computed by `workers` threads."""
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
    """Return the last step; states inside it come from the polynomial of the method."""
    t1, length, order = float(control[0]), float(control[8]), int(control[2])
    differences = D[: order + 1].copy()

    def dense(t: float) -> np.ndarray:
        return _weights((t - t1) / length, order) @ differences

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        return t1 + (INTERIOR - 1.0) * length, _inside(order) @ differences[:, entries]

    t0 = t1 - length
    return Segment(t0, dense(t0), t1, differences[0], dense, interior)


def _weights(s: float, order: int) -> np.ndarray:
    """Return the weights of the differences in the state s steps after the last: prod_{i < j} (s + i) / (i + 1), j =
    0..order.
    """
    found = [1.0]
    for i in range(order):
        found.append(found[-1] * (s + i) / (i + 1))
    return np.array(found)


@functools.cache
def _inside(order: int) -> np.ndarray:
    """Return `_weights` of the states inside a step at which crossings are searched."""
    return np.array([_weights(s - 1.0, order) for s in INTERIOR])


def first_step(
    flow: Callable[[np.ndarray], np.ndarray], y: np.ndarray, slope: np.ndarray, most: float, rtol: float, atol: float
) -> float:
    """Return a step of first order with an error of about a hundredth of the tolerance (Hairer, Norsett & Wanner
    1993).
    """
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
