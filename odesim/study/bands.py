"""Bands of SGD around its mean path: Gaussian while the dynamics is linear, a mixture of Gaussians after a saddle.

A quantity R of the state has the centre R(theta) + eps (g.m + tr(H Sigma)/2) and the variance eps g.Sigma g, with g =
dR/dtheta and H its second derivatives. If R is nonlinear within the spread of the state, its band is that of draws of
the state. If the flow is nonlinear, the spread is split along its growing directions, and every part has its own flow.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from odesim.errors import NumericalError
from odesim.flow.problem import Problem
from odesim.sgd.increments import Increments
from odesim.study import fluctuations, linearisation
from odesim.study.escape import effective_start, sobol_normals
from odesim.study.fluctuations import Fluctuations, Noise
from odesim.study.local_dynamics import Clock, Local
from odesim.study.quantities import Quantity

BENT = 0.1
"""Nonlinearity of a quantity, relative to its standard deviation, above which its band is that of draws of the
state.
"""
SPLIT = 0.2
"""Nonlinearity of the flow within 1.5 standard deviations, relative to its linear change, above which the spread is
split.
"""
GROWTH = 3.0
"""Growth of a change of the start from which a nonlinear flow is split."""
ONE, SEVERAL = 33, 6
"""Number of parts along one growing direction, and along several as a power of two."""
DRAWN = 9
"""Number of draws of a state, as a power of two."""
COARSE = 1e-2
"""Accuracy of J and D along the parts of a mixture, whose spread is mainly between the parts."""


@dataclasses.dataclass(frozen=True)
class Band:
    """Band of a quantity at times (T,): its value on the mean path, its centre, standard deviation, and quantiles.

    `bent` (T,) is |tr(H Sigma)| eps/(2 sd), the nonlinearity of the quantity within its spread.
    """

    quantity: Quantity
    flow: np.ndarray
    centre: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bent: np.ndarray


@dataclasses.dataclass(frozen=True)
class Setting:
    """Setting of SGD: its flow from the start, the increments and the clock of a step, and Sigma at the start.

    `coarse` are increments at fewer points, for the parts of a mixture; `shifted` is True if b is exact, so that a
    shift of order 1/d is meaningful.
    """

    problem: Problem
    increments: Increments
    coarse: Increments
    clock: Clock
    start: np.ndarray
    shifted: bool


def split_time(setting: Setting, course: Fluctuations) -> int | None:
    """Return the first saved time at which the flow is nonlinear and a direction grows; None if the flow stays
    linear.
    """
    for k in range(1, len(course.time)):
        grown = np.linalg.svd(course.growth[k], compute_uv=False)[0]
        if grown >= GROWTH and bend(setting, course, k) >= SPLIT:
            return max(k - 1, 1)
    return None


def bend(setting: Setting, course: Fluctuations, k: int) -> float:
    """Return the nonlinearity of b within 1.5 standard deviations along the widest direction of the state.

    The largest of |b(+) + b(-) - 2 b| and |(b(+) - b(-)) - 2 (b(+/2) - b(-/2))|, relative to |b(+) - b(-)|.
    """
    sizes, vectors = np.linalg.eigh(course.sigma[k])
    move = 1.5 * np.sqrt(max(course.eps * sizes[-1], 0.0)) * vectors[:, -1]
    local_problem, y = setting.problem.onward(course.states[k])
    slope, t = linearisation.compiled(local_problem), float(course.time[k])
    ahead, behind = slope(t, y + move), slope(t, y - move)
    half = slope(t, y + move / 2) - slope(t, y - move / 2)
    straight = np.linalg.norm(ahead - behind)
    if not np.isfinite(straight):
        return np.inf
    odd, even = np.linalg.norm(ahead - behind - 2 * half), np.linalg.norm(ahead + behind - 2 * slope(t, y))
    return float(max(odd, even) / straight) if straight > 0 else 0.0


def split(
    setting: Setting, course: Fluctuations, k: int, times: np.ndarray, seed: int = 0
) -> tuple[list[Fluctuations], int]:
    """Return the paths of equally probable parts from saved time k on, at later `times`, and the number of directions.

    The state at k is theta + eps m with the covariance eps Sigma. It is split along the directions that grow; Every
    part keeps Sigma in the other directions. The later noise along the growing directions is added to the split
    (`odesim.study.escape.effective_start`) and removed from the noise of the parts while they grow, because a part
    whose spread grows exponentially would not stay Gaussian.
    """
    law = effective_start(course)
    if law is None:
        raise NumericalError("no direction grows along the flow, but the flow is not linear within the spread of SGD")
    grown = course.growth[k] @ law.directions
    wide, sizes, _ = np.linalg.svd(grown @ np.linalg.cholesky(law.covariance), full_matrices=False)
    count = len(sizes)
    sigma = course.sigma[k]
    inner = np.linalg.eigh(wide.T @ sigma @ wide)[0]
    across = np.eye(len(sigma)) - wide @ wide.T
    across_sigma = across @ sigma @ across
    centre = course.states[k] + course.eps * course.shift[k]
    widths = np.maximum(sizes, np.sqrt(np.maximum(inner[::-1], 0.0)))
    noise = functools.partial(without_growth, count=count, rate=max(float(course.rates_at(k)[0]), 1e-300))
    parts: list[Fluctuations] = []
    draws = _parts(count, seed)
    for z in draws:
        start = centre + wide @ (np.sqrt(course.eps) * widths * z)
        if is_state(setting, start):
            parts.append(_follow(setting, course, k, (start, across_sigma), times, noise))
    if len(parts) < len(draws) / 2:
        raise NumericalError(
            f"at time {course.time[k]:g} more than half of the states within the spread of SGD are not Gram "
            "matrices; d is too small for bands"
        )
    return parts, count


def without_growth(node: Local, count: int, rate: float) -> np.ndarray:
    """Return D without its part along growing directions: P D P^T, P = I - sum_k w_k r_k l_k^T.

    r_k and l_k are the right and left eigenvectors of the `count` largest eigenvalues of J, and w_k falls from 1 to 0
    as the eigenvalue falls from `rate` to 0, when a part leaves the saddle.
    """
    values, right = np.linalg.eig(node.jacobian)
    order = np.argsort(-values.real)[:count]
    shares = np.clip(values[order].real / rate, 0.0, 1.0)
    if not shares.any():
        return node.covariance
    left = np.linalg.pinv(right)[order]
    projector = np.eye(len(values)) - ((right[:, order] * shares) @ left).real
    return projector @ node.covariance @ projector.T


def _parts(count: int, seed: int) -> np.ndarray:
    """Standard normal places of the parts (N, count): equally probable ones, or Sobol points."""
    from scipy.special import ndtri

    if count == 1:
        return ndtri((np.arange(ONE) + 0.5) / ONE)[:, None]
    return sobol_normals(count, SEVERAL, seed)


def _follow(
    setting: Setting, course: Fluctuations, k: int, start: tuple[np.ndarray, np.ndarray], times: np.ndarray,
    noise: Noise,
) -> Fluctuations:  # fmt: skip
    """The flow of one part from a state and its Sigma, with its own fluctuations, at `times` of the run."""
    problem, since = setting.problem, float(course.time[k])
    past = dataclasses.replace(problem.past, time=problem.past.time + since)
    initial = dataclasses.replace(problem.initial, state=problem.equations.unpack(start[0]))
    part_problem = dataclasses.replace(problem, initial=initial, past=past)
    since_then = np.concatenate([[0.0], times - since])
    return fluctuations.solve(
        part_problem,
        setting.coarse,
        setting.clock,
        since_then,
        start=start[1],
        accuracy=COARSE,
        shifted=False,
        noise=noise,
    )


def is_state(setting: Setting, y: np.ndarray) -> bool:
    """Return True if vectors have these overlaps: the Gram matrix of the model is positive semidefinite."""
    state = setting.problem.equations.unpack(y)
    gram = setting.increments.model.place(dataclasses.replace(setting.problem.initial, state=state))
    least_eigenvalues = np.linalg.eigvalsh(gram)[..., 0]
    return bool((least_eigenvalues >= -1e-9 * np.abs(gram).max()).all())


def band(
    setting: Setting, course: Fluctuations, quantity: Quantity, level: float, parts: Sequence[Fluctuations] = (),
    split_at: int | None = None,
) -> Band:  # fmt: skip
    """Return the band of a quantity at the times of a course; after `split_at` it is that of the `parts`."""
    last = len(course.time) if split_at is None else split_at + 1
    rows = [_gaussian(setting, course, k, quantity, level) for k in range(last)]
    flow = [quantity.value(y) for y in course.states]
    columns = np.array(rows)
    if parts:
        columns = np.concatenate([columns, _mixture(parts, quantity, level)])
    centre, deviation, low, high, bent = columns.T
    return Band(quantity, np.array(flow), centre, deviation, low, high, bent)


def _gaussian(
    setting: Setting, course: Fluctuations, k: int, quantity: Quantity, level: float
) -> tuple[float, float, float, float, float]:
    """Centre, standard deviation, low, high and `bent` at one time."""
    from scipy.special import ndtri

    y, eps = course.states[k], course.eps
    value, g = quantity.value(y), quantity.gradient(y)
    deviation = float(np.sqrt(max(eps * g @ course.sigma[k] @ g, 0.0)))
    curved = eps * quantity.curvature(y, course.sigma[k]) / 2
    centre = value + eps * float(g @ course.shift[k]) + curved
    bent = abs(curved) / deviation if deviation > 0 else (np.inf if abs(curved) > 0 else 0.0)
    if bent <= BENT:
        reach = ndtri((1 + level) / 2) * deviation
        return centre, deviation, centre - reach, centre + reach, bent
    values = _drawn(setting, course, k, quantity)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(np.mean(values)), float(np.std(values)), float(low), float(high), bent


def _drawn(setting: Setting, course: Fluctuations, k: int, quantity: Quantity) -> np.ndarray:
    """Values of a quantity at Gaussian draws of the state that are Gram matrices."""
    sizes, vectors = np.linalg.eigh(course.sigma[k])
    positive = sizes > 1e-12 * sizes[-1]
    normals = sobol_normals(int(positive.sum()), DRAWN, k)
    centre = course.states[k] + course.eps * course.shift[k]
    states = centre + (normals * np.sqrt(course.eps * sizes[positive])) @ vectors[:, positive].T
    good = [y for y in states if is_state(setting, y)]
    if len(good) < len(states) / 4:
        raise NumericalError(
            f"at time {course.time[k]:g} most states within the spread of SGD are not Gram matrices: d is too "
            "small for bands"
        )
    return np.array([quantity.value(y) for y in good])


def _mixture(parts: Sequence[Fluctuations], quantity: Quantity, level: float) -> np.ndarray:
    """Rows (centre, standard deviation, low, high, bent) at the times of the parts after their start."""
    means, deviations = [], []
    for course in parts:
        gradients = [quantity.gradient(y) for y in course.states[1:]]
        means.append([quantity.value(y) for y in course.states[1:]])
        deviations.append([
            np.sqrt(max(course.eps * g @ sigma @ g, 0.0)) for g, sigma in zip(gradients, course.sigma[1:], strict=True)
        ])  # fmt: skip
    mean, deviation = np.array(means).T, np.array(deviations).T
    centre = mean.mean(1)
    spread = np.sqrt((deviation**2).mean(1) + mean.var(1))
    quantiles = np.array([mixture_quantiles(m, s, level) for m, s in zip(mean, deviation, strict=True)])
    return np.column_stack([centre, spread, quantiles, np.zeros(len(centre))])


def mixture_quantiles(means: np.ndarray, deviations: np.ndarray, level: float) -> tuple[float, float]:
    """Return the quantiles (1 -+ level)/2 of a mixture of Gaussians of equal weight.

    >>> low, high = mixture_quantiles(np.zeros(3), np.ones(3), 0.9)
    >>> round(low, 6), round(high, 6)
    (-1.644854, 1.644854)
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr

    widths = np.maximum(deviations, 1e-12 * max(float(np.abs(means).max(initial=0.0)), 1e-300))

    def below(p: float) -> Callable[[float], float]:
        return lambda x: float(ndtr((x - means) / widths).mean() - p)

    low, high = float((means - 9 * widths).min()), float((means + 9 * widths).max())
    ends: Any = [brentq(below(p), low, high) for p in ((1 - level) / 2, (1 + level) / 2)]
    return float(ends[0]), float(ends[1])
