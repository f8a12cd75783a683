"""The model of every stage of `pmoe` by its parameters: one output, or one per class."""

from collections.abc import Callable

from derivations.alphabet.frame import FrameModel
from derivations.pmoe import model
from derivations.pmoe.classes import model as several
from derivations.pmoe.parameters import Parameters


def of_stage(name: str) -> Callable[[Parameters], FrameModel]:
    """The model called `name` in either file, as a function of the parameters."""

    def found(parameters: Parameters) -> FrameModel:
        return getattr(several if parameters.softmax else model, name)

    return found


experts, joint, routers = (of_stage(name) for name in ("EXPERTS", "JOINT", "ROUTER"))
