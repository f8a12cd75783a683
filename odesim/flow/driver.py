"""One loop for every run: piece by piece, with progress, a checkpoint now and then, and Ctrl-C heard between pieces."""

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
"""Called with what is done and the whole, in units of the clock."""
CHECKPOINT_SECONDS = 10.0
"""A run that is killed loses this much of its work at most."""
PIECE_SECONDS = 0.25
"""About how long compiled code runs between two looks at Ctrl-C, the progress and the clock of the checkpoints."""


@runtime_checkable
class Course(Protocol):
    """What can be driven: it goes forward a piece at a time and can be put away between two pieces.

    `advance` takes one piece, and gives the outcome instead where there is none left or none can be taken.  A piece
    that Ctrl-C breaks off leaves the course as it was before it.  `reached` is how far it is on the clock of the
    progress bar; `state` are the arrays from which `restore` goes on.
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
        """The number of steps of the next piece, out of those that remain."""
        return min(remaining, self.most)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Around a piece: the next one is twice or half as long where this one was too short or too long."""
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
    """Take a course to its end, from its checkpoint if there is one; its outcome, and the seconds that it took.

    Ctrl-C is raised again after a checkpoint is written; with one that `ends` it is the outcome.  Raises `UsageError`
    for the checkpoint of another request.
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
