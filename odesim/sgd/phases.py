"""Time-dependent batch sizes: one engine after the other, each continuing from the state of the one before."""

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Dynamics

if TYPE_CHECKING:
    from odesim.sgd.engines import Engine
    from odesim.sgd.simulation import Simulation

EARLY = 1e-6
"""Part of a step by which the first step with a batch may be before the time of this batch."""
Changes = tuple[tuple[int, int], ...]
"""Pairs (number of the first step, batch); empty for a constant batch."""


def changes(stage: Dynamics, parameters: Any, tick: float) -> Changes:
    """Return the first steps of the batches of a stage, if they change."""
    return tuple((int(np.ceil(time / tick - EARLY)), batch) for time, batch in stage.batches(parameters))


def in_force(found: Changes, step: int) -> int:
    """Return the batch of a step.

    >>> in_force(((0, 1), (50, 8)), 49), in_force(((0, 1), (50, 8)), 50)
    (1, 8)
    """
    return [batch for first, batch in found if first <= step][-1]


class Phases:
    """An engine whose batch changes at given steps. `make(batch)` returns a new engine with a batch, at the start."""

    def __init__(self, found: Changes, make: Callable[[int], "Engine"], first: int) -> None:
        self.changes, self.make, self.at = found, make, first
        self.batch = in_force(found, first)
        self.engine = make(self.batch)

    def advance(self, steps: int) -> bool:
        """Take steps in every replica. Return False if a state is no longer finite."""
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
        """Change to the engine with the batch of the next step."""
        batch = in_force(self.changes, self.at)
        if batch != self.batch:
            state = self.engine.state()
            self.engine, self.batch = self.make(batch), batch
            self.engine.restore(state)

    def grams(self) -> np.ndarray:
        """Return the saved variables of every replica."""
        return self.engine.grams()

    def state(self) -> dict[str, np.ndarray]:
        """Return everything that is needed to continue from here."""
        return self.engine.state()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Restore a stored state."""
        self.at = int(arrays["steps"])
        self._settle()
        self.engine.restore(arrays)


def engine(simulation: "Simulation", make: "Callable[[Simulation], tuple[Engine, str]]") -> tuple[Phases, str]:
    """Return the engine of a simulation with changing batches, and its device. `make` returns engines with a constant
    batch.

    Raises `UsageError` if the dimension is too small for the largest batch.
    """

    def of(batch: int) -> "Engine":
        return make(dataclasses.replace(simulation, batch=batch, changes=()))[0]

    _, device = make(dataclasses.replace(simulation, batch=max(batch for _, batch in simulation.changes), changes=()))
    return Phases(simulation.changes, of, simulation.begin.step(simulation.tick)), device
