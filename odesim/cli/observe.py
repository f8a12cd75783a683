"""The command `odesim observe`."""

import time
from typing import Annotated, Any

import typer

from odesim.cli.options import DRAWN, FOLDER, RESUMED, SAID, Parameters, SystemName, takes

Weights = Annotated[
    str,
    typer.Argument(metavar="WEIGHTS.npz", help="Snapshots of weights (time, unit, d), and `time` on the clock."),
]
OneStage = Annotated[str | None, typer.Option("--stage", metavar="NAME", help="Which stage [default: the first].")]


@takes(FOLDER, RESUMED, DRAWN, SAID)
def observe(
    weights: Weights, system: SystemName, parameter: Parameters = None, stage: OneStage = None, **given: Any
) -> int:
    """See weights that were trained elsewhere as order parameters, and leave a run folder that `compare` takes."""
    started = time.perf_counter()
    from odesim.machine.device import set_threads

    set_threads(given["threads"])
    from odesim.cli.run import execute
    from odesim.request.parse import parse_assignments
    from odesim.study.observation import Observation

    wanted = Observation.build(system, weights, parse_assignments(parameter or []), stage=stage)
    return execute(
        wanted, lambda progress, checkpoint: [wanted.trajectory()],
        f"observing {wanted.system.name}", started, given,
    )  # fmt: skip
