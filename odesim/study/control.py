"""Optimal schedules of the step, the decay or the noise: least final value, or least time to a level.

There are three steps. First constants are scanned, because the error as a function of a constant step may have two
minima, and a bounded search may find the wrong one. Then a piecewise linear schedule on N knots is optimised from the
best constant by L-BFGS-B on log h, or by SLSQP with a constraint, and with exact gradients through the Runge-Kutta
rule. Last, forward-backward sweeps u <- u + r (u* - u) with u* = argmin p . F(y, u) find the optimum in continuous time
(Pontryagin), which shows the cost of the restriction to knots.

Optimal steps are often large, and a fixed grid then becomes unstable. Therefore the grid is refined until the value
changes by less than `SETTLED`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.errors import NumericalError
from odesim.study.controlled_flow import ControlledFlow

COARSEST, FINEST = 400, 25_600
"""Number of steps of the Runge-Kutta rule over the horizon, at the beginning and at most."""
SETTLED = 1e-6
"""Relative change of the value on a grid twice as fine, below which the grid is fine enough."""
CONSTANTS = 60
"""Number of constants that are tried, half of them with equal ratios."""
SWEEPS = 400
"""Largest number of forward-backward sweeps."""
STATIONARY = 1e-7
"""Change of u by a sweep, in units of the upper bound, at which it is stationary."""
MOST = 600
"""Largest number of iterations of an optimiser."""
LARGE = 1e3
"""Logarithm that replaces a value that is not finite."""


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule u(t), linear between `time` (n,), with `value` (n,), and the quantity along it.

    `quantity` (m,) belongs to the times `course` (m,), and `result` is the final value or the hitting time.
    """

    time: np.ndarray
    value: np.ndarray
    course: np.ndarray
    quantity: np.ndarray
    result: float


@dataclasses.dataclass(frozen=True, eq=False)
class Optimum:
    """The best schedule on knots, with the best constant, the greedy schedule and the optimum in continuous time.

    `alignment` (m,) is cos(p, grad h) at the times `aligned` (m,); `stationarity` the largest change of u by the last
    sweep, in units of the upper bound. `polished` is None without sweeps.
    """

    knots: Schedule
    constant: Schedule
    greedy: Schedule | None
    polished: Schedule | None
    stationarity: float
    alignment: np.ndarray
    aligned: np.ndarray
    evaluations: int
    steps: int


@dataclasses.dataclass(frozen=True)
class Task:
    """Objective: the value of h at `until`, or the time at which h passes `level` (`sign` "<=" or ">=").

    `budget` bounds the integral of the schedule.
    """

    until: float
    knots: int
    sign: str | None = None
    level: float = 0.0
    budget: float | None = None


def grid(until: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `steps` equal steps up to a time, and their ends and midpoints (2 steps + 1,)."""
    return np.full(steps, until / steps), np.linspace(0.0, until, 2 * steps + 1)


def hats(knots: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the matrix (times, knots) of linear interpolation."""
    return np.array([np.interp(times, knots, e) for e in np.eye(len(knots))]).T


def constants(bounds: tuple[float, float], most: float | None = None) -> np.ndarray:
    """Return the constants that are scanned, up to `most`."""
    low, high = bounds
    high = high if most is None else min(high, most)
    even = np.linspace(low, high, CONSTANTS // 2 + 1)[1:]
    return np.unique(np.concatenate([even, low + (high - low) * np.geomspace(1e-4, 1.0, CONSTANTS // 2)]))


def along(flow: ControlledFlow, until: float, steps: int, times: np.ndarray, values: np.ndarray) -> Schedule:
    """Return a schedule with the quantity along it, on a grid of equal steps."""
    lengths, fine = grid(until, steps)
    u = np.interp(fine, times, values)
    states = flow.states(lengths, u)
    quantity = np.asarray(flow.values(states, u[::2]))
    return Schedule(times, values, fine[::2], quantity, float(quantity[-1]))


def best_constant(flow: ControlledFlow, task: Task) -> tuple[float, int]:
    """Return the constant with the least final value, and the number of steps of a fine enough grid."""
    from scipy.optimize import minimize_scalar

    steps = -(-COARSEST // task.knots) * task.knots
    tried = constants(flow.bounds, None if task.budget is None else task.budget / task.until)

    def value(u: float, steps: int) -> float:
        end = along(flow, task.until, steps, np.array([0.0, task.until]), np.array([u, u])).result
        return end if np.isfinite(end) else np.inf

    while True:
        results = np.array([value(u, steps) for u in tried])
        if not np.isfinite(results).any():
            raise NumericalError(
                "no constant between the bounds gives a finite value; give a smaller upper bound by --between"
            )
        k = int(np.argmin(results))
        if steps >= FINEST or abs(value(tried[k], 2 * steps) - results[k]) <= SETTLED * abs(results[k]):
            break
        steps *= 2
    ends = tried[max(k - 1, 0)], tried[min(k + 1, len(tried) - 1)]
    found = minimize_scalar(value, bounds=ends, args=(steps,), method="bounded", options={"xatol": 1e-9 * ends[1]})
    return (float(found.x) if found.fun <= results[k] else float(tried[k])), steps


def least_value(flow: ControlledFlow, task: Task, tell: Callable[[float, float], object]) -> Optimum:
    """The schedule with the least final value."""
    constant, steps = best_constant(flow, task)
    tell(0.2, 1.0)
    knots = np.linspace(0.0, task.until, task.knots + 1)
    values, evaluations = np.full(knots.size, constant), 0
    positive = along(flow, task.until, steps, knots, values).result > 0
    while True:
        values, count = _on_knots(flow, task, knots, values, steps, positive)
        evaluations += count
        here, finer = (along(flow, task.until, n, knots, values).result for n in (steps, 2 * steps))
        if abs(finer - here) <= SETTLED * abs(finer) or 2 * steps > FINEST:
            break
        steps *= 2
    if not np.isfinite(finer) or abs(finer - here) > 1e-3 * abs(finer):
        raise NumericalError(
            "the finest integration grid is too coarse for the best schedule; give a smaller upper bound by --between"
        )
    tell(0.7, 1.0)
    best = along(flow, task.until, steps, knots, values)
    flat = along(flow, task.until, steps, knots, np.full(knots.size, constant))
    polished, stationarity, alignment, aligned = _polish(flow, best, steps, task.budget is None)
    quick = greedy(flow, task.until, steps) if task.budget is None else None
    return Optimum(best, flat, quick, polished, stationarity, alignment, aligned, evaluations, steps)


def _on_knots(
    flow: ControlledFlow, task: Task, knots: np.ndarray, start: np.ndarray, steps: int, positive: bool
) -> tuple[np.ndarray, int]:
    """Return values at knots by L-BFGS-B, or by SLSQP with a budget, and the number of gradient evaluations."""
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    lengths, fine = grid(task.until, steps)
    weights = jnp.asarray(hats(knots, fine))

    @jax.jit
    def program(u: Any) -> Any:
        def final(u: Any) -> Any:
            values = weights @ u
            end = flow.value(flow.follow(lengths, values)[-1], values[-1])
            return jnp.log(end) if positive else end

        return jax.value_and_grad(final)(u)

    count = 0

    def objective(u: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        value, slope = program(u)
        slope = np.asarray(slope, float)
        if not np.isfinite(value) or not np.isfinite(slope).all():
            return LARGE, np.zeros_like(u)
        return float(value), slope

    bounds = [flow.bounds] * knots.size
    if task.budget is None:
        options: dict[str, Any] = {"maxiter": MOST, "maxfun": 5 * MOST, "ftol": 1e-13, "gtol": 1e-10, "maxcor": 30}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    else:
        shares, budget = integral_weights(knots), task.budget
        spent = {"type": "ineq", "fun": lambda u: budget - shares @ u, "jac": lambda u: -shares}
        options = {"maxiter": MOST, "ftol": 1e-13}
        found = minimize(
            objective, start, jac=True, method="SLSQP", bounds=bounds, constraints=[spent], options=options
        )
    return np.clip(found.x, *flow.bounds), count


def integral_weights(knots: np.ndarray) -> np.ndarray:
    """Return the weights w of the integral w . u of a schedule that is linear between knots.

    >>> integral_weights(np.array([0.0, 1.0, 3.0]))
    array([0.5, 1.5, 1. ])
    """
    gaps = np.diff(knots)
    return (np.concatenate([gaps, [0.0]]) + np.concatenate([[0.0], gaps])) / 2


def greedy(flow: ControlledFlow, until: float, steps: int, sign: float = 1.0) -> Schedule:
    """Return the schedule that lowers `sign` h as fast as possible at every moment."""
    lengths, fine = grid(until, steps)
    states, u = (np.asarray(values) for values in flow.greedy(lengths, sign))
    quantity = np.asarray(flow.values(states, u))
    return Schedule(fine[::2], u, fine[::2], quantity, float(quantity[-1]))


def graded(until: float, steps: int) -> np.ndarray:
    """Return a grid that is equal over the horizon, with ratios near 0, where the step falls fastest."""
    first = min(1e-3, until / steps)
    near = np.geomspace(first, until, steps // 2)
    return np.unique(np.concatenate([np.linspace(0.0, until, steps + 1), near]).round(12))


def _polish(
    flow: ControlledFlow, best: Schedule, steps: int, free: bool
) -> tuple[Schedule | None, float, np.ndarray, np.ndarray]:
    """The optimum in continuous time by sweeps from the best knots, its stationarity, and the alignment.

    Without sweeps (with a budget, or if F is not a quadratic polynomial) the alignment is that of the knots.
    """
    times = graded(float(best.time[-1]), 2 * steps)
    lengths, u = np.diff(times), np.interp(times, best.time, best.value)
    value, states, costates, least = flow.sweep(lengths, u)
    if not free or not flow.quadratic:
        return None, float("nan"), flow.alignment(np.asarray(states), np.asarray(costates), u), times
    share, change = 0.5, np.inf
    for _ in range(SWEEPS):
        move = np.asarray(least) - u
        change = float(np.abs(move).max()) / flow.bounds[1]
        if change <= STATIONARY or share < 1e-3:
            break
        tried = u + share * move
        after = flow.sweep(lengths, tried)
        if not float(after[0]) <= float(value) * (1 + 1e-13):
            share /= 2  # the sweep went too far, because the value must decrease
            continue
        u, (value, states, costates, least) = tried, after
    quantity = np.asarray(flow.values(states, u))
    polished = Schedule(times, u, times, quantity, float(value))
    return polished, change, flow.alignment(np.asarray(states), np.asarray(costates), u), times
