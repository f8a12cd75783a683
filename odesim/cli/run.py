"""The command `odesim integrate`, and the parts that all computing commands share."""

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odesim.cli.options import (
    CONTINUED,
    DRAWN,
    DRY,
    EULER,
    FOLDER,
    RESUMED,
    SAID,
    From,
    ListSolvers,
    Parameters,
    SystemOrFrom,
    of,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from odesim.errors import Interrupted, Unfinished
    from odesim.request.trajectory import Trajectory


@takes(CONTINUED, EULER, FOLDER, RESUMED, DRAWN, DRY, SAID)
def integrate(
    system: SystemOrFrom = None,
    parameter: Parameters = None,
    start: From = None,
    list_solvers: ListSolvers = False,
    **given: Any,
) -> int:
    """Integrate the population dynamics of a system, and write a run folder."""
    started = time.perf_counter()
    if list_solvers:
        return show_solvers(given)
    from odesim.machine import device

    device.set_threads(given["threads"])  # must happen before NumPy is imported, because BLAS reads it only then
    from odesim.ask import flow as ask
    from odesim.request.parse import parse_assignments

    assignments, options = parse_assignments(parameter or []), of(given, CONTINUED, EULER)
    request = ask.request(system, assignments, start=start, **options)
    if start is None and not given["quiet"] and not given["json"]:
        say_bare(ask.bare(system, assignments, options))
    if given["dry_run"]:
        return show_request(request, given)
    return execute(
        request, lambda progress, checkpoint: ask.run(request, progress, checkpoint, given["threads"]),
        f"integrating {request.name}", started, given,
    )  # fmt: skip


def show_solvers(given: "Mapping[str, Any]") -> int:
    """Print the integrators: their names for `--solver`, the back ends that they support, and the defaults."""
    from odesim.cli.output import print_json, print_table
    from odesim.flow.solvers.catalogue import described

    rows = described()
    if given["json"]:
        print_json({"solvers": rows})
    elif given["quiet"]:
        print("\n".join(row["name"] for row in rows))
    else:
        print_table(["solver", "backends", "note"], [[r["name"], r["backends"], r["note"]] for r in rows], indent="")
    return 0


def say_bare(taken: "Mapping[str, Any]") -> None:
    """Print on stderr the default options of a run without parameters."""
    if taken:
        words = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in taken.items())
        print(
            f"odesim: no parameters are given, so the run has the options {words}; any -p turns this off.",
            file=sys.stderr,
        )


def execute(
    request: Any,
    job: "Callable[[Any, Any], list[Trajectory]]",
    label: str,
    started: float,
    given: "Mapping[str, Any]",
) -> int:
    """Run a job under a progress display, store and report its trajectories; a finished target is only reported.

    `given` are the options of the folder and of the answer.
    """
    from odesim import store

    resume, json, quiet = given.get("resume", False), given["json"], given["quiet"]
    with store.claimed(store.folder_of(request, given["out"])):
        target = store.prepare(request, given["out"], overwrite=given["overwrite"], resume=resume)
        if target.stored is not None:
            runs = target.stored.stages or (target.stored,)
            made = [run.trajectory for run in runs]
            return report(made, target.folder, json=json, quiet=quiet, note="already finished")
        trajectories, seconds, refused = _compute(request, target.folder, job, label, resume, quiet)
        if refused is not None:  # the name of the finished part, so that `--resume` does not take it for the whole run
            request = dataclasses.replace(request, cases=request.cases[: len(trajectories)])
        draw = None if given["no_figures"] else draw_pictures
        if len(getattr(request, "cases", ())) > 1:
            store.save_stages(trajectories, request, target.folder, {"solve": seconds}, draw)
        else:
            store.save(trajectories[0], request, target.folder, {"solve": seconds}, draw)
        note = f"{time.perf_counter() - started:.1f} s in all"
        if refused is not None:
            report(trajectories, target.folder, json=json, quiet=quiet, note=note)
            kept = f"the stages before it are stored: --from {target.folder} continues from there"
            raise type(refused)(f"{str(refused).rstrip('.')}; {kept}", trajectories)
        return report(trajectories, target.folder, json=json, quiet=quiet, note=note)


def draw_pictures(trajectory: "Trajectory", folder: Path) -> None:
    """Draw the pictures of a trajectory into a folder; the drawing library is imported here, when a run is done."""
    from odesim.show import plot

    plot.draw(trajectory, folder)


def _compute(
    request: Any, folder: Path, job: "Callable[[Any, Any], list[Trajectory]]", label: str, resume: bool, quiet: bool
) -> tuple["list[Trajectory]", float, "Interrupted | Unfinished | None"]:
    """Run the job. Return the trajectories, the seconds, and the reason if not all stages were run.

    Raises `Interrupted` if the user stopped it.
    """
    from odesim.ask.progress import Progress
    from odesim.errors import Interrupted, Unfinished
    from odesim.store import Checkpoint

    checkpoint = Checkpoint(folder, request.digest)
    if resume:
        checkpoint.read()  # refuse the checkpoint of another request before anything is computed
    started, refused = time.perf_counter(), None
    with Progress(label, quiet=quiet) as progress:
        try:
            trajectories = job(progress, checkpoint)
        except (Interrupted, Unfinished) as error:  # what was finished before it is kept
            trajectories, refused = error.finished, error
        except KeyboardInterrupt:
            trajectories = None
    if trajectories is None or trajectories[-1].outcome.kind == "interrupted":
        kept = f"; the same command with --resume continues from {checkpoint.path}" if checkpoint.path.exists() else ""
        raise Interrupted(f"interrupted; no result was written{kept}.")
    return trajectories, time.perf_counter() - started, refused


def show_request(case: Any, given: "Mapping[str, Any]") -> int:
    """Print what would be computed, and the folder it would be written to."""
    from odesim import store
    from odesim.cli.output import print_json, print_pairs

    folder = store.folder_of(case, given["out"])
    if given["json"]:
        print_json({"folder": str(folder), "digest": case.digest, "request": case.request()})
    else:
        print(f"would write {folder}")
        print_pairs(case.request())
    return 0


def report(trajectories: "Sequence[Trajectory]", folder: Path, *, json: bool, quiet: bool, note: str = "") -> int:
    """Print a run: outcome, headline numbers of every stage, folder; return the exit code of the outcome."""
    import sys

    from odesim.cli.output import print_json, print_pairs

    outcome = trajectories[-1].outcome
    if outcome.kind == "failed":
        print(f"odesim: {outcome.reason.rstrip('.')}; the run up to there is in {folder}.", file=sys.stderr)
    for trajectory in trajectories:
        if "diverged" in trajectory.summary:
            print(f"odesim: {trajectory.summary['diverged']}.", file=sys.stderr)
    if json:
        summaries = {trajectory.origin.stage: trajectory.summary for trajectory in trajectories}
        content: dict[str, Any] = {
            "folder": str(folder),
            "outcome": {"kind": outcome.kind, "time": outcome.time, "reason": outcome.reason},
            "summary": trajectories[0].summary if len(trajectories) == 1 else summaries,
        }
        print_json(content)
    elif quiet:
        print(folder)
    else:
        for trajectory in trajectories:
            origin, end = trajectory.origin, trajectory.outcome
            said = f"{origin.name} {origin.stage} ({origin.tier}): {end.kind} at time {end.time:.6g}"
            print(f"{said} (clock: {trajectory.clock})")
            if end.reason and end.kind == "stopped":
                print(f"  {end.reason}")
            print_pairs(trajectory.summary)
        print(f"run folder {folder}" + (f" ({note})" if note else ""))
    return outcome.exit_code
