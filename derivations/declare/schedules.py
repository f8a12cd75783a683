"""Schedules: training parameters that are expressions in the time t and the state, or lists of [time, value] pairs.

A value may have jumps and kinks, but only at known times: `step`, `sign`, `relu` and `abs` take an argument that is
linear in t. Each of them, and each pair, is a switch s(t): 1 if its argument is positive (and from the moment at which
the argument is 0 and rises), else 0.

    sign(x) = 2 s - 1,   relu(x) = s x,   abs(x) = (2 s - 1) x,   value = (1 - s) before + s after

A value is smooth between two switches. Integrators end a step at every switch, and SGD compares step numbers. An
expression may also contain entries and means of order parameters, M_ww[1,1] and mean(Q_ww), and memories (`memory`).
Its value then needs a state.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from derivations.contract import UsageError
from derivations.declare import fields
from derivations.declare.grammar import Tree, entry, number

TIME = "t"
"""The name of the time in an expression, and of the clock among the order parameters."""
SWITCHING = ("step", "sign", "relu", "abs")
SMOOTH = ("sqrt", "log", "exp", "tanh", "cos", "sin", "logistic")
"""The functions of a value."""
EARLY = 1e-9
"""Relative tolerance of the time of a switch, for rounding in sums of times."""
BEFORE = 1e-6
"""Tolerance in steps: in SGD a switch changes at the first step later than the switch less this part of a step."""
NOTHING = 1e-6
"""A value below this at the end of a run counts as 0, because integrators come so close."""
LOOKED_AT = 1000
"""Number of times, beside those of switches, at which a value is checked before a run."""


@dataclasses.dataclass(frozen=True)
class Names:
    """The names in a value besides the time and order parameters: shared numbers and memories."""

    numbers: Mapping[str, float]
    memories: tuple[str, ...] = ()

    def seen(self, tree: Tree) -> list[str]:
        """The names of state variables in an expression."""
        return [name for name in tree.names() if entry(name) or name in self.memories]


@dataclasses.dataclass(frozen=True)
class Switch:
    """A number that is 1 if `argument`, which is linear in t, is positive, else 0."""

    name: str
    argument: Tree


@dataclasses.dataclass(frozen=True)
class Domain:
    """The bounds of a shared number, or `None`; a value may equal `minimum` but not `above`."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None

    def broken(self, value: float) -> str:
        """The violated bound in words; "" if a value satisfies all bounds."""
        if self.minimum is not None and value < self.minimum:
            return f"at least {self.minimum:g}"
        if self.maximum is not None and value > self.maximum:
            return f"at most {self.maximum:g}"
        return f"above {self.above:g}" if self.above is not None and value <= self.above else ""


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The value of the parameter `name`: the last of `pieces` whose switch in `starts` is 1, the first before all
    switches.

    `switches` are all switches, those of `starts` first; functions with jumps or kinks are written by them. `text` is
    the user's text. `above` is True if the value must begin above 0, False if it may begin at 0. `seen` are the names
    of the state variables in the value. `domain` is that of a shared number of [parameters], else `None`.
    """

    name: str
    text: str
    pieces: tuple[Tree, ...]
    starts: tuple[str, ...]
    switches: tuple[Switch, ...]
    above: bool
    seen: tuple[str, ...] = dataclasses.field(default=(), repr=False)
    domain: Domain | None = dataclasses.field(default=None, repr=False)

    @property
    def kinks(self) -> bool:
        """Return True if the value has a kink at some value of the state."""
        return any(piece.calls("relu", "abs") for piece in self.pieces)

    def value(self, namespace: Mapping[str, float]) -> float:
        """The value at known time, switches and shared numbers.

        Raises `UsageError` if it is not a finite number.
        """
        last = max((k + 1 for k, name in enumerate(self.starts) if namespace[name] > 0.5), default=0)
        return number(self.pieces[last], namespace)


def affine(tree: Tree, namespace: Mapping[str, float]) -> tuple[float, float] | None:
    """(slope, offset) of an expression that is linear in t; None for any other.

    >>> from derivations.declare.grammar import read
    >>> affine(read("2*(t - 5)/4"), {}), affine(read("t*t"), {})
    ((0.5, -2.5), None)
    """
    if tree.kind == "name" and tree.word == TIME:
        return 1.0, 0.0
    if TIME not in tree.names():
        return 0.0, number(tree, namespace)
    parts = [affine(part, namespace) for part in tree.parts]
    if tree.kind not in ("+", "-", "*", "/") or None in parts:
        return None
    (a, b), (c, d) = parts  # type: ignore[misc]
    match tree.kind:
        case "+":
            return a + c, b + d
        case "-":
            return a - c, b - d
        case "*" if a == 0 or c == 0:
            return a * d + c * b, b * d
        case "/" if c == 0 and d != 0:
            return a / d, b / d
    return None


@dataclasses.dataclass(frozen=True)
class Turn:
    """A switch at given numbers: it changes from `before` to `after` at a time (infinite if it never changes)."""

    name: str
    time: float
    before: float
    after: float

    def at(self, t: float) -> float:
        """Its value at a moment and until the next switch of any value."""
        return self.after if t >= self.time - EARLY * abs(self.time) else self.before


def active(parameters: Any) -> tuple[Schedule, ...]:
    """The schedules in use: those that the user did not replace by a number."""
    declared = parameters.declaration.schedules
    return tuple(schedule for schedule in declared if getattr(parameters, schedule.name) is None)


def shared(parameters: Any) -> dict[str, float]:
    """The user's shared numbers by name; schedules have their values at the start of the stage."""
    declared = parameters.declaration
    defaults = {name: getattr(parameters, name) for name in declared.names}
    constants = {name: float(value) for name, value in defaults.items() if value is not None}
    changing = [schedule for schedule in active(parameters) if schedule.name in defaults]
    values = {schedule.name: first(schedule, constants, declared.begin) for schedule in changing}
    return {name: values.get(name, constants.get(name, math.nan)) for name in defaults}


@functools.lru_cache(maxsize=64)
def turns(parameters: Any) -> tuple[Turn, ...]:
    """All switches of the schedules in use, at the parameters' numbers."""
    namespace = shared(parameters)
    return tuple(_turn(schedule, switch, namespace) for schedule in active(parameters) for switch in schedule.switches)


def _turn(schedule: Schedule, switch: Switch, namespace: Mapping[str, float]) -> Turn:
    line = affine(switch.argument, namespace)
    if line is None:
        raise UsageError(
            f"{schedule.name} is {schedule.text!r}: with these parameters it has a jump or kink whose "
            "argument is not linear in t"
        )
    slope, offset = line
    if slope == 0:
        return Turn(switch.name, math.inf, float(offset > 0), float(offset > 0))
    return Turn(switch.name, -offset / slope, float(slope < 0), float(slope > 0))


def breaks(parameters: Any) -> tuple[float, ...]:
    """The times after 0 of possible jumps and kinks; of times that differ only by rounding, the last one."""
    times = sorted({turn.time for turn in turns(parameters) if 0.0 < turn.time < math.inf})
    return tuple(time for time, later in itertools.pairwise([*times, math.inf]) if later - time > EARLY * time)


def switched(parameters: Any, t: float) -> dict[str, float]:
    """The switches by name at a moment."""
    return {turn.name: turn.at(t) for turn in turns(parameters)}


def at(parameters: Any, t: float, state_values: Mapping[str, float] | None = None) -> Any:
    """The parameters with schedules replaced by their values at a moment.

    `state_values` are the numbers of the state by their names. Without them a value that depends on the state is 1,
    because it is a factor elsewhere. Raises `UsageError` for a value that is not a finite number, or is out of its
    domain.
    """
    changing = active(parameters)
    if not changing:
        return parameters
    namespace = {**shared(parameters), **switched(parameters, t), TIME: t, **(state_values or {})}
    values = {
        schedule.name: 1.0 if schedule.seen and state_values is None else _checked(schedule, namespace)
        for schedule in changing
    }
    return dataclasses.replace(parameters, **values)


def begun(parameters: Any) -> Any:
    """The parameters with schedules replaced by their values at the start of the parameters' stage."""
    return at(parameters, parameters.declaration.begin)


def now(initial: Any) -> Any:
    """The parameters of an initial condition with schedules replaced by their values at its time and state."""
    return at(initial.parameters, float(initial.state.get(TIME, 0.0)), seen_of(initial))


def seen_of(initial: Any) -> dict[str, float]:
    """The state variables in the schedules in use, by name.

    Raises `UsageError` for an index beyond the number of units.
    """
    names = dict.fromkeys(name for schedule in active(initial.parameters) for name in schedule.seen)
    state = {**initial.constants, **initial.state}
    return {name: entry_of(state, name) for name in names}


def ended(initial: Any) -> str:
    """The name of a value that is negative at the end of a run; "" if there is none."""
    state_values, t = seen_of(initial), float(initial.state[TIME])
    namespace = {**shared(initial.parameters), **switched(initial.parameters, t), TIME: t, **state_values}
    for schedule in active(initial.parameters):
        if schedule.seen:
            try:
                value = schedule.value(namespace)
            except UsageError:
                return f"{schedule.name} is no number beyond t = {t:.6g}"
            if value <= NOTHING:
                return f"{schedule.name} falls below 0 at t = {t:.6g}"
    return ""


def kinked(parameters: Any) -> bool:
    """Return True if a schedule in use, or the rate of a memory, has a kink at some value of the state."""
    memories = parameters.declaration.memories
    return any(member.kinks for member in active(parameters)) or any(
        member.rate.calls("relu", "abs") for member in memories
    )


def entry_of(state: Mapping[str, Any], name: str) -> float:
    """The number of a state with a name such as M_ww[1,2], mean(Q_ww) or b2.

    Order parameters by eigenspace (L, ..) are summed over eigenspaces, unless a third index, in front, selects one.
    """
    parsed = entry(name)
    if parsed is None:
        return float(state[name])
    values = np.asarray(state[parsed[0]], float)
    values = values.sum(0) if values.ndim == 3 and len(parsed[1]) < 3 else values
    if not parsed[1]:
        return float(values.mean())
    if len(parsed[1]) != values.ndim or any(i > n for i, n in zip(parsed[1], values.shape, strict=True)):
        shape = " x ".join(map(str, values.shape))
        raise UsageError(f"{name} is not an entry of {parsed[0]}, which is {shape}")
    return float(values[tuple(i - 1 for i in parsed[1])])


def _checked(schedule: Schedule, namespace: Mapping[str, float]) -> float:
    t = namespace[TIME]
    try:
        value = schedule.value(namespace)
    except UsageError as error:
        raise UsageError(f"{schedule.name} has no value at t = {t:g}: {error}") from None
    # A step may fall to 0 later, but not begin there.
    domain = schedule.domain or (Domain(above=0.0) if schedule.above and t == 0 else Domain(minimum=0.0))
    if bound := domain.broken(value):
        raise UsageError(f"{schedule.name} is {value:.4g} at t = {t:g}, but must be {bound}")
    return value


def first(schedule: Schedule, namespace: Mapping[str, float], begin: float = 0.0) -> float:
    """The value at time `begin` with the user's numbers `namespace`; 1 if it depends on the state.

    Raises `fields.Mistake` if it is not a finite number.
    """
    if schedule.seen:
        return 1.0
    place = "teacher" if schedule.name == "noise" else "training" if schedule.domain is None else "parameters"
    with fields.entry_at(place, schedule.name.partition("_")[0].replace("rate", "rates")):
        switches = {switch.name: _turn(schedule, switch, namespace).at(begin) for switch in schedule.switches}
        return _checked(schedule, {**namespace, **switches, TIME: begin})


def require(parameters: Any, until: float, begin: float = 0.0) -> None:
    """Raise `UsageError` if a value leaves its domain between two times; it is checked before a run begins."""
    if active(parameters):
        for t in moments(parameters, until, begin):
            at(parameters, t)


def moments(parameters: Any, until: float, begin: float = 0.0) -> Iterator[float]:
    """The times between two times at which values are checked before a run."""
    for t in [*(begin + (until - begin) * k / LOOKED_AT for k in range(LOOKED_AT + 1)), *breaks(parameters)]:
        if begin <= t <= until:
            yield t
