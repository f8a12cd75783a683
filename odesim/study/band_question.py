"""Preparation of a question about bands: the equations at the step size of SGD, the increments of a step, the start."""

import dataclasses
from typing import Any

import numpy as np

from derivations.contract import Initial, load
from odesim.errors import UsageError
from odesim.flow.problem import Problem, prepare
from odesim.request.case import Case
from odesim.request.saved_times import saved_times
from odesim.sgd import increments as steps
from odesim.sgd import simulation as sgd
from odesim.sgd.increments import Increments
from odesim.sgd.simulation import Simulation
from odesim.study.bands import Setting
from odesim.study.fresh_starts import fresh_start
from odesim.study.local_dynamics import Clock
from odesim.study.sample_points import known_best

COARSE_POINTS = 10
"""Number of Sobol points of the parts of a mixture, as a power of two."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """Prepared question about bands: the setting, the origin of the distribution of the start, and the clock of the
    user.

    For SGD of a gradient flow with steps of size h, the equations of the online limit at eta = h d are used if they
    exist, because they keep the size of the step. `scale` is then the time of the flow in a unit of their time, and
    `flow` is the flow itself. Otherwise `flow` is the problem of the setting, and `scale` is 1.
    """

    setting: Setting
    source: str
    scale: float
    flow: Problem


def times_of(simulation: Simulation) -> np.ndarray:
    """Return the times of the bands on the clock of the user: the requested ones and the start."""
    case = simulation.case
    if case.save_at is not None:
        return np.union1d([0.0], np.array(case.save_at))
    return np.asarray(saved_times(case, case.until, case.save_points), float)


def prepared(simulation: Simulation, power: int = steps.POINTS) -> Asked:
    """Return the equations, the increments at 2^power points and the start of a simulation.

    Raises `UsageError` for a model whose increments are not known by sample.
    """
    stage = simulation.system.dynamics(simulation.case.stage)
    if not stage.model:
        raise UsageError(f"stage {stage.name} of {simulation.system.name} has no finite-sample model, and no bands")
    steps.refuse(stage.truth(simulation.case.parameters))
    if simulation.changes:
        raise UsageError("there are no bands for a time-dependent batch: give one --batch")
    sgd.refuse_tier(simulation.case)
    flow = _problem(simulation)
    finite, scale = _finite(simulation)
    problem = flow if finite is None else _problem(finite)
    solved_simulation = simulation if finite is None else finite
    return Asked(*_setting(solved_simulation, problem, power), scale, flow)


def _problem(simulation: Simulation) -> Problem:
    """The flow of a simulation in numba, from the start of its first replica."""
    case = dataclasses.replace(simulation.case, backend="numba")
    initial: Initial = sgd.condition_of(dataclasses.replace(simulation, case=case))
    return prepare(case, initial)


def _finite(simulation: Simulation) -> tuple[Simulation | None, float]:
    """Return the same SGD with equations that keep the size of its steps, and the time of the stage in a unit of
    theirs.
    """
    case = simulation.case
    stage = case.system.dynamics(case.stage)
    finite = load(stage.finite)(case.parameters, simulation.step_size, simulation.batch) if stage.finite else None
    if finite is None:
        return None, 1.0
    system, changed_parameters, scale = finite
    parameters = {**case.by_name, **changed_parameters}
    finite_case = Case.build(system, parameters, initial=case.initial, seed=case.seed, until=case.until / scale)
    finite_simulation = Simulation.build(
        finite_case, method="compressed", batch=simulation.batch, fresh_initial=simulation.fresh_initial
    )
    return finite_simulation, scale


def _setting(simulation: Simulation, problem: Problem, power: int) -> tuple[Setting, str]:
    """Return the setting of a simulation with its equations, and the origin of the distribution of the start."""
    case = simulation.case
    stage = case.system.dynamics(case.stage)
    model: Any = stage.truth(case.parameters)
    d, eps = float(case.parameters.d), simulation.tick
    increments, width = known_best(
        lambda power, width: Increments(
            model, case.parameters, steps.points_of(model, case.parameters, power, width), float(simulation.batch)
        ),
        problem.initial, (d, simulation.step_size), power,
    )  # fmt: skip
    coarse_points = steps.points_of(model, case.parameters, COARSE_POINTS, width)
    coarse = dataclasses.replace(increments, points=coarse_points)
    online = stage.tick(case.parameters, 2 * simulation.step_size) == eps  # a longer step of a flow takes more time
    if online and stage.usual is not None and simulation.batch != (usual := stage.usual(case.parameters)[1]):
        raise UsageError(
            f"the equations of this model are those of the batch {usual}, but --batch {simulation.batch} was given: "
            f"give -p batch={simulation.batch}"
        )
    clock = Clock(d, simulation.step_size, simulation.batch, eps, online)
    sigma, source = np.zeros((problem.start.size,) * 2), "one start"
    if simulation.fresh_initial:
        mean, covariance, source = fresh_start(problem, increments, d)
        initial = dataclasses.replace(problem.initial, state=problem.equations.unpack(mean))
        problem, sigma = dataclasses.replace(problem, initial=initial), covariance / (d * eps)
    return Setting(problem, increments, coarse, clock, sigma, not problem.smooth.rough), source
