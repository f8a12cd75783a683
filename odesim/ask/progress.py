"""Progress for what takes longer than two seconds: a bar on a terminal or in a notebook, otherwise plain lines."""

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
"""Seconds whose pace tells how much is left."""
YEAR = 365.25 * 86400.0
"""Seconds from which on the time left is not counted: a horizon of 1e300 has 290 digits of them."""


def beginning() -> str:
    """What goes on before the first step: only where something is derived or compiled, it is a preparation.

    The module is looked at, not imported: a command that compiles nothing has none.
    """
    making = getattr(sys.modules.get("odesim.code.busy"), "BUSY", [])
    if making:
        return f"preparing ({making[-1]}, the first time)"
    return "preparing (compiling)" if "jax" in sys.modules else "starting"


class Progress:
    """Shows how far a run has come.  Called with (time, end), as often as one likes, it only stores them.

    A thread looks at them, so that something is seen also while kernels are compiled and nobody calls.
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
        # In the context of who asks: a notebook tells by it which cell the display belongs to.
        self._thread = threading.Thread(target=contextvars.copy_context().run, args=(self._watch,), daemon=True)

    def __call__(self, reached: float, end: float) -> None:
        """Note that the run has reached the time `reached` of `end`."""
        self.fraction = min(max(reached / end, 0.0), 1.0) if end > 0 else None
        if self.fraction is not None:
            self._note(time.monotonic(), self.fraction)

    def _note(self, now: float, fraction: float) -> None:
        """Keep what is needed to know the pace of late: a point a second, of some seconds."""
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
        """One plain line now, and another about every ten seconds."""
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
            return f"100 %, {seconds:.0f} s, now what is read off the run"
        left = self.left()
        rest = "" if left is None else f", about {left:.0f} s left" if left < YEAR else ", more than a year left"
        return f"{100 * self.fraction:.0f} %, {seconds:.0f} s{rest}"

    def left(self) -> float | None:
        """Seconds left at the pace of late; `None` while nothing moves.

        The pace of the whole run is that of its easy beginning, compilation included, and says too little or too much.
        """
        (first, low), now = self._seen[0], time.monotonic()
        if self.fraction is None or self.fraction <= low:
            return None
        return (1 - self.fraction) * (now - first) / (self.fraction - low)

    def _bar(self) -> None:
        """A bar with the time left, which disappears at the end."""
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
                    finishing = " (now what is read off the run)" if self.fraction >= 1.0 else ""
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
        """The bar as HTML, with its state in words."""
        value = "" if self.fraction is None else f' value="{self.fraction:.4f}"'
        return f'<div>{html.escape(self.what)}: <progress{value} max="1"></progress> {html.escape(self.state())}</div>'


def in_notebook() -> bool:
    """Return True if a kernel of Jupyter runs this; nothing is imported to find out."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextlib.contextmanager
def in_cell(what: str) -> Iterator[Progress | None]:
    """Progress of a call from a notebook; `None`, and nothing is shown, where the caller is a script."""
    if not in_notebook():
        yield None
        return
    with CellProgress(what, delay=DELAY) as progress:
        yield progress
