"""Linearisation of a smooth flow dy/dt = F(t, y): its Jacobian, spectrum, and stationary points by Newton's method.

The Jacobian dF/dy comes from differences of the compiled flow if these are accurate (`ACCURATE`), otherwise from JAX's
forward mode on the array form of the equations, which takes JAX up to a minute to compile. In both cases its error is
measured by differences of the compiled flow.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from derivations.contract import Dynamics, Independent, Smooth, UsageError
from odesim.flow.problem import Problem, compile_functions, initial_condition, prepare
from odesim.machine.device import in_double
from odesim.request.case import Case
from odesim.study import rebuild

if TYPE_CHECKING:
    from odesim.request.trajectory import Trajectory
    from odesim.store import Run

Method = Literal["forward mode", "differences"]
LARGEST = 4000
"""Largest number of entries of a state for a dense Jacobian and its spectrum (128 MB and a minute)."""
ACCURATE = 1e-8
"""Largest estimated error of differences, relative to the largest entry of the Jacobian, at which they are used. 1e-12
is usual, 1e-2 near a kink.
"""
PROBES = 8
"""Number of random directions in which the Jacobian of forward mode is compared with differences of the compiled
flow.
"""
CHUNK = 64
"""Number of columns of the Jacobian that forward mode computes together, which limits its memory."""
STEP = 0.02
"""Initial step of the differences, in units of the size of the state. It is refined until they agree."""
CENTRAL = 2e-3
"""Longer step of fourth-order differences, in units of the size of the state. Errors of 1e-11 and rounding of 1e-13
balance.
"""
WIDE = 0.1
"""Longer step for a mean over random points with kinks, in units of the size of the state. Its noise and the error of
the fourth order are a few per cent.
"""
STALLED = 8
"""Number of steps without halving |F| after which Newton's method gives up."""
NULL = 1e-9
"""Singular values below this part of the largest belong to directions without a restoring force."""
ROUND = 1e-13
"""A point is stationary if F is below this part of the bound |J| |y| of its terms, which is round-off."""


@dataclasses.dataclass(frozen=True, eq=False)
class Linearisation:
    """Linearisation of dy/dt = F at a state.

    `jacobian` J (n, n) is dF/dy in the order of the flat state `y` (n,), and `slope` (n,) is F at y.  `eigenvalues`
    (n,) have decreasing real parts, and the columns of `vectors` (n, n) are the eigenvectors.  `method` is the method
    of differentiation.  `error` is the largest difference between an entry of J u and a difference quotient of the
    compiled flow, over random unit vectors u (for "differences", the largest estimated error of an entry of J).  An
    error far above round-off indicates a kink, as at equal logits of `chen`, where one-sided derivatives differ.
    `time` is in the unit of the clock of the system, and None if the state does not belong to a run.
    """

    problem: Problem
    time: float | None
    y: np.ndarray
    slope: np.ndarray
    jacobian: np.ndarray
    method: Method
    error: float
    eigenvalues: np.ndarray
    vectors: np.ndarray

    @property
    def state(self) -> dict[str, np.ndarray]:
        """The components of the state, by name."""
        return self.problem.equations.unpack(self.y)

    @property
    def residual(self) -> float:
        """Largest entry of F in size: zero at a stationary point."""
        return float(np.abs(self.slope).max(initial=0.0))

    def mode(self, k: int) -> dict[str, np.ndarray]:
        """Eigenvector k by components, complex if its eigenvalue is; constant entries are 0."""
        by_component, v = {}, self.vectors[:, k]
        for name, place in rebuild.places(self.problem.equations, self.y.size).items():
            by_component[name] = np.where(place >= 0, v[np.maximum(place, 0)], 0.0)
        return by_component

    def stationary(self, steps: int = 50) -> "Stationary":
        """Return the stationary point that Newton's method finds from here: y -> y - J^+ F, halved while `|F|` grows.

        J^+ is the pseudo-inverse, so the method also finds points on a manifold of stationary points (`null` is the
        dimension of the manifold).  If the method does not converge, the result says so, and no error is raised.

        Raises `UsageError` for equations that depend on time.
        """
        if self.problem.smooth.clock:
            raise UsageError(
                "these equations depend on time, so they have no stationary points: declare the model with "
                "constant values, and start from this state"
            )
        slope, y, f, jacobian = compiled(self.problem), self.y, self.slope, self.jacobian
        residuals = [self.residual]
        while residuals[-1] > round_off(jacobian, y) and len(residuals) <= steps:
            next_y = _newton_step(slope, y, f, jacobian)
            if next_y is None or (len(residuals) > STALLED and residuals[-1] > residuals[-1 - STALLED] / 2):
                break
            y, f = next_y, slope(0.0, next_y)
            jacobian = _jacobian(self.problem, 0.0, y, self.method)[0]
            residuals.append(float(np.abs(f).max(initial=0.0)))
        point = _at(self.problem, None, y, self.method)
        sizes = np.linalg.svd(point.jacobian, compute_uv=False)
        null = int((sizes <= NULL * sizes.max(initial=0.0)).sum())
        converged = point.residual <= round_off(point.jacobian, y)
        return Stationary(point, converged, tuple(residuals), float(np.linalg.norm(y - self.y)), null)

    def __repr__(self) -> str:
        case = self.problem.case
        place = "at a state" if self.time is None else f"at time {self.time:.6g}"
        largest = ", ".join(f"{value:.4g}" for value in self.eigenvalues[:3])
        return (
            f"Linearisation({case.system.name} {case.stage}/{case.tier} {place}: {self.y.size} entries, "
            f"|F| {self.residual:.3g}, eigenvalues {largest}, ..; {self.method}, error {self.error:.1g})"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Stationary:
    """Result of Newton's method: the linearisation at its end, convergence up to round-off, the residuals `max |F|`.

    `distance` is the distance from the start in the flat state, and `null` the number of directions with a zero rate.
    For a flow of a Gram matrix the method may end at a matrix that no vectors have; check `state`.
    """

    point: Linearisation
    converged: bool
    residuals: tuple[float, ...]
    distance: float
    null: int


@in_double
def linearise(
    source: "Case | Trajectory | Run",
    time: float | None = None,
    *,
    state: Mapping[Any, Any] | None = None,
    method: Method | None = None,
) -> Linearisation:
    """Return the linearisation of a flow along a run, or at any state.

    `source` is a `Case` (by default at its start), a trajectory of `integrate`, or a stored run (by default at its
    end). Between two saved times the flow is integrated. `state` replaces components by name. `method` is "forward
    mode" (JAX) or "differences"; the default is differences if their error is below 1e-8 of the largest entry,
    otherwise forward mode.

    Raises `UsageError` if the equations are not a smooth flow (recursions, flows that jump, stages without a clock), if
    the state is too large for a dense Jacobian, or if the initial condition of a run cannot be rebuilt.

    >>> import numpy as np
    >>> import odesim
    >>> run = odesim.integrate("kawata", tier="R3", neurons=1, d=100, until=0.1)
    >>> found = odesim.linearise(run)  # in (xi, nu_1 - nu_2)
    >>> found.jacobian.shape, found.method, bool(found.error < 1e-10)
    ((2, 2), 'differences', True)
    """
    problem, times, states = _source(source)
    _require_smooth(problem, states.shape[1])
    if time is None:
        time = float(times[-1])
    time = float(time)
    if not (times[0] <= time) or not np.isfinite(time):
        raise UsageError(f"time must be finite and at least {times[0]:g}, where the run starts, but is {time:g}")
    k = int(np.searchsorted(times, time, side="right")) - 1
    t, y = float(times[k]), states[k]
    if t < time:
        y = _carried(problem, t, y, time)
    if state is not None:
        return _at(problem, None, rebuild.replaced(problem.equations, y, state), method)
    return _at(problem, time, y, method)


def _source(source: Any) -> tuple[Problem, np.ndarray, np.ndarray]:
    """The problem, the times and the flat states of a source."""
    from odesim.request.trajectory import Trajectory

    if isinstance(source, Case):
        initial = initial_condition(source)
        problem = prepare(source, initial)
        return problem, np.zeros(1), problem.start[None]
    trajectory = source if isinstance(source, Trajectory) else getattr(source, "trajectory", None)
    if not isinstance(trajectory, Trajectory):
        raise UsageError(
            f"linearise needs a Case, a trajectory or a stored run, but got {type(source).__name__}: "
            "odesim.linearise(odesim.integrate(..)) is one way"
        )
    problem, states = rebuild.problem_of(trajectory)
    return problem, trajectory.time, states


def _require_smooth(problem: Problem, size: int) -> None:
    equations, case = problem.equations, problem.case
    if not isinstance(case.system.stage(case.stage), Dynamics):
        raise UsageError(f"stage {case.stage} has no clock, so it has no flow to linearise: name a stage with a clock")
    if not isinstance(equations.advance, Smooth | Independent):
        description = "a recursion" if equations.advance.kind == "recursion" else "a flow that jumps"
        name = equations.about.name
        raise UsageError(f"tier {name} is {description}, which has no Jacobian: choose a tier that is a smooth flow")
    if size > LARGEST:
        raise UsageError(
            f"the state has {size} entries, but a dense Jacobian is computed up to {LARGEST}: use fewer "
            "neurons or experts"
        )


def _carried(problem: Problem, t: float, y: np.ndarray, until: float) -> np.ndarray:
    """Return the state at `until` by integration from (t, y)."""
    from scipy.integrate import solve_ivp

    tolerances = dict(zip(("rtol", "atol"), problem.tolerances(), strict=True))
    while t < until:
        problem, y = problem.onward(y)
        end = min(problem.next_break(t, y), until)
        solution = solve_ivp(compiled(problem), (t, end), y, method="LSODA", t_eval=[end], **tolerances)
        if not solution.success or not np.isfinite(solution.y).all():
            raise UsageError(
                f"the flow cannot be integrated from time {t:g} to {end:g} ({solution.message}): integrate it"
            )
        t, y = end, solution.y[:, -1]
    return y


def compiled(problem: Problem) -> Callable[[float, np.ndarray], np.ndarray]:
    """Return F(t, y) by the compiled loops, for any back end of the case."""
    functions = problem.functions
    if problem.case.backend != "numba":
        functions = compile_functions(problem.equations, "numba")
    flow, arguments = functions["flow"], problem.arguments
    return lambda t, y: np.asarray(flow(t, np.ascontiguousarray(y), *arguments))


def _at(problem: Problem, time: float | None, y: np.ndarray, method: Method | None) -> Linearisation:
    """The linearisation at a flat state, with the error of its Jacobian."""
    problem, y = problem.onward(y)
    t, slope = 0.0 if time is None else time, compiled(problem)
    jacobian, error, method = _jacobian(problem, t, y, method)
    if not np.isfinite(jacobian).all():
        raise UsageError(f"F has no finite derivative at this state (time {t:g}): it lies on a kink or a pole")
    if error is None:
        u = np.random.default_rng(0).standard_normal((y.size, PROBES))
        u /= np.linalg.norm(u, axis=0)
        probed = differences(lambda x: slope(t, x), y, u, _size(problem, y))[0]
        error = float(np.abs(jacobian @ u - probed).max(initial=0.0))
    eigenvalues, vectors = np.linalg.eig(jacobian)
    order = np.lexsort((-eigenvalues.imag, -eigenvalues.real))
    return Linearisation(problem, time, y, slope(t, y), jacobian, method, error, eigenvalues[order], vectors[:, order])


def _jacobian(
    problem: Problem, t: float, y: np.ndarray, method: Method | None
) -> tuple[np.ndarray, float | None, Method]:
    """Return dF/dy (n, n), its error if the method estimates it, and the method, which is chosen if none is given."""
    if method not in (None, "forward mode", "differences"):
        raise UsageError(f'method must be "forward mode" or "differences", but is {method!r}')
    if method == "forward mode":
        return forward(problem, t, y), None, method
    slope = compiled(problem)
    jacobian, errors = differences(lambda x: slope(t, x), y, np.eye(y.size), _size(problem, y))
    error = float(errors.max(initial=0.0))
    if method is None and not error <= ACCURATE * np.abs(jacobian).max(initial=0.0):
        return forward(problem, t, y), None, "forward mode"
    return jacobian, error, "differences"


def fast_jacobian(problem: Problem, t: float, y: np.ndarray) -> np.ndarray:
    """dF/dy (n, n) at a state by fourth-order central differences, faster than `linearise` for many states.

    Two step lengths are compared. If they disagree by more than `ACCURATE` of the largest entry, the slower method is
    used. A mean over random points is differentiated by forward mode. With kinks, the derivative of the sample is not
    that of its mean, because a step function has derivative 0 at every point. Differences over `WIDE` lengths then
    count the points that change sides.
    """
    if problem.smooth.rough and not problem.smooth.kinks:
        return forward(problem, t, y)
    size = _size(problem, y) or 1.0
    if problem.smooth.rough:
        columns = _central(problem, t, y, WIDE * size)
        return (4 * columns[1] - columns[0]) / 3
    columns = _central(problem, t, y, CENTRAL * size)
    jacobian = (4 * columns[1] - columns[0]) / 3
    # The fourth-order value is much more accurate than the two, whose difference is of second order.
    wrong = np.abs(columns[1] - columns[0]).max(initial=0.0) ** 2
    if not wrong <= ACCURATE * np.abs(jacobian).max(initial=0.0) ** 2:
        return _jacobian(problem, t, y, None)[0]
    return jacobian


def _central(problem: Problem, t: float, y: np.ndarray, step: float) -> np.ndarray:
    """dF/dy (2, n, n) by central differences of two lengths, a step and half of it."""
    slope = compiled(problem)
    columns = np.empty((2, y.size, y.size))
    for k in range(y.size):
        move = np.zeros_like(y)
        for level, length in enumerate((step, step / 2)):
            move[k] = length
            columns[level, :, k] = (slope(t, y + move) - slope(t, y - move)) / (2 * length)
    return columns


def round_off(jacobian: np.ndarray, y: np.ndarray) -> float:
    """Return the size of F that rounding alone causes."""
    terms = np.abs(jacobian) @ np.abs(y)
    return ROUND * float(max(terms.max(initial=0.0), np.abs(jacobian).max(initial=0.0)))


def _size(problem: Problem, y: np.ndarray) -> float:
    """Return the length on which F changes. Some flows are homogeneous in a small state, others polynomial.

    The clock of the state, if any, is ignored.
    """
    clock = problem.smooth.clock
    entries = np.delete(y, problem.equations.layout.places(clock, y.size)) if clock else y
    return float(np.abs(entries).max(initial=0.0)) or problem.initial.scale


def forward(problem: Problem, t: float, y: np.ndarray) -> np.ndarray:
    """dF/dy (n, n) by JAX's forward mode on the array form: exact up to round-off."""
    from odesim.code import traced

    functions = compile_functions(problem.equations, "jax")
    sizes, arrays = traced.split(problem.arguments)
    return np.asarray(_columns(functions["flow"], sizes)(t, y, arrays)).T


@functools.lru_cache(maxsize=16)
def _columns(flow: Callable[..., Any], sizes: Any) -> Callable[[Any, Any, list[Any]], Any]:
    """Jitted rows dF/dy_k of (t, y, arrays)."""
    import jax
    import jax.numpy as jnp

    from odesim.code import traced

    slope = traced.jax_slope(flow, sizes)

    def columns(t: Any, y: Any, arrays: list[Any]) -> Any:
        def along(u: Any) -> Any:
            return jax.jvp(lambda x: slope(t, x, arrays), (y,), (u,))[1]

        return jax.lax.map(along, jnp.eye(y.size), batch_size=CHUNK)

    return jax.jit(columns)


def differences(
    slope: Callable[[np.ndarray], np.ndarray], y: np.ndarray, directions: np.ndarray, size: float
) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of F(y) along the columns of `directions` (n, k) by refined central differences, and their errors."""
    from scipy.differentiate import jacobian

    slopes, errors = np.empty_like(directions), np.empty_like(directions)
    for k, u in enumerate(directions.T):

        def line(s: np.ndarray, u: np.ndarray = u) -> np.ndarray:
            steps = s.reshape(-1)
            return np.array([slope(y + step * u) for step in steps]).T.reshape(y.size, *s.shape[1:])

        start = STEP * size / max(float(np.abs(u).max()), 1e-300)
        result = jacobian(line, np.zeros(1), initial_step=start, order=8, maxiter=6)
        slopes[:, k], errors[:, k] = result.df[:, 0], np.nan_to_num(result.error[:, 0])
    return slopes, errors


def _newton_step(
    slope: Callable[[float, np.ndarray], np.ndarray], y: np.ndarray, f: np.ndarray, jacobian: np.ndarray
) -> np.ndarray | None:
    """Return one step of Newton's method, halved until |F| falls; None if no step lowers |F|."""
    move, norm = np.linalg.lstsq(jacobian, -f, rcond=NULL)[0], float(np.linalg.norm(f))
    for halvings in range(30):
        candidate = y + 0.5**halvings * move
        next_norm = float(np.linalg.norm(slope(0.0, candidate)))
        if np.isfinite(next_norm) and next_norm < norm:
            return candidate
    return None
