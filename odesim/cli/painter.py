"""A process that imports the drawing libraries while a run is computed, and draws its pictures at the end.

Importing and drawing take as long as the computation itself at the defaults, and in a thread they would take Python's
lock from it.  The process reads the folders of stored trajectories, one a line, and answers each with a line of JSON;
it ends with its input, so that it does not outlive the command.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


class Painter:
    """The drawing process of a command; use it as a context manager."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", "from odesim.cli.painter import serve; serve()"]
        # Its own session: Ctrl-C is the command's to answer, which may be storing what there is.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def __enter__(self) -> "Painter":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def draw(self, folder: Path) -> None:
        """Draw the pictures of the trajectory stored in `folder` there.

        Raises `OSError` where they cannot be written, and `RuntimeError` where they cannot be drawn.
        """
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(str(folder)) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError("the process that draws has ended") from None
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("the process that draws has ended")
        failure = json.loads(answer)
        if failure and failure["errno"]:
            raise OSError(failure["errno"], failure["message"], failure["path"])
        if failure:
            raise RuntimeError(failure["message"])


def serve() -> None:
    """Draw for the command at the other end of the pipes until it closes its end."""
    import matplotlib.backends.backend_agg
    import matplotlib.figure
    import xarray

    from odesim.show import plot

    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is no answer
    assert matplotlib and xarray
    for line in sys.stdin:
        failure: dict[str, Any] | None = None
        try:
            plot.draw_stored(Path(json.loads(line)))
        except OSError as error:
            failure = {"errno": error.errno, "message": error.strerror or str(error), "path": error.filename}
        except Exception as error:
            failure = {"errno": None, "message": str(error)}
        print(json.dumps(failure), file=answers, flush=True)
