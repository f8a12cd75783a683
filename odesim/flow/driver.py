"""One loop for every run: piece by piece, with progress, checkpoints, and Ctrl-C between the pieces."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from odesim.errors import interruptible
from odesim.request.trajectory import Outcome

if TYPE_CHECKING:
    from odesim.store import Checkpoint

Progress = Callable[[float, float], None]
"""Function called with the finished part and the whole, in units of the clock."""
CHECKPOINT_SECONDS = 10.0
"""Seconds between checkpoints, the most work that a killed run loses."""
PIECE_SECONDS = 0.25
"""Approximate seconds of compiled code between two checks of Ctrl-C, the progress and the checkpoints."""


@runtime_checkable
class Course(Protocol):
    """Computation in pieces, which can be stored between two pieces.

    `advance` computes one piece. It returns the outcome if no piece is left or if the next piece is impossible. If
    Ctrl-C interrupts a piece, the computation is in the state before this piece. `reached` is the time on the clock of
    the progress bar; `state` are the arrays from which `restore` continues.
    """

    @property
    def reached(self) -> float: ...

    def advance(self) -> Outcome | None: ...

    def state(self) -> dict[str, np.ndarray]: ...

    def restore(self, arrays: dict[str, np.ndarray]) -> None: ...


class Pace:
    """Number of steps of a map in one piece, measured during the run so that a piece takes about `PIECE_SECONDS`.

    >>> pace = Pace()
    >>> pace.count(10), pace.count(10**12)
    (10, 1024)
    """

    def __init__(self) -> None:
        self.most = 1024

    def count(self, remaining: int) -> int:
        """Return the number of steps of the next piece, out of the remaining ones."""
        return min(remaining, self.most)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Context manager around a piece. If the piece was too short or too long, the next one is twice or half as
        long.
        """
        began = time.monotonic()
        yield
        seconds = time.monotonic() - began
        if seconds > PIECE_SECONDS:
            self.most = max(1, self.most // 2)
        elif seconds < 0.4 * PIECE_SECONDS:
            self.most *= 2


def drive(
    course: Course, whole: float, progress: Progress | None = None, checkpoint: "Checkpoint | None" = None
) -> tuple[Outcome, float]:
    """Run a computation to its end, from its checkpoint if there is one. Return its outcome and its duration in
    seconds.

    Ctrl-C is raised again after a checkpoint is written. If the checkpoint `ends` the run, the interruption is the
    outcome. Raises `UsageError` for the checkpoint of another request.
    """
    stored = checkpoint.read() if checkpoint is not None else None
    if stored is not None:
        course.restore(dict(stored[0]))
    began = written = time.monotonic()
    try:
        with interruptible():
            while (outcome := course.advance()) is None:
                if progress is not None:
                    progress(course.reached, whole)
                if checkpoint is not None and time.monotonic() - written > CHECKPOINT_SECONDS:
                    checkpoint.write(course.state(), {})
                    written = time.monotonic()
    except KeyboardInterrupt:
        if checkpoint is not None and checkpoint.ends:
            return Outcome("interrupted", course.reached, "interrupted"), time.monotonic() - began
        if checkpoint is not None:
            checkpoint.write(course.state(), {})
        raise
    return outcome, time.monotonic() - began
