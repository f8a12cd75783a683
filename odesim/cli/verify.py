"""The command `odesim verify`: claims in, verdicts out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import (
    AsJson,
    Backend,
    Debug,
    Out,
    Overwrite,
    Quiet,
    Resume,
    Scheduler,
    Seed,
    SystemName,
    Threads,
    Workers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Claims = Annotated[list[str] | None, typer.Option("--claim", metavar="ID", help="Only this claim; repeatable.")]
EffortName = Annotated[str, typer.Option("--effort", metavar="quick|full|gpu", help="How hard to try.")]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 unless every claim is decided as expected.")]


def verify(
    system: SystemName,
    claim: Claims = None,
    effort: EffortName = "quick",
    seed: Seed = None,
    backend: Backend = None,
    strict: Strict = False,
    scheduler: Scheduler = "local",
    out: Out = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    threads: Threads = None,
    workers: Workers = None,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Hold the claims of a system against flow and SGD, and say which are confirmed, refuted or open."""
    from odesim.device import set_threads

    set_threads(threads)
    from odesim import verification
    from odesim.case import BACKENDS, find_system
    from odesim.lab import Laboratory
    from odesim.parse import choice, seed_number
    from odesim.store import verdicts as records
    from odesim.store.files import LEDGER
    from odesim.workers import crew_size

    choice(effort, verification.EFFORTS, "--effort")
    choice(backend or "numba", BACKENDS, "--backend")
    chosen = find_system(system)
    claims = verification.claims_of(chosen, claim)
    number = seed_number(seed or 0)
    processes = crew_size(workers, most=1 if effort == "gpu" else None)  # which would otherwise share the GPU
    if effort == "gpu":
        from odesim.device import configure

        configure("gpu", threads)
    level: Any = effort
    lab = Laboratory(chosen, level, backend or "numba", number)
    request = records.Request(chosen.name, level, lab.backend, number, tuple(claim or ()))
    folder = records.prepare(request, out, overwrite=overwrite, resume=resume)
    ledger = records.Ledger(folder / LEDGER, request.key)
    try:
        verdicts = verification.verify_all(lab, claims, ledger, None if quiet else _say, processes, scheduler)
    except KeyboardInterrupt:
        from odesim.errors import Interrupted

        raise Interrupted(f"interrupted; {len(ledger.verdicts)} verdicts are kept in {ledger.path}.") from None
    records.finish(request, folder, verdicts)
    if json:
        from odesim.cli.output import print_json

        print_json({"system": chosen.name, "effort": effort, "folder": str(folder), "verdicts": verdicts})
    else:
        print_verdicts(verdicts, folder)
    return 1 if strict and any(verification.disagrees(verdict) for verdict in verdicts) else 0


def _say(verdict: "Mapping[str, Any]", done: int, total: int) -> None:
    name = verdict["claim"] + ("" if verdict["variant"] == "main" else f" ({verdict['variant']})")
    print(f"[{done}/{total}] {name}: {verdict['answer']}, {verdict['seconds']:.1f} s", file=sys.stderr, flush=True)


def print_verdicts(verdicts: list[dict[str, Any]], folder: Path) -> None:
    """Print verdicts as a table, with how many there are of each answer."""
    from rich.console import Console
    from rich.table import Table

    colours = {"confirmed": "green", "refuted": "red", "inconclusive": "yellow"}
    table = Table("claim", "variant", "answer", "reason")
    for verdict in verdicts:
        answer = verdict["answer"]
        table.add_row(verdict["claim"], verdict["variant"], f"[{colours[answer]}]{answer}[/]", verdict["reason"])
    console = Console()
    console.print(table)
    counts = {answer: sum(verdict["answer"] == answer for verdict in verdicts) for answer in colours}
    console.print(", ".join(f"{count} {answer}" for answer, count in counts.items()) + f"; verdicts in {folder}")
