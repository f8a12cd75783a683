"""Functions that are generated from the statement of a tier: for numba, for JAX, and for NumPy."""

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

What = Literal["rates", "loss", "watch"]
Along = Mapping[str, tuple[str, ...]]
NO_DIRECTION: Along = MappingProxyType({})
_traced: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {}
"""Functions for array libraries by the structure of their equations: JAX compiles anew for every new object."""


def generated_functions(equations: Equations, backend: str) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, *arguments)`, and `loss(y, *arguments)` and `watch(y, *arguments)` where the statement has them.

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
    if statement.watched:
        functions["watch"] = lambda y, *arguments: derivative(arguments).watch(y)
    return functions


class RightHandSide:
    """dy/dt of an autonomous flow at fixed arguments, compiled; its loss, and its observables.

    Observables need most of the arrays of the rates.  Where there are some, rates, loss and observables are one kernel:
    three of their own took half as long again to compile.
    """

    def __init__(self, statement: "Statement", arguments: tuple[Any, ...]) -> None:
        from derivations.equations.tier import layout_of

        self._statement, self._numbers = statement, statement.named(arguments)
        self._layout = layout_of(statement, self._numbers)
        together: tuple[What, ...] = ("rates",)
        if statement.watched:
            together = ("rates", "loss", "watch") if statement.loss is not None else ("rates", "watch")
        made: dict[What, Tables] = {}
        for what in together:
            made[what] = self._tables(what, made.get("rates"))
        self._functions = {what: bound(tables) for what, tables in made.items()}

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        """dy/dt, which does not depend on t."""
        return self._functions["rates"](y)

    def loss(self, y: np.ndarray) -> float:
        """The loss that the statement gives."""
        if "loss" not in self._functions:
            self._functions["loss"] = bound(self._tables("loss"))
        return float(self._functions["loss"](y)[0])

    def watch(self, y: np.ndarray) -> np.ndarray:
        """The observables beside the state, flat, in the order of the statement."""
        return self._functions["watch"](y)

    def _tables(self, what: What, beside: "Tables | None" = None) -> "Tables":
        return tables_of(self._statement, self._layout, self._numbers, what, beside=beside)


def bound(tables: "Tables") -> Callable[[np.ndarray], np.ndarray]:
    """The numbers of some tables as a function of the flat state, with their kernel compiled."""
    from odesim.code import engine
    from odesim.code.module_cache import load_module

    kernels = engine.hold(load_module("kernel", tables.kernel_text()).kernel)
    arrays, count = tables.steps.arrays(), tables.count

    def evaluate(y: np.ndarray) -> np.ndarray:
        out = np.empty(count)
        engine.evaluate(y if y.flags.carray else np.array(y, float), out, arrays, kernels)
        return out

    return evaluate


def lowered(
    statement: "Statement",
    layout: Layout,
    numbers: Mapping[str, Any],
    what: What,
    along: Along = NO_DIRECTION,
    shortcuts: bool = False,
) -> "Program":
    """The program of what is asked of a statement, after all passes; `along` and `shortcuts` are those of `lower`."""
    from derivations.equations.lower import lower

    symmetric = frozenset(part.name for part in layout.parts if not isinstance(part, Dense))
    return list(lower(statement, numbers, symmetric, what, along, shortcuts).values())[-1]


def tables_of(
    statement: "Statement",
    layout: Layout,
    numbers: Mapping[str, Any],
    what: What,
    along: Along = NO_DIRECTION,
    beside: "Tables | None" = None,
) -> "Tables":
    """The tables of that program, for a flat state that is laid out so and given numbers of the constants."""
    from derivations.equations.arrays import setup
    from odesim.code.tables import Tables

    program = lowered(statement, layout, numbers, what, along, shortcuts=True)
    return Tables(program, layout, setup(program, numbers), beside)


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

    def watch(y: Any, *arguments: Any) -> Any:
        found = evaluated("watch", y, statement.named(arguments))
        return library.concatenate([library.reshape(value, -1) for value in found.values()])

    functions: dict[str, Callable[..., Any]] = {"flow": flow}
    if statement.loss is not None:
        functions["loss"] = lambda y, *arguments: evaluated("loss", y, statement.named(arguments))["loss"]
    if statement.watched:
        functions["watch"] = watch
    return functions
