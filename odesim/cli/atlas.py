"""The command `odesim atlas`."""

from typing import Annotated, Any

import typer

from odesim.cli.options import DRAWN, DRY, FOLDER, SAID, Config, Parameters, Preset, Seed, SystemName, takes

Over = Annotated[
    str | None, typer.Option("--over", metavar="NAME=A..B", help="Follow the points over a parameter, e.g. step=0..6.")
]
Map = Annotated[
    str | None,
    typer.Option("--map", metavar="NAME=A..B", help="Follow the bifurcations over a second parameter too."),
]
Starts = Annotated[int, typer.Option("--starts", metavar="N", min=1, help="Number of random starts of the search.")]
OneStage = Annotated[str | None, typer.Option("--stage", metavar="NAME", help="The stage [default: the first].")]


@takes(FOLDER, DRAWN, DRY, SAID)
def atlas(
    system: SystemName,
    parameter: Parameters = None,
    over: Over = None,
    map: Map = None,
    starts: Starts = 400,
    preset: Preset = None,
    config: Config = None,
    seed: Seed = None,
    stage: OneStage = None,
    **given: Any,
) -> int:
    """Find all stationary points of a declared model: loss, stability, symmetry, and bifurcations over a parameter."""
    from odesim.machine.device import set_threads

    set_threads(given["threads"])
    from odesim.cli.answer import answer
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import atlas as study

    ranges, second = study.read_range(over, "over"), study.read_range(map, "map")
    case = Case.build(system, parse_assignments(parameter or []), preset=preset, config=config, seed=seed, stage=stage)
    return answer(
        study.question(case, ranges, second, starts),
        lambda progress: study.atlas(case, over=ranges, map=second, starts=starts),
        f"searching stationary points of {case.name}",
        given,
    )
