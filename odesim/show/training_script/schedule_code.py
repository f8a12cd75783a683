"""Step, noise, decay and rates of a script: constants, or arrays over the steps if they are time-dependent."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from derivations.declare import schedules, symbols
from derivations.declare.schedules import Schedule
from odesim.show.training_script.names import word
from odesim.show.training_script.printers import code

ROUNDING = 1e-9
"""Part of a step by which the first step with a value may be before the time of this value."""


@dataclasses.dataclass(frozen=True)
class Values:
    """Texts of a script: `lines` that make the arrays, and for every trained array the factor of its learning rate.

    `at` maps "step", "decay" and "noise" to their expressions in the loop over the steps k.
    """

    lines: tuple[str, ...]
    at: Mapping[str, str]
    factors: Mapping[str, str]

    @property
    def changing(self) -> bool:
        """True if a value depends on the step."""
        return bool(self.lines)


def values(parameters: Any, rates: Mapping[str, str]) -> Values:
    """Return the values of a script; `rates` maps every trained array to the parameter of its rate ("" for none)."""
    active = {schedule.name: schedule for schedule in schedules.active(parameters)}
    lines = ["t = tick * np.arange(steps)  # the time of every step"] if active else []
    for schedule in active.values():
        lines += _array(schedule, parameters)

    def at(name: str) -> str:
        return f"{name}[k]" if name in active else name

    return Values(
        tuple(lines), {name: at(name) for name in ("step", "decay", "noise")},
        {name: at(rate) if rate else "" for name, rate in rates.items()},
    )  # fmt: skip


def _array(schedule: Schedule, parameters: Any) -> list[str]:
    """Lines that make the array of a value over the steps."""
    turns = {turn.name: turn for turn in schedules.turns(parameters)}
    inner = [one.name for one in schedule.switches if one.name not in schedule.starts]
    lines = [f"{name} = {_switch(turns[name])}" for name in inner]
    pieces = [code(_named(symbols.build(piece, ())), "numpy") for piece in schedule.pieces]
    text = pieces[0]
    for start, piece in zip(schedule.starts, pieces[1:], strict=True):
        text = f"np.where({_since(turns[start].time)}, {piece}, {text})"
    return [*lines, f"{schedule.name} = np.zeros(steps) + {text}  # as declared: {schedule.text}"]


def _named(expression: Any) -> Any:
    """Return an expression with the names of the user's numbers in a script; the time stays t."""
    import sympy

    return expression.xreplace({
        one: sympy.Symbol(word(one.name), real=True) for one in expression.free_symbols if one.name != schedules.TIME
    })  # fmt: skip


def _switch(turn: Any) -> str:
    if math.isinf(turn.time):
        return repr(turn.before)
    return f"np.where({_since(turn.time)}, {turn.after!r}, {turn.before!r})"


def _since(time: float) -> str:
    return f"t >= {time - ROUNDING * max(time, 1.0):.12g}" if time > 0 else "t >= 0"
