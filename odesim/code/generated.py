"""Functions that are generated from the statement of a tier: for numba, for JAX, and for NumPy."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Equations
from derivations.equations.rounding import mean_square
from odesim.code.prepared import What, fillings
from odesim.code.right_hand_side import Filling, RightHandSide, last_made

if TYPE_CHECKING:
    from derivations.statement import Statement

_traced: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {}
"""Functions for array libraries by the structure of their equations, because JAX compiles again for every new
object.
"""


def generated_functions(equations: Equations, backend: str) -> dict[str, Callable[..., Any]]:
    """Return `flow(t, y, *arguments)`, and `loss(y, *arguments)` and `watch(y, *arguments)` if the statement has them.

    For numba also `derivative(arguments)`, a right-hand side at fixed arguments, which runs call.
    """
    assert equations.code.statement is not None
    statement = equations.code.statement()
    if backend != "numba":
        key = (equations.code.structure, backend)
        if key not in _traced:
            from derivations.equations.functions import array_functions

            _traced[key] = array_functions(statement, backend)
        return _traced[key]
    derivative = last_made(lambda arguments: Generated(statement, arguments))
    functions: dict[str, Callable[..., Any]] = {
        "derivative": derivative,
        "flow": lambda t, y, *arguments: derivative(arguments)(t, y),
    }
    if statement.loss is not None:
        functions["loss"] = lambda y, *arguments: derivative(arguments).loss(y)
    if statement.watched:
        functions["watch"] = lambda y, *arguments: derivative(arguments).watch(y)
    return functions


class Generated(RightHandSide):
    """dy/dt of the flow of a statement at fixed arguments; its loss, and its observables.

    They share one kernel, because three kernels took 1.5 times as long to compile.
    """

    def __init__(self, statement: "Statement", arguments: tuple[Any, ...]) -> None:
        from derivations.equations.tier import layout_of

        numbers = statement.named(arguments)
        self._statement, self._numbers = statement, numbers
        wanted: list[What] = ["rates"]
        if statement.loss is not None:
            wanted.append("loss")
        if statement.watched:
            wanted.append("watch")
        self._fills = fillings(statement, layout_of(statement, numbers), numbers, tuple(wanted))
        self._square = statement.loss_is_square
        super().__init__(self._fills["rates"])

    def loss(self, y: np.ndarray) -> float:
        """Return the loss of the statement; if the state has rows, that of all rows."""
        values = self._fills["loss"].new(y)
        return float(mean_square(values[0], values[1], np.where) if self._square else values.sum())

    def watch(self, y: np.ndarray) -> np.ndarray:
        """Return the further observables, flat, in the order of the statement."""
        return self._fills["watch"].new(y)

    @functools.cached_property
    def programs(self) -> tuple[Filling, Filling]:
        """Return the rates, and the rates with their derivative along a direction, for independent blocks, with one
        kernel.
        """
        from derivations.equations.tier import layout_of

        layout = layout_of(self._statement, self._numbers)
        found = fillings(self._statement, layout, self._numbers, ("rates", "jacobian"))
        return found["rates"], found["jacobian"]
