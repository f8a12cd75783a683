"""What a derivative needs that is called by its address (`derivations.contract.Addressed`).

`odesim.code.compile` copies these functions, unchanged, after the `slope` of a group; nothing here runs uncompiled.
"""

from collections.abc import Callable
from typing import Any

slope: Callable[..., float]
hold: Callable[..., int]
borrowed: Callable[..., Any]

SLOPED = "f8[::1], f8[::1], i8 -> f8"
"""The types that `sloped` takes."""


def sloped(y, dy, at):
    """`slope` with its arguments at an address."""
    return slope(y, dy, borrowed(at))


def held(p, place):
    """Copy the arguments of a derivative to an address; the bytes that they take."""
    return hold(p, place)


WRAPPED = (f"{__name__}:sloped", f"{__name__}:held")
"""Ends the group of a `slope`, whose module has the type of p as `KIND`."""
