"""Start of continued training: the clock of an earlier stage, and the state of every replica."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract import Dynamics, Recursion, Smooth
from odesim.errors import UsageError
from odesim.sgd.observed import flow_of

OFF = 1e-6
"""Rounding that is accepted between the start time and a whole number of steps, in steps."""


@dataclasses.dataclass(frozen=True, eq=False)
class Beginning:
    """Clock time at which a simulation begins, and the arrays of every replica at this time (none for a new start).

    One mapping of arrays serves all replicas. `stage` is the stage at whose end they were saved.
    """

    time: float = 0.0
    arrays: tuple[Mapping[str, np.ndarray], ...] = ()
    stage: str = ""

    def of(self, replica: int) -> Mapping[str, np.ndarray]:
        """Return the arrays of a replica."""
        return self.arrays[replica if len(self.arrays) > 1 else 0]

    def step(self, tick: float) -> int:
        """Return the number of the first step, which follows from the clock."""
        return round(self.time / tick)

    def seed(self, seed: int, tick: float) -> int:
        """Return the seed of the samples: that of the request, or a new seed for all samples from this step on.

        >>> Beginning().seed(3, 0.1), Beginning(2.0).seed(3, 0.1) == Beginning(2.0).seed(3, 0.1)
        (3, True)
        """
        if not self.time:
            return seed
        return int(np.random.SeedSequence([seed, self.step(tick)]).generate_state(1)[0])


START = Beginning()
"""Start of a run that continues no other run."""


def require_steps(stage: Dynamics, parameters: Any, begin: Beginning, tick: float) -> None:
    """Raise `UsageError` if time-dependent values would be evaluated at times between two steps."""
    off = abs(begin.time / tick - begin.step(tick))
    if off <= OFF:
        return
    equations = flow_of(stage, parameters)
    advance = equations.advance if equations is not None else None
    if isinstance(advance, Smooth | Recursion) and advance.clock:
        raise UsageError(
            f"a stage with time-dependent values must begin at a multiple of its step: stage {stage.name} begins at "
            f"{begin.time:g}, and its step is {tick:g}; use a step size that divides the start time, or another "
            "end of the stage before"
        )
