"""Best schedule for a task: least final value (`control`), or least time to a level (`least_time`)."""

from collections.abc import Callable

from odesim.errors import UsageError
from odesim.study.control import Optimum, Task, least_value
from odesim.study.controlled_flow import ControlledFlow
from odesim.study.least_time import least_time


def optimise(flow: ControlledFlow, task: Task, progress: Callable[[float, float], object] | None = None) -> Optimum:
    """Return the best schedule of a flow for a task.

    Raises `UsageError` for a level that no constant reaches and a budget below the lower bound, `NumericalError` if no
    grid is fine enough.
    """
    tell = progress or (lambda done, total: None)
    low = flow.bounds[0]
    if task.budget is not None and task.budget <= low * task.until:
        raise UsageError(f"--budget must exceed the lower bound times the horizon, {low * task.until:g}")
    return least_value(flow, task, tell) if task.sign is None else least_time(flow, task, tell)
