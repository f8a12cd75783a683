"""A process that imports the drawing libraries while a run is computed, and draws its pictures at the end.

Importing and drawing take as long as the computation itself at the defaults, and in a thread they would take Python's
lock from it.  The process reads pickles of (folder, trajectory), and answers each with a line of JSON; it ends with its
input, so that it does not outlive the command.  It draws while the command writes its other files, and on two cores two
pictures at once.
"""

import contextlib
import dataclasses
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from odesim.request.trajectory import Trajectory


class Painter:
    """The drawing process of a command; use it as a context manager.

    It is started when the `others` are done, which compile, or when something is to be drawn: on two cores a third
    process would only take its time from them.
    """

    def __init__(self, others: Sequence[Callable[[], object]] = ()) -> None:
        self._starting, self._ended = threading.Lock(), False
        self._process: subprocess.Popen[bytes] | None = None
        if others:
            threading.Thread(target=self._start_after, args=(others,), name="odesim-painter", daemon=True).start()
        else:
            self._start()

    def _start_after(self, others: Sequence[Callable[[], object]]) -> None:
        for wait in others:
            wait()
        self._start()

    def _start(self) -> subprocess.Popen[bytes] | None:
        """The process, started once; None after the end."""
        with self._starting:
            if self._process is None and not self._ended:
                command = [sys.executable, "-c", "from odesim.cli.painter import serve; serve()"]
                # Its own session: Ctrl-C is the command's to answer, which may be storing what there is.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
                )
            return self._process

    def __enter__(self) -> "Painter":
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:
            self._ended, process = True, self._process
        if process is not None:
            _kill(process)
            process.communicate()

    def _ask(self, folder: str, trajectory: Trajectory) -> IO[bytes] | None:
        """Tell the process what to draw, and return where it answers; None where it cannot be told."""
        process = self._start()
        if process is None:
            return None
        assert process.stdin is not None
        try:
            pickle.dump((folder, trajectory), process.stdin, protocol=pickle.HIGHEST_PROTOCOL)
            process.stdin.flush()
        except Exception:  # pictures must not cost the numbers, whatever a system lets its runs hold
            _kill(process)  # which was told half of it
            return None
        return process.stdout

    @contextlib.contextmanager
    def drawn(self, trajectory: Trajectory, folder: Path) -> Iterator[None]:
        """Draw the pictures of a trajectory into `folder` while what stands in the context is done.

        At its end raises `OSError` where they cannot be written, and `RuntimeError` where they cannot be drawn.
        """
        answers = self._ask(str(folder), dataclasses.replace(trajectory, asked=None))
        try:
            yield
        finally:  # in any case: the folder may be removed next
            answer = answers.readline() if answers is not None else b""
        if not answer:
            raise RuntimeError("the process that draws has ended")
        failure = json.loads(answer)
        if failure and failure["errno"]:
            raise OSError(failure["errno"], failure["message"], failure["path"])
        if failure:
            raise RuntimeError(failure["message"])


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End the process, with those that it has share its work."""
    if hasattr(os, "killpg") and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def serve() -> None:
    """Draw for the command at the other end of the pipes until it closes its end."""
    asked: queue.SimpleQueue[tuple[str, Trajectory] | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    import matplotlib.backends.backend_agg
    import matplotlib.figure
    import xarray

    from odesim.machine import processes
    from odesim.show import plot

    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    assert matplotlib and xarray
    for exercise in (_label_nothing, _draw_nothing):
        if asked.empty():
            with contextlib.suppress(Exception):  # if it fails, so does what is asked for, and says why
                exercise()
    while (wanted := asked.get()) is not None:
        failure: dict[str, Any] | None = None
        try:
            folder, trajectory = wanted
            plot.draw(trajectory, folder, do=processes.in_copies)
        except OSError as error:
            failure = {"errno": error.errno, "message": error.strerror or str(error), "path": error.filename}
        except Exception as error:
            failure = {"errno": None, "message": str(error)}
        print(json.dumps(failure), file=answers, flush=True)


def _listen(asked: "queue.SimpleQueue[tuple[str, Trajectory] | None]") -> None:
    """Pass on what is asked for, one by one, then `None`."""
    try:
        with contextlib.suppress(EOFError, pickle.UnpicklingError):  # the end, and half of something before it
            while True:
                asked.put(pickle.load(sys.stdin.buffer))
    finally:
        asked.put(None)


def _label_nothing() -> None:
    """Import what xarray imports for its first data set: dask, if it is there."""
    import xarray

    xarray.Dataset({"time": ("time", [0.0])})


def _draw_nothing() -> None:
    """Draw a formula into memory: fonts, the parser of formulas and the writer of files take a tenth of a second.

    Axes would take as long every time.  A command whose run takes longer than the imports here does not wait for it.
    """
    import io

    import matplotlib as mpl
    from matplotlib.figure import Figure

    from odesim.show.plot import STYLE

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.0, 2.0))
        figure.text(0.0, 0.0, "a")
        figure.text(0.0, 0.5, r"$\gamma^{(1)}_{ij}/\sqrt{d}$")
        figure.savefig(io.BytesIO())
