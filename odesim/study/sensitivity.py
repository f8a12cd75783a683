"""Derivatives of final values and hitting times of a flow with respect to its parameters, to integration tolerance.

For y' = F(y, a), y(0) = y0 the tangents s = dy/dp solve s' = F_y s + F_a a_p with s(0) = dy0/dp. A final value has

    dh/dp = grad h . s(T) + h_a a_p,

and a hitting time h(y(T)) = c has dT/dp = -(grad h . s(T) + h_a a_p)/(grad h . F(T)): the implicit function theorem, on
a flow of the known duration T. Therefore no integrator is differentiated through an event.

Up to `FORWARD` parameters the tangents are integrated with the flow (diffrax's ForwardMode). For more parameters the
gradient is computed backwards through checkpoints (RecursiveCheckpointAdjoint). An adjoint that integrates the state
backwards is not used, because a contracting flow is unstable in reverse. Gradients of committees had errors by factors
of 2 to 1,000.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from derivations.measures import Measure
from odesim.errors import NumericalError, UsageError
from odesim.request.case import Case
from odesim.study import parameter_dependence as dependence
from odesim.study.parameter_dependence import Inputs
from odesim.study.quantities import read
from odesim.study.traced_quantities import TracedQuantity, traced_quantity

FORWARD = 4
"""Largest number of parameters for forward mode. For a committee of 3 units and 17 inputs it takes 100 ms, the adjoint
17.
"""
RTOL = 1e-12
"""Relative tolerance of a step, with which derivatives are accurate to 1e-8."""
MOST_STEPS = 2**14
"""Largest number of steps of a piece of the flow; the memory of the adjoint grows with its square root."""
ACCURATE = 1e-11
"""Relative correction of a hitting time below which its derivatives are not computed again."""
REFINED = 5
"""Largest number of Newton steps for a hitting time."""


@dataclasses.dataclass(frozen=True)
class Derivatives:
    """Value of a measure and its derivatives with respect to parameters, in the order of the request.

    `time` is the time at which the measure is taken, a hitting time or the end; If a level is not reached, `value` is
    infinite and the derivatives are NaN.
    """

    measure: str
    value: float
    time: float
    slopes: np.ndarray


def derivatives(case: Case, of: Sequence[str], to: Sequence[str], mode: str = "") -> list[Derivatives]:
    """Return the derivatives of measures of a flow by some of its parameters.

    Arguments:
        case: The flow; its horizon is the final time.
        of: Measures such as "final error" and "first time M_ww >= 0.9".
        to: Names of parameters.
        mode: "forward" or "adjoint"; by default the one that is faster.

    Raises `UsageError` for invalid measures and parameters without derivatives, `NumericalError` if the integration
    fails.
    """
    readings = [read(text) for text in of]
    dependence.require(case, to)
    base = dependence.inputs_of(case)
    quantities = tuple(traced_quantity(base.problem, reading) for reading in readings)
    tangents = np.array([dependence.tangent(case, base, name) for name in to])
    forward = len(to) <= FORWARD if not mode else mode == "forward"
    flow = TracedFlow(base, quantities, forward)
    answers = []
    final: Any = None
    for k, (text, reading) in enumerate(zip(of, readings, strict=True)):
        if reading.sign is None:
            if final is None or not forward:
                final = flow.at(case.until, tangents, k)
            answers.append(Derivatives(text, float(final.values[k]), case.until, final.slopes[k]))
        else:
            answers.append(_hitting(flow, reading, text, k, case.until, tangents))
    return answers


def _hitting(
    flow: "TracedFlow", reading: Measure, text: str, k: int, until: float, tangents: np.ndarray
) -> Derivatives:
    """The first time of a level and its derivatives."""
    level = float(reading.level or 0.0)
    begin = flow.quantity_at_start(k)
    if (begin >= level) if reading.sign == ">=" else (begin <= level):
        raise UsageError(
            f"--of {text!r}: the condition holds at the start ({begin:.6g}), so the time is 0 and has no derivative"
        )
    time = flow.crossing(k, level, until)
    if time is None:
        return Derivatives(text, np.inf, until, np.full(len(tangents), np.nan))
    ahead = flow.at(time, tangents, k)
    for _ in range(REFINED):
        correction = (float(ahead.values[k]) - level) / _speed(ahead, k, text)
        time -= correction
        if abs(correction) <= ACCURATE * time:
            break
        ahead = flow.at(time, tangents, k)
    return Derivatives(text, time, time, -ahead.slopes[k] / _speed(ahead, k, text))


def _speed(ahead: "Ahead", k: int, text: str) -> float:
    """The rate of change of a quantity where it passes its level.  Raises `NumericalError` for 0."""
    if ahead.speeds[k] == 0.0:
        raise NumericalError(f"{text}: the level is touched, not crossed, so the time has no derivative")
    return float(ahead.speeds[k])


@dataclasses.dataclass(frozen=True)
class Ahead:
    """Quantities (m,), their rates of change (m,) and their derivatives (m, parameters) at a time."""

    values: np.ndarray
    speeds: np.ndarray
    slopes: np.ndarray


class TracedFlow:
    """A flow that JAX differentiates, with quantities at its end; programs are shared by flows of one form."""

    def __init__(self, base: Inputs, quantities: tuple[TracedQuantity, ...], forward: bool) -> None:
        self.base, self.quantities, self.forward = base, quantities, forward
        problem = base.problem
        case = problem.case
        rtol = min(case.rtol, RTOL)
        self.tolerances = (rtol, problem.atol * rtol / case.rtol)
        functions = tuple(sorted((name, problem.functions[name]) for name in ("flow", "loss", "watch")
                                 if name in problem.functions))  # fmt: skip
        shapes = tuple(array.shape for array in base.floats[0])
        self.form = Form(functions, base.sizes, quantities, base.start.size, shapes, len(base.floats))

    def _durations(self, until: float) -> np.ndarray:
        """Durations of the pieces up to a time, those beyond it 0."""
        edges = np.concatenate([[0.0], np.minimum(self.base.ends, until), [until]])
        return np.diff(edges)

    def _row(self, until: float) -> np.ndarray:
        """Return all inputs in one row, with the durations of pieces instead of their ends."""
        flat, count = self.base.flat, len(self.base.ends)
        return np.concatenate([flat[: flat.size - count], self._durations(until)])

    def _tangent_rows(self, tangents: np.ndarray, until: float) -> np.ndarray:
        """Return tangents of the inputs, with those of durations instead of those of ends, at a fixed final time."""
        count = len(self.base.ends)
        ends = np.where(self.base.ends < until, tangents[:, tangents.shape[1] - count :], 0.0)
        zero = np.zeros((len(tangents), 1))
        durations = np.diff(np.concatenate([zero, ends, zero], axis=1), axis=1)
        return np.concatenate([tangents[:, : tangents.shape[1] - count], durations], axis=1)

    def at(self, until: float, tangents: np.ndarray, k: int) -> Ahead:
        """Return quantities and derivatives at a time; the adjoint returns those of quantity `k` only, the others are
        0.
        """
        rows, program = self._tangent_rows(tangents, until), _program(self.form, self.forward)
        weights = np.eye(len(self.quantities))[k]
        values, speeds, slopes, good = program(
            self._row(until), self.base.whole, rows, self.tolerances, weights
        )  # fmt: skip
        if not bool(good):
            raise NumericalError(
                f"the integration did not reach t = {until:g} in {MOST_STEPS} steps; give a shorter --until"
            )
        slopes = np.asarray(slopes)
        if not self.forward:
            slopes = np.where(np.arange(len(self.quantities))[:, None] == k, slopes, 0.0)
        return Ahead(np.asarray(values), np.asarray(speeds), slopes)

    def quantity_at_start(self, k: int) -> float:
        """Return quantity `k` of the start."""
        y, arguments = self.base.start, self.base.problem.arguments
        return float(self.quantities[k].value(self.base.problem.functions, y, arguments))

    def crossing(self, k: int, level: float, until: float) -> float | None:
        """Return the first time at which quantity `k` passes a level, to the accuracy of dense output, or None."""
        program = _event_program(self.form, k)
        t, y = 0.0, self.base.start
        for floats, duration in zip(self.base.floats, self._durations(until), strict=True):
            passed, time, y, good = program(y, floats, self.base.whole, duration, level, self.tolerances)
            if not bool(good):
                raise NumericalError(f"the integration did not reach t = {until:g} in {MOST_STEPS} steps")
            if bool(passed):
                return t + float(time)
            t += float(duration)
        return None


@dataclasses.dataclass(frozen=True)
class Form:
    """Key of a compiled program: functions, sizes, quantities and pieces."""

    functions: tuple[tuple[str, Callable[..., Any]], ...]
    sizes: Any
    quantities: tuple[TracedQuantity, ...]
    size: int
    shapes: tuple[tuple[int, ...], ...]
    pieces: int

    @property
    def by_name(self) -> Mapping[str, Callable[..., Any]]:
        """The functions of the flow by role."""
        return dict(self.functions)


def _solve(form: Form, adjoint: Any, y: Any, arguments: tuple[Any, ...], duration: Any, tolerances: Any,
           event: Any = None) -> Any:  # fmt: skip
    """Solve the flow over a duration in the time s = t/duration, so that durations have derivatives like all inputs.

    The method is explicit for inputs with eigenvalues too: over five decades of time it takes a thousand steps, and
    tangents of an implicit one would solve as many linear systems.
    """
    import diffrax

    flow = form.by_name["flow"]
    term = diffrax.ODETerm(lambda s, y, scale: scale * flow(s * scale, y, *arguments))
    return diffrax.diffeqsolve(
        term, diffrax.Dopri8(), 0.0, 1.0, None, y, duration, adjoint=adjoint, event=event,
        stepsize_controller=diffrax.PIDController(rtol=tolerances[0], atol=tolerances[1]), max_steps=MOST_STEPS,
        throw=False,
    )  # fmt: skip


def _ends(form: Form, adjoint: Any, row: Any, integers: Any, tolerances: Any) -> Any:
    """Return quantities at the end of a flow, their rates of change, and True if it was integrated, from all inputs in
    a row.
    """
    import jax
    import jax.numpy as jnp

    start, floats, durations = _apart(form, row)
    stacked = [jnp.stack(arrays) for arrays in zip(*floats, strict=True)]

    def piece(carry: Any, inputs: Any) -> Any:
        y, good = carry
        arrays, duration = inputs
        arguments = dependence.joined(form.sizes, arrays, integers)
        solution = _solve(form, adjoint, y, arguments, duration, tolerances)
        return (solution.ys[0], good & _completed(solution)), None

    y, good = start, jnp.array(True)
    if form.pieces == 1:
        (y, good), _ = piece((y, good), (floats[0], durations[0]))
    else:
        (y, good), _ = jax.lax.scan(piece, (y, good), (stacked, durations))
    # Quantities have the arguments of the last piece with a duration, in which the flow ends.
    last = jnp.argmax(jnp.where(durations > 0, jnp.arange(form.pieces), -1))
    arguments = dependence.joined(form.sizes, [array[last] for array in stacked], integers)

    def quantities(y: Any) -> Any:
        return jnp.stack([quantity.value(form.by_name, y, arguments) for quantity in form.quantities])

    values, speeds = jax.jvp(quantities, (y,), (form.by_name["flow"](0.0, y, *arguments),))
    return values, (speeds, good)


def _completed(solution: Any) -> Any:
    import diffrax

    return (solution.result == diffrax.RESULTS.successful) | (solution.result == diffrax.RESULTS.event_occurred)


def _apart(form: Form, row: Any) -> tuple[Any, list[list[Any]], Any]:
    """Start, float arrays by piece, and durations, from all inputs in a row."""
    place, floats = form.size, []
    for _ in range(form.pieces):
        arrays = []
        for shape in form.shapes:
            length = int(np.prod(shape))
            arrays.append(row[place : place + length].reshape(shape))
            place += length
        floats.append(arrays)
    return row[: form.size], floats, row[place : place + form.pieces]


@functools.lru_cache(maxsize=32)
def _program(form: Form, forward: bool) -> Callable[..., Any]:
    """Jitted quantities, rates of change and derivatives of a form, and True where the flow was followed."""
    import diffrax
    import jax

    adjoint = diffrax.ForwardMode() if forward else diffrax.RecursiveCheckpointAdjoint()

    @jax.jit
    def program(row: Any, integers: Any, tangents: Any, tolerances: Any, weights: Any) -> Any:
        def ends(row: Any) -> Any:
            return _ends(form, adjoint, row, integers, tolerances)

        if not forward:
            values, pull, (speeds, good) = jax.vjp(ends, row, has_aux=True)
            return values, speeds, tangents @ pull(weights)[0], good

        def along(tangent: Any) -> Any:
            return jax.jvp(ends, (row,), (tangent,), has_aux=True)

        values, slopes, (speeds, good) = jax.vmap(along, out_axes=(None, 1, None))(tangents)
        return values, speeds, slopes, good

    return program


@functools.lru_cache(maxsize=32)
def _event_program(form: Form, k: int) -> Callable[..., Any]:
    """Jitted first passage of quantity `k` over a level within a piece: (passed, time, state, followed)."""
    import diffrax
    import jax
    import optimistix

    quantity = form.quantities[k]

    @jax.jit
    def program(y: Any, floats: Any, integers: Any, duration: Any, level: Any, tolerances: Any) -> Any:
        arguments = dependence.joined(form.sizes, list(floats), integers)

        def distance(t: Any, y: Any, args: Any, **kwargs: Any) -> Any:
            return quantity.value(form.by_name, y, arguments) - level

        event = diffrax.Event(distance, optimistix.Newton(1e-10, 1e-10))
        solution = _solve(form, diffrax.ForwardMode(), y, arguments, duration, tolerances, event)
        passed = solution.result == diffrax.RESULTS.event_occurred
        return passed, solution.ts[-1] * duration, solution.ys[-1], _completed(solution)

    return program
