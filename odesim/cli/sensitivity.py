"""The command `odesim sensitivity`."""

from typing import Annotated, Any

import typer

from odesim.cli.options import (
    DRY,
    FOLDER,
    SAID,
    Config,
    InitialFile,
    NoFigures,
    Parameters,
    Preset,
    Rtol,
    Seed,
    StageName,
    SystemName,
    Threads,
    Until,
    takes,
)

Of = Annotated[
    list[str] | None,
    typer.Option("--of", metavar="MEASURE", help="'final R' or 'first time R >= c'; repeatable."),
]
To = Annotated[
    str | None,
    typer.Option("--to", metavar="NAME,NAME,..", help="Parameters [default: all that have a derivative]."),
]


@takes(FOLDER, DRY, SAID)
def sensitivity(
    system: SystemName,
    parameter: Parameters = None,
    of: Of = None,
    to: To = None,
    preset: Preset = None,
    config: Config = None,
    initial: InitialFile = None,
    seed: Seed = None,
    stage: StageName = None,
    until: Until = None,
    rtol: Rtol = None,
    no_figures: NoFigures = False,
    threads: Threads = None,
    **given: Any,
) -> int:
    """Print the derivatives of final values and hitting times by parameters, the most important first."""
    from odesim.machine import device

    device.set_threads(threads)
    from odesim.cli.answer import answer
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import sensitivity as study

    case = Case.build(
        system, parse_assignments(parameter or []), preset=preset, config=config, initial=initial, seed=seed,
        stage=stage, until=until, rtol=rtol,
    )  # fmt: skip
    names = [name.strip() for name in (to or "").split(",") if name.strip()]
    measures = of or []
    return answer(
        study.question(case, measures, names), lambda progress: study.answer(case, measures, names),
        f"derivatives of {case.name}", {**given, "no_figures": no_figures},
    )  # fmt: skip
