"""Hitting times of small flows given as SymPy expressions, for one flow or for many at once."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Crossing, Kernel
from odesim.errors import NumericalError, UsageError
from odesim.flow import blocks
from odesim.small.question import Rule, Tolerances, crossing_of, saved_times

if TYPE_CHECKING:
    import xarray

FUNCTIONS = (
    "Abs", "exp", "log", "sin", "cos", "tanh", "cosh", "sinh", "sign", "asin", "acos", "atan", "erf", "Max", "Min",
    "Piecewise",
)  # fmt: skip
"""Functions that slopes may contain in addition to powers."""
LOGICAL = ("And", "Or", "Not")
"""Logical functions that the conditions of a `Piecewise` may contain in addition to comparisons."""
LIMITED, STILL = 4, 5
"""Status of a flow whose steps are limited by stability, and of one whose slopes are 0, possibly by underflow."""
Limits = tuple[float, float]
"""Horizon and longest step."""
CLOCKED = 1000
"""Smallest number of steps from 0 to the horizon for a flow whose slopes depend on time."""
UNDERFLOW = 1e-100
"""Size of the state below which slopes of 0 may be underflow."""
FLOATS = frozenset({float})


@dataclasses.dataclass(frozen=True, eq=False)
class Flow:
    """Small autonomous flow dx/dt = F(x) of a few entries, given as SymPy expressions.

    Symbols without a slope are parameters, which may differ from flow to flow.  odesim compiles the expressions into
    one function; long expressions take longer to compile.  If the flow depends on time, make time an entry with the
    slope 1: {"t": 1, "m": exp(-t) * m}.

    Attributes:
        slopes: Time derivative of every entry, by name or symbol.
        longest: Largest step. If an entry has a constant slope, it is a thousandth of the end time, so that no step
            jumps over a short pulse. Otherwise only the error limits the steps.

    Raises:
        UsageError: A slope has a function that cannot be compiled, or is not a finite real expression.

    Example:
        >>> import odesim, sympy
        >>> m = sympy.Symbol("m")
        >>> time = odesim.Flow({m: m**2}).hitting_times({m: 0.1}, m, 0.5, until=100.0)
        >>> round(float(time), 7)
        8.0
    """

    slopes: Mapping[Any, Any]
    longest: float | None = None

    def __post_init__(self) -> None:
        import sympy
        from sympy.core.function import Application

        if not isinstance(self.slopes, Mapping):
            raise UsageError(f"a flow maps every entry to its slope, such as {{m: m**2}}, but got {self.slopes!r:.60}")
        # Names in the program; a SymPy symbol as a key is replaced by its name.
        object.__setattr__(self, "slopes", {str(name): slope for name, slope in self.slopes.items()})
        for name, slope in self.slopes.items():
            expression = sympy.sympify(slope)
            used = {type(part).__name__ for part in expression.atoms(Application)}
            if expression.has(sympy.I, sympy.oo, -sympy.oo, sympy.zoo, sympy.nan):
                raise UsageError(f"the slope of {name} is not a finite real expression: {slope}")
            if unknown := used - {*FUNCTIONS, *LOGICAL}:
                raise UsageError(
                    f"the slope of {name} uses {', '.join(sorted(unknown))}; expected powers and {', '.join(FUNCTIONS)}"
                )
            if any(part.args[-1].cond != sympy.true for part in expression.atoms(sympy.Piecewise)):
                raise UsageError(
                    f"a Piecewise in the slope of {name} leaves some states without a value: end it with (value, True)"
                )
        if not self.slopes:
            raise UsageError("a flow needs the slope of at least one entry")
        if self.longest is not None and not (isinstance(self.longest, int | float) and self.longest > 0.0):
            raise UsageError(f"longest is the longest step of a flow, a number above 0, but got {self.longest!r:.60}")

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Entries of the state, then the parameters in alphabetical order."""
        import sympy

        found = {str(symbol) for slope in self.slopes.values() for symbol in sympy.sympify(slope).free_symbols}
        return (*self.slopes, *sorted(found - set(self.slopes)))

    @functools.cached_property
    def states(self) -> tuple[str, ...]:
        """Entries of the state. Each has a slope."""
        return tuple(self.slopes)

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        """Symbols of the slopes that are not entries of the state, in alphabetical order. Their values are constant."""
        return self.names[len(self.slopes) :]

    @functools.cached_property
    def _clocked(self) -> bool:
        """Return True if a slope depends on an entry of constant slope."""
        import sympy

        given = {name: sympy.sympify(slope) for name, slope in self.slopes.items()}
        used = {str(symbol) for slope in given.values() for symbol in slope.free_symbols}
        return any(given[name] != 0 and not given[name].free_symbols for name in used & given.keys())

    def _limits(self, until: float) -> Limits:
        """Return the horizon and the longest step."""
        if self.longest is not None:
            return until, float(self.longest)
        return until, until / CLOCKED if self._clocked else math.inf

    def integrate(
        self,
        values: Mapping[Any, Any],
        *,
        until: float | None = None,
        save_points: int | None = None,
        save_at: Any = None,
        rtol: float = 1e-9,
        atol: float | None = None,
    ) -> "xarray.Dataset":
        """Integrate the flow, or many of them at once.

        Arguments:
            values: The state at time 0 and the parameters, as numbers or arrays that broadcast to one shape.
            until: End time.
            save_points: Number of equally spaced saved times, both ends included (201).
            save_at: The saved times themselves, increasing, instead of `save_points`; the last one is the end time.
            rtol: Relative tolerance of a step of DOP853, or of a Rosenbrock method if stability limits the steps.
            atol: Absolute tolerance of a step (1e-14, or smaller if an entry starts closer to 0 than this resolves).

        Returns:
            An `xarray.Dataset` with a variable for every entry. Its dimensions are (time,) if all values are numbers,
            (flow, time) for arrays (n,), and (flow_0, flow_1, .., time) for arrays with more axes. The parameters are
            variables without time.

        Raises:
            UsageError: Values or times are invalid.
            NumericalError: The integration of a flow fails.

        Example:
            >>> import sympy
            >>> m, a = sympy.symbols("m a")
            >>> run = Flow({m: -a * m}).integrate({m: 1.0, a: [1.0, 2.0]}, until=1.0, save_points=3)
            >>> run["m"].dims, run["m"].values.round(6).tolist()
            (('flow', 'time'), [[1.0, 0.606531, 0.367879], [1.0, 0.367879, 0.135335]])
        """
        import xarray

        table, shape = self._table(values, atol)
        times = saved_times(until, save_points, save_at)
        _, until, tolerances = crossing_of(self.states, self.states[0], 0.0, 1, False, times[-1], rtol, atol)
        n, states = len(self.slopes), np.empty((len(table), times.size, len(self.slopes)))
        for chosen, steps in self._by_tolerance(table, tolerances, self._limits(until)):
            some = table[chosen]
            states[chosen] = blocks.trajectories(self._blocks(some[:, n:]), some[:, :n], times, steps)
        states = states.reshape(*shape, times.size, n)
        dims = ("flow",) if len(shape) == 1 else tuple(f"flow_{k}" for k in range(len(shape)))
        found: dict[str, Any] = {name: ((*dims, "time"), states[..., k]) for k, name in enumerate(self.states)}
        fixed = table.reshape(*shape, -1)
        found |= {name: (dims, fixed[..., len(self.slopes) + j]) for j, name in enumerate(self.parameters)}
        return xarray.Dataset(found, {"time": times})

    def hitting_times(
        self,
        values: Mapping[Any, Any],
        entry: Any,
        level: Any,
        *,
        until: Any,
        direction: int = 1,
        absolute: bool = False,
        rtol: float = 1e-9,
        atol: float | None = None,
    ) -> np.ndarray:
        """Return the first times at which an entry passes a level, for one flow or for many at once.

        Within a step the entry is approximated by a cubic, which is checked at its quarters and turning points. If an
        entry passes the level and returns within one step, this is missed if the entry exceeds the level by less than
        the error of the cubic. A smaller `rtol` makes this error smaller.

        Arguments:
            values: The state at time 0 and the parameters, as numbers or arrays that broadcast to one shape.
            entry: The entry, by name or symbol.
            level: The level.
            until: End time; a flow also ends when it crosses the level.
            direction: 1 upwards, -1 downwards.
            absolute: Use the absolute value of the entry.
            rtol, atol: Tolerances of a step, as for `integrate`. Crossings within a step are located to round-off.

        Returns:
            An array with the shape of the values. It is infinite if the level is not passed before `until`, and 0 if
            the entry is beyond the level from the start.

        Raises:
            UsageError: The values are invalid, or the level cannot be reached.
            NumericalError: The integration of a flow fails.

        Example:
            >>> import sympy
            >>> m = sympy.Symbol("m")
            >>> Flow({m: -m}).hitting_times({m: [1.0, 0.2]}, m, 0.5, until=9.0, direction=-1).round(6).tolist()
            [0.693147, 0.0]
        """
        entry = str(entry)
        table, shape = self._table(values, atol)
        rule, until, tolerances = crossing_of(self.states, entry, level, direction, absolute, until, rtol, atol)
        if not (absolute and direction < 0):
            return self._times(table, rule, until, tolerances).reshape(shape)
        # Before its size falls to the level, an entry keeps its sign; its size would turn at zero, between two steps.
        where, level, *_ = rule
        start, found = table[:, where], np.zeros(len(table))
        for sign in (1.0, -1.0):
            chosen = sign * start > level
            if chosen.any():
                found[chosen] = self._times(table[chosen], (where, sign * level, -sign, 0.0), until, tolerances)
        return found.reshape(shape)

    def _by_tolerance(
        self, table: np.ndarray, tolerances: Tolerances, limits: Limits
    ) -> list[tuple[np.ndarray, blocks.Tolerances]]:
        """Yield the places of flows with one absolute tolerance, and their method. Raises `UsageError` for
        underflow.
        """
        from odesim.small.lane_loops import resolution

        n, rtol = len(self.slopes), tolerances[0]
        sizes = np.array([resolution(row, n, tolerances) for row in table])
        for row in table[sizes <= UNDERFLOW]:
            self._require_slope(row)
        return [(np.flatnonzero(sizes == size), (rtol, rtol * size, limits[1])) for size in np.unique(sizes)]

    def _require_slope(self, row: np.ndarray) -> None:
        """Raise `UsageError` if the slopes at a tiny start are 0 and those of a larger one are not."""
        n = len(self.slopes)
        lifted = row.copy()
        lifted[:n] = np.where(row[:n] == 0.0, 0.0, np.sign(row[:n]) * np.maximum(np.abs(row[:n]), 1e-3))
        slopes = np.empty((2, n))
        for k, at in enumerate((row, lifted)):
            self._lanes.slopes_at(np.ascontiguousarray(at), slopes[k])
        if not slopes[0].any() and slopes[1].any():
            raise UsageError(
                f"the slopes at the start {', '.join(f'{x:.3g}' for x in row[:n])} underflow in float64: "
                "start from a larger value, and extrapolate the hitting time by its scaling law"
            )

    def _times(self, table: np.ndarray, rule: Rule, until: float, tolerances: Tolerances) -> np.ndarray:
        """Return the hitting times of the rows of a table."""
        found, status, limits = np.empty(len(table)), np.empty(len(table), np.int64), self._limits(until)
        worst = self._lanes.march_lanes(
            table, len(self.slopes), rule, limits, tolerances, blocks.MOST_STEPS, found, status
        )
        if worst:
            for row in table[status == STILL]:
                self._require_slope(row)
            status[status == STILL] = 0  # at rest
            self._stiff(table, found, status, rule, limits, tolerances)
            worst = status.max()
        if worst:
            raise NumericalError(
                f"{blocks.STATUS[int(worst)]} in {int((status != 0).sum())} of {status.size} flows; "
                "try other tolerances or an earlier until"
            )
        return found

    def _table(self, values: Mapping[Any, Any], atol: float | None) -> tuple[np.ndarray, tuple[int, ...]]:
        """Return states and parameters as rows (flows, names), and the shape of the result."""
        if not isinstance(values, Mapping):
            raise UsageError(f"values maps every entry and parameter to a number, but got {values!r:.60}")
        values = {str(name): value for name, value in values.items()}
        row = [values[name] for name in self.names if name in values]
        if not len(row) == len(values) == len(self.names):
            given = (
                f"and of the parameters {', '.join(self.parameters)}" if self.parameters else "and has no parameters"
            )
            raise UsageError(
                f"the flow needs values of {', '.join(self.states)} at time 0 {given}, "
                f"but got {', '.join(values) or 'none'}"
            )
        if FLOATS.issuperset(map(type, row)):  # for one flow the rest would double the time
            table = np.array([row])
            if not math.isfinite(sum(row)):
                self._require_finite(table)
            if atol == 0.0:
                self._require_sizes(table)
            return table, ()
        try:
            columns = [np.asarray(value, float) for value in row]
            shape = (
                columns[0].shape if len(columns) == 1 else np.broadcast_shapes(*(column.shape for column in columns))
            )
        except (TypeError, ValueError):
            raise UsageError(
                f"the values of {', '.join(self.names)} are not numbers, or do not broadcast to one shape"
            ) from None
        table = np.empty((*shape, len(columns)))
        for j, column in enumerate(columns):
            table[..., j] = column
        self._require_finite(table)
        if atol == 0.0:
            self._require_sizes(table)
        return table.reshape(-1, len(columns)), shape

    def _require_sizes(self, table: np.ndarray) -> None:
        """Raise `UsageError` for entries at 0, because no error can be relative to them."""
        if (table[..., : len(self.slopes)] == 0.0).any():
            raise UsageError(
                "atol = 0 leaves the error of an entry that starts at 0 without a scale: leave atol out, and "
                "odesim takes it from the smallest entry that starts above 0"
            )

    @staticmethod
    def _require_finite(table: np.ndarray) -> None:
        if not np.isfinite(table).all():
            raise UsageError("the values of a flow must be finite")

    def _stiff(
        self,
        table: np.ndarray,
        found: np.ndarray,
        status: np.ndarray,
        rule: Rule,
        limits: Limits,
        tolerances: Tolerances,
    ) -> None:
        """Integrate the flows that stability limits again, with a method that becomes implicit (`blocks`)."""
        chosen, n = np.flatnonzero(status == LIMITED), len(self.slopes)
        if not chosen.size:
            return
        where, level, direction, absolute = rule
        crossing, rows = Crossing("", self.states[where], level, int(direction), bool(absolute)), table[chosen]
        try:
            for some, steps in self._by_tolerance(rows, tolerances, limits):
                found[chosen[some]] = blocks.hitting_times(
                    self._blocks(rows[some, n:]), rows[some, :n], crossing, where, limits[0], steps
                )
        except NumericalError as error:
            raise NumericalError(f"{error} whose steps are limited by stability") from None
        status[chosen] = 0

    @functools.cached_property
    def _kernels(self) -> dict[str, Kernel]:
        """`slopes` and their `jacobian`, row by row, with neutral names: y0, .. for the state, p0, .. for
        parameters.
        """
        import sympy

        n = len(self.slopes)
        neutral = [*(f"y{i}" for i in range(n)), *(f"p{j}" for j in range(len(self.names) - n))]
        symbols = sympy.symbols(neutral, real=True)
        given = [sympy.sympify(slope) for slope in self.slopes.values()]
        given = [e.xreplace({c: c.evalf(17) for c in e.atoms(sympy.NumberSymbol)}) for e in given]
        place = dict(zip(self.names, symbols, strict=True))
        renamed = [slope.xreplace({s: place[str(s)] for s in slope.free_symbols}) for slope in given]
        jacobian = [sympy.diff(slope, symbol) for slope in renamed for symbol in symbols[:n]]
        jacobian = [entry.replace(sympy.DiracDelta, lambda *_: sympy.Integer(0)) for entry in jacobian]  # of sign
        jacobian = [entry.replace(sympy.Heaviside, lambda x, *_: (1 + sympy.sign(x)) / 2) for entry in jacobian]

        def kernel(expressions: list[Any]) -> Kernel:
            numbers = {e: e.evalf(17) for e in expressions if e.is_number}
            outputs = {f"f{i}": numbers.get(e, e) for i, e in enumerate(expressions)}
            return Kernel((), tuple(neutral), outputs)

        return {"slopes": kernel(renamed), "jacobian": kernel(jacobian)}

    @functools.cached_property
    def _lanes(self) -> Any:
        """Compiled functions of many flows side by side, from the cache if possible."""
        from odesim.small.generated import compiled_lanes

        return compiled_lanes(self._kernels, len(self.slopes))

    def _blocks(self, parameters: np.ndarray) -> blocks.Blocks:
        """Return flows with parameters (flows, q) as independent blocks."""
        from odesim.small.generated import compiled_blocks

        functions = compiled_blocks(self._kernels, len(self.slopes))
        return blocks.of_functions(functions.block_slope, functions.block_jacobian, parameters)
