"""The commands that write a page: `odesim report` for results, `odesim explore` for interactive curves."""

from pathlib import Path
from typing import Annotated

import typer

from odesim.cli.options import AsJson, Debug, Quiet

Folders = Annotated[list[str], typer.Argument(metavar="DIR...", help="Folders of verify, figures or runs.")]
Explored = Annotated[
    list[str], typer.Argument(metavar="DIR...", help="The folder of a sweep or a comparison, or folders of runs.")
]
Page = Annotated[str, typer.Option("--out", metavar="FILE.html", help="The page.")]
Replace = Annotated[bool, typer.Option("--overwrite", help="Replace an existing page.")]


def report(
    folders: Folders,
    out: Page = "report.html",
    overwrite: Replace = False,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Write one self-contained HTML page of verdicts, figures and runs; it needs no network and no other file."""
    from odesim.show import report as maker

    path = maker.write(folders, _place(out), overwrite)
    return _said(path, folders, json, quiet)


def explore(
    folders: Explored,
    out: Page = "explore.html",
    overwrite: Replace = False,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Write an interactive page of runs, bands, a comparison or a sweep: hover, zoom, choose entries and seeds.

    Several runs (a flow and SGD, or the stages of one run) are drawn together.  A sweep is drawn as a grid of points;
    if it kept curves (`odesim sweep --save-points`), a click on a point shows its run.  The page needs no network.
    Creating it needs the extra `explore` (plotly).
    """
    from odesim.show import explore as maker

    path = maker.write(folders, _place(out), overwrite)
    return _said(path, folders, json, quiet)


def _place(out: str) -> str:
    """Return the path of a page, after creating its parent folders."""
    if not Path(out).exists():
        Path(out).parent.mkdir(parents=True, exist_ok=True)
    return out


def _said(path: Path, folders: list[str], json: bool, quiet: bool) -> int:
    """Print the path of a page and the folders that it shows."""
    from odesim.cli.output import print_json

    if json:
        print_json({"page": str(path), "bytes": path.stat().st_size, "folders": folders})
    elif quiet:
        print(path)
    else:
        print(f"{path} ({path.stat().st_size / 1e3:.0f} kB)")
    return 0
