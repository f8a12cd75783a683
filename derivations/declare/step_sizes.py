"""SGD steps of a declared model: their size, batch and time, by limit."""

import dataclasses
from typing import Any

from derivations.contract import UsageError
from derivations.declare import batches, schedules
from derivations.declare.momentum import require_step


def tick(parameters: Any, step_size: float) -> float:
    """The time of one SGD step: 1/d in the online limit, 1 for giant steps, else the step size."""
    limit = parameters.declaration.limit
    return {"online": 1.0 / parameters.d, "batch": 1.0}.get(limit, step_size)


def usual(parameters: Any) -> tuple[float, int | None]:
    """The default step size and batch of SGD: eta/d or the step, and the declared batch (none for "inf")."""
    online = parameters.declaration.limit == "online"
    step = 1.0 if parameters.step is None else parameters.step  # a schedule is the factor of a step of 1/d
    return (step / parameters.d if online else step), batches.usual(parameters)


def stepped(parameters: Any, step_size: float, explicit: frozenset[str]) -> Any:
    """The parameters that follow from a step size: eta = step size x d in the online limit, or the giant step.

    Raises `UsageError` if `step` was also given with another value.
    """
    require_step(parameters, step_size)
    limit = parameters.declaration.limit
    if limit == "flow":
        return parameters
    eta = step_size * parameters.d if limit == "online" else step_size
    if parameters.step is None:
        if abs(eta - 1.0) > 1e-12:
            text = next(schedule.text for schedule in schedules.active(parameters) if schedule.name == "step")
            raise UsageError(f"--step-size is a constant, but step is {text!r}: replace it by -p step={eta:g}")
        return parameters
    if abs(eta - parameters.step) <= 1e-12 * eta:
        return parameters
    if "step" in explicit:
        location = (
            f"in d = {parameters.d} is step = {eta:g} of the online limit" if limit == "online" else "is the step"
        )
        raise UsageError(
            f"--step-size {step_size:g} {location}, but -p step={parameters.step:g} was given: give one of the two"
        )
    return dataclasses.replace(parameters, step=eta)
