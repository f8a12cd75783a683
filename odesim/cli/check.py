"""The command `odesim check`: one citable folder and page with all results on a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import (
    CASE,
    FOLDER,
    RESUMED,
    SAID,
    TRAINING,
    Backend,
    Parameters,
    Threads,
    Workers,
    of,
    takes,
)
from odesim.cli.verify import Claims, EffortName, Strict

if TYPE_CHECKING:
    from odesim.evidence.check import Check, Request

Name = Annotated[
    str | None,
    typer.Argument(metavar="[NAME|FILE|DIR]", help="A system, an entry of the gallery, a file, or a finished check."),
]
Earlier = Annotated[
    str | None, typer.Option("--compare", metavar="OLD", help="Print what changed since the check in this folder.")
]
NoCompare = Annotated[bool, typer.Option("--no-compare", help="Run no SGD beside the flow.")]
OPTIONS = {name: CASE[name] for name in ("preset", "seed", "stage", "until")}
COMPARED = {name: TRAINING[name] for name in ("step_size", "batch", "seeds")}


@takes(OPTIONS, COMPARED, FOLDER, RESUMED, SAID)
def check(
    name: Name = None,
    compare: Earlier = None,
    claim: Claims = None,
    effort: EffortName = "quick",
    backend: Backend = None,
    parameter: Parameters = None,
    no_compare: NoCompare = False,
    strict: Strict = False,
    threads: Threads = None,
    workers: Workers = None,
    **given: Any,
) -> int:
    """Check a model and write one folder with one page: verdict and grade, model and equations, claims, SGD, errata.

    The options -p, --preset, --stage, --until, --step-size, --batch and --seeds belong to the comparison of SGD with
    the flow. Claims have their own parameters. --compare prints the changes since an earlier check. NAME may then be a
    finished check; otherwise the page is written too. Without a NAME the request of the earlier check is repeated.
    """
    from odesim.machine.device import set_threads

    set_threads(threads)
    from odesim.errors import UsageError
    from odesim.show.check import load

    earlier = load(Path(compare)) if compare is not None else None
    if earlier is not None and name is not None and _finished(name):
        return _print_changes(load(Path(name)), earlier, given)
    if name is None and earlier is None:
        raise UsageError("check needs a NAME: a system, an entry of the gallery or a file; `odesim systems` lists them")
    if earlier is not None and name is None:
        asked = _again(Path(str(compare)), earlier)
    else:
        asked = _request(str(name), claim, effort, backend, parameter, no_compare, given)
    made, folder = _make(asked, given, workers, threads)
    code = _print_check(made, folder, given) if earlier is None else _print_changes(made, earlier, given, folder)
    return 1 if strict and made.record["verdict"]["unexpected"] else code


def _finished(name: str) -> bool:
    """Return True if a name is the folder of a finished check."""
    from odesim.store.files import CHECK

    return (Path(name) / CHECK).is_file()


def _request(
    name: str, claims: Any, effort: str, backend: str | None, parameter: Any, no_compare: bool, given: dict[str, Any]
) -> "Request":
    """Return the request of a system by its name."""
    from odesim.ask import check as ask
    from odesim.request.case import find_system
    from odesim.request.parse import parse_assignments

    options = {key: value for key, value in of(given, OPTIONS, COMPARED).items() if key != "seed"}
    return ask.request(
        find_system(name), claims, effort=effort, seed=given["seed"] or 0, backend=backend or "numba",
        compared=not no_compare, parameters=parse_assignments(parameter or []), **options,
    )  # fmt: skip


def _again(folder: Path, earlier: "Check") -> "Request":
    """Return the request of an earlier check, for the present model or, if this no longer exists, for the stored
    one.
    """
    import derivations
    from odesim.ask import check as ask
    from odesim.errors import UsageError
    from odesim.request.case import find_system
    from odesim.store.folder import manifest_of

    manifest = manifest_of(folder)
    try:
        system = find_system(manifest["system"])
    except UsageError:
        restored = derivations.restored(manifest["system"], manifest.get("declaration", ""))
        if restored is None:
            raise
        system = restored
    asked = earlier.record["request"]
    claims = None if asked["claims"] == "all" else asked["claims"]
    return ask.request(system, claims, effort=asked["effort"], seed=asked["seed"], backend=asked["backend"],
                       compared=asked["comparison"] is not None)  # fmt: skip


def _make(asked: "Request", given: dict[str, Any], workers: int | None, threads: int | None) -> "tuple[Check, Path]":
    """Run a check in its folder: the verdicts (stored in a ledger), the comparison of SGD with the flow, the page."""
    from odesim.ask import check as ask
    from odesim.ask.progress import Progress
    from odesim.cli.verdicts import Told
    from odesim.errors import Interrupted
    from odesim.evidence.check import Findings
    from odesim.machine.processes import crew_size
    from odesim.show import check as shown
    from odesim.store import checks
    from odesim.store.claim import claimed

    quiet = given["quiet"] or given["json"]
    if asked.judged.effort == "gpu":
        from odesim.machine.device import configure

        configure("gpu", threads)
    crew = crew_size(workers, most=1 if asked.judged.effort == "gpu" else None)
    with claimed(checks.folder_of(asked, given["out"])):
        folder = checks.prepare(asked, given["out"], overwrite=given["overwrite"], resume=given["resume"])
        ledger = checks.ledger(asked, folder)
        verdicts, judged = ask.timed(lambda: ask.judge(asked, ledger, None if quiet else Told(), crew))
        stored, compared = checks.comparison_in(asked, folder), 0.0
        if stored is not None:
            run, missing = stored.trajectory, ""
        else:
            try:
                with Progress(f"SGD beside the flow of {asked.of.name}", quiet=quiet) as progress:
                    (run, missing), compared = ask.timed(lambda: ask.compare(asked, progress, threads))
            except KeyboardInterrupt:
                raise Interrupted(f"interrupted; the verdicts are kept in {ledger.path}.") from None
        found = Findings(verdicts, run, missing, {"verdicts": judged, "comparison": compared})
        made = shown.made(asked, found)
        shown.write(made, folder, stored)
    return made, folder


def _print_check(made: "Check", folder: Path, given: dict[str, Any]) -> int:
    """Print a check: answer, grade, and the path of its page."""
    from odesim.cli.output import print_json
    from odesim.store.files import CHECK_PAGE

    if given["json"]:
        print_json({"folder": str(folder), **made.record})
    elif given["quiet"]:
        print(folder)
    else:
        print(made)
        print(f"page {folder / CHECK_PAGE}")
    return 0


def _print_changes(made: "Check", earlier: "Check", given: dict[str, Any], folder: Path | None = None) -> int:
    """Print what changed since an earlier check."""
    from odesim.cli.output import print_json

    found = made.changes(earlier)
    where = {"folder": str(folder)} if folder is not None else {}
    if given["json"]:
        print_json({**where, **found.record()})
        return 0
    for sentence in found.sentences():
        print(sentence)
    if folder is not None and not given["quiet"]:
        print(f"check in {folder}")
    return 0
