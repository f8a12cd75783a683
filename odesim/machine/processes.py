"""How many processes there may be, and with how many threads each."""

import contextlib
import os
import signal
from collections.abc import Iterator

from odesim.errors import UsageError
from odesim.machine.device import THREAD_VARIABLES


def crew_size(asked: int | None, most: int | None = None) -> int:
    """How many processes: what is asked for, otherwise one per core this process may use, at most `most`.

    Raises `UsageError` for less than one.
    """
    if asked is not None and asked < 1:
        raise UsageError(f"--workers must be at least 1, but {asked} was given")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return asked if asked is not None else min(cores, most or cores)


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Processes started in here use one thread each, and of a GPU's memory what they need: both are shared already."""
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


def follow_parent() -> None:
    """To be called first by a worker process: Ctrl-C is for the parent, which sends it home, and it ends with the
    parent, also where that is killed: it would wait for work for ever.
    """
    import multiprocessing
    import multiprocessing.connection
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def end() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end, name="follow-parent", daemon=True).start()
