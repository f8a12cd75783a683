"""Progress display of calls that take longer than two seconds: a bar on a terminal or in a notebook, otherwise plain
lines.
"""

import contextlib
import contextvars
import html
import sys
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any

DELAY = 2.0
LINE_EVERY = 10.0
CELL_EVERY = 0.5
KEPT = 10
"""Length in seconds of the recent interval from which the time left is estimated."""
YEAR = 365.25 * 86400.0
"""Seconds above which the time left is not printed. A horizon of 1e300 would give a number of 290 digits."""


def beginning() -> str:
    """Return the label of the time before the first step: a preparation only if equations are derived or compiled.

    The module is read from `sys.modules` and not imported, because a command that compiles nothing never imports it.
    """
    making = getattr(sys.modules.get("odesim.code.busy"), "BUSY", [])
    if making:
        return f"preparing ({making[-1]}, the first time)"
    return "preparing (compiling)" if "jax" in sys.modules else "starting"


class Progress:
    """Progress display of a run. A call with (time, end) only stores these numbers and is therefore cheap.

    A thread reads them, so that the display also changes while kernels are compiled and no calls arrive.
    """

    def __init__(self, what: str, *, quiet: bool = False, stream: Any = None, delay: float = DELAY) -> None:
        self.what = what
        self.stream = sys.stderr if stream is None else stream
        self.delay = delay
        self.quiet = quiet
        self.fraction: float | None = None
        self._started = time.monotonic()
        self._seen = [(self._started, 0.0)]
        self._done = threading.Event()
        # The thread runs in the context of the caller, from which a notebook knows the cell of the display.
        self._thread = threading.Thread(target=contextvars.copy_context().run, args=(self._watch,), daemon=True)

    def __call__(self, reached: float, end: float) -> None:
        """Note that the run has reached the time `reached` of `end`."""
        self.fraction = min(max(reached / end, 0.0), 1.0) if end > 0 else None
        if self.fraction is not None:
            self._note(time.monotonic(), self.fraction)

    def _note(self, now: float, fraction: float) -> None:
        """Record one point per second of the last seconds, from which the present speed is computed."""
        if now - self._seen[-1][0] >= 1.0:
            self._seen = [*self._seen[-KEPT:], (now, fraction)]

    def __enter__(self) -> "Progress":
        if not self.quiet:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join(timeout=1.0)

    def _watch(self) -> None:
        """Wait for two seconds, and then show something until the run is done."""
        if self._done.wait(self.delay):
            return
        if self.stream.isatty():
            self._bar()
        else:
            self._lines()

    def _lines(self) -> None:
        """Print one plain line now, and another about every ten seconds."""
        while True:
            print(f"odesim: {self.what}: {self.state()}", file=self.stream, flush=True)
            if self._done.wait(LINE_EVERY):
                return

    def state(self) -> str:
        """Return the progress of the run in words."""
        seconds = time.monotonic() - self._started
        if self.fraction is None:
            return f"{beginning()}, {seconds:.0f} s"
        if self.fraction >= 1.0:
            return f"100 %, {seconds:.0f} s, now computing the results of the run"
        left = self.left()
        rest = "" if left is None else f", about {left:.0f} s left" if left < YEAR else ", more than a year left"
        return f"{100 * self.fraction:.0f} %, {seconds:.0f} s{rest}"

    def left(self) -> float | None:
        """Return the estimated seconds left at the recent speed; None while nothing moves.

        The average speed of the whole run is a bad estimate, because it includes compilation and an easy beginning.
        """
        (first, low), now = self._seen[0], time.monotonic()
        if self.fraction is None or self.fraction <= low:
            return None
        return (1 - self.fraction) * (now - first) / (self.fraction - low)

    def _bar(self) -> None:
        """Show a bar with the time left, which disappears at the end."""
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()]
        console = Console(file=self.stream)
        with Bar(*columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(f"{self.what} ({beginning()})", total=None)
            while not self._done.wait(0.2):
                if self.fraction is None:
                    bar.update(task, description=f"{self.what} ({beginning()})")
                else:
                    finishing = " (now computing the results of the run)" if self.fraction >= 1.0 else ""
                    bar.update(task, description=self.what + finishing, total=1.0, completed=self.fraction)


class CellProgress(Progress):
    """Progress below the cell of a notebook, which disappears at the end."""

    def _watch(self) -> None:
        if self._done.wait(self.delay):
            return
        from IPython.display import HTML, DisplayHandle

        handle = DisplayHandle()
        handle.display(HTML(self.bar()))
        while not self._done.wait(CELL_EVERY):
            handle.update(HTML(self.bar()))
        handle.update(HTML(""))

    def bar(self) -> str:
        """Return the bar as HTML, with its state in words."""
        value = "" if self.fraction is None else f' value="{self.fraction:.4f}"'
        return f'<div>{html.escape(self.what)}: <progress{value} max="1"></progress> {html.escape(self.state())}</div>'


def in_notebook() -> bool:
    """Return True if a kernel of Jupyter runs this; nothing is imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextlib.contextmanager
def in_cell(what: str) -> Iterator[Progress | None]:
    """Return the progress display of a call from a notebook; None in a script, where nothing is shown."""
    if not in_notebook():
        yield None
        return
    with CellProgress(what, delay=DELAY) as progress:
        yield progress
