"""Changes that happen once, when a stage begins."""

from derivations.contract import Dynamics, Initial, load
from odesim.machine import streams
from odesim.request.case import Case


def begun(case: Case, initial: Initial, replica: int = 0) -> Initial:
    """The initial condition of a stage after what it changes when it begins, drawn for a `replica`.

    A run that goes on within the stage, or is made of its stored states, has this behind it.
    """
    stage = case.system.stage(case.stage)
    if not isinstance(stage, Dynamics) or not stage.begin:
        return initial
    number = [one.name for one in case.system.stages].index(stage.name)
    return load(stage.begin)(initial, streams.generator(case.seed, "begin", number, replica))
