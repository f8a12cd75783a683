"""The command `odesim figures`: the published figures and ours, drawn from stored runs."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from odesim.cli.options import AsJson, Debug, Quiet, Threads

Owner = Annotated[
    str | None, typer.Option("--system", "-s", metavar="NAME", help="Figures of this system [default: all].")
]
Only = Annotated[str | None, typer.Option("--only", metavar="NAME", help="Only this figure.")]
Folder = Annotated[str | None, typer.Option("--out", metavar="DIR", help="The folder [default: runs/figures/out].")]
Small = Annotated[bool, typer.Option("--quick", help="Smaller runs; the figures say so.")]


def figures(
    system: Owner = None,
    only: Only = None,
    out: Folder = None,
    quick_request: Small = False,
    threads: Threads = None,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Draw the figures of the papers and ours; the runs they lack are made first and kept in runs/figures."""
    from odesim.machine import device

    device.set_threads(threads)
    from odesim.cli.output import print_json
    from odesim.show import figures as maker

    chosen = maker.modules(system, only)
    say = None if quiet else lambda sentence: print(sentence, file=sys.stderr, flush=True)
    paths = maker.make(chosen, Path(out) if out is not None else None, quick=quick_request, say=say)
    if json:
        print_json({"figures": [str(path) for path in paths]})
    else:
        for path in paths:
            print(path)
    return 0
