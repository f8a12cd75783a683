"""Values of training that change: an expression in the time t and the state, or pairs of a time and what holds from it.

A value may jump or have a kink, but at known times alone: `step`, `sign`, `relu` and `abs` take an expression of first
degree in t.  Each of them, and each pair, is a switch s(t) = 1 where its argument is above 0 (from the moment on at
which it is 0 and rises), else 0:

    sign(x) = 2 s - 1,   relu(x) = s x,   abs(x) = (2 s - 1) x,   value = (1 - s) before + s after

Between two switches a value is smooth.  Integrators end a step at every switch, and SGD looks at the number of a step.
An expression may also name entries and means of order parameters, M_ww[1,1] and mean(Q_ww), and memories (`memory`).
What it then is can be known where there is a state alone.
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
"""A moment that lies before a switch by less than this part of its time is taken for it: rounding of sums of times."""
BEFORE = 1e-6
"""In SGD a switch is thrown at the first step that is not more than this part of a step before it."""
NOTHING = 1e-6
"""A value that has fallen to this when a run ends has fallen to 0: an integrator comes so near."""
LOOKED_AT = 1000
"""Times at which a value is looked at before a run begins, beside those of its switches."""


@dataclasses.dataclass(frozen=True)
class Names:
    """Return the names that a value may contain besides the time and order parameters: shared numbers and memories."""

    numbers: Mapping[str, float]
    memories: tuple[str, ...] = ()

    def seen(self, tree: Tree) -> list[str]:
        """The names of the state in an expression."""
        return [name for name in tree.names() if entry(name) or name in self.memories]


@dataclasses.dataclass(frozen=True)
class Switch:
    """A number that is 1 where `argument`, of first degree in t, is above 0, else 0."""

    name: str
    argument: Tree


@dataclasses.dataclass(frozen=True)
class Domain:
    """The bounds of a shared number, `None` where there is none; a value may be `minimum` but not `above`."""

    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None

    def broken(self, value: float) -> str:
        """The bound that a value breaks, in words; "" for one that keeps all."""
        if self.minimum is not None and value < self.minimum:
            return f"at least {self.minimum:g}"
        if self.maximum is not None and value > self.maximum:
            return f"at most {self.maximum:g}"
        return f"above {self.above:g}" if self.above is not None and value <= self.above else ""


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The value of the parameter `name`: the last of `pieces` whose switch in `starts` is 1, the first before all.

    `switches` are all that occur, those of `starts` first; functions that jump or bend are written by them.  `text` is
    what the user wrote, and `above` whether the value must begin above 0 and not only be at least 0.  `seen` are the
    names of the state that it reads.  `domain` is that of a shared number of [parameters]; other values have none.
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
        """Return True if it bends where the state passes a value."""
        return any(piece.calls("relu", "abs") for piece in self.pieces)

    def value(self, known: Mapping[str, float]) -> float:
        """The value where the time, the switches and the shared numbers are known.

        Raises `UsageError` where it is no finite number.
        """
        last = max((k + 1 for k, name in enumerate(self.starts) if known[name] > 0.5), default=0)
        return number(self.pieces[last], known)


def affine(tree: Tree, known: Mapping[str, float]) -> tuple[float, float] | None:
    """(slope, offset) of an expression of first degree in t; None for any other.

    >>> from derivations.declare.grammar import read
    >>> affine(read("2*(t - 5)/4"), {}), affine(read("t*t"), {})
    ((0.5, -2.5), None)
    """
    if tree.kind == "name" and tree.word == TIME:
        return 1.0, 0.0
    if TIME not in tree.names():
        return 0.0, number(tree, known)
    parts = [affine(part, known) for part in tree.parts]
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
    """A switch at given numbers: it changes from `before` to `after` at a time (infinite where it never does)."""

    name: str
    time: float
    before: float
    after: float

    def at(self, t: float) -> float:
        """Its value at a moment, and from the next switch of any value on."""
        return self.after if t >= self.time - EARLY * abs(self.time) else self.before


def active(parameters: Any) -> tuple[Schedule, ...]:
    """The schedules in force: those that no number of the user has replaced."""
    declared = parameters.declaration.schedules
    return tuple(schedule for schedule in declared if getattr(parameters, schedule.name) is None)


def shared(parameters: Any) -> dict[str, float]:
    """The user's shared numbers by name; those that change in time as they are when the stage begins."""
    declared = parameters.declaration
    known = {name: getattr(parameters, name) for name in declared.names}
    found = {name: float(value) for name, value in known.items() if value is not None}
    changing = [schedule for schedule in active(parameters) if schedule.name in known]
    values = {one.name: first(one, found, declared.begin) for one in changing}
    return {name: values.get(name, found.get(name, math.nan)) for name in known}


@functools.lru_cache(maxsize=64)
def turns(parameters: Any) -> tuple[Turn, ...]:
    """All switches in force at the parameters' numbers."""
    known = shared(parameters)
    return tuple(_turn(schedule, switch, known) for schedule in active(parameters) for switch in schedule.switches)


def _turn(schedule: Schedule, switch: Switch, known: Mapping[str, float]) -> Turn:
    line = affine(switch.argument, known)
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
    """The times after 0 at which a value may jump or bend; of several that rounding alone parts, the last."""
    times = sorted({turn.time for turn in turns(parameters) if 0.0 < turn.time < math.inf})
    return tuple(time for time, later in itertools.pairwise([*times, math.inf]) if later - time > EARLY * time)


def switched(parameters: Any, t: float) -> dict[str, float]:
    """The switches by name at a moment."""
    return {turn.name: turn.at(t) for turn in turns(parameters)}


def at(parameters: Any, t: float, seen: Mapping[str, float] | None = None) -> Any:
    """The parameters with numbers in the place of schedules: their values at a moment.

    `seen` are the numbers of the state by their names.  Without them a value that depends on the state stands as 1,
    which what takes its place is a factor of.  Raises `UsageError` for a value that is no finite number, or out of its
    domain.
    """
    changing = active(parameters)
    if not changing:
        return parameters
    known = {**shared(parameters), **switched(parameters, t), TIME: t, **(seen or {})}
    values = {one.name: 1.0 if one.seen and seen is None else _checked(one, known) for one in changing}
    return dataclasses.replace(parameters, **values)


def begun(parameters: Any) -> Any:
    """The same at the beginning of the stage that the parameters are of."""
    return at(parameters, parameters.declaration.begin)


def now(initial: Any) -> Any:
    """The parameters of an initial condition with their values at its time and state."""
    return at(initial.parameters, float(initial.state.get(TIME, 0.0)), seen_of(initial))


def seen_of(initial: Any) -> dict[str, float]:
    """The numbers of a state that the schedules in force read, by their names.

    Raises `UsageError` for an index beyond the units.
    """
    every = dict.fromkeys(name for schedule in active(initial.parameters) for name in schedule.seen)
    state = {**initial.constants, **initial.state}
    return {name: entry_of(state, name) for name in every}


def ended(initial: Any) -> str:
    """Which value falls below 0 at the end of a run; "" where none does."""
    seen, t = seen_of(initial), float(initial.state[TIME])
    known = {**shared(initial.parameters), **switched(initial.parameters, t), TIME: t, **seen}
    for schedule in active(initial.parameters):
        if schedule.seen:
            try:
                value = schedule.value(known)
            except UsageError:
                return f"{schedule.name} is no number beyond t = {t:.6g}"
            if value <= NOTHING:
                return f"{schedule.name} falls below 0 at t = {t:.6g}"
    return ""


def kinked(parameters: Any) -> bool:
    """Return True if a value in force, or the rate of a memory, bends where the state passes a number."""
    memories = parameters.declaration.memories
    return any(one.kinks for one in active(parameters)) or any(one.rate.calls("relu", "abs") for one in memories)


def entry_of(state: Mapping[str, Any], name: str) -> float:
    """The number of a state that a name such as M_ww[1,2], mean(Q_ww) or b2 stands for.

    Order parameters by eigenspace (L, ..) are summed over these, unless a third index, in front, names one.
    """
    found = entry(name)
    if found is None:
        return float(state[name])
    values = np.asarray(state[found[0]], float)
    values = values.sum(0) if values.ndim == 3 and len(found[1]) < 3 else values
    if not found[1]:
        return float(values.mean())
    if len(found[1]) != values.ndim or any(i > n for i, n in zip(found[1], values.shape, strict=True)):
        shape = " x ".join(map(str, values.shape))
        raise UsageError(f"{name} is not an entry of {found[0]}, which is {shape}")
    return float(values[tuple(i - 1 for i in found[1])])


def _checked(schedule: Schedule, known: Mapping[str, float]) -> float:
    t = known[TIME]
    try:
        value = schedule.value(known)
    except UsageError as error:
        raise UsageError(f"{schedule.name} has no value at t = {t:g}: {error}") from None
    # A step may fall to 0 later, but not begin there.
    domain = schedule.domain or (Domain(above=0.0) if schedule.above and t == 0 else Domain(minimum=0.0))
    if bound := domain.broken(value):
        raise UsageError(f"{schedule.name} is {value:.4g} at t = {t:g}, but must be {bound}")
    return value


def first(schedule: Schedule, known: Mapping[str, float], begin: float = 0.0) -> float:
    """The value at the `begin` where the user's numbers are `known`; 1 of one that depends on the state.

    Raises `fields.Mistake` for one that is none.
    """
    if schedule.seen:
        return 1.0
    place = "teacher" if schedule.name == "noise" else "training" if schedule.domain is None else "parameters"
    with fields.entry_at(place, schedule.name.partition("_")[0].replace("rate", "rates")):
        switches = {switch.name: _turn(schedule, switch, known).at(begin) for switch in schedule.switches}
        return _checked(schedule, {**known, **switches, TIME: begin})


def require(parameters: Any, until: float, begin: float = 0.0) -> None:
    """Raise `UsageError` where a value leaves its domain between two times; it is looked at before a run begins."""
    if active(parameters):
        for t in moments(parameters, until, begin):
            at(parameters, t)


def moments(parameters: Any, until: float, begin: float = 0.0) -> Iterator[float]:
    """The times between two at which values are looked at before a run begins."""
    for t in [*(begin + (until - begin) * k / LOOKED_AT for k in range(LOOKED_AT + 1)), *breaks(parameters)]:
        if begin <= t <= until:
            yield t
