"""The functions of a statement by whole arrays, with NumPy or traced by JAX."""

from collections.abc import Callable
from typing import Any, Literal

from derivations.equations import arrays
from derivations.equations.lower import lower
from derivations.equations.rounding import mean_square
from derivations.equations.tier import layout_of
from derivations.statement import Statement


def array_functions(statement: Statement, backend: str) -> dict[str, Callable[..., Any]]:
    """`flow(t, y, *arguments)`, and `loss(y, *arguments)` and `watch(y, *arguments)` if the statement has them.

    `backend` is "numpy" or "jax". The statement is lowered once for every set of sizes.
    """
    library, special = arrays.libraries(backend)
    programs: dict[Any, Any] = {}

    def evaluated(what: Literal["rates", "loss", "watch"], y: Any, numbers: dict[str, Any]) -> dict[str, Any]:
        layout = layout_of(statement, numbers)
        sizes = tuple((name, value) for name, value in numbers.items() if isinstance(value, int))
        if (what, sizes) not in programs:
            programs[what, sizes] = list(lower(statement, numbers, layout.symmetric, what).values())[-1]
        program = programs[what, sizes]
        return arrays.evaluate(program, numbers, arrays.unpacked(layout, y, library), library, special)

    def flow(t: Any, y: Any, *arguments: Any) -> Any:
        numbers = statement.named(arguments)
        return arrays.packed(layout_of(statement, numbers), evaluated("rates", y, numbers), library)

    def watch(y: Any, *arguments: Any) -> Any:
        found = evaluated("watch", y, statement.named(arguments))
        return library.concatenate([library.reshape(value, -1) for value in found.values()])

    functions: dict[str, Callable[..., Any]] = {"flow": flow}

    def loss(y: Any, *arguments: Any) -> Any:
        found = evaluated("loss", y, statement.named(arguments))
        return mean_square(found["loss"], found["loss_size"], library.where) if "loss_size" in found else found["loss"]

    if statement.loss is not None:
        functions["loss"] = loss
    if statement.watched:
        functions["watch"] = watch
    return functions
