"""Executors of long tasks with one interface: processes of this machine, or the workers of a dask scheduler."""

import concurrent.futures
import contextlib
import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from odesim.errors import MissingError, NumericalError
from odesim.machine.processes import follow_parent, require_processes, single_threaded

LOCAL = "local"
ROUNDS = 4
"""Number of times that a task is submitted if the scheduler reports that it kills its workers."""
PATIENCE = "10s"
"""Seconds to wait for a scheduler."""


def completed(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], scheduler: str, workers: int
) -> Iterator[tuple[int, Any]]:
    """Yield (number of the task, `function(*task)`) as the tasks end, from `workers` processes or those of a scheduler.

    `function`, its arguments and its results must be picklable. Leaving the iteration, by an exception or by Ctrl-C,
    cancels tasks that have not begun. If a worker dies, the scheduler replaces it and gives its task to another worker.
    After a few deaths the scheduler blames every task that waited there, so these tasks are sent again, at most
    `ROUNDS` times. A task that kills every worker raises `NumericalError`, as does the death of a local worker.

    Raises `MissingError` if the extra `cluster` is not installed or no scheduler answers at the address.
    """
    with single_threaded():
        pool, close = _pool(scheduler, workers)
        futures = {pool.submit(function, *task): number for number, task in enumerate(tasks)}
    try:
        for last in [False] * (ROUNDS - 1) + [True]:
            blamed = []
            for future in concurrent.futures.as_completed(list(futures)):
                number = futures.pop(future)  # otherwise every result would be kept to the end
                try:
                    found = future.result()
                except Exception as error:
                    kind = type(error).__name__
                    if kind not in ("KilledWorker", "BrokenProcessPool"):
                        raise
                    if last or kind == "BrokenProcessPool":
                        raise NumericalError(f"a worker process was killed ({error}); try fewer workers") from None
                    blamed.append(number)
                    continue
                yield number, found
            futures = {pool.submit(function, *tasks[number]): number for number in blamed}
    finally:
        with _given_up():
            for future in futures:
                future.cancel()
            close()


def _pool(scheduler: str, workers: int) -> tuple[Any, Callable[[], None]]:
    """Return an executor, and a function that closes it without waiting."""
    if scheduler == LOCAL:
        import multiprocessing

        require_processes(workers)
        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(workers, mp_context=context, initializer=follow_parent)
        return pool, lambda: pool.shutdown(wait=False, cancel_futures=True)
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise MissingError("--scheduler ADDRESS needs dask: run `pip install 'odesim[cluster]'`.") from None
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MissingError(f"no dask scheduler answers at {scheduler} ({error}).") from None
    # The cells of a sweep are pure functions of their arguments, but a control may request the same twice.
    return client.get_executor(pure=False), client.close


@contextlib.contextmanager
def _given_up() -> Iterator[None]:
    """Suppress the messages of dask's event loop about cancelled tasks."""
    log = logging.getLogger("tornado.application")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before
