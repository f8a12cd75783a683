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
    from odesim.request.case import Case
    from odesim.request.trajectory import Trajectory
    from odesim.sgd.simulation import Simulation


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
    from odesim.cli.run import execute, show_request
    from odesim.sgd import effort
    from odesim.sgd.simulation import condition_of, refuse_tier
    from odesim.sgd.simulation import simulate as run

    simulation = request(
        system, parameter, method, step_size, batch, seeds, device, precision, fresh_initial,
        population_loss=population_loss, preset=preset,
        config=config, initial=initial, seed=seed, stage=stage, until=until, save_points=save_points,
        backend=backend, rtol=rtol, atol=atol, solver=solver,
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


def request(
    system: str, parameter: list[str] | None, method: str, step_size: str | None, batch: str | None,
    seeds: str | None, device: str, precision: str, fresh_initial: bool, population_loss: bool = False, **options: Any,
) -> "Simulation":  # fmt: skip
    """The checked request for a simulation from the words of the command line."""
    from odesim.errors import UsageError
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments, real_number, whole_number
    from odesim.sgd.simulation import Simulation

    for name, value in (("--step-size", step_size), ("--batch", batch)):
        if value is None:
            raise UsageError(f"{name} is missing; for example --step-size 1e-3 --batch 256")
    return Simulation.build(
        Case.build(system, parse_assignments(parameter or []), **options),
        method=method,
        step_size=real_number(step_size, "--step-size"),
        batch=whole_number(batch, "--batch"),
        seeds=whole_number(seeds or 1, "--seeds"),
        device=device,
        precision=precision,
        fresh_initial=fresh_initial,
        population_loss=population_loss,
    )


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
    from odesim.cli.run import execute
    from odesim.errors import UsageError
    from odesim.request.case import find_system
    from odesim.study.comparison import Request
    from odesim.study.comparison import compare as against

    if runs:
        if len(runs) != 2 or system:
            raise UsageError("give two run folders, or --system with the options of a simulation, not both")
        pair = [store.load(folder) for folder in runs]
        parts = {"first": pair[0].manifest["digest"], "second": pair[1].manifest["digest"]}
        wanted = Request(find_system(pair[1].trajectory.origin.system), pair[1].trajectory.origin.seed, parts)

        def job(progress: Any, checkpoint: Any) -> "list[Trajectory]":
            return [against(pair[0].trajectory, pair[1].trajectory).trajectory()]
    else:
        if not system:
            raise UsageError("give --system with the options of a simulation, or two run folders")
        simulation = request(
            system, parameter, method, step_size, batch, seeds, device, precision, False, preset=preset, config=config,
            initial=initial, seed=seed, stage=stage, until=until, save_points=save_points, backend=backend,
        )  # fmt: skip
        given = {"rtol": rtol, "atol": atol, "solver": solver, "step": step}
        flow = {name: value for name, value in given.items() if value is not None}
        case = _flow_beside(simulation, flow)
        wanted = Request(simulation.system, simulation.seed, {"simulation": simulation.request(), "flow": flow})

        def job(progress: Any, checkpoint: Any) -> "list[Trajectory]":
            from odesim.flow.solve import solve
            from odesim.sgd.simulation import simulate as run

            second = run(simulation, progress, None, threads)
            return [against(solve(case, times=second.time), second).trajectory()]

    target = store.prepare(wanted, out, overwrite=overwrite)
    label = f"comparing runs of {wanted.system.name}"
    return execute(
        wanted, target, job, label, started, resume=False, figures=not no_figures, json=json, quiet=quiet
    )  # fmt: skip


def _flow_beside(simulation: "Simulation", flow: dict[str, Any]) -> "Case":
    """The case of the flow that a simulation is held against, with the options of a flow that were given.

    Raises `UsageError`, before anything is computed, for steps that do not meet the times at which SGD is saved.
    """
    import dataclasses

    from odesim.flow.recursion import plan
    from odesim.request.case import Case

    case = simulation.case
    parameters = {f.name: getattr(case.parameters, f.name) for f in dataclasses.fields(case.parameters)}
    if case.initial is not None:
        parameters = {name: value for name, value in parameters.items() if name in case.explicit}
    stride = case.system.stage(case.stage).stride
    if stride:  # a recursion takes the steps of the training it is held against
        parameters[stride] = simulation.tick
    again = Case.build(
        case.system, parameters, initial=case.initial, stage=case.stage, seed=case.seed, until=case.until,
        save_points=case.save_points, **flow,
    )  # fmt: skip
    if again.step is not None:
        plan(again, again.step, "--step", simulation.schedule * simulation.tick)
    return again
