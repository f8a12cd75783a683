"""Many independent small flows, each with its own step sizes, by compiled loops (`odesim.flow.block_loops`).

A joint solver takes the steps of the fastest entry for all blocks. Here every block has its own adaptive DOP853, and a
stiffly accurate Rosenbrock method once stability limits the step. For a block at a fixed point the number of steps
therefore grows only like the logarithm of the horizon.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np

from derivations.contract import Crossing, Equations
from odesim.errors import NumericalError
from odesim.flow.tableau import weights

STATUS = {
    1: "the state is no longer finite",
    2: "the step size fell to zero",
    3: "a block took more steps than allowed",
}
MOST_STEPS = 200_000
Tolerances = tuple[float, float, float]
"""The relative and the absolute tolerance of a step, and the longest step."""
Tables = tuple[np.ndarray, np.ndarray, np.ndarray]


class Control(NamedTuple):
    """Tolerances of a step, largest number of steps of a block, longest step, and horizon."""

    rtol: float
    atol: float
    most: float
    longest: float
    until: float


class Watch(NamedTuple):
    """Entries (crossings,) that are checked for crossings, and their rules (crossings, 4), made by `rule`."""

    entries: np.ndarray
    rules: np.ndarray


class Found(NamedTuple):
    """Results: saved states (blocks, times, n), hitting times (blocks, crossings), counts (blocks, 3) and status.

    The counts are steps, rejected steps and evaluations; the status (blocks,) is 0 or a key of `STATUS`.
    """

    saved: np.ndarray
    hits: np.ndarray
    counts: np.ndarray
    status: np.ndarray

    @classmethod
    def empty(cls, start: np.ndarray, times: int, crossings: int) -> "Found":
        """Return empty results for blocks that start at states (blocks, n): no saved states, no crossings, no steps."""
        count, n = start.shape
        saved, hits = np.full((count, times, n), np.nan), np.full((count, crossings), np.inf)
        return cls(saved, hits, np.zeros((count, 3), np.int64), np.zeros(count, np.int64))


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Equations of independent blocks, in the form of the compiled loops.

    `functions` holds the function pointers of slope and Jacobian, whose arguments include `tables` and `kernels`. The
    individual numbers (blocks, q) of the blocks are written at `places` (q,) of the first table. Two threads must not
    share the tables.
    """

    functions: Any
    tables: Tables
    kernels: Any
    numbers: np.ndarray
    places: np.ndarray

    def integrate(self, start: np.ndarray, times: np.ndarray, control: Control, watch: Watch, found: Found) -> None:
        """Integrate the blocks from `start` (blocks, n), and fill `found`."""
        from odesim.flow.block_loops import J, Y, integrate_block

        n = start.shape[1]
        room = np.empty((J + 2 * n, n))
        asked, program = (tuple(control), tuple(watch)), (_steps(), self.functions, self.tables, self.kernels)
        now = int(np.searchsorted(times, 0.0, side="right"))
        found.saved[:, :now] = start[:, None]
        for k, y in enumerate(start):
            room[Y] = y
            self.tables[0][self.places] = self.numbers[k]
            result = times[now:], found.saved[k, now:], found.hits[k], found.counts[k]
            found.status[k] = integrate_block(*asked, result, (room, weights()), *program)


@functools.cache
def _steps() -> Any:
    from odesim.flow import block_loops

    return block_loops.hold_step(block_loops.take_step)


@functools.cache
def _no_kernels() -> Any:
    from odesim.code.right_hand_side import held
    from odesim.flow import block_loops

    return held(block_loops.no_kernel)


def of_functions(slope: Any, jacobian: Any, numbers: np.ndarray) -> Blocks:
    """Return blocks with their own compiled functions (y, out, tables, kernels); tables[0] has the numbers of a
    block.
    """
    from odesim.flow.block_loops import hold_functions

    numbers = np.ascontiguousarray(numbers, float)
    tables = np.zeros(max(1, numbers.shape[1])), np.zeros(1, np.uint32), np.zeros(1, np.uint64)
    return Blocks(hold_functions(slope, jacobian), tables, _no_kernels(), numbers, np.arange(numbers.shape[1]))


def hitting_times(
    blocks: Blocks, starts: np.ndarray, crossing: Crossing, entry: int, until: float, tolerances: Tolerances
) -> np.ndarray:
    """Return the first times at which `entry` of many independent flows crosses; infinite for times after `until`. Each
    flow ends at its crossing.

    `starts` are (flows, n). Raises `NumericalError` if a flow fails.
    """
    watch = Watch(np.array([entry]), np.array([rule(crossing, ends=True)]))
    found = _integrated(blocks, starts, np.zeros(0), until, tolerances, watch)
    return np.where(crossing.margin(starts[:, entry]) >= 0, 0.0, found.hits[:, 0])


def trajectories(blocks: Blocks, starts: np.ndarray, times: np.ndarray, tolerances: Tolerances) -> np.ndarray:
    """Return the states (flows, times, n) of many independent flows with `starts` (flows, n) at increasing `times` from
    0.

    Raises `NumericalError` if a flow fails.
    """
    nothing = Watch(np.zeros(0, int), np.zeros((0, 4)))
    return _integrated(blocks, starts, times, float(times[-1]), tolerances, nothing).saved


def _integrated(
    blocks: Blocks, starts: np.ndarray, times: np.ndarray, until: float, tolerances: Tolerances, watch: Watch
) -> Found:
    """Return the results of flows. Raises `NumericalError` if one of them fails."""
    (rtol, atol, longest), starts = tolerances, np.ascontiguousarray(starts, float)
    found = Found.empty(starts, times.size, watch.entries.size)
    blocks.integrate(starts, times, Control(rtol, atol, MOST_STEPS, longest, float(until)), watch, found)
    if found.status.any():
        bad = int((found.status != 0).sum())
        raise NumericalError(f"{STATUS[int(found.status.max())]} in {bad} of {found.status.size} flows")
    return found


def tables(equations: Equations, size: int) -> tuple[Watch, list[tuple[str, np.ndarray]]]:
    """Return the crossings of one block. Each has its name and the places (entries of the block,) of its hitting
    times.
    """
    entries, rules, places = [], [], []
    for crossing in equations.crossings:
        block = equations.layout.places(crossing.component, size).reshape(-1)
        first = len(entries)
        entries += [int(k) for k in block]
        rules += [rule(crossing)] * block.size
        places.append((crossing.name, np.arange(first, len(entries))))
    return Watch(np.array(entries, np.int64), np.array(rules, float).reshape(-1, 4)), places


def rule(crossing: Crossing, ends: bool = False) -> tuple[float, ...]:
    """Return a crossing in the form of the loops: (threshold, direction, absolute, True if it ends its block)."""
    return (crossing.threshold, crossing.direction, float(crossing.absolute), float(ends))
