"""Claims judged by several processes at once: each takes a module of claims, whose runs its laboratory shares."""

import contextlib
import functools
import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from derivations.claim import Claim, Variant
from odesim.errors import NumericalError, UsageError

Task = tuple[str, str]
"""The id of a claim and the name of one of its forms."""
WAIT_SECONDS = 1.0
"""How often a silent worker is checked for being alive."""


def crew_size(asked: int | None, most: int | None = None) -> int:
    """How many processes: what is asked for, otherwise one per core this process may use, at most `most`.

    Raises `UsageError` for less than one.
    """
    if asked is not None and asked < 1:
        raise UsageError(f"--workers must be at least 1, but {asked} was given")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return asked if asked is not None else min(cores, most or cores)


def groups(todo: Sequence[tuple[Claim, Variant]]) -> list[list[Task]]:
    """The tasks, module by module of their measurements: claims of one module measure on the same runs."""
    found: dict[str, list[Task]] = {}
    for claim, variant in todo:
        found.setdefault(claim.measure.__module__, []).append((claim.id, variant.name))
    return list(found.values())


def verdicts(system: str, settings: tuple[Any, ...], tasks: list[list[Task]], workers: int) -> Iterator[Any]:
    """The `Verdict`s of all tasks as they come in; `settings` are effort, back end and seed of the laboratories.

    Leaving the iteration, by an exception or by Ctrl-C, stops the workers.  Raises `NumericalError` when a worker
    dies without a word, and hands on what one of them raised.
    """
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    for group in [*tasks, *[[]] * workers]:  # an empty group sends a worker home
        inbox.put(group)
    arguments = (system, settings, inbox, outbox)
    with single_threaded():
        crew = [context.Process(target=_work, args=arguments, daemon=True) for _ in range(workers)]
        for worker in crew:
            worker.start()
    try:
        for _ in range(sum(map(len, tasks))):
            verdict = _next(outbox, crew)
            if isinstance(verdict, tuple):
                error, trace = verdict
                error.add_note(f"In a worker process:\n{trace}")
                raise error
            yield verdict
    finally:
        for worker in crew:
            worker.terminate()
            worker.join()


def far_verdicts(scheduler: str, system: str, settings: tuple[Any, ...], tasks: list[list[Task]]) -> Iterator[Any]:
    """The `Verdict`s of all tasks by the workers of a dask scheduler, a module of claims at a time."""
    from odesim.executor import completed

    for _, found in completed(judge_group, [(system, settings, group) for group in tasks], scheduler, len(tasks)):
        yield from found


def judge_group(system: str, settings: tuple[Any, ...], group: list[Task]) -> list[Any]:
    """The verdicts on the claims of one module, by a laboratory of their own."""
    return [judged() for judged in _judges(system, settings, group)]


def _judges(system: str, settings: tuple[Any, ...], group: list[Task], laboratory: Any = None) -> Iterator[Any]:
    """For every task a function that gives its verdict; they share the runs of one laboratory."""
    from odesim import verification
    from odesim.case import find_system
    from odesim.lab import Laboratory

    chosen = find_system(system)
    claims = {claim.id: claim for claim in verification.claims_of(chosen)}
    laboratory = laboratory or Laboratory(chosen, *settings)
    for claim_id, name in group:
        claim = claims[claim_id]
        variant = next(v for v in claim.variants if v.name == name)
        yield functools.partial(verification.verify, laboratory, claim, variant)


def _next(outbox: Any, crew: Sequence[Any]) -> Any:
    while True:
        try:
            return outbox.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            if any(worker.exitcode not in (None, 0) for worker in crew):
                codes = [worker.exitcode for worker in crew]
                raise NumericalError(f"a worker process was killed (exit codes {codes}); try --workers 1") from None


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Processes started in here use one thread each: the cores are shared among them already."""
    from odesim.device import THREAD_VARIABLES

    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(system: str, settings: tuple[Any, ...], inbox: Any, outbox: Any) -> None:
    """Judge group after group until an empty one comes; Ctrl-C is left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from odesim.case import find_system
    from odesim.lab import Laboratory

    laboratory = Laboratory(find_system(system), *settings)
    while group := inbox.get():
        for judged in _judges(system, settings, group, laboratory):
            try:
                outbox.put(judged())
            except Exception as error:  # handed to the parent, which raises it
                outbox.put((error, traceback.format_exc()))
                return
