"""The right-hand side of a statement by whole arrays, for a program that adds to it."""

from collections.abc import Callable
from typing import Any

from derivations.equations import arrays
from derivations.equations.lower import lower
from derivations.equations.program import Program
from derivations.equations.tier import layout_of
from derivations.statement import Statement


def rates_function(statement: Statement, backend: str) -> Callable[..., Any]:
    """flow(t, y, *arguments) with NumPy or traced by JAX; lowered once for every set of sizes."""
    library, special = arrays.libraries(backend)
    programs: dict[Any, Program] = {}

    def flow(t: Any, y: Any, *arguments: Any) -> Any:
        numbers = statement.named(arguments)
        layout = layout_of(statement, numbers)
        sizes = tuple((name, value) for name, value in numbers.items() if isinstance(value, int))
        if sizes not in programs:
            programs[sizes] = list(lower(statement, numbers, layout.symmetric).values())[-1]
        rates = arrays.evaluate(programs[sizes], numbers, arrays.unpacked(layout, y, library), library, special)
        return arrays.packed(layout, rates, library)

    return flow
