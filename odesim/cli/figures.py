"""The command `odesim figures`: the published figures and ours, drawn from stored runs."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from odesim.cli.options import AsJson, Debug, Quiet, Threads

Owner = Annotated[
    str | None, typer.Option("--system", "-s", metavar="NAME", help="Figures of this system [default: all].")
]
Only = Annotated[str | None, typer.Option("--only", metavar="NAME", help="Only this figure.")]
Folder = Annotated[str | None, typer.Option("--out", metavar="DIR", help="The folder [default: runs/figures/out].")]
Listed = Annotated[bool, typer.Option("--list", help="List the figures with their captions, and draw none.")]
Small = Annotated[bool, typer.Option("--quick", help="Make smaller runs; the captions say so.")]


def figures(
    *,
    system: Owner = None,
    only: Only = None,
    out: Folder = None,
    quick_request: Small = False,
    listed: Listed = False,
    threads: Threads = None,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Draw the figures of the papers and those of odesim; missing runs are computed first and stored in runs/figures.

    Every figure is written as PNG and SVG.  The file figures.json in the same folder has the captions, and a
    description of every picture in words.
    """
    from odesim.machine import device

    device.set_threads(threads)
    from odesim.cli.output import print_json
    from odesim.show import figures as maker

    chosen = maker.modules(system, only)
    if listed:
        return _list(chosen, json, quiet)
    say = None if quiet else lambda sentence: print(sentence, file=sys.stderr, flush=True)
    paths = maker.make(chosen, Path(out) if out is not None else None, quick=quick_request, say=say)
    captions = maker.captions(paths)
    if json:
        print_json({"figures": [str(path) for path in paths], "captions": captions})
    else:
        for path in paths:
            print(path if quiet else f"{path}\n  {captions[str(path)]}")
    return 0


def _list(chosen: Any, json: bool, quiet: bool) -> int:
    """Print the list of figures, with their captions at the published size."""
    from odesim.cli.output import print_json
    from odesim.request.case import short_name
    from odesim.show.figures import caption_of

    if json:
        print_json({"figures": [{"system": system, "figure": name, "caption": caption_of(module, False),
                                 "claims": list(module.CLAIMS)} for system, name, module in chosen]})  # fmt: skip
        return 0
    for system, name, module in chosen:
        said = f"{short_name(system)}/{name}"
        print(said if quiet else f"{said}\n  {caption_of(module, False)}")
    return 0
