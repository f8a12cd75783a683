"""Commands in forks of a process that has imported everything: a start costs milliseconds, a crash costs nothing."""

import contextlib
import dataclasses
import io
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0
"""Seconds until a command hangs: none of those attacked here takes ten."""


GRACE = 10.0
"""Seconds that a command may take to end after Ctrl-C."""


@dataclasses.dataclass(frozen=True)
class End:
    """Outcome of a command: exit code (or minus the signal that ended it), output, and time.

    `interrupted` where it was given Ctrl-C; it was killed where it did not end then.
    """

    code: int
    stdout: str
    stderr: str
    seconds: float
    interrupted: bool = False

    @property
    def lines(self) -> list[str]:
        """The output on stderr, line by line."""
        return [line for line in self.stderr.splitlines() if line.strip()]


def imported() -> None:
    """Import what commands need, so that a fork has it: none of the modules that they compile."""
    os.environ.setdefault("MPLBACKEND", "agg")
    import h5netcdf.legacyapi
    import matplotlib.figure
    import numba
    import scipy.integrate
    import sympy
    import xarray

    import odesim.evidence.verification
    import odesim.flow.solve
    import odesim.flow.solvers.scipy
    import odesim.show.explore
    import odesim.show.report
    import odesim.sweeps.sweep

    numba.njit(lambda x: x + 1.0)(1.0)  # LLVM is started once
    assert all((h5netcdf.legacyapi, matplotlib.figure, scipy.integrate, sympy, xarray, odesim))


def command(
    words: list[str], place: Path, before: Callable[[], None] | None = None, interrupt: float | None = None
) -> End:
    """A command in a fork, with `place` for what it says; `before` is called in the fork.

    After `interrupt` seconds it gets Ctrl-C, and has `GRACE` more; otherwise it has `PATIENCE`.
    """
    place.mkdir(parents=True, exist_ok=True)
    (place / "stdout").write_text("")
    (place / "stderr").write_text("")
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        _run(words, place, before)
    interrupted = False
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        waited = time.monotonic() - began
        if interrupt is not None and waited > interrupt and not interrupted:
            os.kill(child, signal.SIGINT)
            interrupted = True
        if waited > (PATIENCE if interrupt is None else interrupt + GRACE):
            os.kill(child, signal.SIGKILL)
            ended = os.waitpid(child, 0)
            break
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(ended[1])
    said, told = ((place / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    return End(code, said, told, time.monotonic() - began, interrupted)


def _run(words: list[str], place: Path, before: Callable[[], None] | None) -> None:
    """Run the command in the fork; the function never returns."""
    code = 99
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out, errors = io.FileIO(place / "stdout", "w"), io.FileIO(place / "stderr", "w")
    os.dup2(out.fileno(), 1)  # so that a worker process, and LLVM, speak there too
    os.dup2(errors.fileno(), 2)
    with open(1, "w", closefd=False) as said, open(2, "w", closefd=False) as told:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(told):
            try:
                from odesim import cli

                if before is not None:
                    before()
                code = cli._run(words)
            except SystemExit as left:
                code = left.code if isinstance(left.code, int) else 98
            except BaseException:
                traceback.print_exc()
        said.flush()
        told.flush()
    # What the end of an interpreter calls: crews of processes go home, and their semaphores are removed.
    for module, function in (
        ("concurrent.futures.process", "_python_exit"),
        ("multiprocessing.util", "_exit_function"),
    ):
        if module in sys.modules:
            getattr(sys.modules[module], function)()
    os._exit(code)
