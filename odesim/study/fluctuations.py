"""Fluctuations of SGD around its mean path, of order 1/sqrt(d), without a simulation.

One step changes the order parameters theta by eps X, with eps = 1/d (or the step size h of a gradient flow) and time
eps per step.  With b = E X, D = Cov(X)/B and J = db/dtheta along the path theta' = b,

    Sigma = lim Var(theta)/eps,         Sigma' = J Sigma + Sigma J^T + D
    m = lim (E theta - theta_ode)/eps,  m' = J m + (1/2) sum_jk (d^2 b/dj dk) Sigma_jk + b_1 - (1/2) J b

where E[one step]/eps = b + eps b_1.  X comes from the model that SGD runs (`odesim.sgd.increments`), b and its
derivatives from the equations of the tier.
"""

import dataclasses
import itertools
from collections.abc import Callable

import numpy as np

from derivations.contract import Initial, Smooth
from odesim.errors import NumericalError, UsageError
from odesim.flow.problem import Problem
from odesim.flow.solve import follow
from odesim.machine.device import in_double
from odesim.sgd.increments import LARGE, Increments
from odesim.study import linearisation, rebuild

FIRST = 17
"""Nodes of a piece at first, at which J and D are evaluated; they are added where interpolation is not accurate."""
MOST = 513
"""Nodes of a piece at most."""
ACCURACY = 1e-4
"""Largest error of J and D by interpolation between nodes, relative to their largest entry so far."""
CURVED = 1e-3
"""Distance, in units of the size of the state, at which second differences of b are taken."""


@dataclasses.dataclass(frozen=True)
class Clock:
    """What a step of SGD is: the dimension, the step size, the batch, and the time eps of a step.

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
        """The same clock near its limit, where terms of order eps are gone."""
        if self.online:
            return dataclasses.replace(self, d=self.d * LARGE, step_size=self.step_size / LARGE, eps=self.eps / LARGE)
        return dataclasses.replace(self, step_size=self.step_size / LARGE, eps=self.eps / LARGE)


@dataclasses.dataclass(frozen=True)
class Local:
    """Linear dynamics at a state y (P,): b (P,), J (P, P), D (P, P), b_1 (P,) and the kurtosis of X (P,)."""

    y: np.ndarray
    slope: np.ndarray
    jacobian: np.ndarray
    covariance: np.ndarray
    excess: np.ndarray
    kurtosis: np.ndarray


@dataclasses.dataclass(frozen=True)
class Fluctuations:
    """Mean path and fluctuations at times (T,): states (T, P), Sigma (T, P, P), the shift m (T, P), and kurtosis (P,).

    `eps` is the time of a step: the variance of theta is eps Sigma, its mean is theta + eps m.  `growth` (T, P, P) is
    what a small change of the start becomes, and `slopes` (T, P), `jacobians` (T, P, P) are b and J on the path.
    """

    time: np.ndarray
    states: np.ndarray
    sigma: np.ndarray
    shift: np.ndarray
    growth: np.ndarray
    slopes: np.ndarray
    jacobians: np.ndarray
    kurtosis: np.ndarray
    eps: float
    nodes: int

    def rates_at(self, k: int) -> np.ndarray:
        """Real parts (P,) of the eigenvalues of J at a time, largest first."""
        return np.sort(np.linalg.eigvals(self.jacobians[k]).real)[::-1]

    def at(self, time: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return state, slope and Sigma at a time between the saved ones, by cubic interpolation."""
        from scipy.interpolate import CubicHermiteSpline, CubicSpline

        path = CubicHermiteSpline(self.time, self.states, self.slopes)
        size = self.states.shape[1]
        sigma = CubicSpline(self.time, self.sigma.reshape(len(self.time), -1))(time).reshape(size, size)
        return path(time), path(time, 1), sigma


class Map:
    """Map from packed raw Gram matrix and numbers to the flat state, with its Jacobian at a state."""

    def __init__(self, problem: Problem, increments: Increments) -> None:
        self.problem, self.increments = problem, increments
        size = problem.start.size
        self.places = rebuild.places(problem.equations, size)
        self.size = size

    def __call__(self, packed: np.ndarray) -> np.ndarray:
        """Flat states (N, P) of packed arrays (N, ..); a clock, which is no order parameter, is 0."""
        observed = self.increments.model.observe(self.increments.parameters, packed)
        flat = np.zeros((len(packed), self.size))
        for name, place in self.places.items():
            if name == self.problem.smooth.clock:
                continue
            if name not in observed:
                tier = self.problem.equations.about.name
                raise UsageError(
                    f"bands of tier {tier} are not derived: its component {name} is no function of the weights alone; "
                    "choose a tier that follows the order parameters themselves"
                )
            values = np.asarray(observed[name][1]).reshape(len(packed), -1)
            chosen = place.reshape(-1) >= 0
            flat[:, place.reshape(-1)[chosen]] = values[:, chosen]
        return flat

    def jacobian(self, packed: np.ndarray) -> np.ndarray:
        """The derivative (P, len(packed)) by central differences, exact where the map is linear."""
        step = 1e-5 * max(1.0, float(np.abs(packed).max(initial=0.0)))
        moves = step * np.eye(packed.size)
        return ((self(packed + moves) - self(packed - moves)) / (2 * step)).T


def local(problem: Problem, increments: Increments, clock: Clock, t: float, y: np.ndarray) -> Local:
    """Return the linear dynamics at a state, at time t of the clock of the run.

    J is by differences of the compiled flow, D and b_1 are means over the points of the increments.
    """
    equations = problem.equations
    initial: Initial = dataclasses.replace(problem.initial, state=equations.unpack(y))
    slope = linearisation.compiled(problem)
    jacobian = linearisation.fast_jacobian(problem, t, y)
    ahead, packed = Map(problem, increments), increments.packed(initial)
    turned = ahead.jacobian(packed)
    count = problem.clock(t) / clock.eps
    limit = clock.limit
    changes, mean = increments.of_step(initial, clock.d, clock.step_size, count)
    _, first = increments.of_step(initial, limit.d, limit.step_size, count)
    weights = increments.points.weights
    moves = changes @ turned.T / clock.eps
    moves = moves - weights @ moves
    covariance = (moves * weights[:, None]).T @ moves / clock.batch
    variance = clock.batch * np.diag(covariance)
    fourth = weights @ (moves**2) ** 2
    kurtosis = np.divide(fourth, variance**2, out=np.zeros_like(fourth), where=variance > 0)
    # The map is followed exactly: where it bends, what a step does to its mean is a part of b_1.
    moved = _mean_of(ahead, packed, changes, weights, mean) / clock.eps
    excess = (moved - turned @ first / limit.eps) / clock.eps
    return Local(y, slope(t, y), jacobian, covariance, excess, kurtosis)


def _mean_of(ahead: Map, packed: np.ndarray, changes: np.ndarray, weights: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Mean change of the flat state in one step: at the mean change, and the curvature of the map by the samples."""
    at_mean = weights @ changes
    straight = (ahead(packed[None] + mean) - ahead(packed[None]))[0]
    curved = weights @ ahead(packed + changes) - ahead(packed[None] + at_mean)[0]
    return straight + curved


def solve(
    problem: Problem, increments: Increments, clock: Clock, times: np.ndarray,
    start: np.ndarray | None = None, accuracy: float = ACCURACY,
) -> Fluctuations:  # fmt: skip
    """Return the mean path and the fluctuations at increasing times, the first of which is the start.

    Arguments:
        problem: The flow from its start.
        increments: Increments of one step of SGD.
        clock: Step of SGD.
        times: Times (T,), in the unit of the clock, from 0.
        start: Sigma at the start (P, P); 0 where SGD starts from the state itself.
        accuracy: Largest relative error of J and D by interpolation.

    Raises `UsageError` for equations that are no smooth flow, and `NumericalError` where the flow fails.
    """
    if not isinstance(problem.equations.advance, Smooth):
        raise UsageError(
            f"bands need a tier that is a smooth flow, but {problem.equations.about.name} is "
            f"{problem.equations.advance.kind}; choose another -p tier"
        )
    size = problem.start.size
    sigma, shift, growth = np.zeros((size, size)) if start is None else start, np.zeros(size), np.eye(size)
    parts, nodes = [], []
    for first, last in _pieces(problem, times):
        inside = times[(times >= first) & (times <= last)]
        path = Path.along(problem, increments, clock, (first, last), accuracy)
        wanted = np.union1d(inside, [first, last])
        part = path.integrate(sigma, shift, growth, wanted)
        sigma, shift, growth = (part[name][-1] for name in ("sigma", "shift", "growth"))
        keep = np.isin(wanted, inside)
        parts.append({"time": wanted[keep], **{name: values[keep] for name, values in part.items()}})
        nodes += path.nodes
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    _, where = np.unique(together["time"], return_index=True)
    kurtosis = np.max([node.kurtosis for node in nodes], axis=0)
    chosen = {name: values[where] for name, values in together.items()}
    return Fluctuations(**chosen, kurtosis=kurtosis, eps=clock.eps, nodes=len(nodes))


def _pieces(problem: Problem, times: np.ndarray) -> list[tuple[float, float]]:
    """The spans of time between the breaks of the equations, from the first of `times` to the last."""
    inner = [b for b in problem.smooth.breaks if times[0] < b - problem.past.time < times[-1]]
    ends = [float(times[0]), *(b - problem.past.time for b in inner), float(times[-1])]
    return list(itertools.pairwise(ends))


class Path:
    """Linear dynamics along a piece of the mean path, at nodes between which they are interpolated by cubic splines."""

    def __init__(self, problem: Problem, time: np.ndarray, nodes: list[Local]) -> None:
        from scipy.interpolate import CubicSpline

        self.problem, self.time, self.nodes = problem, time, nodes
        self.jacobian = CubicSpline(time, np.array([node.jacobian for node in nodes]))
        self.covariance = CubicSpline(time, np.array([node.covariance for node in nodes]))

    @classmethod
    def along(
        cls, problem: Problem, increments: Increments, clock: Clock, span: tuple[float, float], accuracy: float
    ) -> "Path":
        """Choose the nodes of a piece: equally spaced at first, halved where a spline misses the next ones."""
        evaluated: dict[float, Local] = {}
        time = np.linspace(*span, FIRST)
        while True:
            states, _ = states_along(problem, time)
            for t, y in zip(time, states, strict=True):
                if float(t) not in evaluated:
                    here, y = problem.onward(y)
                    evaluated[float(t)] = local(here, increments, clock, float(t), y)
            path = cls(problem, time, [evaluated[float(t)] for t in time])
            further = path.misses(accuracy)
            if not len(further) or len(time) >= MOST:
                return path
            time = np.union1d(time, further)

    def misses(self, accuracy: float) -> np.ndarray:
        """Times in the middle of intervals where a spline without every second node misses that node."""
        from scipy.interpolate import CubicSpline

        further: list[float] = []
        for values in ([node.jacobian for node in self.nodes], [node.covariance for node in self.nodes]):
            array = np.array(values).reshape(len(values), -1)
            coarse = CubicSpline(self.time[::2], array[::2])(self.time[1::2])
            scale = max(float(np.abs(array).max(initial=0.0)), 1e-300)
            wrong = np.flatnonzero(np.abs(coarse - array[1::2]).max(axis=1) > accuracy * scale)
            for k in 2 * wrong + 1:
                further += [float(self.time[k - 1 : k + 1].mean()), float(self.time[k : k + 2].mean())]
        return np.unique(further)

    def integrate(
        self, sigma: np.ndarray, shift: np.ndarray, growth: np.ndarray, times: np.ndarray
    ) -> dict[str, np.ndarray]:
        """Return states, Sigma, m, growth, b and J at times of the piece, from Sigma, m and growth at its beginning."""
        from scipy.interpolate import CubicSpline

        size = len(shift)

        def lyapunov(t: float, flat: np.ndarray) -> np.ndarray:
            sigma, growth = flat.reshape(2, size, size)
            jacobian = self.jacobian(t)
            moved = jacobian @ sigma
            return np.concatenate([(moved + moved.T + self.covariance(t)).ravel(), (jacobian @ growth).ravel()])

        union = np.union1d(times, self.time)
        both = _linear(lyapunov, np.concatenate([sigma.ravel(), growth.ravel()]), union).reshape(-1, 2, size, size)
        sigmas = (both[:, 0] + np.swapaxes(both[:, 0], 1, 2)) / 2
        at_nodes = sigmas[np.searchsorted(union, self.time)]
        force = [
            self.curvature(node, sigma, t) + node.excess - node.jacobian @ node.slope / 2
            for node, sigma, t in zip(self.nodes, at_nodes, self.time, strict=True)
        ]
        push = CubicSpline(self.time, np.array(force))
        shifts = _linear(lambda t, m: self.jacobian(t) @ m + push(t), shift, times)
        chosen = np.searchsorted(union, times)
        states, slopes = states_along(self.problem, times)
        return {
            "states": states, "sigma": sigmas[chosen], "shift": shifts, "growth": both[chosen, 1],
            "slopes": slopes(slice(None)), "jacobians": self.jacobian(times),
        }  # fmt: skip

    def curvature(self, node: Local, sigma: np.ndarray, t: float) -> np.ndarray:
        """(1/2) sum_jk (d^2 b/dj dk) Sigma_jk by second differences along the eigenvectors of Sigma."""
        sizes, vectors = np.linalg.eigh(sigma)
        here, y = self.problem.onward(node.y)
        slope = linearisation.compiled(here)
        step = CURVED * max(float(np.abs(y).max(initial=0.0)), 1e-300)
        total = np.zeros_like(y)
        for size, vector in zip(sizes, vectors.T, strict=True):
            if abs(size) > 1e-12 * np.abs(sizes).max(initial=0.0):
                second = slope(t, y + step * vector) + slope(t, y - step * vector) - 2 * node.slope
                total += size * second / (2 * step**2)
        return total


@in_double
def states_along(
    problem: Problem, times: np.ndarray, start: np.ndarray | None = None
) -> tuple[np.ndarray, Callable[[slice], np.ndarray]]:
    """Return the flat states (T, P) of the flow at times, and the function that gives b at a slice of them.

    `start` (P,) replaces the start.  Raises `NumericalError` where the flow does not reach the last time.
    """
    case = dataclasses.replace(problem.case, until=float(times[-1]), save_at=None)
    initial = problem.initial
    if start is not None:
        initial = dataclasses.replace(initial, state=problem.equations.unpack(start))
    problem = dataclasses.replace(problem, case=case, initial=initial)
    run = follow(problem, times)
    if run.outcome.kind != "completed":
        reason = run.outcome.reason or run.outcome.kind
        raise NumericalError(f"the flow ends at time {run.outcome.time:g}, before {times[-1]:g}: {reason}")
    states = rebuild.flat_states(problem.equations, run, problem.start.size)

    def slopes(chosen: slice) -> np.ndarray:
        pairs = zip(times[chosen], states[chosen], strict=True)
        return np.array([linearisation.compiled(problem.onward(y)[0])(float(t), y) for t, y in pairs])

    return states, slopes


def _linear(slope: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Solution (T, n) of a linear equation with smooth coefficients at increasing times, the first its start."""
    from scipy.integrate import solve_ivp

    if len(times) == 1:
        return start[None].copy()
    done = solve_ivp(slope, (times[0], times[-1]), start, method="DOP853", t_eval=times, rtol=1e-9, atol=1e-12)
    if not done.success:
        raise NumericalError(f"the equation of the fluctuations could not be integrated: {done.message}")
    return done.y.T
