"""Linear dynamics of SGD's order parameters at a state: mean change in a step, its covariance, its derivative."""

import dataclasses

import numpy as np

from derivations.contract import Initial, ScalarModel
from odesim.errors import UsageError
from odesim.flow.problem import Problem
from odesim.machine.device import in_double
from odesim.sgd.increments import LARGE, Increments
from odesim.study import linearisation, rebuild

LEAST = 1e-10
"""Smallest step that represents the limit. The rounding of the state is 1e-6 of the change."""


HELD = 1e-12
"""Part of the largest variance, and of the largest rate, that counts as rounding."""


@dataclasses.dataclass(frozen=True)
class Clock:
    """Step of SGD: the dimension, the step size, the batch, and the time eps of a step.

    In the limit d -> infinity (online SGD) eps = 1/d and the step size times d stays fixed.  For a gradient flow eps is
    the step size h, and the limit is h -> 0 at fixed d.
    """

    d: float
    step_size: float
    batch: int
    eps: float
    online: bool

    @property
    def limit(self) -> "Clock":
        """Return the same clock near its limit: terms of order eps vanish, and a step still exceeds rounding."""
        factor = min(LARGE, max(1.0, self.eps / LEAST))
        nearer = dataclasses.replace(self, step_size=self.step_size / factor, eps=self.eps / factor)
        return dataclasses.replace(nearer, d=self.d * factor) if self.online else nearer


@dataclasses.dataclass(frozen=True)
class Local:
    """Linear dynamics at a state y (P,): b (P,), J (P, P), D (P, P), b_1 (P,) and the kurtosis of X (P,).

    `bias` is the largest difference of the mean increment from b, in standard errors of as many random points.
    """

    y: np.ndarray
    slope: np.ndarray
    jacobian: np.ndarray
    covariance: np.ndarray
    excess: np.ndarray
    kurtosis: np.ndarray
    bias: float = 0.0

    @property
    def held(self) -> np.ndarray:
        """Mask (P,) of entries that are constant, in noise and mean, such as norms on the sphere."""
        variance = np.diag(self.covariance)
        scale = max(float(np.abs(self.slope).max(initial=0.0)), float(np.sqrt(variance.max(initial=0.0))))
        return (variance <= HELD * variance.max(initial=0.0)) & (np.abs(self.slope) <= HELD * scale)


class Map:
    """Map from packed raw Gram matrix and numbers to the flat state, with its Jacobian at a state.

    The state of a declared model is a part of the Gram matrix: `matrix` (P, ..) is this linear map, computed at the
    start, or None if the state is not a linear function (as liao's directions of vectors).
    """

    def __init__(self, problem: Problem, increments: Increments) -> None:
        self.problem, self.increments = problem, increments
        size = problem.start.size
        self.places = rebuild.places(problem.equations, size)
        self.size = size
        packed = increments.packed(problem.initial)
        first, second = np.random.default_rng(0).uniform(0.01, 0.1, (2, packed.size)) * packed
        corners = self(np.array([packed + first + second, packed + first, packed + second, packed]))
        bent = np.abs(corners[0] - corners[1] - corners[2] + corners[3]).max(initial=0.0)
        straight = bent <= 1e-12 * np.abs(corners).max(initial=0.0)
        self.matrix = self._differences(packed) if straight else None

    def __call__(self, packed: np.ndarray) -> np.ndarray:
        """Return flat states (N, P) for packed arrays (N, ..); a clock, which is not an order parameter, is 0."""
        model = self.increments.model
        if not isinstance(model, ScalarModel):  # which reads Gram matrices that are not packed
            n = round(packed.shape[1] ** 0.5)
            packed = packed.reshape(len(packed), n, n)
        observed = model.observe(self.increments.parameters, packed)
        flat = np.zeros((len(packed), self.size))
        for name, place in self.places.items():
            if name == self.problem.smooth.clock:
                continue
            if name not in observed:
                tier = self.problem.equations.about.name
                raise UsageError(
                    f"there are no bands for tier {tier}, because its component {name} does not depend on the "
                    "weights alone; choose a tier whose state consists of the order parameters"
                )
            values = np.asarray(observed[name][1]).reshape(len(packed), -1)
            chosen = place.reshape(-1) >= 0
            flat[:, place.reshape(-1)[chosen]] = values[:, chosen]
        return flat

    def jacobian(self, packed: np.ndarray) -> np.ndarray:
        """The derivative (P, len(packed)) of the map."""
        return self._differences(packed) if self.matrix is None else self.matrix

    def _differences(self, packed: np.ndarray) -> np.ndarray:
        """Return the derivative by central differences, which are exact for a linear map."""
        step = 1e-5 * max(1.0, float(np.abs(packed).max(initial=0.0)))
        moves = step * np.eye(packed.size)
        return ((self(packed + moves) - self(packed - moves)) / (2 * step)).T


@in_double
def local(
    problem: Problem, increments: Increments, clock: Clock, t: float, y: np.ndarray, shifted: bool = True,
    count: float | None = None, ahead: Map | None = None,
) -> Local:  # fmt: skip
    """Return the linear dynamics at a state, at time t after the start of the problem, or at step number `count`.

    J is by differences of the compiled flow, D and b_1 are means over the points of the increments. Without `shifted`
    b_1 is 0.
    """
    equations = problem.equations
    initial: Initial = dataclasses.replace(problem.initial, state=equations.unpack(y))
    slope = linearisation.compiled(problem)
    jacobian = linearisation.fast_jacobian(problem, t, y)
    ahead, packed = ahead or Map(problem, increments), increments.packed(initial)
    map_slopes = ahead.jacobian(packed)
    count = problem.clock(t) / clock.eps if count is None else count
    changes, mean = increments.of_step(initial, clock.d, clock.step_size, count)
    weights = increments.points.weights
    moves = changes @ map_slopes.T / clock.eps
    moves = moves - weights @ moves
    covariance = (moves * weights[:, None]).T @ moves / clock.batch
    variance = clock.batch * np.diag(covariance)
    fourth = weights @ (moves**2) ** 2
    # Constrained entries (a norm on the sphere) change by rounding only, which has a kurtosis too.
    moving = variance > HELD * variance.max(initial=0.0)
    kurtosis = np.divide(fourth, variance**2, out=np.zeros_like(fourth), where=moving)
    if not shifted:
        return Local(y, slope(t, y), jacobian, covariance, np.zeros_like(y), kurtosis)
    limit = clock.limit
    _, first = increments.of_step(initial, limit.d, limit.step_size, count)
    # The map is evaluated exactly: its curvature contributes the mean effect of a step to b_1.
    mean_motion = _mean_of(ahead, packed, changes, weights, mean) / clock.eps
    straight, slope_at_y = map_slopes @ first / limit.eps, slope(t, y)
    excess = (mean_motion - straight) / clock.eps
    scale = max(float(np.abs(slope_at_y).max(initial=0.0)), float(np.sqrt(variance.max(initial=0.0))))
    error = np.sqrt(weights**2 @ moves**2) + 1e-6 * scale
    off = np.abs(straight - np.where(_is_clock(problem, y), 0.0, slope_at_y))
    bias = float(np.divide(off, error, out=np.zeros_like(off), where=error > 0).max(initial=0.0))
    return Local(y, slope_at_y, jacobian, covariance, excess, kurtosis, bias)


def _is_clock(problem: Problem, y: np.ndarray) -> np.ndarray:
    """Return a mask (P,) of the clock, for which SGD has no increment."""
    clock = np.zeros(y.size, bool)
    if problem.smooth.clock:
        clock[problem.equations.layout.places(problem.smooth.clock, y.size)] = True
    return clock


def _mean_of(ahead: Map, packed: np.ndarray, changes: np.ndarray, weights: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Mean change of the flat state in one step: at the mean change, and the curvature of the map by the samples."""
    if ahead.matrix is not None:
        return ahead.matrix @ mean
    at_mean = weights @ changes
    straight = (ahead(packed[None] + mean) - ahead(packed[None]))[0]
    curved = weights @ ahead(packed + changes) - ahead(packed[None] + at_mean)[0]
    return straight + curved
