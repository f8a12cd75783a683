"""Claims judged by several processes. Each process takes a group of claims, which share the runs of its laboratory."""

import functools
import multiprocessing
import queue
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import derivations
from derivations.claim import Claim, Variant
from derivations.contract import System
from odesim.errors import NumericalError
from odesim.evidence.laboratory import Laboratory
from odesim.evidence.verification import Verdict, claims_of, grid_of, verify
from odesim.machine.device import in_double
from odesim.machine.executor import completed
from odesim.machine.processes import follow_parent, single_threaded
from odesim.store.verdicts import Ledger

Task = tuple[str, str]
"""Id of a claim and name of one of its forms."""
WAIT_SECONDS = 1.0
"""Seconds between two checks that a silent worker is alive."""


def groups(todo: Sequence[tuple[Claim, Variant]], effort: str) -> list[list[Task]]:
    """Return the tasks in groups for one worker each: modules of claims, then claims with a stated cost.

    Claims of one module measure on the same runs, which a worker makes once. A claim with `seconds` shares no runs and
    is a separate group. The module with most measurements and the most expensive claim come first, because the end
    waits for the last group.
    """
    tasks: dict[tuple[float, str], list[Task]] = {}
    measurements: Counter[tuple[float, str]] = Counter()
    for claim, variant in todo:
        name = claim.id if claim.seconds else claim.measure.__module__
        key, grid = (claim.seconds, name), grid_of(claim, variant, effort)
        tasks.setdefault(key, []).append((claim.id, variant.name))
        measurements[key] += len(grid.points) * grid.seeds if grid is not None else 0
    modules = sorted((key for key in tasks if not key[0]), key=lambda key: -measurements[key])
    dear = sorted((key for key in tasks if key[0]), key=lambda key: -key[0])
    return [tasks[key] for key in (*modules, *dear)]


def verdicts(system: System, settings: tuple[Any, ...], tasks: list[list[Task]], workers: int) -> Iterator[Any]:
    """Yield the `Verdict`s of all tasks as they are finished; `settings` are effort, back end and seed of the
    laboratories.

    Leaving the iteration, by an exception or by Ctrl-C, stops the workers. Raises `NumericalError` if a worker process
    is killed, and raises the exceptions of the workers again.
    """
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    for group in [*tasks, *[[]] * workers]:  # an empty group ends a worker
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


def far_verdicts(scheduler: str, system: System, settings: tuple[Any, ...], tasks: list[list[Task]]) -> Iterator[Any]:
    """Yield the `Verdict`s of all tasks from the workers of a dask scheduler, a group of claims at a time."""
    for _, found in completed(judge_group, [(system, settings, group) for group in tasks], scheduler, len(tasks)):
        yield from found


@in_double
def judge_group(system: System, settings: tuple[Any, ...], group: list[Task]) -> list[Any]:
    """Return the verdicts on one group of claims, from a separate laboratory."""
    return [judged() for judged in _judges(system, settings, group)]


def _judges(system: System, settings: tuple[Any, ...], group: list[Task], laboratory: Any = None) -> Iterator[Any]:
    """Return for every task a function that computes its verdict; the functions share the runs of one laboratory."""
    claims = {claim.id: claim for claim in claims_of(system)}
    laboratory = laboratory or Laboratory(system, *settings)
    for claim_id, name in group:
        claim = claims[claim_id]
        variant = next(v for v in claim.variants if v.name == name)
        yield functools.partial(verify, laboratory, claim, variant)


def _next(outbox: Any, crew: Sequence[Any]) -> Any:
    while True:
        try:
            return outbox.get(timeout=WAIT_SECONDS)
        except queue.Empty:
            if any(worker.exitcode not in (None, 0) for worker in crew):
                codes = [worker.exitcode for worker in crew]
                raise NumericalError(f"a worker process was killed (exit codes {codes}); try --workers 1") from None


def _work(system: System, settings: tuple[Any, ...], inbox: Any, outbox: Any) -> None:
    """Judge group after group until an empty one arrives."""
    follow_parent()
    laboratory = Laboratory(system, *settings)
    while group := inbox.get():
        for judged in _judges(system, settings, group, laboratory):
            try:
                outbox.put(judged())
            except Exception as error:  # sent to the parent, which raises it
                outbox.put((error, traceback.format_exc()))
                return


def verify_all(
    lab: Laboratory,
    claims: list[Claim],
    ledger: Ledger,
    report: Callable[[Mapping[str, Any], int, int], None] | None = None,
    workers: int = 1,
    scheduler: str = "local",
) -> list[dict[str, Any]]:
    """Return the verdicts on every form of every claim. Finished ones come from the ledger. `report(verdict, done, of)`
    is called after each.

    The forms are judged by `workers` processes, or by those of the dask `scheduler` at an address, a group of claims at
    a time.
    """
    forms = [(claim, variant) for claim in claims for variant in claim.variants]
    todo = [form for form in forms if (form[0].id, form[1].name) not in ledger.verdicts]
    done = len(forms) - len(todo)
    for verdict in judged(lab, todo, workers, scheduler):
        done += 1
        content = ledger.add(verdict)
        if report is not None:
            report(content, done, len(forms))
    return [ledger.verdicts[claim.id, variant.name] for claim, variant in forms]


def judged(lab: Laboratory, todo: list[tuple[Claim, Variant]], workers: int, scheduler: str) -> Iterator[Verdict]:
    """Yield the verdicts on some forms as they are finished: from this process, several processes, or a scheduler."""
    tasks = groups(todo, lab.effort)
    if scheduler != "local" or min(workers, len(tasks)) > 1:
        derivations.address(lab.system)  # which another process must be able to import
    if scheduler != "local":
        yield from far_verdicts(scheduler, lab.system, (lab.effort, lab.backend, lab.seed), tasks)
        return
    if min(workers, len(tasks)) > 1:
        settings = (lab.effort, lab.backend, lab.seed)
        yield from verdicts(lab.system, settings, tasks, min(workers, len(tasks)))
    else:
        yield from (verify(lab, claim, variant) for claim, variant in todo)
