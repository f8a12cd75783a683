"""Steps of SGD in pieces, with the saved states and the number of steps per second."""

import time
from typing import TYPE_CHECKING

import numpy as np

from odesim.request.trajectory import Outcome

if TYPE_CHECKING:
    from odesim.sgd.engines import Engine
    from odesim.sgd.simulation import Simulation

PIECE_SECONDS = 1.0
"""Approximate seconds of a piece. Progress and Ctrl-C are handled between pieces."""


class Descent:
    """Steps of SGD as a computation in pieces. A piece takes about `PIECE_SECONDS` and ends at the next save."""

    def __init__(self, simulation: "Simulation", engine: "Engine") -> None:
        self.simulation, self.engine, self.schedule = simulation, engine, simulation.schedule
        self.saved, self.at, self.piece = [engine.grams()], 0, 1
        self.first = simulation.begin.step(simulation.tick)
        self.timed = [0, 0.0]
        """Number of steps after the first piece, which compiles, and their seconds."""
        self.compiled = False

    @property
    def reached(self) -> float:
        return self.at * self.simulation.tick

    def _grams(self) -> np.ndarray:
        """Return the saved variables of the engine; they are not finite if squares of finite weights are not.

        Warnings of NumPy are off, because the outcome of the run reports this.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self.engine.grams()

    def advance(self) -> Outcome | None:
        schedule, tick, begin = self.schedule, self.simulation.tick, self.simulation.begin.time
        if self.at == schedule[-1]:
            return Outcome("completed", begin + float(schedule[-1]) * tick, f"took {schedule[-1]} steps")
        target = int(schedule[len(self.saved)])
        count = min(self.piece, target - self.at)
        began = time.monotonic()
        good = self.engine.advance(count)
        grams = self._grams() if good and self.at + count == target else None
        self.at += count
        seconds = time.monotonic() - began
        if self.compiled:
            self.timed = [self.timed[0] + count, self.timed[1] + seconds]
        self.compiled = True
        self.piece = next_piece(self.piece, count, seconds)
        if not good or (grams is not None and not np.isfinite(grams).all()):
            last = begin + float(schedule[len(self.saved) - 1]) * tick
            return Outcome(
                "failed", last, f"the weights are no longer finite by step {self.at}: try a smaller step size"
            )
        if grams is not None:
            self.saved.append(grams)
        return None

    def pace(self, replicas: int) -> float | None:
        """Return the steps of all replicas per second, without compilation; None for a run of a single piece."""
        steps, seconds = self.timed
        return steps * replicas / seconds if seconds > 0 else None

    def state(self) -> dict[str, np.ndarray]:
        return {**self.engine.state(), "saved": np.array(self.saved)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.saved, self.at = list(arrays.pop("saved")), int(arrays["steps"]) - self.first
        self.engine.restore(arrays)


def next_piece(piece: int, count: int, seconds: float) -> int:
    """Return the size of the next piece, for pieces of `PIECE_SECONDS`. It grows at most fourfold, because the first
    piece includes compilation.
    """
    if seconds <= 0 or count < piece:
        return piece
    return max(1, min(4 * piece, int(count * PIECE_SECONDS / seconds) or 1))
