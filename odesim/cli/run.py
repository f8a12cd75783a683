"""The command `odesim integrate`, and what every command that computes shares."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.cli.options import (
    AsJson,
    Atol,
    Backend,
    Config,
    Debug,
    DryRun,
    InitialFile,
    NoFigures,
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
    Threads,
    Until,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from odesim.trajectory import Trajectory


def integrate(
    system: SystemName,
    parameter: Parameters = None,
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
    """Integrate the population dynamics of a system, and leave a run folder."""
    started = time.perf_counter()
    from odesim import device

    device.set_threads(threads)  # before NumPy is imported, or BLAS does not notice
    from odesim import store
    from odesim.case import Case
    from odesim.parse import parse_assignments

    case = Case.build(
        system,
        parse_assignments(parameter or []),
        preset=preset,
        config=config,
        initial=initial,
        stage=stage,
        seed=seed,
        until=until,
        save_points=save_points,
        rtol=rtol,
        atol=atol,
        backend=backend,
        solver=solver,
    )

    def job(progress: Any, checkpoint: Any) -> "Trajectory":
        if case.backend == "jax":
            device.configure("auto", threads)
        from odesim.integration import solve

        return solve(case, progress=progress, checkpoint=checkpoint)

    if dry_run:
        return show_request(case, Path(out) if out else store.default_folder(case), json)
    target = store.prepare(case, out, overwrite=overwrite, resume=resume)
    return execute(
        case, target, job, f"integrating {case.system.name}", started,
        resume=resume, figures=not no_figures, json=json, quiet=quiet,
    )  # fmt: skip


def execute(
    request: Any,
    target: Any,
    job: "Callable[[Any, Any], Trajectory]",
    label: str,
    started: float,
    *,
    resume: bool,
    figures: bool,
    json: bool,
    quiet: bool,
) -> int:
    """Run a job under a progress display, store its trajectory and report it; a finished target is only reported."""
    from odesim import store

    if target.stored is not None:
        return report(target.stored.trajectory, target.folder, json=json, quiet=quiet, note="already finished")
    trajectory, seconds = _compute(request, target.folder, job, label, resume, quiet)
    store.save(trajectory, request, target.folder, {"solve": seconds}, figures=figures)
    note = f"{time.perf_counter() - started:.1f} s in all"
    return report(trajectory, target.folder, json=json, quiet=quiet, note=note)


def _compute(
    request: Any, folder: Path, job: "Callable[[Any, Any], Trajectory]", label: str, resume: bool, quiet: bool
) -> tuple["Trajectory", float]:
    """Do the job; the trajectory and the seconds it took.  Raises `Interrupted` where the user stopped it."""
    from odesim.cli.progress import Progress
    from odesim.errors import Interrupted
    from odesim.store import Checkpoint

    checkpoint = Checkpoint(folder, request.digest)
    if resume:
        checkpoint.read()  # refuse the checkpoint of another request before anything is computed
    started = time.perf_counter()
    with Progress(label, quiet=quiet) as progress:
        try:
            trajectory = job(progress, checkpoint)
        except KeyboardInterrupt:
            trajectory = None
    if trajectory is None or trajectory.outcome.kind == "interrupted":
        kept = f"; the same command with --resume continues from {checkpoint.path}" if checkpoint.path.exists() else ""
        raise Interrupted(f"interrupted; no result was written{kept}.")
    return trajectory, time.perf_counter() - started


def show_request(case: Any, folder: Path, json: bool) -> int:
    """Print what would be computed, and where it would go."""
    from odesim.cli.output import print_json, print_pairs

    if json:
        print_json({"folder": str(folder), "digest": case.digest, "request": case.request()})
    else:
        print(f"would write {folder}")
        print_pairs(case.request())
    return 0


def report(trajectory: "Trajectory", folder: Path, *, json: bool, quiet: bool, note: str = "") -> int:
    """Print a run: its outcome, headline numbers and folder; returns the exit code that the outcome means."""
    import sys

    from odesim.cli.output import print_json, print_pairs

    outcome, origin = trajectory.outcome, trajectory.origin
    if outcome.kind == "failed":
        print(f"odesim: {outcome.reason.rstrip('.')}; the run up to there is in {folder}.", file=sys.stderr)
    if json:
        content: dict[str, Any] = {
            "folder": str(folder),
            "outcome": {"kind": outcome.kind, "time": outcome.time, "reason": outcome.reason},
            "summary": trajectory.summary,
        }
        print_json(content)
    elif quiet:
        print(folder)
    else:
        print(f"{origin.system} {origin.stage} ({origin.tier}): {outcome.kind} at time {outcome.time:.6g}")
        if outcome.reason and outcome.kind == "stopped":
            print(f"  {outcome.reason}")
        print_pairs(trajectory.summary)
        print(f"run folder {folder}" + (f" ({note})" if note else ""))
    return outcome.exit_code
