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

from derivations.contract import Independent, Smooth
from odesim.errors import NumericalError, UsageError
from odesim.flow.problem import Problem
from odesim.flow.solve import follow
from odesim.machine.device import in_double
from odesim.sgd.increments import Increments
from odesim.study import linearisation, rebuild
from odesim.study.local_dynamics import Clock, Local, Map, local

FIRST = 17
"""Number of nodes of a piece at the beginning, at which J and D are evaluated. Nodes are added if interpolation is not
accurate.
"""
MOST = 513
"""Largest number of nodes of a piece."""
ACCURACY = 1e-4
"""Largest error of J and D by interpolation between nodes, relative to their largest entry so far."""
SCATTER = {False: 1e-2, True: 0.3}
"""The same if the equations are means over random points, without and with kinks, because nodes cannot reduce this
scatter.
"""
CURVED = 1e-3
"""Distance, in units of the size of the state, at which second differences of b are taken."""


Measured = Callable[[Problem, float, np.ndarray, float], Local]
"""Function that returns the linear dynamics of a piece at a time and a state; the last argument is the end of the
piece.
"""
Noise = Callable[[Local], np.ndarray]
"""Function of the linear dynamics at a node that returns a covariance (P, P)."""


@dataclasses.dataclass(frozen=True)
class Fluctuations:
    """Mean path and fluctuations at times (T,): states (T, P), Sigma (T, P, P), the shift m (T, P), and kurtosis (P,).

    `eps` is the time of a step: the variance of theta is eps Sigma, its mean is theta + eps m. `growth` (T, P, P) is
    the linear growth of a small change of the start, and `slopes` (T, P), `jacobians` (T, P, P) are b and J on the
    path. `bias` is the largest `Local.bias`; if it exceeds a few standard errors, the tier is not the mean of SGD's
    steps.
    """

    time: np.ndarray
    states: np.ndarray
    sigma: np.ndarray
    shift: np.ndarray
    growth: np.ndarray
    slopes: np.ndarray
    jacobians: np.ndarray
    kurtosis: np.ndarray
    bias: float
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


@in_double
def solve(
    problem: Problem, increments: Increments, clock: Clock, times: np.ndarray,
    start: np.ndarray | None = None, accuracy: float = ACCURACY, shifted: bool = True,
    noise: Noise | None = None,
) -> Fluctuations:  # fmt: skip
    """Return the mean path and the fluctuations at increasing times, the first of which is the start.

    Arguments:
        problem: The flow from its start.
        increments: Increments of one step of SGD.
        clock: Step of SGD.
        times: Times (T,), in the unit of the clock, from 0.
        start: Sigma at the start (P, P); 0 if SGD starts from the state itself.
        accuracy: Largest relative error of J and D by interpolation.
        shifted: Compute the shift m; otherwise it is 0.
        noise: Replacement of D at a node of the path; by default D.

    Raises `UsageError` for equations that are not a smooth flow, and `NumericalError` if the flow fails.
    """
    if not isinstance(problem.equations.advance, Smooth | Independent):
        raise UsageError(
            f"bands need a tier that is a smooth flow, but {problem.equations.about.name} is "
            f"{problem.equations.advance.kind}; use another -p tier"
        )

    ahead = Map(problem, increments)

    def measured(piece: Problem, t: float, y: np.ndarray, last: float) -> Local:
        # At the end of a piece the values are those before the jump, with the number of the last step there.
        count = min(problem.clock(t), problem.clock(last) - clock.eps) / clock.eps
        node = local(piece, increments, clock, t, y, shifted, count, ahead)
        return node if noise is None else dataclasses.replace(node, covariance=noise(node))

    if problem.smooth.rough:
        accuracy = max(accuracy, SCATTER[problem.smooth.kinks])
    size = problem.start.size
    sigma, shift, growth = np.zeros((size, size)) if start is None else start, np.zeros(size), np.eye(size)
    parts, nodes = [], []
    for first, last in _pieces(problem, times):
        piece_times = times[(times >= first) & (times <= last)]
        path = Path.along(problem, measured, (first, last), accuracy, shifted)
        piece_grid = np.union1d(piece_times, [first, last])
        part = path.integrate(sigma, shift, growth, piece_grid)
        sigma, shift, growth = (part[name][-1] for name in ("sigma", "shift", "growth"))
        keep = np.isin(piece_grid, piece_times)
        parts.append({"time": piece_grid[keep], **{name: values[keep] for name, values in part.items()}})
        nodes += path.nodes
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    _, first_indices = np.unique(together["time"], return_index=True)
    kurtosis = np.max([node.kurtosis for node in nodes], axis=0)
    chosen = {name: values[first_indices] for name, values in together.items()}
    bias = max(node.bias for node in nodes)
    return Fluctuations(**chosen, kurtosis=kurtosis, bias=bias, eps=clock.eps, nodes=len(nodes))


def _pieces(problem: Problem, times: np.ndarray) -> list[tuple[float, float]]:
    """The spans of time between the breaks of the equations, from the first of `times` to the last."""
    inner = [b for b in problem.smooth.breaks if times[0] < b - problem.past.time < times[-1]]
    ends = [float(times[0]), *(b - problem.past.time for b in inner), float(times[-1])]
    return list(itertools.pairwise(ends))


class Path:
    """Linear dynamics along a piece of the mean path, at nodes between which they are interpolated by cubic splines."""

    def __init__(self, problem: Problem, piece: Problem, time: np.ndarray, nodes: list[Local], shifted: bool) -> None:
        from scipy.interpolate import CubicSpline

        self.problem, self.piece, self.time, self.nodes, self.shifted = problem, piece, time, nodes, shifted
        self.jacobian = CubicSpline(time, np.array([node.jacobian for node in nodes]))
        self.covariance = CubicSpline(time, np.array([node.covariance for node in nodes]))

    @classmethod
    def along(
        cls, problem: Problem, measured: Measured, span: tuple[float, float], accuracy: float, shifted: bool,
    ) -> "Path":  # fmt: skip
        """Return a piece of the path with times of evaluation that are chosen by the accuracy.

        The times are equally spaced at first. A spline through every second time predicts the others. Intervals in
        which the prediction is wrong are halved.
        """
        evaluated: dict[float, Local] = {}
        time = np.linspace(*span, FIRST)
        piece: Problem | None = None
        while True:
            states = states_along(problem, np.union1d([0.0], time))[0][-len(time) :]
            piece = problem.onward(states[0])[0] if piece is None else piece
            for t, y in zip(time, states, strict=True):
                if float(t) not in evaluated:
                    evaluated[float(t)] = measured(piece, float(t), y, span[1])
            path = cls(problem, piece, time, [evaluated[float(t)] for t in time], shifted)
            further = path.misses(accuracy)
            if not len(further) or len(time) >= MOST:
                return path
            time = np.union1d(time, further)

    def misses(self, accuracy: float) -> np.ndarray:
        """Return times in the middle of intervals where a spline through every second node misses the node between."""
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

        size = len(shift)

        def lyapunov(t: float, flat: np.ndarray) -> np.ndarray:
            sigma, growth = flat.reshape(2, size, size)
            jacobian = self.jacobian(t)
            drift = jacobian @ sigma
            return np.concatenate([(drift + drift.T + self.covariance(t)).ravel(), (jacobian @ growth).ravel()])

        union = np.union1d(times, self.time)
        moments = _linear(lyapunov, np.concatenate([sigma.ravel(), growth.ravel()]), union).reshape(-1, 2, size, size)
        sigmas = (moments[:, 0] + np.swapaxes(moments[:, 0], 1, 2)) / 2
        shifts = self._shifts(sigmas[np.searchsorted(union, self.time)], shift, times) if self.shifted else None
        chosen = np.searchsorted(union, times)
        states, slopes = states_along(self.problem, np.union1d([0.0], times))
        states, slopes = states[-len(times) :], slopes(slice(-len(times), None))
        return {
            "states": states, "sigma": sigmas[chosen], "growth": moments[chosen, 1],
            "shift": np.zeros_like(states) if shifts is None else shifts,
            "slopes": slopes, "jacobians": self.jacobian(times),
        }  # fmt: skip

    def _shifts(self, sigmas: np.ndarray, start: np.ndarray, times: np.ndarray) -> np.ndarray:
        """m (T, P) at times, from m at the beginning and Sigma at the nodes."""
        from scipy.interpolate import CubicSpline

        force = [
            self.curvature(node, sigma, t) + node.excess - node.jacobian @ node.slope / 2
            for node, sigma, t in zip(self.nodes, sigmas, self.time, strict=True)
        ]
        push = CubicSpline(self.time, np.array(force))
        # The rounding of a fixed norm would grow if the flow next to the sphere is unstable.
        free = ~np.all([node.held for node in self.nodes], axis=0)
        return _linear(lambda t, m: free * (self.jacobian(t) @ m + push(t)), start, times)

    def curvature(self, node: Local, sigma: np.ndarray, t: float) -> np.ndarray:
        """(1/2) sum_jk (d^2 b/dj dk) Sigma_jk by second differences along the eigenvectors of Sigma."""
        sizes, vectors = np.linalg.eigh(sigma)
        y, slope = node.y, linearisation.compiled(self.piece)
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

    `start` (P,) replaces the start. Raises `NumericalError` if the flow does not reach the last time.
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
    """Return the solution (T, n) of a linear equation with smooth coefficients at increasing times, the first its
    start.
    """
    from scipy.integrate import solve_ivp

    if len(times) == 1:
        return start[None].copy()
    solution = solve_ivp(slope, (times[0], times[-1]), start, method="DOP853", t_eval=times, rtol=1e-9, atol=1e-12)
    if not solution.success:
        raise NumericalError(f"the equation of the fluctuations could not be integrated: {solution.message}")
    return solution.y.T
