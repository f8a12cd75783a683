"""What a derivative needs that is called by its address (`derivations.contract.Addressed`).

`odesim.code.compile` copies this function, unchanged, after the `slope` of a group; nothing here runs uncompiled.
"""

from collections.abc import Callable
from typing import Any

slope: Callable[..., float]
borrowed: Callable[..., Any]

SLOPED = "f8[::1], f8[::1], i8 -> f8"
"""The types that `sloped` takes."""


def sloped(y, dy, at):
    """`slope` with its arguments at an address."""
    return slope(y, dy, borrowed(at))


WRAPPED = (f"{__name__}:sloped",)
"""Ends the group of a `slope`, whose module has the type of p as `KIND`."""
