"""The command `odesim report`: verdicts, figures and runs on one page."""

from pathlib import Path
from typing import Annotated

import typer

from odesim.cli.options import AsJson, Debug, Quiet

Folders = Annotated[list[str], typer.Argument(metavar="DIR...", help="Folders of verify, figures or runs.")]
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
    from odesim.cli.output import print_json
    from odesim.show import report as maker

    if not Path(out).exists():
        Path(out).parent.mkdir(parents=True, exist_ok=True)
    path = maker.write(folders, out, overwrite)
    if json:
        print_json({"page": str(path), "bytes": path.stat().st_size, "folders": folders})
    elif quiet:
        print(path)
    else:
        print(f"{path} ({path.stat().st_size / 1e3:.0f} kB)")
    return 0
