"""From a case to a problem: its initial condition, its equations, and their compiled functions."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Dynamics, Equations, Independent, Initial, Recursion, Smooth, load
from derivations.installed import version
from odesim.errors import UsageError
from odesim.flow.resolution import GROWN, VISIBLE, Tiny, tiny_start
from odesim.flow.solvers.step import LOCAL, Bounds
from odesim.flow.stage_start import begun
from odesim.machine import streams
from odesim.request.case import Case

if TYPE_CHECKING:
    from odesim.code.right_hand_side import RightHandSide

NEAR = 1e-10
"""Relative difference below which the clock has reached a given time; it covers the rounding of added steps."""
RTOL_FLOOR = 1e-13
"""Smallest relative tolerance. Below it float64 round-off, not the step size, decides the error."""


@dataclasses.dataclass(frozen=True)
class Past:
    """Earlier stages on the same clock: their end, and hitting times of components that continue unchanged."""

    time: float = 0.0
    hits: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def of(self, name: str, found: np.ndarray) -> np.ndarray:
        """Return hitting times on the shared clock from those `found` since `time` (0: already crossed, infinite: not
        yet).
        """
        known = self.hits.get(name)
        since = np.asarray(found + self.time)
        return since if known is None else np.where(np.isfinite(known), known, since)


@dataclasses.dataclass(frozen=True)
class Problem:
    """A case with its equations, initial condition and compiled functions.

    It is integrated from 0 for the duration `case.until`. The clock of the trajectory continues that of the `past`.
    """

    case: Case
    equations: Equations
    initial: Initial
    arguments: tuple[Any, ...]
    functions: Mapping[str, Callable[..., Any]]
    past: Past = Past()

    def clock(self, t: float) -> float:
        """Return the reading of the clock at `t` after the start of the stage."""
        return self.past.time + float(t)

    @property
    def autonomous(self) -> bool:
        """Return True if the right-hand side is known not to depend on time."""
        return self.equations.code.statement is not None

    @property
    def start(self) -> np.ndarray:
        """Flat state at time 0."""
        return self.equations.start(self.initial)

    @functools.cached_property
    def bounds(self) -> Bounds:
        """Lower and upper bounds of every entry of the flat state, infinite if none is declared."""
        size = self.start.size
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        for component in self.equations.state:
            places = self.equations.layout.places(component.name, size)
            places = places[places >= 0]
            lower[places], upper[places] = component.bounds
        return lower, upper

    @property
    def smooth(self) -> Smooth:
        """Properties of the flow for a single integrator. Independent blocks together are also a smooth flow."""
        advance = self.equations.advance
        if isinstance(advance, Recursion):
            return Smooth(clock=advance.clock, breaks=advance.breaks, ended=advance.ended)
        return advance if isinstance(advance, Smooth) else Smooth()

    def moment(self, y: np.ndarray, near: float = 0.0) -> float:
        """Return the clock time of a state, or the time of a break that differs from it by rounding or by at most
        `near`.
        """
        now = float(self.equations.unpack(y)[self.smooth.clock])
        return next((time for time in self.smooth.breaks if abs(time - now) <= max(near, NEAR * abs(time))), now)

    def ended(self, y: np.ndarray) -> str:
        """Return the reason why the equations are not defined beyond a state, or ""."""
        return self.smooth.ended(dataclasses.replace(self.initial, state=self.equations.unpack(y)))

    def next_break(self, t: float, y: np.ndarray) -> float:
        """Return the next time, on the clock of t, at which the equations jump or have a kink; infinite if there is
        none.
        """
        if not self.smooth.breaks:
            return np.inf
        now = self.moment(y)
        return min((t + (time - now) for time in self.smooth.breaks if time > now), default=np.inf)

    def onward(self, y: np.ndarray, near: float = 0.0) -> tuple["Problem", np.ndarray]:
        """Return the problem with the arguments that are valid from a state up to the next break, and that state.

        If a break is at most `near` away, its clock is set to the time of the break.
        """
        if not self.smooth.breaks:
            return self, y
        moved = y.copy()
        moved[self.equations.layout.places(self.smooth.clock, y.size)] = self.moment(y, near)
        initial = dataclasses.replace(self.initial, state=self.equations.unpack(moved))
        return dataclasses.replace(self, arguments=self.equations.arguments(initial)), moved

    def pieces(self, states: np.ndarray) -> list[tuple["Problem", np.ndarray]]:
        """Return the problem for each group of states (N, size), and the indices of these states, in order."""
        if not self.smooth.breaks or not len(states):
            return [(self, np.arange(len(states)))]
        piece = np.searchsorted(self.smooth.breaks, [self.moment(y) for y in states], side="right")
        which = [np.flatnonzero(piece == k) for k in np.unique(piece)]
        return [(self.onward(states[numbers[0]])[0], numbers) for numbers in which]

    @property
    def rtol(self) -> float:
        """Relative tolerance of the request, at least the accuracy to which the right-hand side is known."""
        return self.case.rtol if "rtol" in self.case.options else max(self.case.rtol, self.smooth.rough)

    def tolerances(
        self, relative: float = LOCAL[0], floor: float = LOCAL[1], y: np.ndarray | None = None
    ) -> tuple[float, float]:
        """Return the relative and absolute tolerance of one step: `relative` times that of the answer.

        With a state y, the tolerances from this state on: a tiny start is resolved only until it has grown.
        """
        resolved = self.tiny is not None and y is not None and self.phase(y) == GROWN
        return max(relative * self.rtol, floor), LOCAL[0] * (self.ordinary_atol if resolved else self.atol)

    def within(self, y: np.ndarray) -> np.ndarray:
        """Return the requested tolerance of every entry of a state (n,)."""
        return self.rtol * np.abs(y) + self.atol

    def phase(self, y: np.ndarray) -> int:
        """Return the phase of growth of a tiny start in y (`Tiny.phase`), or 2 for a start that is not tiny."""
        return GROWN if self.tiny is None else self.tiny.phase(y, self.initial.scale)

    def escaping(self, y: np.ndarray) -> bool:
        """Return True if y is still the tiny start and grows. Steps of equal length then follow an exponential."""
        return self.tiny is not None and self.phase(y) == 0 and self.tiny.growing(y, self.slope()(0.0, y))

    @property
    def error_bounds(self) -> Bounds:
        """Bounds from which integrators measure errors. They are moved away if the tolerance is below the ordinary one.

        Near a bound of 1 an entry has the spacing of floats near 1, however small other entries are.
        """
        atol = self.atol
        if self.tiny is None and atol >= np.finfo(float).eps * self.rtol:
            return self.bounds
        margin = max(0.0, self.ordinary_atol - atol) / self.rtol
        return self.bounds[0] - margin, self.bounds[1] + margin

    @functools.cached_property
    def derivative(self) -> "RightHandSide | None":
        """Right-hand side in the form of compiled loops, if the equations are a statement."""
        found = self.functions.get("derivative")
        return found(self.arguments) if found is not None else None

    def slope(self) -> Callable[[float, np.ndarray], np.ndarray]:
        """Return dy/dt = F(t, y) as a function of NumPy arrays, for an integrator that is not traced."""
        flow, arguments = self.functions["flow"], self.arguments
        if self.derivative is not None:
            return self.derivative
        if self.case.backend != "jax":
            whole = getattr(flow, "whole", None)
            return (lambda t, y: flow(t, y, *arguments)) if whole is None else lambda t, y: whole(t, y, arguments)
        from odesim.code.traced import jax_slope, split

        sizes, arrays = split(arguments)
        traced = jax_slope(flow, sizes)
        return lambda t, y: np.asarray(traced(t, y, arrays))

    @property
    def atol(self) -> float:
        """Absolute tolerance of the request, otherwise the ordinary one, or that of a tiny start."""
        if self.case.atol is not None:
            return self.case.atol
        return self.ordinary_atol if self.tiny is None else self.rtol * VISIBLE * self.tiny.scale

    @property
    def ordinary_atol(self) -> float:
        """rtol * 1e-2 times the typical size of the initial overlaps.

        If the right-hand side is only known to `rough`, this is the tolerance, because its jumps do not depend on the
        scale.
        """
        known = 0.0 if "rtol" in self.case.options else self.smooth.rough
        return max(self.rtol * VISIBLE * self.initial.scale, known)

    @functools.cached_property
    def tiny(self) -> Tiny | None:
        """Tiny entries of the start, if the program chooses the absolute tolerance and steps have errors."""
        if self.case.atol is not None or not isinstance(self.equations.advance, Smooth | Independent):
            return None
        slope, initial, layout = self.slope(), self.initial, self.equations.layout
        rtol = LOCAL[0] * self.rtol
        return tiny_start(layout, self.start, lambda x: slope(0.0, x), initial.scale, initial.exact, rtol)


def initial_condition(case: Case) -> Initial:
    """Return the initial condition of a case: drawn from its seed, or made of the arrays of its file."""
    stage = case.system.stage(case.stage)
    return begun(case, load(stage.enter)(case.parameters, case.initial, streams.generator(case.seed, "initial")))


def prepare(case: Case, initial: Initial | None = None, past: Past = Past()) -> Problem:
    """Compile the equations of a case at its initial condition, or at a given one after the `past`."""
    stage = case.system.stage(case.stage)
    if case.rtol < RTOL_FLOOR:
        raise UsageError(f"--rtol must be at least {RTOL_FLOOR:g} in float64, but {case.rtol:g} was given")
    initial = initial_condition(case) if initial is None else initial
    _require_finite(initial)
    if isinstance(stage, Dynamics):
        stage.within(initial.parameters, past.time + case.until, past.time)
    equations = load(stage.equations)(initial.parameters, case.tier)
    equations.admits(initial)
    functions = compile_functions(equations, case.backend)
    initial = clocked(equations, initial, past.time)
    problem = Problem(case, equations, initial, equations.arguments(initial), functions, past)
    _require_scale(problem)
    return problem


def clocked(equations: Equations, initial: Initial, time: float) -> Initial:
    """Return the initial condition with the clock set, if the equations have a clock."""
    advance = equations.advance
    if not isinstance(advance, Smooth | Recursion) or not advance.clock:
        return initial
    return dataclasses.replace(initial, state={**initial.state, advance.clock: np.array(time)})


def _require_scale(problem: Problem) -> None:
    """Raise `UsageError` for an absolute tolerance of 0 if an entry has no size to which errors are relative."""
    if problem.case.atol != 0.0:
        return
    y = problem.start
    for component in problem.equations.state:
        places = problem.equations.layout.places(component.name, y.size)
        if (y[places[places >= 0]] == 0.0).any():
            raise UsageError(
                f"--atol 0 gives no scale for the errors of {component.name}, because one of its entries "
                "starts at 0: leave out --atol, and the default is chosen from the smallest entries that are "
                "not 0"
            )


def _require_finite(initial: Initial) -> None:
    """Raise `UsageError` for an initial state that is not finite, or whose squares overflow."""
    for name, values in {**initial.state, **initial.constants}.items():
        array = np.asarray(values)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise UsageError(
                f"{name} is not finite at the start: the initial arrays contain NaN, infinity, or numbers "
                "whose squares overflow; rescale them"
            )


def compile_functions(equations: Equations, backend: str) -> Mapping[str, Callable[..., Any]]:
    """Return `flow` and `loss` for a back end ("numba", "jax" or "numpy"), called with the run-time arguments."""
    from odesim.code import arrays, compile, generated

    if equations.code.statement is not None:
        if backend == "jax":
            _configure_jax()
        return generated.generated_functions(equations, backend)
    if backend == "numba" and equations.code.loops:
        return compile.compile_numba(equations)
    if backend == "jax":
        _configure_jax()
    # Means over arrays have no loops for numba to compile.
    return arrays.compile_arrays(equations, "numpy" if backend == "numba" else backend)


def _configure_jax() -> None:
    from odesim.machine import device

    device.configure("auto" if version("jax") else "cpu")
