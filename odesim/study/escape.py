"""Distribution of the time at which a quantity first passes a level: escapes from a saddle, or a crossing of the mean
path.

Near a saddle the noise of the first steps determines the time of the escape. By the linear growth Phi(t), all noise up
to t is equivalent to a change of the start: with the singular vectors U, V and values S of Phi that grow,

    y = V^T delta ~ N(0, C),   C = S^-1 U^T Sigma(t) U S^-1  (converges while S grows),

and the hitting time is that of the flow from the effective start theta(0) + sqrt(eps) V y. With one growing direction,
every quantile needs one flow. If no direction grows, the time fluctuates like the quantity at the crossing, T ~ N(t*,
Var(R)/(dR/dt)^2).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from odesim.flow.problem import Problem
from odesim.study.fluctuations import Fluctuations, states_along
from odesim.study.quantities import Quantity

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Probabilities of the quantiles in the answer."""
GROWN = 1e4
"""Growth beyond which C is constant: later noise contributes 1/GROWN^2 of it."""
GROWING = 3.0
"""Growth from which a direction counts as growing."""
DRAWS = 7
"""Number of effective starts, as a power of two, if quantiles are those of a sample."""
SAVED = 401


@dataclasses.dataclass(frozen=True)
class EffectiveStart:
    """Gaussian law of the effective start: growing directions (P, k), covariance (k, k), and rates of growth (k,).

    The start is the mean start plus sqrt(eps) directions y with y ~ N(0, covariance).
    """

    directions: np.ndarray
    covariance: np.ndarray
    rates: np.ndarray


@dataclasses.dataclass(frozen=True)
class HittingTimes:
    """Quantiles of a hitting time at the probabilities `LEVELS`, infinite beyond the end of the run.

    `kind` is "escape" from a saddle or "crossing" of the mean path; `rate` is the rate at which the probability of not
    having escaped falls, 0 for a crossing; `directions` is the number of growing directions.
    """

    name: str
    sign: str
    level: float
    kind: str
    quantiles: np.ndarray
    rate: float
    directions: int
    mean_path: float


def effective_start(fluctuations: Fluctuations) -> EffectiveStart | None:
    """Return the distribution of the effective start; None if no direction grows by more than `GROWING`."""
    growth = fluctuations.growth
    sizes = np.array([np.linalg.svd(phi, compute_uv=False)[0] for phi in growth])
    past = np.flatnonzero(sizes >= GROWN)
    k = int(past[0]) if past.size else int(np.argmax(sizes))
    if not np.isfinite(growth[k]).all() or sizes[k] < GROWING or k == 0:
        return None
    left, values, right = np.linalg.svd(growth[k])
    unstable = int((fluctuations.rates_at(k) > 0).sum())
    count = max(1, min(unstable, int((values >= GROWING).sum())))
    pulled = left[:, :count] / values[:count]
    covariance = pulled.T @ fluctuations.sigma[k] @ pulled
    rates = np.sort(fluctuations.rates_at(k))[::-1][:count]
    return EffectiveStart(right[:count].T, (covariance + covariance.T) / 2, rates)


def hitting_times(
    problem: Problem, fluctuations: Fluctuations, quantity: Quantity, sign: str, level: float, seed: int = 0
) -> HittingTimes:
    """Return the distribution of the first time at which a quantity is at or past a level ("<=" or ">=")."""
    until = float(fluctuations.time[-1])
    upward = 1.0 if sign == ">=" else -1.0

    def time_from(start: np.ndarray) -> float:
        return first_time(problem, quantity, upward, level, start, until)

    mean_path = time_from(fluctuations.states[0])
    law = effective_start(fluctuations)
    start, root_eps = fluctuations.states[0], np.sqrt(fluctuations.eps)

    def told(kind: str, quantiles: np.ndarray, rate: float, count: int) -> HittingTimes:
        return HittingTimes(quantity.name, sign, level, kind, quantiles, rate, count, mean_path)

    if law is None:
        return told("crossing", _of_crossing(fluctuations, quantity, mean_path), 0.0, 0)
    spread = np.linalg.cholesky(law.covariance)
    if len(law.rates) == 1:
        direction = root_eps * law.directions[:, 0] * spread[0, 0]
        mirror_times = [time_from(start + direction * z) for z in (1.0, -1.0)]
        if _same(*mirror_times):
            return told("escape", _symmetric(time_from, start, direction), float(law.rates[0]), 1)
    draws = sobol_normals(len(law.rates), DRAWS, seed) @ (root_eps * law.directions @ spread).T
    times = [time_from(start + move) for move in draws]
    quantiles = np.quantile(np.array(times), LEVELS, method="higher")
    return told("escape", quantiles, float(law.rates.sum()), len(law.rates))


def _same(first: float, second: float) -> bool:
    """Return True if two times are those of mirror images."""
    return first == second or abs(first - second) < 1e-4 * max(abs(first), abs(second))


def _symmetric(time_from: Callable[[np.ndarray], float], start: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return quantiles of the time from start + z direction, z ~ N(0, 1), if z and -z have the same time, which falls
    with |z|.
    """
    from scipy.special import ndtri

    return np.array([time_from(start + direction * ndtri(1 - p / 2)) for p in LEVELS])


def sobol_normals(size: int, power: int, seed: int) -> np.ndarray:
    """Return 2^power scrambled Sobol points of `size` standard normal numbers (N, size)."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    unit = qmc.Sobol(size, rng=np.random.default_rng(seed)).random_base2(power)
    return ndtri(np.clip(unit, 1e-12, 1 - 1e-12))


def _of_crossing(fluctuations: Fluctuations, quantity: Quantity, time: float) -> np.ndarray:
    """Gaussian quantiles of a crossing time of the mean path, whose variance is Var(R)/(dR/dt)^2."""
    from scipy.special import ndtri

    if not np.isfinite(time):
        return np.full(len(LEVELS), np.inf)
    state, slope, sigma = fluctuations.at(time)
    gradient = quantity.gradient(state)
    speed = abs(float(gradient @ slope))
    deviation = float(np.sqrt(max(fluctuations.eps * gradient @ sigma @ gradient, 0.0)))
    return time + deviation / speed * ndtri(np.array(LEVELS))


def first_time(
    problem: Problem, quantity: Quantity, upward: float, level: float, start: np.ndarray, until: float
) -> float:
    """Return the first time at which upward (R - level) >= 0 on the flow from a start; infinite if never.

    The crossing between two saved states is that of a cubic with the values and slopes of R at both.
    """
    times = np.linspace(0.0, until, SAVED)
    states, slopes = states_along(problem, times, start)
    values = upward * (np.array([quantity.value(y) for y in states]) - level)
    crossed = np.flatnonzero(values >= 0)
    if not crossed.size:
        return float("inf")
    k = int(crossed[0])
    if k == 0:
        return 0.0
    from scipy.interpolate import CubicHermiteSpline
    from scipy.optimize import brentq

    ends = slice(k - 1, k + 1)
    speeds = [upward * float(quantity.gradient(y) @ f) for y, f in zip(states[ends], slopes(ends), strict=True)]
    cubic = CubicHermiteSpline(times[ends], values[ends], speeds)
    crossing: Any = brentq(cubic, times[k - 1], times[k])
    return float(crossing)
