"""The command `odesim sweep`: one request over a grid of parameters and seeds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odesim.cli.options import (
    AsJson,
    Atol,
    Backend,
    Config,
    Debug,
    DryRun,
    InitialFile,
    Out,
    Overwrite,
    Parameters,
    Preset,
    Quiet,
    Resume,
    Rtol,
    SavePoints,
    Seed,
    Solver,
    StageName,
    SystemName,
    Workers,
)

if TYPE_CHECKING:
    import xarray

    from odesim.sweep import Sweep

Over = Annotated[
    list[str],
    typer.Option("--over", metavar="KEY=v1,v2,..", help="Values of a parameter or of the seed (0..9); repeatable."),
]
SweepUntil = Annotated[
    str | None, typer.Option("--until", metavar="T", help="End time, or an expression such as '2*sqrt(d)'.")
]
Scheduler = Annotated[
    str, typer.Option("--scheduler", metavar="local|ADDRESS", help="Processes here, or a dask scheduler.")
]


def sweep(
    system: SystemName,
    over: Over,
    parameter: Parameters = None,
    preset: Preset = None,
    config: Config = None,
    initial: InitialFile = None,
    seed: Seed = None,
    stage: StageName = None,
    until: SweepUntil = None,
    save_points: SavePoints = None,
    rtol: Rtol = None,
    atol: Atol = None,
    backend: Backend = None,
    solver: Solver = None,
    scheduler: Scheduler = "local",
    workers: Workers = None,
    out: Out = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    dry_run: DryRun = False,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Integrate a system at every point of a grid, and leave one dataset.

    With --backend jax and either a GPU or --workers 1, cells of the same equations, sizes and solver are integrated
    together, by one program in one process, to the tolerances of single runs; other cells are computed one by one by
    --workers processes.
    """
    from odesim import sweep as sweeps
    from odesim.cli.output import print_json
    from odesim.parse import parse_assignments, parse_ranges
    from odesim.store.files import MANIFEST, read_json
    from odesim.store.target import default_folder, prepare
    from odesim.workers import crew_size

    options = dict(
        preset=preset, config=config, initial=initial, seed=seed, stage=stage, save_points=save_points or "2",
        rtol=rtol, atol=atol, backend=backend, solver=solver,
    )  # fmt: skip
    wanted = sweeps.Sweep.build(system, parse_ranges(over), parse_assignments(parameter or []), until=until, **options)
    processes = crew_size(workers)
    folder = Path(out) if out else default_folder(wanted)
    if dry_run:
        print_json({"folder": str(folder), "digest": wanted.digest, "cells": len(wanted.cells), **wanted.request()})
        return 0
    manifest = folder / MANIFEST
    if resume and manifest.is_file() and read_json(manifest).get("digest") == wanted.digest:
        return _report(wanted, sweeps.load(folder), folder, json=json, quiet=quiet)
    prepare(wanted, out, overwrite=overwrite, resume=resume)
    data = _compute(wanted, folder, scheduler, processes, fresh=not resume, quiet=quiet)
    return _report(wanted, data, folder, json=json, quiet=quiet)


def _compute(
    wanted: "Sweep", folder: Path, scheduler: str, processes: int, *, fresh: bool, quiet: bool
) -> "xarray.Dataset":
    from odesim import sweep as sweeps
    from odesim.cli.progress import Progress
    from odesim.errors import Interrupted

    if fresh:
        sweeps.clear(folder)
    with Progress(f"sweeping {wanted.system.name}", quiet=quiet) as progress:
        try:
            data = sweeps.run(wanted, folder, scheduler=scheduler, workers=processes, report=progress)
        except KeyboardInterrupt:
            raise Interrupted(
                f"interrupted; the finished cells are kept, the same command with --resume --out {folder} goes on."
            ) from None
    sweeps.save(wanted, data, folder)
    return data


def _report(wanted: "Sweep", data: "xarray.Dataset", folder: Path, *, json: bool, quiet: bool) -> int:
    """Print the counts of outcomes and where the dataset is; 3 where every cell failed."""
    from odesim.cli.output import print_json, print_table
    from odesim.sweep import DATA, counts, medians

    found = counts(data)
    if json:
        content: dict[str, Any] = {"folder": str(folder), "cells": int(data["outcome"].size), "outcomes": found}
        print_json({**content, "over": wanted.request()["over"]})
    elif quiet:
        print(folder)
    else:
        print(f"{data['outcome'].size} cells: " + ", ".join(f"{n} {kind}" for kind, n in found.items()))
        header, rows = medians(data)
        print_table(header, rows)
        print(f"dataset {folder / DATA}")
    return 3 if set(found) == {"failed"} else 0
