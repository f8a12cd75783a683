"""The command `odesim verify`: claims in, verdicts out."""

from typing import Annotated, Any

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

Claims = Annotated[list[str] | None, typer.Option("--claim", metavar="ID", help="Only this claim; repeatable.")]
EffortName = Annotated[
    str, typer.Option("--effort", metavar="quick|full|gpu", help="Effort: number and size of the runs.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 1 unless every claim is decided as expected.")]
List = Annotated[bool, typer.Option("--list", help="List the claims and their forms; nothing is measured.")]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="ID", help="Judge this claim, and print everything that led to the verdict."),
]


def verify(
    *,
    system: SystemName,
    claim: Claims = None,
    listing: List = False,
    explain: Explain = None,
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
    """Test the claims of a system against flow and SGD, and print a verdict for each."""
    from odesim.machine.device import set_threads

    set_threads(threads)
    from odesim.cli.verdicts import Told, print_claims, print_verdicts, print_whole
    from odesim.evidence import verification
    from odesim.evidence.laboratory import Laboratory
    from odesim.evidence.workers import verify_all
    from odesim.machine.processes import crew_size
    from odesim.request.case import BACKENDS, find_system
    from odesim.request.parse import choice, seed_number
    from odesim.show.verdict_pictures import draw_all
    from odesim.store import verdicts as records
    from odesim.store.claim import claimed
    from odesim.store.files import LEDGER

    choice(effort, verification.EFFORTS, "--effort")
    choice(backend or "numba", BACKENDS, "--backend")
    chosen = find_system(system)
    asked = [*(claim or ()), *([explain] if explain and explain not in (claim or ()) else ())]
    claims = verification.claims_of(chosen, asked)
    if listing:
        print_claims(claims, json=json, quiet=quiet)
        return 0
    number = seed_number(seed or 0)
    processes = crew_size(workers, most=1 if effort == "gpu" else None)  # which would otherwise share the GPU
    if effort == "gpu":
        from odesim.machine.device import configure

        configure("gpu", threads)
    level: Any = effort
    lab = Laboratory(chosen, level, backend or "numba", number)
    request = records.Request(chosen, level, lab.backend, number, tuple(asked))
    with claimed(records.folder_of(request, out)):
        folder = records.prepare(request, out, overwrite=overwrite, resume=resume)
        ledger = records.Ledger(folder / LEDGER, request.key)
        try:
            verdicts = verify_all(lab, claims, ledger, None if quiet else Told(), processes, scheduler)
        except KeyboardInterrupt:
            from odesim.errors import Interrupted

            raise Interrupted(f"interrupted; {len(ledger.verdicts)} verdicts are kept in {ledger.path}.") from None
        answers = records.finish(request, folder, verdicts)
        draw_all(verdicts, folder)
    if json:
        from odesim.cli.output import print_json

        print_json({"system": request.system, "effort": effort, "folder": str(folder), "verdicts": answers})
    elif explain:
        print_whole([verdict for verdict in verdicts if verdict["claim"] == explain], folder)
    else:
        print_verdicts(answers, folder, quiet=quiet)
    return 1 if strict and any(verification.disagrees(verdict) for verdict in answers) else 0
