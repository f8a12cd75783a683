"""Batches that change in time: one engine after the other, each going on from the state of the one before."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Dynamics

if TYPE_CHECKING:
    from odesim.sgd.engines import Engine
    from odesim.sgd.simulation import Simulation

EARLY = 1e-6
"""A batch holds from the first step that is not more than this part of a step before its time."""
Changes = tuple[tuple[int, int], ...]
"""(number of the first step, batch) of batches in order; none where there is one."""


def changes(stage: Dynamics, parameters: Any, tick: float) -> Changes:
    """The steps from which the batches of a stage hold, where they change."""
    return tuple((int(np.ceil(time / tick - EARLY)), batch) for time, batch in stage.batches(parameters))


def in_force(found: Changes, step: int) -> int:
    """The batch of a step.

    >>> in_force(((0, 1), (50, 8)), 49), in_force(((0, 1), (50, 8)), 50)
    (1, 8)
    """
    return [batch for first, batch in found if first <= step][-1]


class Phases:
    """An engine whose batch changes at given steps; `make(batch)` is a new engine with a batch, at the start."""

    def __init__(self, found: Changes, make: Callable[[int], "Engine"], first: int) -> None:
        self.changes, self.make, self.at = found, make, first
        self.batch = in_force(found, first)
        self.engine = make(self.batch)

    def advance(self, steps: int) -> bool:
        """Take steps in every replica; False where a state stopped being finite."""
        left = steps
        while left:
            later = [step for step, _ in self.changes if step > self.at]
            count = min(left, later[0] - self.at) if later else left
            if not self.engine.advance(count):
                return False
            self.at, left = self.at + count, left - count
            self._settle()
        return True

    def _settle(self) -> None:
        """Go on with the engine of the batch that the next step has."""
        batch = in_force(self.changes, self.at)
        if batch != self.batch:
            state = self.engine.state()
            self.engine, self.batch = self.make(batch), batch
            self.engine.restore(state)

    def grams(self) -> np.ndarray:
        """Return the saved variables of every replica."""
        return self.engine.grams()

    def state(self) -> dict[str, np.ndarray]:
        """Everything needed to go on from here."""
        return self.engine.state()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Go back to a stored state."""
        self.at = int(arrays["steps"])
        self._settle()
        self.engine.restore(arrays)


def engine(simulation: "Simulation", make: "Callable[[Simulation], tuple[Engine, str]]") -> tuple[Phases, str]:
    """The engine of a simulation whose batch changes, and its device; `make` is that of one with a constant batch.

    Raises `UsageError` where there is no room for the largest batch.
    """

    def of(batch: int) -> "Engine":
        return make(dataclasses.replace(simulation, batch=batch, changes=()))[0]

    _, device = make(dataclasses.replace(simulation, batch=max(batch for _, batch in simulation.changes), changes=()))
    return Phases(simulation.changes, of, simulation.begin.step(simulation.tick)), device
