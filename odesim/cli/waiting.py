"""Size and estimated time of a sweep. A long sweep needs `--yes`."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from odesim.errors import UsageError
from odesim.sgd.effort import spoken

MANY = 1000
"""Number of cells above which a sweep needs `--yes`."""
LONG = 3600.0
"""Seconds above which a sweep needs `--yes`."""
COMPILING = 60.0
"""Seconds that a first cell may take beyond the others."""


class Wait:
    """Number of cells of a sweep, and the time left, estimated from the finished cells.

    With `agreed` (`--yes`) no error is raised.
    """

    def __init__(self, cells: int, agreed: bool) -> None:
        self.cells, self.agreed = cells, agreed
        self._folder, self._workers, self._quiet, self._said = Path(), 1, False, False
        self._ended: list[float] = []

    def require_count(self) -> None:
        """Raise `UsageError` for more than `MANY` cells without `--yes`."""
        if self.cells > MANY and not self.agreed:
            raise UsageError(
                f"this sweep has {self.cells:,} cells, and each is a run: give --yes to compute them, or use "
                "fewer values, such as --over d=1e3..1e5:9 for nine values on a logarithmic grid"
            )

    def begin(self, folder: Path, workers: int, quiet: bool) -> None:
        """Record the start time of the cells and their folder."""
        self._folder, self._workers, self._quiet = folder, workers, quiet
        self._ended = [time.monotonic()]

    def watching(self, report: Callable[[int, int], None]) -> Callable[[int, int], None]:
        """Return a report of finished cells that also prints the time left. It raises `UsageError` for more than an
        hour.
        """

        def reported(done: int, cells: int) -> None:
            report(done, cells)
            self._ended.append(time.monotonic())
            left = self.left(cells - done)
            if left is None or self._said:
                return
            if left > LONG and not self.agreed:
                raise UsageError(
                    f"{cells:,} cells would take about {spoken(left)} more: give --yes to compute them; "
                    f"finished cells are kept, and the same command with --yes --resume --out {self._folder} "
                    "continues the sweep"
                )
            if len(self._ended) > 2 + self._workers:
                self._said = True
                if not self._quiet:
                    print(f"odesim: {cells:,} cells, about {spoken(left)} left", file=sys.stderr, flush=True)

        return reported

    def left(self, remaining: int) -> float | None:
        """Return the estimated seconds for the remaining cells. From the first cell alone this is a lower bound,
        because the time of the first cell may include compilation.
        """
        ended = self._ended
        if len(ended) <= 1 + self._workers:
            return max(ended[-1] - ended[0] - COMPILING, 0.0) * remaining / self._workers if len(ended) > 1 else None
        pace = (ended[-1] - ended[1]) / (len(ended) - 2)
        return pace * remaining
