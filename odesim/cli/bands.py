"""The command `odesim bands`."""

from typing import Annotated, Any

import typer

from odesim.cli.options import (
    DRY,
    FOLDER,
    FRESH,
    SAID,
    Batch,
    Config,
    InitialFile,
    NoFigures,
    Parameters,
    Preset,
    SaveAt,
    SavePoints,
    Seed,
    StageName,
    StepSize,
    SystemName,
    Threads,
    Until,
    takes,
)

Level = Annotated[str, typer.Option("--level", metavar="P", help="Probability of the bands.")]
Of = Annotated[
    list[str] | None,
    typer.Option("--of", metavar="MEASURE", help="'final R' or 'first time R >= c'; repeatable."),
]


@takes(FRESH, FOLDER, DRY, SAID)
def bands(
    system: SystemName,
    parameter: Parameters = None,
    of: Of = None,
    level: Level = "0.9",
    step_size: StepSize = None,
    batch: Batch = None,
    preset: Preset = None,
    config: Config = None,
    initial: InitialFile = None,
    seed: Seed = None,
    stage: StageName = None,
    until: Until = None,
    save_points: SavePoints = None,
    save_at: SaveAt = None,
    no_figures: NoFigures = False,
    threads: Threads = None,
    **given: Any,
) -> int:
    """Tell where SGD of a given dimension is around the flow, and when it passes a level, without a simulation."""
    from odesim.machine import device

    device.set_threads(threads)
    from odesim.ask import sgd
    from odesim.cli.answer import answer
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import bands as study

    simulation = sgd.request(
        system, parse_assignments(parameter or []), method="compressed", step_size=step_size, batch=batch,
        fresh_initial=given["fresh_initial"], preset=preset, config=config, initial=initial, stage=stage, seed=seed,
        until=until, save_points="101" if save_points is None and save_at is None else save_points, save_at=save_at,
    )  # fmt: skip
    measures = of or []
    question = study.question(simulation, level=level, of=measures)
    return answer(
        question, lambda progress: study.answer(simulation, level=level, of=measures, progress=progress),
        f"bands of {simulation.name}", {**given, "no_figures": no_figures},
    )  # fmt: skip
