"""A derivative that compiled loops call by its address, at given run-time arguments, and what Python calls of it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.addressed import SLOPED
from derivations.contract import Addressed, Shared

by_address: Callable[..., float]
EVALUATED = ("derivations.addressed:SLOPED", f"{__name__}:evaluate")
"""The group of what Python calls, for all derivatives, and begins those of loops that call them."""
SHARED = (Shared(EVALUATED, "evaluate", "f8[::1], f8[::1], UniTuple(i8, 2)", entered=True),)
"""What a process beside can compile while a flow is derived."""


def evaluate(y, dy, place):
    """Fill dy with a derivative, place = (its address, that of its arguments); returns the loss, where it is known."""
    return by_address(SLOPED, place[0], (y, dy, place[1]))


class Derivative:
    """dy/dt of an autonomous flow at fixed arguments.

    `place` = (address of the function, address of its arguments) is what compiled loops are given; it is good for as
    long as the object lives.
    """

    def __init__(self, code: Addressed, made: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        from odesim.code import addressed, compile

        group = compile.common(code.group)
        self._given = made(*arguments)  # whose arrays are lent
        self._store = addressed.laid_out(addressed.kind_of(code.kind), self._given)
        self._evaluate = compile.common(EVALUATED)["evaluate"]
        self.place = (addressed.address(group["sloped"], SLOPED), self._store.ctypes.data)

    def both(self, y: np.ndarray) -> tuple[np.ndarray, float]:
        """dy/dt, and the loss where the function meets it on the way (else 0)."""
        dy = np.empty(y.size)
        # One type for all states: what is read-only, or a part of another array, is copied.
        return dy, self._evaluate(y if y.flags.carray else np.array(y), dy, self.place)

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """dy/dt."""
        return self.both(y)[0]


def roles(code: Addressed, made: Callable[..., Any]) -> Mapping[str, Callable[..., Any]]:
    """`derivative(arguments)`, and by it flow(t, y, *arguments) and, where it is known, loss(y, *arguments)."""
    derivative = last_made(lambda arguments: Derivative(code, made, arguments))
    found: dict[str, Callable[..., Any]] = {
        "derivative": derivative,
        "flow": lambda t, y, *arguments: derivative(arguments)(t, y),
    }
    if code.loss:
        found["loss"] = lambda y, *arguments: derivative(arguments).both(y)[1]
    return found


def last_made(make: Callable[[tuple[Any, ...]], Any]) -> Callable[[tuple[Any, ...]], Any]:
    """`make` of run-time arguments, with the last answer kept: it is given again for the same objects.

    >>> import numpy as np
    >>> taken = last_made(lambda arguments: [arguments[0].sum()])
    >>> x = np.ones(2)
    >>> taken((x,)) is taken((x,)), taken((x,)) is taken((np.ones(2),))
    (True, False)
    """
    last: list[tuple[tuple[Any, ...], Any]] = []

    def taken(arguments: tuple[Any, ...]) -> Any:
        for known, answer in last:
            if len(known) == len(arguments) and all(a is b for a, b in zip(known, arguments, strict=True)):
                return answer
        answer = make(arguments)
        last[:] = [(arguments, answer)]  # another thread may put its own there
        return answer

    return taken
