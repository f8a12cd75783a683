"""Independent integrators behind one face: SUNDIALS and SciPy with a compiled right-hand side, and diffrax.

A stepper yields `Segment`s, accepted steps with an interpolant.  It never clips or repairs a state; when it
cannot go on it raises `StepFailure`, and the last segment it yielded holds the last good state.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from odesim.errors import UsageError
from odesim.request.case import EULER
from odesim.request.parse import nearest

SCIPY_SOLVERS = ("DOP853", "RK45", "RK23", "Radau", "BDF", "LSODA")
NUMBA_SOLVERS = ("automatic", "NDF", "CVODE", *SCIPY_SOLVERS)
DIFFRAX_SOLVERS = ("Dopri8", "Dopri5", "Tsit5", "Kvaerno5", "Kvaerno3")
INTERIOR = np.array([0.25, 0.5, 0.75])
"""Where inside a step, in units of it, a crossing up and down again is looked for."""
QUARTERS = np.array([[27, 5, 9, -3], [16, 16, 8, -8], [5, 27, 3, -9]]) / [[32.0, 32.0, 64.0, 64.0]]
"""The cubic Hermite basis (values at both ends, slopes at both ends) there."""
CHUNK = 64
"""Steps that diffrax takes in one call; bounds the memory of its dense output and how long Ctrl-C waits."""


Bounds = tuple[Any, Any]
"""The least and the greatest value of every entry of a flat state, infinite where it has none."""
UNBOUNDED: Bounds = (-np.inf, np.inf)
Entries = np.ndarray | slice
Interior = Callable[[Entries], tuple[np.ndarray, np.ndarray]]


class StepFailure(Exception):
    """The integrator cannot take another step; the message says why."""


@dataclasses.dataclass(frozen=True)
class Segment:
    """One accepted step from (t0, y0) to (t1, y1).

    `dense(t)` interpolates with the order of the method; `interior(entries)` are (times, those entries of the states)
    inside the step, of any accuracy, in which double crossings are looked for.
    """

    t0: float
    y0: np.ndarray
    t1: float
    y1: np.ndarray
    dense: Callable[[float], np.ndarray]
    interior: Interior


@dataclasses.dataclass
class Statistics:
    """What an integrator counted; `evaluations` stays 0 where the library does not tell."""

    solver: str
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0

    def take_diffrax(self, accepted: int, rejected: int) -> None:
        """Count steps of a diffrax solver: an attempt costs an explicit one its stages, the first known before it.

        How many evaluations the stages of an implicit one take is not told.
        """
        import diffrax

        self.steps += accepted
        self.rejected += rejected
        method = getattr(diffrax, self.solver)
        if issubclass(method, diffrax.AbstractERK):
            self.evaluations += (accepted + rejected) * (method.tableau.num_stages - method.tableau.fsal)

    def known(self) -> dict[str, Any]:
        """What was counted, without the number of evaluations where it is not known."""
        return {name: value for name, value in vars(self).items() if name != "evaluations" or value}


def choose_solver(backend: str, solver: str | None) -> str:
    """The solver's name, by default automatic (numba) or Dopri8 (jax); refuses one that the back end lacks.

    The solvers of the numba back end also take a right-hand side of JAX.
    """
    known = NUMBA_SOLVERS if backend == "numba" else (*DIFFRAX_SOLVERS, *NUMBA_SOLVERS)
    if solver is None:
        return known[0]
    if solver not in known:
        raise UsageError(f"backend {backend} has no solver {solver!r}; {nearest(solver, (*known, EULER))}")
    return solver


def scipy_steps(
    slope: Callable[[float, np.ndarray], np.ndarray],
    t: float,
    y: np.ndarray,
    until: float,
    rtol: float,
    atol: float,
    statistics: Statistics,
    between: str = "step",
    bounds: Bounds = UNBOUNDED,
) -> Iterator[Segment]:
    """Accepted steps of a SciPy solver on dy/dt = slope(t, y), with states `between` as `Smooth.between` has it.

    The errors of Runge-Kutta steps are measured against `distance`.  Evaluations are counted here: SciPy knows nothing
    of those for states between two steps.
    """
    import scipy.integrate

    def flow(t: float, y: np.ndarray) -> np.ndarray:
        statistics.evaluations += 1
        return slope(t, y)

    method = getattr(scipy.integrate, statistics.solver)
    if hasattr(method, "A"):
        method = _measured(method, bounds)
    solver = method(flow, t, y, until, rtol=rtol, atol=atol)
    derivative = flow(t, y)
    while solver.status == "running":
        t0, y0, f0 = solver.t, solver.y.copy(), derivative
        message = solver.step()
        if solver.status == "failed":
            raise StepFailure(f"{statistics.solver} stopped: {message}")
        if not np.isfinite(solver.y).all():
            raise StepFailure("the state is no longer finite")
        statistics.steps += 1
        derivative = solver.f if hasattr(solver, "f") else flow(solver.t, solver.y)
        interior = cubic_interior(t0, y0, f0, solver.t, solver.y, derivative)
        again = between == "step" and hasattr(solver, "A")
        dense = _shorter_step(solver, flow, t0, y0, f0) if again else _once(solver.dense_output)
        yield Segment(t0, y0, solver.t, solver.y.copy(), dense, interior)


def distance(xp: Any, y: Any, bounds: Bounds) -> Any:
    """How far the entries of a state are from 0 and from their bounds, whichever is nearer.

    A tolerance relative to it keeps what approaches a bound as accurate as what leaves 0.  Relative to the entry
    itself, an alignment that has reached 1 may be off by the tolerance, and an explicit method whose steps are held
    down by stability makes use of that: the loss then stays at the tolerance, of either sign, where the true one
    falls to 0.
    """
    lower, upper = bounds
    return xp.minimum(xp.abs(y), xp.minimum(xp.abs(y - lower), xp.abs(upper - y)))


def _measured(method: Any, bounds: Bounds) -> Any:
    """A Runge-Kutta class of SciPy whose errors are relative to `distance`, not to the entries themselves."""

    class Measured(method):
        def _estimate_error_norm(self, K: np.ndarray, h: float, scale: np.ndarray) -> Any:
            moved = self.y + h * (K[:-1].T @ self.B)
            size = np.maximum(distance(np, self.y, bounds), distance(np, moved, bounds))
            return super()._estimate_error_norm(K, h, self.atol + self.rtol * size)

    return Measured


@functools.cache
def _controller() -> Any:
    """The class of diffrax's controller with the errors of `_measured`."""
    import diffrax
    import jax.numpy as jnp

    class Measured(diffrax.PIDController):
        lower: Any = -np.inf
        upper: Any = np.inf

        def adapt_step_size(self, t0, t1, y0, y1_candidate, args, y_error: Any, error_order, controller_state):
            bounds = (self.lower, self.upper)
            size = jnp.maximum(distance(jnp, y0, bounds), distance(jnp, y1_candidate, bounds))
            usual = jnp.maximum(jnp.abs(y0), jnp.abs(y1_candidate))
            rtol: Any = self.rtol
            atol: Any = self.atol
            ratio = (atol + rtol * usual) / (atol + rtol * size)
            error = y_error * jnp.where(jnp.isfinite(ratio), ratio, 1.0)  # a step that overflowed is rejected anyway
            return super().adapt_step_size(t0, t1, y0, y1_candidate, args, error, error_order, controller_state)

    return Measured


def make_controller(rtol: Any, atol: Any, bounds: Bounds) -> Any:
    """What chooses the steps of diffrax: its own rule, with errors as root mean squares relative to `distance`."""
    import jax.numpy as jnp

    return _controller()(
        rtol=rtol, atol=atol, norm=lambda error: jnp.sqrt((error**2).mean()), lower=bounds[0], upper=bounds[1]
    )


def _shorter_step(
    solver: Any, flow: Callable[[float, np.ndarray], np.ndarray], t0: float, y0: np.ndarray, f0: np.ndarray
) -> Callable[[float], np.ndarray]:
    """The state inside an accepted Runge-Kutta step by one shorter step of the same method from its start.

    Dense output is not used: where stability and not accuracy limits the step, as near a fixed point, the
    interpolating polynomial was seen to be wrong by 3e-7 at a tolerance of 1e-11.
    """
    from scipy.integrate._ivp.rk import rk_step

    stages = np.empty_like(solver.K)

    def evaluate(t: float) -> np.ndarray:
        return rk_step(flow, t0, y0, f0, t - t0, solver.A, solver.B, solver.C, stages)[0]

    return evaluate


def _once(build: Callable[[], Callable[[float], np.ndarray]]) -> Callable[[float], np.ndarray]:
    """Build an interpolant when it is first asked for: DOP853's costs three more evaluations."""
    made: list[Callable[[float], np.ndarray]] = []

    def evaluate(t: float) -> np.ndarray:
        if not made:
            made.append(build())
        return made[0](t)

    return evaluate


def cubic_interior(t0: float, y0: np.ndarray, f0: np.ndarray, t1: float, y1: np.ndarray, f1: np.ndarray) -> Interior:
    """Three interior points of the cubic through both ends and slopes: cheap, and enough to notice a bump."""
    h = t1 - t0
    # With x = 1/4, 1/2, 3/4: (1 + 2x)(1 - x)^2 y0 + x^2 (3 - 2x) y1 + h x (1 - x)^2 f0 - h x^2 (1 - x) f1.
    weights = QUARTERS * np.array([1.0, 1.0, h, h])

    def interior(entries: Entries) -> tuple[np.ndarray, np.ndarray]:
        return t0 + h * INTERIOR, weights @ np.stack([y0[entries], y1[entries], f0[entries], f1[entries]])

    return interior


def diffrax_steps(
    flow: Callable[..., Any],
    arguments: tuple[Any, ...],
    t: float,
    y: np.ndarray,
    until: float,
    rtol: float,
    atol: float,
    statistics: Statistics,
    bounds: Bounds = UNBOUNDED,
) -> Iterator[Segment]:
    """Accepted steps of a diffrax solver on dy/dt = flow(t, y, *arguments), `CHUNK` steps a call."""
    sizes, arrays = split(arguments)
    chunk, single, slope = diffrax_functions(flow, sizes, statistics.solver)
    tolerances = (rtol, atol)
    derivative = np.asarray(slope(t, y, arrays))
    largest = float(np.abs(derivative).max(initial=0.0))
    step = min(until - t, 1e-3 / largest if largest > 0 else until - t)
    while t < until:
        times, states, derivatives, rejected = chunk(t, y, until, min(step, until - t), tolerances, bounds, arrays)
        accepted = int(np.isfinite(np.asarray(times)).sum())
        statistics.take_diffrax(accepted, int(rejected))
        if accepted == 0:
            raise StepFailure(f"{statistics.solver} rejected {CHUNK} steps in a row from time {t:g}")
        times, states, derivatives = (np.asarray(a)[:accepted] for a in (times, states, derivatives))
        if not np.isfinite(states).all():
            raise StepFailure("the state is no longer finite")
        for k in range(accepted):
            interior = cubic_interior(t, y, derivative, times[k], states[k], derivatives[k])
            again = functools.partial(_step_again, single, t, y, tolerances, arrays)
            yield Segment(t, y, float(times[k]), states[k], again, interior)
            step, t, y, derivative = times[k] - t, float(times[k]), states[k], derivatives[k]


def split(arguments: tuple[Any, ...]) -> tuple[tuple[int | None, ...], list[Any]]:
    """Run-time arguments as sizes, which are compiled in (`None` where an array stands), and arrays on the device."""
    import jax.numpy as jnp

    sizes = tuple(a if isinstance(a, int) else None for a in arguments)
    return sizes, [jnp.asarray(a) for a in arguments if not isinstance(a, int)]


@functools.lru_cache(maxsize=64)
def jax_slope(flow: Callable[..., Any], sizes: tuple[int | None, ...]) -> Callable[[Any, Any, list[Any]], Any]:
    """Jitted dy/dt = flow(t, y, *arguments) as a function of (t, y, arrays)."""
    import jax

    def slope(t: Any, y: Any, arrays: list[Any]) -> Any:
        return flow(t, y, *joined(sizes, arrays))

    return jax.jit(slope)


@functools.lru_cache(maxsize=64)
def jax_along(function: Callable[..., Any], sizes: tuple[int | None, ...]) -> Callable[[Any, list[Any]], Any]:
    """Jitted function(y, *arguments) at every state of (states, arrays), compiled once for runs of the same shape."""
    import jax

    def along(states: Any, arrays: list[Any]) -> Any:
        return jax.lax.map(lambda y: function(y, *joined(sizes, arrays)), states)

    return jax.jit(along)


def joined(sizes: tuple[int | None, ...], arrays: list[Any]) -> list[Any]:
    """The arguments that `split` has taken apart."""
    remaining = iter(arrays)
    return [next(remaining) if size is None else size for size in sizes]


def _step_again(
    single: Callable[..., Any],
    t0: float,
    y0: np.ndarray,
    tolerances: tuple[float, float],
    arrays: list[Any],
    t: float,
) -> np.ndarray:
    """The state at t by one step of the solver from t0, which is as accurate as the accepted step itself."""
    return np.asarray(single(t0, y0, t, tolerances, arrays))


def make_solver(name: str, rtol: Any, atol: Any) -> Any:
    """A diffrax solver; an implicit one solves its stages to the tolerance of the run, also in a step by itself."""
    import diffrax

    if name.startswith("Kvaerno"):
        return getattr(diffrax, name)(root_finder=diffrax.VeryChord(rtol=rtol, atol=atol))
    return getattr(diffrax, name)()


@functools.lru_cache(maxsize=64)
def diffrax_functions(
    flow: Callable[..., Any], sizes: tuple[int | None, ...], solver: str
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Jitted `chunk` (up to `CHUNK` accepted steps), `single` (one step to a time) and `slope` (dy/dt).

    Sizes are compiled in, tolerances and arrays are arguments, so that runs of the same shape share the code.  Dense
    output is not used: diffrax interpolates its order-8 method at a much lower order, so a state between two steps
    is computed by a shorter step instead.
    """
    import diffrax
    import jax

    slope = jax_slope(flow, sizes)
    term = diffrax.ODETerm(slope)
    save = diffrax.SaveAt(steps=True, fn=lambda t, y, arrays: (y, slope(t, y, arrays)))

    @jax.jit
    def chunk(t: Any, y: Any, until: Any, step: Any, tolerances: Any, bounds: Any, arrays: list[Any]) -> Any:
        rtol, atol = tolerances
        controller = make_controller(rtol, atol, bounds)
        solution = diffrax.diffeqsolve(
            term, make_solver(solver, rtol, atol), t, until, step, y, arrays, saveat=save,
            stepsize_controller=controller, max_steps=CHUNK, throw=False, adjoint=diffrax.ForwardMode(),
        )  # fmt: skip
        states, derivatives = solution.ys  # type: ignore[misc]
        return solution.ts, states, derivatives, solution.stats["num_rejected_steps"]

    @jax.jit
    def single(t: Any, y: Any, until: Any, tolerances: Any, arrays: list[Any]) -> Any:
        method = make_solver(solver, *tolerances)
        state = method.init(term, t, until, y, arrays)
        return method.step(term, t, until, y, arrays, state, made_jump=False)[0]

    return chunk, single, slope
