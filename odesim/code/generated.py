"""Functions that are generated from the statement of a tier: for numba, for JAX, and for NumPy."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from derivations.contract import Equations
from derivations.contract.layout import Dense, Layout
from odesim.code.derivative import last_made

if TYPE_CHECKING:
    from derivations.equations.program import Program
    from derivations.statement import Statement
    from odesim.code.tables import Tables

What = Literal["rates", "loss"]
Along = Mapping[str, tuple[str, ...]]
NO_DIRECTION: Along = MappingProxyType({})
_traced: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {}
"""Functions for array libraries by the structure of their equations: JAX compiles anew for every new object."""


def generated_functions(equations: Equations, backend: str) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, *arguments)`, and `loss(y, *arguments)` where the statement has one, for a back end.

    For numba also `derivative(arguments)`, a right-hand side at fixed arguments, which is what a run calls.
    """
    assert equations.code.statement is not None
    statement = equations.code.statement()
    if backend != "numba":
        key = (equations.code.structure, backend)
        if key not in _traced:
            _traced[key] = _array_functions(statement, backend)
        return _traced[key]
    derivative = last_made(lambda arguments: RightHandSide(statement, arguments))
    functions: dict[str, Callable[..., Any]] = {
        "derivative": derivative,
        "flow": lambda t, y, *arguments: derivative(arguments)(t, y),
    }
    if statement.loss is not None:
        functions["loss"] = lambda y, *arguments: derivative(arguments).loss(y)
    return functions


class RightHandSide:
    """dy/dt of an autonomous flow at fixed arguments, compiled; and its loss."""

    def __init__(self, statement: "Statement", arguments: tuple[Any, ...]) -> None:
        from derivations.equations.tier import layout_of

        self._statement, self._numbers = statement, statement.named(arguments)
        self._layout = layout_of(statement, self._numbers)
        self._rates = self._compiled("rates")

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """dy/dt, which does not depend on t."""
        dy = np.empty(y.size)
        self._rates(y, dy)
        return dy

    def loss(self, y: np.ndarray) -> float:
        """The loss that the statement gives."""
        value = np.empty(1)
        self._loss(y, value)
        return float(value[0])

    @functools.cached_property
    def _loss(self) -> Callable[[np.ndarray, np.ndarray], None]:
        return self._compiled("loss")

    def _compiled(self, what: What) -> Callable[[np.ndarray, np.ndarray], None]:
        """Write the tables of the rates or of the loss, compile their kernel, and bind both."""
        return _filling(tables_of(self._statement, self._layout, self._numbers, what))


def _filling(tables: "Tables") -> Callable[[np.ndarray, np.ndarray], None]:
    """fill(y, out) of some tables, with their kernel compiled."""
    from odesim.code import engine
    from odesim.code.module_cache import load_module

    kernels = engine.hold(load_module("kernel", tables.kernel_text()).kernel)
    arrays = tables.steps.arrays()

    def fill(y: np.ndarray, out: np.ndarray) -> None:
        engine.evaluate(y if y.flags.carray else np.array(y, float), out, arrays, kernels)

    return fill


def bound(tables: "Tables") -> Callable[[np.ndarray], np.ndarray]:
    """The rates of some tables as a function of the flat state."""
    fill = _filling(tables)

    def rates(y: np.ndarray) -> np.ndarray:
        out = np.empty(y.size)
        fill(y, out)
        return out

    return rates


def lowered(
    statement: "Statement", layout: Layout, numbers: Mapping[str, Any], what: What, along: Along = NO_DIRECTION
) -> "Program":
    """The program of the rates or of the loss of a statement, after all passes; `along` is that of `lower`."""
    from derivations.equations.lower import lower

    symmetric = frozenset(part.name for part in layout.parts if not isinstance(part, Dense))
    return list(lower(statement, numbers, symmetric, what, along).values())[-1]


def tables_of(
    statement: "Statement", layout: Layout, numbers: Mapping[str, Any], what: What, along: Along = NO_DIRECTION
) -> "Tables":
    """The tables of that program, for a flat state that is laid out so and given numbers of the constants."""
    from derivations.equations.arrays import setup
    from odesim.code.tables import Tables

    program = lowered(statement, layout, numbers, what, along)
    return Tables(program, layout, setup(program, numbers))


def _array_functions(statement: "Statement", backend: str) -> dict[str, Callable[..., Any]]:
    """The same by whole arrays, with NumPy or traced by JAX."""
    from derivations.equations import arrays
    from derivations.equations.tier import layout_of

    library, special = arrays.libraries(backend)
    programs: dict[Any, Any] = {}

    def evaluated(what: What, y: Any, numbers: dict[str, Any]) -> dict[str, Any]:
        layout = layout_of(statement, numbers)
        sizes = tuple((name, value) for name, value in numbers.items() if isinstance(value, int))
        if (what, sizes) not in programs:
            programs[what, sizes] = lowered(statement, layout, numbers, what)
        program = programs[what, sizes]
        return arrays.evaluate(program, numbers, arrays.unpacked(layout, y, library), library, special)

    def flow(t: Any, y: Any, *arguments: Any) -> Any:
        numbers = statement.named(arguments)
        return arrays.packed(layout_of(statement, numbers), evaluated("rates", y, numbers), library)

    functions: dict[str, Callable[..., Any]] = {"flow": flow}
    if statement.loss is not None:
        functions["loss"] = lambda y, *arguments: evaluated("loss", y, statement.named(arguments))["loss"]
    return functions
