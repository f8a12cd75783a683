"""Components of runs with their replicas, at the saved times or at others."""

import numpy as np

from odesim.errors import UsageError
from odesim.request.trajectory import Trajectory, Variable


def with_replicas(variable: Variable) -> np.ndarray:
    """Return the values of a component with a leading axis of replicas, of length one for a flow."""
    return variable.values if "seed" in variable.dims else variable.values[None]


def on_times(run: Trajectory, name: str, times: np.ndarray) -> tuple[np.ndarray, float]:
    """Return a component at other times (replica, time, ...) by cubic splines, and a bound on their error.

    Raises `UsageError` for a run with too few times.
    """
    values = with_replicas(run.state[name])
    if run.time.size == times.size and np.allclose(run.time, times, rtol=1e-9, atol=1e-12):
        return values, 0.0
    from scipy.interpolate import CubicSpline

    if run.time.size < 8:
        raise UsageError(f"the first run has only {run.time.size} saved times, too few for an interpolation")
    fine = CubicSpline(run.time, values, axis=1)(times)
    coarse = CubicSpline(run.time[::2], values[:, ::2], axis=1)(np.minimum(times, run.time[::2][-1]))
    # Halving the spacing of a cubic spline divides its error by about 16, so the difference is 15/16 of the error.
    return fine, float(np.abs(fine - coarse).max() / 15)
