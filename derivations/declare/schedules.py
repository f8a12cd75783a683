"""Values of training that change in time: an expression in the time t, or pairs of a time and what holds from it on.

A value may jump or have a kink, but at known times alone: `step`, `sign`, `relu` and `abs` take an expression of first
degree in t.  Each of them, and each pair, is a switch s(t) = 1 where its argument is above 0 (from the moment on at
which it is 0 and rises), else 0:

    sign(x) = 2 s - 1,   relu(x) = s x,   abs(x) = (2 s - 1) x,   value = (1 - s) before + s after

Between two switches a value is smooth.  Integrators end a step at every switch, and SGD looks at the number of a step.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

from derivations.contract import UsageError
from derivations.declare import fields
from derivations.declare.grammar import Tree, number

TIME = "t"
"""The name of the time in an expression, and of the clock among the order parameters."""
SWITCHING = ("step", "sign", "relu", "abs")
SMOOTH = ("sqrt", "log", "exp", "tanh", "cos", "sin", "logistic")
"""The functions of a value."""
EARLY = 1e-9
"""A moment that lies before a switch by less than this part of its time is taken for it: rounding of sums of times."""
BEFORE = 1e-6
"""In SGD a switch is thrown at the first step that is not more than this part of a step before it."""
LOOKED_AT = 1000
"""Times at which a value is looked at before a run begins, beside those of its switches."""


@dataclasses.dataclass(frozen=True)
class Switch:
    """A number that is 1 where `argument`, of first degree in t, is above 0, else 0."""

    name: str
    argument: Tree


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The value of the parameter `name`: the last of `pieces` whose switch in `starts` is 1, the first before all.

    `switches` are all that occur, those of `starts` first; functions that jump or bend are written by them.  `text` is
    what the user wrote, and `above` whether the value must begin above 0 and not only be at least 0.
    """

    name: str
    text: str
    pieces: tuple[Tree, ...]
    starts: tuple[str, ...]
    switches: tuple[Switch, ...]
    above: bool

    def value(self, known: Mapping[str, float]) -> float:
        """The value where the time, the switches and the shared numbers are known.

        Raises `UsageError` where it is no finite number.
        """
        last = max((k + 1 for k, name in enumerate(self.starts) if known[name] > 0.5), default=0)
        return number(self.pieces[last], known)


def value(
    table: Mapping[str, Any], key: str, place: str, shared: Mapping[str, float], *, named: str = "", above: bool = False
) -> float | Schedule:
    """Return a number, or the schedule of the parameter `named` (by default `key`).

    Args:
        table: the entries of a table of the declaration, with `key` among them.
        place: the name of the table, for messages.
        shared: the defaults of the user's numbers, which an expression may use.
        above: whether 0 is refused.
    """
    given, name = table[key], named or key
    if isinstance(given, list):
        return _pairs(given, key, place, shared, name, above)
    if not isinstance(given, str):
        bound: Any = {"above": 0.0} if above else {"minimum": 0.0}
        return fields.real(table, key, place, **bound)
    switches: list[Switch] = []
    tree = _piece(given, key, place, shared, name, switches)
    return Schedule(name, given.strip(), (tree,), (), tuple(switches), above)


def _pairs(
    given: list[Any], key: str, place: str, shared: Mapping[str, float], name: str, above: bool
) -> Schedule:  # fmt: skip
    """The schedule of pairs [time, value]."""
    if not given or not all(isinstance(pair, list) and len(pair) == 2 for pair in given):
        raise fields.Mistake(
            f"{key} is a number, an expression in t, or a list of pairs such as [[0, 1.0], [50, 0.2]]", place, key
        )
    times = [fields.real({key: time}, key, place, minimum=0.0) for time, _ in given]
    if times[0] != 0.0:
        raise fields.Mistake(f"times of {key} rise from 0, but {times[0]:g} stands first", place, key)
    wrong = next((k for k in range(1, len(times)) if times[k] <= times[k - 1]), 0)
    if wrong:
        raise fields.Mistake(
            f"times of {key} rise from 0, but {times[wrong]:g} stands after {times[wrong - 1]:g}", place, key
        )
    switches = [
        Switch(f"{name}_from_{k}", Tree("-", parts=(Tree("name", TIME), Tree("number", value=time))))
        for k, time in enumerate(times[1:], 1)
    ]
    starts = tuple(switch.name for switch in switches)
    pieces = tuple(_piece(entry, key, place, shared, name, switches) for _, entry in given)
    text = ", ".join(f"{entry} from {time:g} on" for time, (_, entry) in zip(times, given, strict=True))
    return Schedule(name, text, pieces, starts, tuple(switches), above)


def _piece(
    given: Any, key: str, place: str, shared: Mapping[str, float], name: str, switches: list[Switch]
) -> Tree:  # fmt: skip
    """Return the tree of an expression or a number, and append its switches to `switches`."""
    if not isinstance(given, str):
        return Tree("number", value=fields.real({key: given}, key, place))
    tree = fields.expression(given, place, key, (TIME, *shared))
    wrong = [call.word for call in tree.walk() if call.kind == "call" and call.word not in (*SMOOTH, *SWITCHING)]
    if wrong:
        raise fields.Mistake(
            f"{key} takes the functions {', '.join((*SMOOTH, *SWITCHING))}, not {wrong[0]}", place, key
        )

    def switched(node: Tree) -> Tree:
        if node.kind != "call" or node.word not in SWITCHING:
            return dataclasses.replace(node, parts=tuple(map(switched, node.parts)))
        (argument,) = node.parts
        if affine(argument, shared) is None:
            raise fields.Mistake(
                f"a value jumps or bends only at times: {node.word}(..) takes an expression of first degree in t, and "
                f"{given!r} has another",
                place,
                key,
            )
        switch = Tree("name", f"{name}_switch_{len(switches) + 1}")
        switches.append(Switch(switch.word, argument))
        twice = Tree("*", parts=(Tree("number", value=2.0), switch))
        sign = Tree("-", parts=(twice, Tree("number", value=1.0)))
        factor = {"step": switch, "sign": sign, "relu": switch, "abs": sign}[node.word]
        return factor if node.word in ("step", "sign") else Tree("*", parts=(factor, argument))

    return switched(tree)


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
    """The user's shared numbers by name."""
    return {name: float(getattr(parameters, name)) for name in parameters.declaration.names}


@functools.lru_cache(maxsize=64)
def turns(parameters: Any) -> tuple[Turn, ...]:
    """All switches in force at the parameters' numbers."""
    known = shared(parameters)
    return tuple(_turn(schedule, switch, known) for schedule in active(parameters) for switch in schedule.switches)


def _turn(schedule: Schedule, switch: Switch, known: Mapping[str, float]) -> Turn:
    line = affine(switch.argument, known)
    if line is None:
        raise UsageError(
            f"{schedule.name} is {schedule.text!r}: at these numbers a value in it jumps or bends at what is no "
            "expression of first degree in t"
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


def at(parameters: Any, t: float) -> Any:
    """The parameters with numbers in the place of schedules: their values at a moment.

    Raises `UsageError` for a value that is no finite number, or out of its domain.
    """
    changing = active(parameters)
    if not changing:
        return parameters
    known = {**shared(parameters), **switched(parameters, t), TIME: t}
    values = {schedule.name: _checked(schedule, known) for schedule in changing}
    return dataclasses.replace(parameters, **values)


def now(initial: Any) -> Any:
    """The parameters of an initial condition with their values at its time."""
    return at(initial.parameters, float(initial.state.get(TIME, 0.0)))


def _checked(schedule: Schedule, known: Mapping[str, float]) -> float:
    t = known[TIME]
    try:
        value = schedule.value(known)
    except UsageError as error:
        raise UsageError(f"{schedule.name} has no value at t = {t:g}: {error}") from None
    begins = schedule.above and t == 0  # a step may fall to 0 later, but not begin there
    if value < 0 or (begins and value == 0):
        bound = "above" if begins else "at least"
        raise UsageError(f"{schedule.name} is {value:.4g} at t = {t:g}, but must be {bound} 0")
    return value


def first(schedule: Schedule, known: Mapping[str, float]) -> float:
    """The value at time 0 where the user's numbers are `known`.  Raises `fields.Mistake` for one that is none."""
    place = "teacher" if schedule.name == "noise" else "training"
    with fields.entry_at(place, schedule.name.partition("_")[0].replace("rate", "rates")):
        switches = {switch.name: _turn(schedule, switch, known).at(0.0) for switch in schedule.switches}
        return _checked(schedule, {**known, **switches, TIME: 0.0})


def require(parameters: Any, until: float) -> None:
    """Raise `UsageError` where a value leaves its domain before a time; it is looked at before a run begins."""
    if active(parameters):
        for t in [*(until * k / LOOKED_AT for k in range(LOOKED_AT + 1)), *breaks(parameters)]:
            if t <= until:
                at(parameters, t)
