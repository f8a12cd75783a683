"""Right-hand side of an autonomous flow at fixed values of its constants, evaluated by the compiled engine."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

LINE = 64
"""Bytes of a cache line of the processor."""


def aligned(values: np.ndarray) -> np.ndarray:
    """Return a copy of numbers (n,) that begins at a cache line, because a vector across two lines takes twice as long.

    >>> aligned(np.ones(3)).ctypes.data % LINE
    0
    """
    room = np.empty(values.size + LINE // 8)
    start = (-room.ctypes.data % LINE) // 8
    found = room[start : start + values.size]
    found[:] = values
    return found


@functools.cache
def held(kernel: Any) -> Any:
    """Return a kernel in the form of compiled code, made once for all runs of a model."""
    from odesim.code import engine

    return engine.hold(kernel)


class Filling:
    """Function fill(y, out), which writes the results of the steps in the tables for a state y.

    `program` = (tables, kernels) are the arguments of compiled loops; `count` numbers are written. Two threads must not
    share the tables, because the engine writes to them.
    """

    def __init__(self, tables: tuple[np.ndarray, np.ndarray, np.ndarray], kernel: Any, count: int) -> None:
        from odesim.code import engine

        self.program, self.count = (tables, held(kernel)), count
        self.flow = engine.flow

    def __call__(self, y: np.ndarray, out: np.ndarray) -> None:
        self.flow(y if y.flags.carray else np.array(y, float), out, *self.program)

    def new(self, y: np.ndarray) -> np.ndarray:
        """Return the written values as a new array."""
        out = np.empty(self.count)
        self(y, out)
        return out


class RightHandSide:
    """dy/dt = F(y), compiled."""

    def __init__(self, fill: Filling) -> None:
        self.fill = fill

    def program(self, n: int) -> tuple[Any, ...]:
        """Return (tables, kernels) for states of n numbers, the arguments of compiled loops."""
        return self.fill.program

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return dy/dt, which does not depend on t."""
        dy = np.empty(y.size)
        self.fill(y, dy)
        return dy

    def loss(self, y: np.ndarray) -> float:
        """Return the loss of a state, if there is one."""
        raise NotImplementedError


def last_made(make: Callable[[tuple[Any, ...]], Any]) -> Callable[[tuple[Any, ...]], Any]:
    """Cache the last result of `make`, and return it again for the same objects as arguments.

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
        last[:] = [(arguments, answer)]  # another thread may write its own result there
        return answer

    return taken
