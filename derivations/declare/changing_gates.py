"""Gates whose slope or bias is time-dependent, phi(w) = F(beta(t) w): limits of derivations at a fixed slope.

A closed form is derived for one sign of a slope, and a series has coefficients for one slope.
"""

from collections.abc import Iterator
from typing import Any

from derivations.contract import UsageError
from derivations.declare import schedules, symbols
from derivations.declare.gates import SERIES, Gate, Open
from derivations.declare.kernels import shapes_of

SIGNLESS = ("exp",)
"""Gates whose closed forms hold for slopes of both signs."""


def open_series(parameters: Any) -> str:
    """Return the reason why a gate has no series (a time-dependent slope), or ""."""
    gate = next((gate for gate in _changing(parameters) if gate.kind in SERIES), None)
    if gate is None:
        return ""
    return f"the means of {gate.kind} are series for one slope, but {symbols.plain(gate.slope)} is time-dependent"


def require_signs(parameters: Any, until: float, begin: float) -> None:
    """Raise `UsageError` if the slope of a gate changes its sign between two times, because closed forms hold for one
    sign.
    """
    gates = [gate for gate in _changing(parameters) if gate.kind not in SIGNLESS]
    if not gates:
        return
    for t in schedules.moments(parameters, until, begin):
        namespace = schedules.shared(schedules.at(parameters, t))
        for gate in gates:
            if float(gate.slope.subs({symbol: namespace[str(symbol)] for symbol in gate.slope.free_symbols})) <= 0:
                raise UsageError(
                    f"tier exact: the closed form of {gate.kind} is that of one sign of its slope, but "
                    f"{symbols.plain(gate.slope)} changes its sign by t = {t:g}; take -p tier=sampled"
                )


def _changing(parameters: Any) -> Iterator[Gate]:
    """Return the gates whose slope or bias contains a time-dependent number."""
    declared = parameters.declaration
    changing = {timed_number.name for timed_number in schedules.active(parameters)} & set(declared.names)
    if not changing:
        return
    try:
        shapes = shapes_of(declared, tuple(schedules.shared(parameters).values()))
    except Open:
        return
    for gate in (gate for shape in shapes for gate in shape.gates):
        if {str(symbol) for symbol in gate.slope.free_symbols | gate.bias.free_symbols} & changing:
            yield gate
