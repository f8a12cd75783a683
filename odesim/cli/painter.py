"""A process that imports the drawing libraries while a run is computed, and draws its pictures at the end.

Importing and drawing take as long as the computation itself at the defaults, and in a thread they would take Python's
lock from it.  The process reads the folders of stored trajectories, one a line, and answers each with a line of JSON;
it ends with its input, so that it does not outlive the command.
"""

import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Painter:
    """The drawing process of a command; use it as a context manager.

    It is started when the `others` are done, which compile, or when something is to be drawn: on two cores a third
    process would only take its time from them.
    """

    def __init__(self, others: Sequence[Callable[[], object]] = ()) -> None:
        self._starting, self._ended = threading.Lock(), False
        self._process: subprocess.Popen[str] | None = None
        if others:
            threading.Thread(target=self._start_after, args=(others,), name="odesim-painter", daemon=True).start()
        else:
            self._start()

    def _start_after(self, others: Sequence[Callable[[], object]]) -> None:
        for wait in others:
            wait()
        self._start()

    def _start(self) -> subprocess.Popen[str] | None:
        """The process, started once; None after the end."""
        with self._starting:
            if self._process is None and not self._ended:
                command = [sys.executable, "-c", "from odesim.cli.painter import serve; serve()"]
                # Its own session: Ctrl-C is the command's to answer, which may be storing what there is.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
                )
            return self._process

    def __enter__(self) -> "Painter":
        return self

    def __exit__(self, *_: object) -> None:
        with self._starting:
            self._ended, process = True, self._process
        if process is not None:
            process.kill()
            process.communicate()

    def draw(self, folder: Path) -> None:
        """Draw the pictures of the trajectory stored in `folder` there.

        Raises `OSError` where they cannot be written, and `RuntimeError` where they cannot be drawn.
        """
        process = self._start()
        if process is None:
            raise RuntimeError("the process that draws has ended")
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(str(folder)) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("the process that draws has ended") from None
        answer = process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that draws has ended")
        failure = json.loads(answer)
        if failure and failure["errno"]:
            raise OSError(failure["errno"], failure["message"], failure["path"])
        if failure:
            raise RuntimeError(failure["message"])


def serve() -> None:
    """Draw for the command at the other end of the pipes until it closes its end."""
    asked: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    import matplotlib.backends.backend_agg
    import matplotlib.figure
    import xarray

    from odesim.show import plot

    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    assert matplotlib and xarray
    for exercise in (_read_nothing, _draw_nothing):
        if asked.empty():
            with contextlib.suppress(Exception):  # if it fails, so does what is asked for, and says why
                exercise()
    while (line := asked.get()) is not None:
        failure: dict[str, Any] | None = None
        try:
            plot.draw_stored(Path(json.loads(line)))
        except OSError as error:
            failure = {"errno": error.errno, "message": error.strerror or str(error), "path": error.filename}
        except Exception as error:
            failure = {"errno": None, "message": str(error)}
        print(json.dumps(failure), file=answers, flush=True)


def _listen(asked: "queue.SimpleQueue[str | None]") -> None:
    """Pass on what is asked for, line by line, then `None`."""
    for line in sys.stdin:
        asked.put(line)
    asked.put(None)


def _read_nothing() -> None:
    """Import what reads a stored trajectory, and what xarray imports for its first data set: dask, if it is there."""
    import h5netcdf
    import xarray
    from xarray.backends.plugins import list_engines

    assert h5netcdf
    list_engines()
    xarray.Dataset({"time": ("time", [0.0])})


def _draw_nothing() -> None:
    """Draw a small picture into memory: fonts, the parser of formulas and the writer of files take a third of a second.

    A command whose run takes longer than the imports here does not wait for them.
    """
    import io

    import matplotlib as mpl
    from matplotlib.figure import Figure

    from odesim.show.plot import STYLE

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(2.0, 2.0), layout="constrained")
        axis, other = figure.subplots(2, 1)
        axis.plot([1.0, 2.0], [1.0, 2.0], label=r"$\gamma^{(1)}_{ij}/\sqrt{d}$")
        axis.set_yscale("log")
        axis.legend()
        figure.colorbar(other.imshow([[0.0, 1.0]]), ax=other)
        figure.savefig(io.BytesIO())
