"""The command `odesim bands`."""

from typing import Annotated, Any

import typer

from odesim.cli.options import (
    CASE,
    DRAWN,
    DRY,
    FOLDER,
    FRESH,
    SAID,
    SAVED,
    Batch,
    Measures,
    Parameters,
    StepSize,
    SystemName,
    takes,
)
from odesim.cli.options import of as of_groups

Level = Annotated[str, typer.Option("--level", metavar="P", help="Probability of the bands.")]


@takes(CASE, SAVED, FRESH, FOLDER, DRAWN, DRY, SAID)
def bands(
    system: SystemName,
    parameter: Parameters = None,
    of: Measures = None,
    level: Level = "0.9",
    step_size: StepSize = None,
    batch: Batch = None,
    **given: Any,
) -> int:
    """Compute bands of SGD around the flow at a given dimension, and laws of hitting times, without a simulation."""
    from odesim.machine import device

    device.set_threads(given["threads"])
    from odesim.ask import sgd
    from odesim.cli.answer import answer
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import bands as study

    options = of_groups(given, CASE, SAVED, FRESH)
    if options["save_points"] is None and options["save_at"] is None:
        options["save_points"] = "101"
    assignments = parse_assignments(parameter or [])
    simulation = sgd.request(system, assignments, method="compressed", step_size=step_size, batch=batch, **options)
    measures = of or []
    question = study.question(simulation, level=level, of=measures)
    return answer(
        question, lambda progress: study.answer(simulation, level=level, of=measures, progress=progress),
        f"bands of {simulation.name}", given,
    )  # fmt: skip
