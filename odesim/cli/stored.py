"""The commands that read stored results: `odesim show` and `odesim plot`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from odesim.cli.options import AnyFolder, AsJson, Debug, Quiet, RunOrSweep

OwnSystem = Annotated[
    str | None,
    typer.Option("--system", "-s", metavar="FILE.py[:NAME]", help="The system of the run, if it is outside of odesim."),
]
AsSvg = Annotated[bool, typer.Option("--svg", help="Also write SVG files.")]


def show(folder: AnyFolder, json: AsJson = False, quiet: Quiet = False, debug: Debug = False) -> int:
    """Show the content of a folder (a run, a sweep, verdicts, figures, an answer, a check): the request and the
    results."""
    from odesim.store.folder import kind_of

    kinds = {"run": _run, "sweep": _sweep, "verdicts": _verdicts, "figures": _figures, "answer": _answer}
    kinds["check"] = _check
    return kinds[kind_of(folder)](folder, json, quiet)


def _run(folder: str, json: bool, quiet: bool) -> int:
    """Print a stored run after verifying its files."""
    from odesim.cli.output import print_json, print_pairs
    from odesim.store.read import read_headline

    manifest, summary = read_headline(Path(folder))
    outcome = manifest["outcome"]
    if json:
        print_json({"folder": folder, "outcome": outcome, "summary": summary, "manifest": manifest})
        return 0
    print(f"{folder}: {outcome['kind']} at time {outcome['time']:.6g} (clock: {manifest['clock']})")
    if outcome["reason"]:
        print(f"  {outcome['reason']}")
    blocks: dict[str, Mapping[str, Any]] = {
        "summary": summary,
        "request": manifest["request"],
        "invariants": manifest["invariants"],
        "statistics": manifest["statistics"],
        "wall times (s)": manifest["wall_times"],
        "made": {
            "at": manifest["created"],
            "odesim": manifest["versions"]["odesim"],
            "commit": (manifest["git"] or {}).get("commit"),
            "device": manifest["device"]["used"],
            "precision": manifest["precision"],
            "files": ", ".join(manifest["files"]),
        },
    }
    for title in ["summary"] if quiet else blocks:
        if blocks[title]:
            print(title)
            print_pairs(blocks[title])
    return 0


def _sweep(folder: str, json: bool, quiet: bool) -> int:
    """Print a stored sweep: the outcomes of its cells, and the table of headline numbers."""
    from odesim.cli.sweep import print_sweep
    from odesim.sweeps import swept

    data = swept.load(Path(folder))
    print_sweep(data, Path(folder), json=json, quiet=quiet)
    return 0


def _verdicts(folder: str, json: bool, quiet: bool) -> int:
    """Print stored verdicts, as `odesim verify` printed them."""
    from odesim.cli.output import print_json
    from odesim.cli.verdicts import print_verdicts
    from odesim.store.verdicts import stored

    content = stored(Path(folder))
    if json:
        print_json({"folder": folder, **content})
    else:
        print_verdicts(content["verdicts"], Path(folder), quiet=quiet)
    return 0


def _figures(folder: str, json: bool, quiet: bool) -> int:
    """Print the figures that a folder lists, with their captions, after verifying the files."""
    from odesim.cli.output import print_json
    from odesim.show.report import read_figures

    section = read_figures(folder)
    pictures = {picture.name: picture.caption for picture in section.every}
    if json:
        print_json({"folder": folder, "system": section.system, "figures": pictures})
    else:
        for name, caption in pictures.items():
            print(name if quiet else f"{name}: {caption}")
    return 0


def _answer(folder: str, json: bool, quiet: bool) -> int:
    """Print a stored answer, as its command printed it; `quiet` prints its first sentence."""
    from odesim.cli.answer import print_answer
    from odesim.store.answers import load

    result = load(Path(folder))
    if quiet and not json:
        print(result.sentences[0])
        return 0
    return print_answer(result, Path(folder), json=json, quiet=False)


def _check(folder: str, json: bool, quiet: bool) -> int:
    """Print a stored check: answer and grade with their reasons; `quiet` prints both in one line."""
    from odesim.cli.output import print_json
    from odesim.show.check import load
    from odesim.store.files import CHECK_PAGE

    found = load(Path(folder))
    if json:
        print_json({"folder": folder, **found.record})
    elif quiet:
        print(f"{found.answer}; {found.grade}")
    else:
        print(found)
        print(f"page {Path(folder) / CHECK_PAGE}")
    return 0


def plot(
    folder: RunOrSweep,
    svg: AsSvg = False,
    system: OwnSystem = None,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Draw the pictures of a stored run, sweep or answer again, without running it.

    A sweep has one picture: hitting times and headline numbers over the first swept name, coloured by the second. A run
    of a system outside of odesim has odesim's default pictures, unless --system names the system. odesim never imports
    code only because a folder names it.
    """
    from odesim.cli.output import print_json
    from odesim.store.folder import require

    kind = require(folder, "run", "sweep", "answer")
    pictures = {"run": _plot_run, "sweep": _plot_sweep, "answer": _plot_answer}[kind](Path(folder), svg, system)
    if json:
        print_json({"folder": folder, "pictures": [str(path) for path in pictures]})
    elif not quiet:
        for path in pictures:
            print(path)
    return 0


def _plot_run(folder: Path, svg: bool, system: str | None) -> list[Any]:
    """Draw the pictures of a run."""
    import functools

    from odesim import store
    from odesim.request.case import find_system
    from odesim.show.plot import draw

    run = store.load(folder)
    chosen = run.trajectory.origin.required(find_system(system)) if system else None
    return store.redraw(run, functools.partial(draw, svg=svg, system=chosen))


def _plot_sweep(folder: Path, svg: bool, system: str | None) -> list[Any]:
    """Draw the picture of a sweep. Raises `UsageError` if all values of the grid are equal."""
    from odesim.errors import UsageError
    from odesim.request.case import find_system
    from odesim.show import sweep_pictures

    pictures = sweep_pictures.redraw(folder, svg, find_system(system) if system else None)
    if not pictures:
        raise UsageError(
            f"all values of the grid in {folder} are equal, so there is nothing to draw; sweep more values"
        )
    return pictures


def _plot_answer(folder: Path, svg: bool, system: str | None) -> list[Any]:
    """Draw the pictures of an answer; `system` has no part in them."""
    from odesim.errors import UsageError
    from odesim.show.answers import draw
    from odesim.store import replace_pictures
    from odesim.store.answers import load
    from odesim.store.folder import manifest_of

    if system is not None:
        raise UsageError("the pictures of an answer do not depend on --system; leave it out")
    result = load(folder)
    return replace_pictures(folder, manifest_of(folder), lambda place: draw(result, place, svg))
