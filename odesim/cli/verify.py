"""The command `odesim verify`: claims in, verdicts out."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import AsJson, Backend, Debug, Out, Quiet, Resume, Seed, SystemName, Threads, Workers

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
    out: Out = None,
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
    from odesim.parse import choice, whole_number
    from odesim.workers import crew_size

    choice(effort, verification.EFFORTS, "--effort")
    choice(backend or "numba", BACKENDS, "--backend")
    chosen = find_system(system)
    claims = verification.claims_of(chosen, claim)
    number = whole_number(seed or 0, "--seed")
    processes = crew_size(workers, most=1 if effort == "gpu" else None)  # which would otherwise share the GPU
    if effort == "gpu":
        from odesim.device import configure

        configure("gpu", threads)
    level: Any = effort
    lab = Laboratory(chosen, level, backend or "numba", number)
    key = verification.key_of(chosen, level, lab.backend, number)
    folder = _folder(out, chosen.name, effort, resume, key)
    ledger = verification.Ledger(folder / "verdicts.jsonl", key)
    try:
        verdicts = verification.verify_all(lab, claims, ledger, None if quiet else _say, processes)
    except KeyboardInterrupt:
        from odesim.errors import Interrupted

        raise Interrupted(f"interrupted; {len(ledger.verdicts)} verdicts are kept in {ledger.path}.") from None
    _finish(folder, chosen.name, effort, verdicts, key, number, lab.backend)
    if json:
        from odesim.cli.output import print_json

        print_json({"system": chosen.name, "effort": effort, "folder": str(folder), "verdicts": verdicts})
    else:
        _table(verdicts, folder)
    return 1 if strict and any(verification.disagrees(verdict) for verdict in verdicts) else 0


def _folder(out: str | None, system: str, effort: str, resume: bool, key: str) -> Path:
    """The folder of the verdicts: what an unfinished run of the same request left there is taken up again."""
    from odesim.errors import UsageError
    from odesim.store.files import read_json

    folder = Path(out) if out else Path("runs") / f"verify-{system}-{effort}"
    manifest = folder / "manifest.json"
    if manifest.is_file() and not resume:
        if out is not None and read_json(manifest).get("key") != key:
            raise UsageError(f"{folder} holds finished verdicts of another request; choose another --out, or --resume")
        manifest.unlink()
        (folder / "verdicts.jsonl").unlink(missing_ok=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made ({error.strerror}); choose another --out") from None
    return folder


def _finish(
    folder: Path, system: str, effort: str, verdicts: list[dict[str, Any]], key: str, seed: int, backend: str
) -> None:
    from odesim import __version__
    from odesim.store.files import write_json
    from odesim.store.manifest import versions

    write_json(folder / "verdicts.json", {"system": system, "effort": effort, "verdicts": verdicts})
    content = {
        "schema": 1,
        "kind": "verdicts",
        "system": system,
        "effort": effort,
        "key": key,
        "seed": seed,
        "backend": backend,
    }
    write_json(folder / "manifest.json", {**content, "odesim": __version__, "versions": versions()})


def _say(verdict: "Mapping[str, Any]", done: int, total: int) -> None:
    name = verdict["claim"] + ("" if verdict["variant"] == "main" else f" ({verdict['variant']})")
    print(f"[{done}/{total}] {name}: {verdict['answer']}, {verdict['seconds']:.1f} s", file=sys.stderr, flush=True)


def _table(verdicts: list[dict[str, Any]], folder: Path) -> None:
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
