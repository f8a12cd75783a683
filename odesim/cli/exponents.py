"""The command `odesim exponents`."""

from typing import Any

from odesim.cli.options import DRAWN, DRY, FOLDER, SAID, Parameters, Preset, StageName, SystemName, takes


@takes(FOLDER, DRAWN, DRY, SAID)
def exponents(
    *,
    system: SystemName,
    parameter: Parameters = None,
    preset: Preset = None,
    stage: StageName = None,
    **given: Any,
) -> int:
    """Print the information, leap and generative exponents of a declared teacher, and the samples that SGD needs."""
    from odesim.machine import device

    device.set_threads(given["threads"])
    from odesim.cli.answer import answer
    from odesim.request.case import Case
    from odesim.request.parse import parse_assignments
    from odesim.study.answers import exponents as study

    case = Case.build(system, parse_assignments(parameter or []), preset=preset, stage=stage)
    return answer(study.question(case), lambda progress: study.answer(case), "expanding the teacher", given)
