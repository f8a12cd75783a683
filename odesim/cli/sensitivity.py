"""The command `odesim sensitivity`."""

from typing import Annotated, Any

import typer

from odesim.cli.options import CASE, DRAWN, DRY, FOLDER, SAID, Measures, Parameters, Rtol, SystemName, takes
from odesim.cli.options import of as of_groups

To = Annotated[
    str | None,
    typer.Option("--to", metavar="NAME,NAME,..", help="Parameters [default: all that have a derivative]."),
]


@takes(CASE, FOLDER, DRAWN, DRY, SAID)
def sensitivity(
    system: SystemName,
    parameter: Parameters = None,
    of: Measures = None,
    to: To = None,
    rtol: Rtol = None,
    **given: Any,
) -> int:
    """Print derivatives of final values and hitting times with respect to parameters, the most important first."""
    from odesim.machine import device

    device.set_threads(given["threads"])
    from odesim.cli.answer import answer
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import sensitivity as study

    case = Case.build(system, parse_assignments(parameter or []), rtol=rtol, **of_groups(given, CASE))
    names = [name.strip() for name in (to or "").split(",") if name.strip()]
    measures = of or []
    return answer(
        study.question(case, measures, names), lambda progress: study.answer(case, measures, names),
        f"derivatives of {case.name}", given,
    )  # fmt: skip
