"""Outputs of the network of a run on given samples."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import System, UsageError, load
from odesim.request.case import find_system
from odesim.request.parse import parse_parameters
from odesim.request.trajectory import Trajectory, Variable

if TYPE_CHECKING:
    from odesim.store import Run

NEAR = 1e-9
"""Relative tolerance within which a time counts as a saved time."""


def predict(run: "Trajectory | Run", inputs: Mapping[str, Any], time: float | None = None) -> dict[str, Variable]:
    """Return the outputs f of a run's network at a saved time; with labels `y` (N,) also the margins y f.

    Every returned array has a last axis "sample" of length N.  Samples are given as:

    - pmoe: `index` (N, n), numbers of patterns (o1 is 0, o2 is 1, .., then q_1, ..), or their `counts` (N, P);
    - chen: `X` (N, P, 2 K), patches in the coordinates of the signals v_1..v_K, c_1..c_K;
    - pruning: `tokens` (N, n), numbers of patterns (o1 is 0, o2 is 1, q_i is i + 1).

    For a simulation, the first axis, "seed", runs over the replicas.  Raises `UsageError` for a system whose network
    has no output on samples, for a time that was not saved, and for samples that do not fit.

    >>> import odesim
    >>> run = odesim.integrate("pmoe", mode="cnn", n=3, p=1, m=20, d=5, until=50.0, save_points=3)
    >>> found = odesim.predict(run, {"index": [[0, 2, 2], [2, 1, 2]], "y": [1, -1]})
    >>> found["margin"].dims, bool((found["margin"] > 0).all())
    (('sample',), True)
    """
    trajectory = run if isinstance(run, Trajectory) else getattr(run, "trajectory", None)
    if not isinstance(trajectory, Trajectory):
        raise UsageError(f"predict needs a trajectory or a stored run, but got {type(run).__name__}")
    system = trajectory.origin.required()
    if not system.predict:
        able = [name for name in _systems() if find_system(name).predict]
        raise UsageError(f"system {system.name} cannot evaluate its network on given samples; {', '.join(able)} can")
    parameters = _parameters(system, trajectory)
    answer, k = load(system.predict), _saved(trajectory, time)
    samples = {str(name): np.asarray(values) for name, values in inputs.items()}
    fixed = {name: v.values for name, v in trajectory.extras.items()}
    state = trajectory.state
    if not any(v.dims[0] == "seed" for v in state.values()):
        by_name = answer(parameters, {**{n: v.values[k] for n, v in state.items()}, **fixed}, samples)
        return {name: Variable(dims, values, text) for name, (dims, values, text) in by_name.items()}
    replicas = len(next(iter(state.values())).values)
    answers = [
        answer(parameters, {**{n: v.values[r, k] for n, v in state.items()}, **fixed}, samples) for r in range(replicas)
    ]
    return {
        name: Variable(("seed", *dims), np.array([answered[name][1] for answered in answers]), text)
        for name, (dims, _, text) in answers[0].items()
    }


def _systems() -> list[str]:
    import derivations

    return derivations.names()


def _parameters(system: System, trajectory: Trajectory) -> Any:
    return system.parameters(**parse_parameters(system.parameters, trajectory.origin.parameters))


def _saved(trajectory: Trajectory, time: float | None) -> int:
    """The index of a saved time."""
    times = trajectory.time
    if time is None:
        return len(times) - 1
    k = int(np.abs(times - time).argmin())
    if not abs(times[k] - time) <= NEAR * max(abs(float(times[-1])), 1e-300):
        raise UsageError(f"time {time:g} was not saved; the nearest saved time is {times[k]:g}")
    return k
