"""The integrators of diffrax on a right-hand side traced by JAX, many steps in one call."""

import concurrent.futures
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from odesim.code.traced import Sizes, jax_slope, split
from odesim.flow.solvers.step import (
    WALL,
    Bounds,
    Leg,
    Segment,
    Solver,
    Span,
    Statistics,
    StepFailure,
    cubic_interior,
    distance,
)

CHUNK = 64
"""Steps in one call. They limit the memory of the dense output and the delay of Ctrl-C."""
AHEAD: weakref.WeakSet[Any] = weakref.WeakSet()
"""Functions compiled in advance. Asking JAX again takes 0.4 ms, a third of a short run."""


def steps(leg: Leg, name: str) -> Iterator[Segment]:
    """Yield the steps of the method called `name` over a leg."""
    return diffrax_steps(name, leg.problem.functions["flow"], leg.problem.arguments, leg.span())


def count(statistics: Statistics, name: str, accepted: int, rejected: int) -> None:
    """Count steps of the method called `name`. An attempt of an explicit method costs its stages without the first.

    The evaluations of implicit stages are not reported.
    """
    import diffrax

    statistics.steps += accepted
    statistics.reject(rejected)
    method = getattr(diffrax, name)
    if issubclass(method, diffrax.AbstractERK):
        statistics.evaluations += (accepted + rejected) * (method.tableau.num_stages - method.tableau.fsal)


@functools.cache
def _controller() -> Any:
    """Return the class of diffrax's controller with the errors of `_measured`."""
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
    """Step-size controller of diffrax, with errors as root mean squares relative to `distance`."""
    import jax.numpy as jnp

    return _controller()(
        rtol=rtol, atol=atol, norm=lambda error: jnp.sqrt((error**2).mean()), lower=bounds[0], upper=bounds[1]
    )


def diffrax_steps(name: str, flow: Callable[..., Any], arguments: tuple[Any, ...], span: Span) -> Iterator[Segment]:
    """Yield accepted steps of the diffrax solver called `name` on dy/dt = flow(t, y, *arguments), `CHUNK` steps a
    call.
    """
    sizes, arrays = split(arguments)
    chunk, single, slope = diffrax_functions(flow, sizes, name)
    t, y, until, tolerances = span.t, span.y, span.until, (span.rtol, span.atol)
    derivative = np.asarray(slope(t, y, arrays))
    largest = float(np.abs(derivative).max(initial=0.0))
    step = min(until - t, 1e-3 / largest if largest > 0 else until - t)
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        # XLA compiles the function for single steps while it compiles the others.
        ahead = [] if single in AHEAD else [beside.submit(_compile, single, t, y, t, tolerances, arrays)]
        while t < until:
            first = min(step, until - t)
            times, states, derivatives, rejected = chunk(t, y, until, first, tolerances, span.bounds, arrays)
            accepted = int(np.isfinite(np.asarray(times)).sum())
            count(span.statistics, name, accepted, int(rejected))
            if accepted == 0:
                raise StepFailure(f"{name} rejected {CHUNK} steps in a row from time {t:g}")
            times, states, derivatives = (np.asarray(a)[:accepted] for a in (times, states, derivatives))
            if times[-1] < until and times[-1] - t <= accepted * WALL * np.spacing(t):
                raise StepFailure(f"{name} needs steps of a few spacings between numbers at time {t:g}")
            if not np.isfinite(states).all():
                raise StepFailure("the state is no longer finite")
            concurrent.futures.wait(ahead)  # the error is raised again where the step is taken
            for k in range(accepted):
                end = float(times[k])  # a Python float: for a number of NumPy JAX would compile `chunk` a second time
                interior = cubic_interior(t, y, derivative, end, states[k], derivatives[k])
                again = functools.partial(_step_again, single, t, y, tolerances, arrays)
                yield Segment(t, y, end, states[k], again, interior)
                step, t, y, derivative = end - t, end, states[k], derivatives[k]


def _compile(function: Any, *given: Any) -> None:
    """Compile a jitted function for the types of some arguments, without calling it."""
    import jax

    AHEAD.add(function)
    with jax.enable_x64(True):  # settings of JAX belong to threads, and this is another one
        function.lower(*given).compile()


def _step_again(
    single: Callable[..., Any],
    t0: float,
    y0: np.ndarray,
    tolerances: tuple[float, float],
    arrays: list[Any],
    t: float,
) -> np.ndarray:
    """Return the state at t by one step of the solver from t0, which is as accurate as the accepted step."""
    return np.asarray(single(t0, y0, float(t), tolerances, arrays))


def make_solver(name: str, rtol: Any, atol: Any) -> Any:
    """Return a diffrax solver. An implicit one solves its stages to the tolerance of the run, also in a single step."""
    import diffrax

    if name.startswith("Kvaerno"):
        return getattr(diffrax, name)(root_finder=diffrax.VeryChord(rtol=rtol, atol=atol))
    return getattr(diffrax, name)()


@functools.lru_cache(maxsize=64)
def diffrax_functions(
    flow: Callable[..., Any], sizes: Sizes, solver: str
) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """Return the jitted functions `chunk` (up to `CHUNK` accepted steps), `single` (one step to a time) and `slope`
    (dy/dt).

    Sizes are compiled in, tolerances and arrays are arguments, so that runs of the same shape share the code. Dense
    output is not used: diffrax interpolates its order-8 method at a much lower order, so a state between two steps is
    computed by a shorter step instead.
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


SOLVERS = tuple(
    Solver(name, functools.partial(steps, name=name), traced=True, default=name == "Dopri8")
    for name in ("Dopri8", "Dopri5", "Tsit5", "Kvaerno5", "Kvaerno3")
)
