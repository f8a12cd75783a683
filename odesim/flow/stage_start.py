"""Changes that happen once, when a stage begins."""

from derivations.contract import Dynamics, Initial, load
from odesim.machine import streams
from odesim.request.case import Case


def begun(case: Case, initial: Initial, replica: int = 0) -> Initial:
    """Return the initial condition of a stage after the changes at its beginning, drawn for a `replica`.

    A run that continues within the stage, or starts from its stored states, has already made these changes.
    """
    stage = case.system.stage(case.stage)
    if not isinstance(stage, Dynamics) or not stage.begin:
        return initial
    number = [one.name for one in case.system.stages].index(stage.name)
    return load(stage.begin)(initial, streams.generator(case.seed, "begin", number, replica))
