"""The commands of finite-sample SGD: `odesim simulate` and `odesim compare`."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.cli.options import (
    AsJson,
    Atol,
    Backend,
    Batch,
    Config,
    Debug,
    Device,
    DryRun,
    FreshInitial,
    InitialFile,
    Method,
    NoFigures,
    OptionalSystem,
    Out,
    Overwrite,
    Parameters,
    PopulationLoss,
    Precision,
    Preset,
    Quiet,
    Resume,
    Rtol,
    SavePoints,
    Seed,
    Seeds,
    Solver,
    StageName,
    Step,
    StepSize,
    SystemName,
    Threads,
    TwoRuns,
    Until,
)

if TYPE_CHECKING:
    from odesim.request.trajectory import Trajectory


def simulate(
    system: SystemName,
    method: Method,
    parameter: Parameters = None,
    step_size: StepSize = None,
    batch: Batch = None,
    seeds: Seeds = None,
    device: Device = "auto",
    precision: Precision = "float64",
    fresh_initial: FreshInitial = False,
    population_loss: PopulationLoss = False,
    preset: Preset = None,
    config: Config = None,
    initial: InitialFile = None,
    seed: Seed = None,
    stage: StageName = None,
    until: Until = None,
    save_points: SavePoints = None,
    backend: Backend = None,
    rtol: Rtol = None,
    atol: Atol = None,
    solver: Solver = None,
    out: Out = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    no_figures: NoFigures = False,
    threads: Threads = None,
    dry_run: DryRun = False,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Run finite-sample SGD of a system, explicitly or exactly in law, and leave a run folder."""
    started = time.perf_counter()
    from odesim.machine.device import set_threads

    set_threads(threads)
    from odesim import store
    from odesim.ask import sgd as ask
    from odesim.cli.run import execute, show_request
    from odesim.request.parse import parse_assignments
    from odesim.sgd import effort
    from odesim.sgd.simulation import condition_of, refuse_tier
    from odesim.sgd.simulation import simulate as run

    simulation = ask.request(
        system, parse_assignments(parameter or []), method=method, step_size=step_size, batch=batch, seeds=seeds,
        device=device, precision=precision, fresh_initial=fresh_initial, population_loss=population_loss, preset=preset,
        config=config, initial=initial,
        seed=seed, stage=stage, until=until, save_points=save_points, backend=backend, rtol=rtol, atol=atol,
        solver=solver,
    )  # fmt: skip
    refuse_tier(simulation.case)
    if dry_run:
        return show_request(simulation, Path(out) if out else store.default_folder(simulation), json)
    first = condition_of(simulation)
    effort.check(simulation, first)
    said = effort.announcement(simulation, first)
    if said and not quiet:
        print(f"odesim: {said}", file=sys.stderr, flush=True)
    target = store.prepare(simulation, out, overwrite=overwrite, resume=resume)
    return execute(
        simulation, target, lambda progress, checkpoint: [run(simulation, progress, checkpoint, threads)],
        f"simulating {simulation.system.name}", started, resume=resume, figures=not no_figures, json=json, quiet=quiet,
    )  # fmt: skip


def compare(
    runs: TwoRuns = None,
    system: OptionalSystem = "",
    method: Method = "compressed",
    parameter: Parameters = None,
    step_size: StepSize = None,
    batch: Batch = None,
    seeds: Seeds = None,
    device: Device = "auto",
    precision: Precision = "float64",
    preset: Preset = None,
    config: Config = None,
    initial: InitialFile = None,
    seed: Seed = None,
    stage: StageName = None,
    until: Until = None,
    save_points: SavePoints = None,
    rtol: Rtol = None,
    atol: Atol = None,
    backend: Backend = None,
    solver: Solver = None,
    step: Step = None,
    out: Out = None,
    overwrite: Overwrite = False,
    no_figures: NoFigures = False,
    threads: Threads = None,
    json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> int:
    """Compare the flow with SGD (or two stored runs): distances with bands, and a figure."""
    from odesim.machine.device import set_threads

    set_threads(threads)
    started = time.perf_counter()
    from odesim import store
    from odesim.ask import sgd as ask
    from odesim.cli.run import execute
    from odesim.errors import UsageError
    from odesim.request.case import find_system
    from odesim.request.parse import parse_assignments
    from odesim.study.comparison import Request
    from odesim.study.comparison import compare as against

    if runs:
        if len(runs) != 2 or system:
            raise UsageError("give two run folders, or --system with the options of a simulation, not both")
        first, second = (store.load(folder) for folder in runs)
        parts = {"first": first.manifest["digest"], "second": second.manifest["digest"]}
        wanted = Request(find_system(second.trajectory.origin.system), second.trajectory.origin.seed, parts)

        def job(progress: Any, checkpoint: Any) -> "list[Trajectory]":
            return [against(first.trajectory, second.trajectory).trajectory()]
    else:
        if not system:
            raise UsageError("give --system with the options of a simulation, or two run folders")
        pair = ask.pair(
            system, parse_assignments(parameter or []), method=method, step_size=step_size, batch=batch, seeds=seeds,
            device=device, precision=precision, preset=preset, config=config, initial=initial, seed=seed, stage=stage,
            until=until, save_points=save_points, backend=backend, rtol=rtol, atol=atol, solver=solver, step=step,
        )  # fmt: skip
        wanted = pair.wanted

        def job(progress: Any, checkpoint: Any) -> "list[Trajectory]":
            return [pair.run(progress, threads).trajectory()]

    target = store.prepare(wanted, out, overwrite=overwrite)
    label = f"comparing runs of {wanted.system.name}"
    return execute(
        wanted, target, job, label, started, resume=False, figures=not no_figures, json=json, quiet=quiet
    )  # fmt: skip
