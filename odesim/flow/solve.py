"""From a case to a trajectory: the problem, and the method for its equations."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from derivations.contract import Independent, Initial, Recursion, Smooth, Stepped
from odesim.errors import UsageError
from odesim.flow import independent, recursion, smooth, stepped
from odesim.flow.driver import Progress
from odesim.flow.problem import Past, Problem, prepare
from odesim.machine.device import in_double
from odesim.machine.memory import require_memory
from odesim.request.case import EULER, Case
from odesim.request.saved_times import with_start, without_start
from odesim.request.trajectory import Trajectory

if TYPE_CHECKING:
    from odesim.store import Checkpoint


@in_double
def solve(
    case: Case,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
    times: np.ndarray | None = None,
    initial: Initial | None = None,
    past: Past = Past(),
) -> Trajectory:
    """Integrate a case and return its trajectory; a numerical failure is its outcome, not an exception.

    States are saved at `times` (increasing, at least 0), by default those of the case; `initial` replaces the initial
    condition of the case, and with a `past` the clock continues from its end.

    Raises `UsageError` for options without a meaning here and for a stage without a flow, and `KeyboardInterrupt` after
    writing a checkpoint.
    """
    case.require_clock()
    problem = prepare(case, initial, past)
    if times is None and case.save_at is not None:
        times = np.array(case.save_at) - past.time
        if times[0] < 0:
            raise UsageError(f"--save-at begins at {case.save_at[0]:g}, but the continued run begins at {past.time:g}")
    states = case.save_points if times is None else len(times)
    require_memory(float(states) * problem.start.size, f"{states:.3g} saved states", "--save-points")
    return follow(problem, times, progress, checkpoint)


def follow(
    problem: Problem,
    times: np.ndarray | None = None,
    progress: Progress | None = None,
    checkpoint: "Checkpoint | None" = None,
) -> Trajectory:
    """Follow the equations of a problem to its horizon and return the trajectory, with the saved times of `solve`."""
    saved = None if times is None else with_start(times)
    trajectory = _way(problem)(problem, saved, progress, checkpoint)
    return trajectory if saved is times else without_start(trajectory)


def _way(problem: Problem) -> Callable[..., Trajectory]:
    """Return the method for these equations: their own stepping function, a map, blocks, or an integrator."""
    case = problem.case
    match problem.equations.advance:
        case Stepped():
            return stepped.solve
        case Recursion():
            return recursion.solve
        case _ if case.solver == EULER:
            return recursion.euler
        case Independent() if case.backend == "numba" and case.solver in (None, independent.SOLVER):
            return independent.solve
        case Smooth() | Independent():
            return smooth.solve
