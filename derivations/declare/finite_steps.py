"""The online limit of a flow at finite steps, which SGD follows in finite dimension."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from derivations.contract import System
from derivations.declare import schedules
from derivations.declare.system import system


def finite(parameters: Any, step_size: float, batch: int) -> tuple[System, Mapping[str, Any], float] | None:
    """Return the online limit at eta = step size x d for the training of a flow, with finite steps in place of the
    limit.

    SGD with step h in dimension d is the online limit at eta = h d: its clock of steps/d is slower by the factor eta.

    Returns:
        The system, its parameters by name that differ from those of the flow, and the time of the flow in a unit of
        its time. None for a model of another limit, of several stages, or with schedules.
    """
    declared = parameters.declaration
    if declared.limit != "flow" or declared.stages or schedules.active(parameters) or declared.memories:
        return None
    eta = step_size * parameters.d
    online = system(dataclasses.replace(declared, limit="online"))
    return online, {"step": eta, "batch": batch}, eta
