"""The command `odesim sweep`: one request over a grid of parameters and seeds."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import (
    DRY,
    EULER,
    FOLDER,
    FRESH,
    REQUEST,
    RESUMED,
    SAID,
    TRAINING,
    Device,
    NoFigures,
    Parameters,
    Precision,
    Scheduler,
    SystemName,
    Workers,
    of,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray

    from odesim.cli.waiting import Wait
    from odesim.sweeps.sweep import Sweep

Over = Annotated[
    list[str],
    typer.Option(
        "--over", metavar="KEY=v1,v2,..",
        help="Values of a parameter or of the seed: 0..9 counts, 1e3..1e5:9 is a logarithmic grid; repeatable.",
    ),
]  # fmt: skip
Yes = Annotated[bool, typer.Option("--yes", help="Also start a sweep of more than 1,000 cells or more than an hour.")]
SweepMethod = Annotated[
    str, typer.Option("--method", metavar="flow|explicit|compressed", help="Compute the flow, or SGD, at every point.")
]

CELLS = {**TRAINING, "device": (Device, None), "precision": (Precision, None)}


PNG = "sweep.png"
PICTURE = {"no_figures": (NoFigures, False)}


@takes(REQUEST, EULER, CELLS, FRESH, FOLDER, RESUMED, PICTURE, DRY, SAID)
def sweep(
    system: SystemName,
    over: Over,
    parameter: Parameters = None,
    method: SweepMethod = "flow",
    scheduler: Scheduler = "local",
    workers: Workers = None,
    yes: Yes = False,
    **given: Any,
) -> int:
    """Integrate a system, or run SGD, at every point of a grid, and write one dataset.

    With --method explicit or compressed every cell of the grid is a run of SGD with --seeds replicas.  You can then
    also sweep its options by --over step_size=.. or --over batch=.., and with --solver euler its step by --over step=..

    If the values of a parameter are lists, separate them by `;`, as in --over 'alpha=0.5,2;1,1'.  The cells are
    computed by --workers processes.  On a GPU the processes share the device.
    """
    from odesim.ask import sweep as ask
    from odesim.cli.output import print_json
    from odesim.cli.waiting import Wait
    from odesim.request.parse import parse_assignments, parse_ranges
    from odesim.store.target import folder_of
    from odesim.sweeps import sweep as sweeps

    values = parse_ranges(over, sweeps.list_parameters(system), sweeps.fractional(system))
    wait = Wait(math.prod(map(len, values.values())), yes or given["dry_run"])
    wait.require_count()
    wanted = ask.request(
        system, values, parse_assignments(parameter or []), method=method, **of(given, REQUEST, EULER, CELLS, FRESH)
    )
    if given["dry_run"]:
        folder = folder_of(wanted, given["out"])
        print_json({"folder": str(folder), "digest": wanted.digest, "cells": len(wanted.cells), **wanted.request()})
        return 0
    return answer(wanted, wait, scheduler, workers, given)


def answer(wanted: "Sweep", wait: "Wait", scheduler: str, workers: int | None, given: "Mapping[str, Any]") -> int:
    """Compute the cells that the folder lacks, store and print the sweep; `given` are the options of the command."""
    from odesim.machine.processes import crew_size
    from odesim.store.claim import claimed
    from odesim.store.folder import digest_in
    from odesim.store.target import folder_of, prepare
    from odesim.sweeps import swept

    folder, processes, resume = folder_of(wanted, given["out"]), crew_size(workers), given["resume"]
    with claimed(folder):
        stored = resume and digest_in(folder) == wanted.digest
        if stored:
            data = swept.load(folder)
        else:
            prepare(wanted, given["out"], overwrite=given["overwrite"], resume=resume)
            data = _compute(wanted, folder, scheduler, processes, wait, fresh=not resume, quiet=given["quiet"])
    if not (stored or given["no_figures"]):
        from odesim.show.sweep_pictures import redraw

        redraw(folder, system=wanted.system)
    return _report(wanted, data, folder, json=given["json"], quiet=given["quiet"])


def _compute(
    wanted: "Sweep", folder: Path, scheduler: str, processes: int, wait: "Wait", *, fresh: bool, quiet: bool
) -> "xarray.Dataset":
    from odesim.ask import sweep as ask
    from odesim.ask.progress import Progress
    from odesim.errors import Interrupted
    from odesim.sweeps import swept

    if fresh:
        swept.clear(folder)
    wait.begin(folder, processes, quiet)
    with Progress(f"sweeping {wanted.system.name}", quiet=quiet) as progress:
        try:
            data = ask.run(wanted, folder, scheduler=scheduler, workers=processes, report=wait.watching(progress))
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; the finished cells are kept, and the same command with --resume --out {folder} "
                "continues the sweep."
            ) from None
    swept.save(wanted, data, folder)
    return data


def _report(wanted: "Sweep", data: "xarray.Dataset", folder: Path, *, json: bool, quiet: bool) -> int:
    """Print the sweep and return the exit code, 3 if every cell failed."""
    print_sweep(data, folder, json=json, quiet=quiet)
    from odesim.sweeps.swept import counts

    return 3 if set(counts(data)) == {"failed"} else 0


def print_sweep(data: "xarray.Dataset", folder: Path, *, json: bool, quiet: bool) -> None:
    """Print how the cells of a sweep ended, its headline numbers, and the path of the dataset."""
    from odesim.cli.output import print_json, print_table
    from odesim.study import limit
    from odesim.sweeps.swept import DATA, counts, not_reached, records, table

    found = counts(data)
    if json:
        over = {str(name): data[name].values.tolist() for name in data["outcome"].dims}
        content: dict[str, Any] = {"folder": str(folder), "cells": int(data["outcome"].size), "outcomes": found}
        told = {"exponent": limit.record(data)} if limit.is_comparison(data) else {}
        print_json({**content, "over": over, "results": records(data), **told})
    elif quiet:
        print(folder)
    else:
        print(f"{data['outcome'].size} cells: " + ", ".join(f"{n} {kind}" for kind, n in found.items()))
        header, rows, statistic = table(data)
        if statistic:
            print(statistic)
        print_table(header, rows)
        for sentence in not_reached(data):
            print(sentence)
        if limit.is_comparison(data):
            print(limit.sentence(data))
        print(f"dataset {folder / DATA}")
        if (folder / PNG).is_file():
            print(f"picture {folder / PNG}")
