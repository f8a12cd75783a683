"""Numbers of processes and of their threads."""

import ast
import contextlib
import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from odesim.errors import UsageError
from odesim.machine.device import THREAD_VARIABLES
from odesim.machine.ownership import claim_process

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor


def crew_size(asked: int | None, most: int | None = None) -> int:
    """Return the number of processes: as requested, otherwise one per available core, at most `most`.

    Raises `UsageError` for less than one.
    """
    if asked is not None and asked < 1:
        raise UsageError(f"--workers must be at least 1, but {asked} was given")
    return asked if asked is not None else min(_cores(), most or _cores())


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_count() -> int:
    """Return the number of threads for the loops of this process: that of `--threads`, otherwise one per core."""
    return int(os.environ.get("NUMBA_NUM_THREADS") or _cores())


@functools.cache
def pool(workers: int, process: int) -> "ThreadPoolExecutor":
    """Return a pool of threads, reused within a process because the system takes milliseconds to start a thread on a
    core.
    """
    import concurrent.futures

    return concurrent.futures.ThreadPoolExecutor(workers)


def in_threads(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    """Apply a function that releases the interpreter lock to every value in threads, and return the results in order. A
    single value needs no thread.

    >>> in_threads(lambda x: x * x, range(4))
    [0, 1, 4, 9]
    """
    workers = min(thread_count(), len(values))
    if workers <= 1:
        return [function(value) for value in values]
    return list(pool(workers, os.getpid()).map(function, values))


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Context manager. Processes started in it use one thread each, and only the GPU memory that they need."""
    wanted = {**dict.fromkeys(THREAD_VARIABLES, "1"), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def require_processes(workers: int) -> None:
    """Raise `UsageError` if this process cannot start other processes, which import its script.

    This is the case in a worker of a pool, and in a script that computes outside of `if __name__ == "__main__":`,
    because every started process would run this code again.
    """
    import multiprocessing

    if multiprocessing.current_process().daemon:
        raise UsageError(
            f"--workers {workers} inside a worker process, which cannot start further processes: give --workers 1"
        )
    place = unguarded()
    if place:
        raise UsageError(
            f"--workers {workers} starts processes that import this script, and would run it again ({place}): write "
            'if __name__ == "__main__": above what it computes, with that indented below, or give --workers 1'
        )


def unguarded() -> str:
    """Return the line of the script that computes outside of a main guard, or "".

    Processes import the file of the main module again, so code of a notebook or of `python -c` is not affected.
    """
    main = sys.modules.get("__main__")
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if file is None or (spec is not None and spec.name.endswith("__main__")):
        return ""
    frame, line = inspect.currentframe(), 0
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals is vars(main):
            line = frame.f_lineno
        frame = frame.f_back
    try:
        with open(file, "rb") as source:
            statements = ast.parse(source.read()).body
    except (OSError, SyntaxError, ValueError):
        return ""
    for statement in statements:
        if line and statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            names = ast.walk(statement.test) if isinstance(statement, ast.If) else ()
            guarded = any(isinstance(node, ast.Name) and node.id == "__name__" for node in names)
            return "" if guarded else f"line {line} of {os.path.basename(file)}"
    return ""


def follow_parent() -> None:
    """Make a worker process ignore Ctrl-C, which the parent handles, and end with its parent. The worker calls this
    first. If the parent is killed, the worker would otherwise wait for work for ever.
    """
    import multiprocessing
    import multiprocessing.connection
    import threading

    claim_process()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def end() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end, name="follow-parent", daemon=True).start()
