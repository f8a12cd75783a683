"""A derivative that is called by its address, as one step of the compiled engine."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.addressed import SLOPED
from derivations.contract import Addressed
from derivations.equations.options import OPTIONS
from odesim.code.addressed import by_address
from odesim.code.engine import KERNEL
from odesim.code.module_cache import compiled
from odesim.code.right_hand_side import Filling, RightHandSide, last_made
from odesim.code.steps import HEAD, LOOPS, RATES, WIDTH, head_of


@compiled(KERNEL, **OPTIONS)
def through_address(which, x, s, z, g):
    """The derivative and the loss of the state x[:n]: g = (n, address of the function, that of its arguments)."""
    n = g[0]
    x[2 * n] = by_address(SLOPED, np.int64(g[1]), (x[:n], x[n : 2 * n], np.int64(g[2])))  # pyright: ignore[reportCallIssue]


class Derivative(RightHandSide):
    """dy/dt of an autonomous flow at fixed arguments."""

    def __init__(self, code: Addressed, made: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        from odesim.code import addressed, compile

        group = compile.common(code.group)
        self._given = made(*arguments)  # whose arrays are lent
        self._store = addressed.laid_out(addressed.kind_of(code.kind), self._given)
        place = (addressed.address(group["sloped"], SLOPED), self._store.ctypes.data)
        self._place, self._fills = place, dict[int, Filling]()

    def _filling(self, n: int) -> Filling:
        """Two steps for a state of n numbers: the derivative behind the state, then a copy of it."""
        if n not in self._fills:
            at = HEAD + 2 * WIDTH
            steps = np.zeros((2, WIDTH), np.uint64)
            steps[0, :3], steps[1, :3] = (LOOPS, 3, at), (RATES, n, 0)
            room = [2 * n + 1 + 16 * k for k in range(4)]
            head = np.array(head_of(2, room), np.uint64)
            N = np.concatenate([head, steps.ravel(), np.array([n, *self._place], np.uint64)])
            W, T = np.zeros(2 * n + 1 + 64), np.arange(n, 2 * n, dtype=np.uint32)
            self._fills[n] = Filling((W, T, N), through_address, n)
        return self._fills[n]

    def program(self, n: int) -> tuple[Any, ...]:
        """(tables, kernels) for states of n numbers."""
        return self._filling(n).program

    def both(self, y: np.ndarray) -> tuple[np.ndarray, float]:
        """dy/dt, and the loss where the function meets it on the way (else 0)."""
        dy, fill = np.empty(y.size), self._filling(y.size)
        fill(y, dy)
        return dy, float(fill.program[0][0][2 * y.size])

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        return self.both(y)[0]

    def loss(self, y: np.ndarray) -> float:
        """The loss of a state."""
        return self.both(y)[1]


def roles(code: Addressed, made: Callable[..., Any]) -> Mapping[str, Callable[..., Any]]:
    """`derivative(arguments)`, and by it flow(t, y, *arguments) and, where it is known, loss(y, *arguments)."""
    derivative = last_made(lambda arguments: Derivative(code, made, arguments))
    found: dict[str, Callable[..., Any]] = {
        "derivative": derivative,
        "flow": lambda t, y, *arguments: derivative(arguments)(t, y),
    }
    if code.loss:
        found["loss"] = lambda y, *arguments: derivative(arguments).loss(y)
    return found
