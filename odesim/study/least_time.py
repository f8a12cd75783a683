"""Least time to a level: schedules u(t/T) with the time T among the unknowns, under h(T) = c, by SLSQP."""

from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.errors import NumericalError, UsageError
from odesim.study import control
from odesim.study.control import Optimum, Schedule, Task
from odesim.study.controlled_flow import ControlledFlow


def least_time(flow: ControlledFlow, task: Task, tell: Callable[[float, float], object]) -> Optimum:
    """Return the schedule with the least time to the level of a task.

    Raises `UsageError` for a level that no constant reaches within the horizon, `NumericalError` if the optimiser does
    not reach the level.
    """
    constant, flat_time, steps = _best_constant(flow, task)
    tell(0.3, 1.0)
    values, time, count = np.full(task.knots + 1, constant), flat_time, 0
    while True:
        values, time, gradients = _on_knots(flow, task, values, time, steps)
        count += gradients
        if _error(flow, task, values, time, 2 * steps) <= control.SETTLED or 2 * steps > control.FINEST:
            break
        steps *= 2
    tell(0.8, 1.0)
    knots = np.linspace(0.0, time, values.size)
    best = _timed(control.along(flow, time, steps, knots, values), time)
    ends = np.array([0.0, flat_time])
    flat = _timed(control.along(flow, flat_time, steps, ends, np.full(2, constant)), flat_time)
    u = np.interp(best.course, knots, values)
    _, states, costates, _ = flow.sweep(np.diff(best.course), u)
    alignment = flow.alignment(np.asarray(states), np.asarray(costates), u)
    greedy = _greedy(flow, task, steps) if task.budget is None else None
    return Optimum(best, flat, greedy, None, float("nan"), alignment, best.course, count, steps)


def _error(flow: ControlledFlow, task: Task, values: np.ndarray, time: float, steps: int) -> float:
    """Return the relative error of a least time, estimated on a finer grid."""
    run = control.along(flow, time, steps, np.linspace(0.0, time, values.size), values)
    speed = (run.quantity[-1] - run.quantity[-2]) / (run.course[-1] - run.course[-2])
    return float(abs(run.result - task.level) / (abs(speed) * time)) if speed else np.inf


def _timed(schedule: Schedule, time: float) -> Schedule:
    """Return a schedule whose result is its duration."""
    return Schedule(schedule.time, schedule.value, schedule.course, schedule.quantity, time)


def first_passage(task: Task, course: np.ndarray, quantity: np.ndarray) -> float:
    """Return the first time at which a quantity on a grid passes the level of a task, infinite if it does not."""
    from scipy.interpolate import CubicSpline

    past = quantity >= task.level if task.sign == ">=" else quantity <= task.level
    if not past.any():
        return np.inf
    k = int(np.argmax(past))
    if k == 0:
        return 0.0
    window = slice(max(k - 4, 0), k + 4)
    roots = CubicSpline(course[window], quantity[window]).solve(task.level, extrapolate=False)
    crossings = roots[(roots >= course[k - 1]) & (roots <= course[k])]
    return float(crossings[0]) if crossings.size else float(course[k])


def _best_constant(flow: ControlledFlow, task: Task) -> tuple[float, float, int]:
    """The constant that reaches the level first, its time, and the steps of a grid that resolves it."""
    from scipy.optimize import minimize_scalar

    steps = -(-2 * control.COARSEST // task.knots) * task.knots

    def time(u: float, steps: int) -> float:
        pair = np.array([u, u])
        run = control.along(flow, task.until, steps, np.array([0.0, task.until]), pair)
        passage = first_passage(task, run.course, run.quantity)
        return np.inf if task.budget is not None and u * passage > task.budget else passage

    tried = control.constants(flow.bounds)
    times = np.array([time(u, steps) for u in tried])
    k = int(np.argmin(times))
    if not np.isfinite(times[k]):
        raise UsageError(
            f"no constant between the bounds reaches the level {task.level:g} until t = {task.until:g}; give a longer "
            "--until"
        )
    if times[k] == 0.0:
        raise UsageError(f"the level {task.level:g} is reached at the start")
    while steps < control.FINEST and abs(time(tried[k], 2 * steps) - times[k]) > control.SETTLED * times[k]:
        steps *= 2
        times[k] = time(tried[k], steps)
    ends = tried[max(k - 1, 0)], tried[min(k + 1, len(tried) - 1)]
    passage = minimize_scalar(time, bounds=ends, args=(steps,), method="bounded", options={"xatol": 1e-7 * ends[1]})
    if passage.fun > times[k]:
        return float(tried[k]), float(times[k]), steps
    return float(passage.x), float(passage.fun), steps


def _on_knots(
    flow: ControlledFlow, task: Task, start: np.ndarray, time: float, steps: int
) -> tuple[np.ndarray, float, int]:
    """Values at knots, the least time, and the number of gradients that were taken, by SLSQP."""
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    size = start.size
    lengths, fine = control.grid(1.0, steps)
    knots = np.linspace(0.0, 1.0, size)
    weights = jnp.asarray(control.hats(knots, fine))
    scale = max(abs(task.level), 1e-12)

    @jax.jit
    def program(x: Any) -> Any:
        def end(x: Any) -> Any:
            u = weights @ x[1:]
            # Scaled time: the steps are those of [0, 1] times T.
            return (flow.value(flow.follow(lengths * x[0], u)[-1], u[-1]) - task.level) / scale

        return jax.value_and_grad(end)(x)

    count = 0

    def gap(x: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return np.array([float(program(x)[0])])

    constraints: list[dict[str, Any]] = [
        {"type": "eq", "fun": gap, "jac": lambda x: np.asarray(program(x)[1], float)[None]}
    ]
    if task.budget is not None:
        budget = task.budget
        shares = control.integral_weights(knots)
        constraints.append({
            "type": "ineq", "fun": lambda x: budget - x[0] * (shares @ x[1:]),
            "jac": lambda x: -np.concatenate([[shares @ x[1:]], x[0] * shares]),
        })  # fmt: skip
    first = np.concatenate([[time], start])
    direction = np.eye(size + 1)[0]
    minimum = minimize(
        lambda x: (x[0] / time, direction / time), first, jac=True, method="SLSQP", constraints=constraints,
        bounds=[(0.05 * time, 2 * time)] + [flow.bounds] * size, options={"maxiter": control.MOST, "ftol": 1e-13},
    )  # fmt: skip
    if abs(float(program(minimum.x)[0])) > 1e-7:
        raise NumericalError(f"the optimiser did not reach the level {task.level:g} ({minimum.message})")
    return np.asarray(minimum.x[1:]), float(minimum.x[0]), count


def _greedy(flow: ControlledFlow, task: Task, steps: int) -> Schedule:
    """Return the schedule that moves h towards the level as fast as possible at every moment; infinite if it does not
    get there.
    """
    run = control.greedy(flow, task.until, 2 * steps, -1.0 if task.sign == ">=" else 1.0)
    time = first_passage(task, run.course, run.quantity)
    if not np.isfinite(time):
        return _timed(run, time)
    last = int(np.searchsorted(run.course, time)) + 1
    return Schedule(run.time[:last], run.value[:last], run.course[:last], run.quantity[:last], time)
