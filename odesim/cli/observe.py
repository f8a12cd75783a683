"""The command `odesim observe`."""

import time
from typing import Annotated, Any

import typer

from odesim.cli.options import DRAWN, FOLDER, RESUMED, SAID, Parameters, SystemName, takes

Weights = Annotated[
    list[str],
    typer.Argument(
        metavar="WEIGHTS..",
        help="Snapshots of weights (time, unit, d) and `time` in an .npz file, or several files (.pt, .npz, .npy).",
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="ARRAY=SLOT",
        help="Name in the model for an array of the files; SLOT.T transposes it; repeatable.",
    ),
]
Times = Annotated[
    str | None, typer.Option("--times", metavar="T,T,..", help="Times of the snapshots, if the files have no `time`.")
]
OneStage = Annotated[str | None, typer.Option("--stage", metavar="NAME", help="The stage [default: the first].")]


@takes(FOLDER, RESUMED, DRAWN, SAID)
def observe(
    weights: Weights, system: SystemName, parameter: Parameters = None, stage: OneStage = None, map: Map = None,
    times: Times = None, **given: Any,
) -> int:  # fmt: skip
    """Measure the order parameters of weights trained elsewhere, and write a run folder that `compare` takes."""
    started = time.perf_counter()
    from odesim.machine.device import set_threads

    set_threads(given["threads"])
    from odesim.cli.run import execute
    from odesim.request.parse import parse_assignments, real_number
    from odesim.study.checkpoints import assignments
    from odesim.study.observation import Observation

    at = None if times is None else [real_number(word, "--times") for word in times.split(",")]
    wanted = Observation.build(
        system, weights[0] if len(weights) == 1 else weights, parse_assignments(parameter or []), stage=stage,
        names=assignments(map or []), times=at,
    )  # fmt: skip
    return execute(
        wanted, lambda progress, checkpoint: [wanted.trajectory()],
        f"observing {wanted.system.name}", started, given,
    )  # fmt: skip
