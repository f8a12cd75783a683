"""The command `odesim optimise`."""

from typing import Annotated, Any

import typer

from odesim.cli.options import CASE, DRAWN, DRY, FOLDER, SAID, Group, Parameters, SystemName, of, takes

FLOW: Group = {name: option for name, option in CASE.items() if name != "stage"}
"""Without the stage: a model with several stages has no schedule of its own."""
Vary = Annotated[str, typer.Option("--vary", metavar="step|decay|noise", help="The parameter that gets a schedule.")]
Minimise = Annotated[
    str, typer.Option("--minimise", metavar="MEASURE", help="'final R', or 'first time R <= c' for the shortest time.")
]
Knots = Annotated[str, typer.Option("--knots", metavar="N", help="Number of linear pieces of the schedule.")]
Between = Annotated[
    str | None,
    typer.Option("--between", metavar="LOW,HIGH", help="Bounds [default: 0 and five times the present value]."),
]
Budget = Annotated[
    str | None, typer.Option("--budget", metavar="B", help="Upper bound of the schedule's integral [default: none].")
]


@takes(FLOW, FOLDER, DRAWN, DRY, SAID)
def optimise(
    system: SystemName,
    parameter: Parameters = None,
    vary: Vary = "step",
    minimise: Minimise = "final error",
    knots: Knots = "20",
    between: Between = None,
    budget: Budget = None,
    **given: Any,
) -> int:
    """Find the schedule of the step, decay or noise with the smallest final value or the shortest time to a level."""
    from odesim.machine import device

    device.set_threads(given["threads"])
    from odesim.cli.answer import answer
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import optimise as study

    case = Case.build(system, parse_assignments(parameter or []), **of(given, FLOW))
    asked = study.wish(case, vary, minimise, knots, between, budget)
    return answer(
        study.question(case, asked), lambda progress: study.answer(case, asked, progress),
        f"optimising {case.name}", given,
    )  # fmt: skip
