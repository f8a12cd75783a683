"""The model of every stage of `pmoe` by its parameters: one output, or one per class."""

from collections.abc import Callable

from derivations.bags import BagModel
from derivations.pmoe import model
from derivations.pmoe.classes import model as several
from derivations.pmoe.parameters import Parameters


def of_stage(name: str) -> Callable[[Parameters], BagModel]:
    """The model called `name` in either file, as a function of the parameters."""

    def found(parameters: Parameters) -> BagModel:
        return getattr(several if parameters.softmax else model, name)

    return found


experts, joint, routers = (of_stage(name) for name in ("EXPERTS", "JOINT", "ROUTER"))
