"""Quantities of a state, such as losses and overlaps, as functions of the flat state that JAX can differentiate."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from derivations.measures import Measure
from odesim.errors import UsageError
from odesim.flow.problem import Problem
from odesim.study import rebuild
from odesim.study.quantities import require_variable


@dataclasses.dataclass(frozen=True)
class TracedQuantity:
    """Quantity R(y, arguments) of a flow, hashable, so that its programs can be cached.

    Attributes:
        variable: Name of a component, of "loss", or of an observable.
        role: "state", "loss" or "watch".
        places: Places of the entries in the flat state (-1: a constant), or the number of the observable.
        constants: Values of the constant entries.
        reduction: "max", "min" or "mean" over the entries.
        absolute: Take absolute values before.
    """

    variable: str
    role: str
    places: tuple[int, ...]
    constants: tuple[float, ...]
    reduction: str
    absolute: bool

    def value(self, functions: Mapping[str, Callable[..., Any]], y: Any, arguments: tuple[Any, ...]) -> Any:
        """Return the quantity of a flat state y (P,) at run-time arguments, a traced number."""
        import jax.numpy as jnp

        if self.role == "state":
            places = np.array(self.places)
            entries = jnp.where(places >= 0, y[np.maximum(places, 0)], jnp.array(self.constants))
        elif self.role == "loss":
            entries = jnp.reshape(functions["loss"](y, *arguments), (1,))
        else:
            entries = jnp.ravel(functions["watch"](y, *arguments))[np.array(self.places)]
        entries = jnp.abs(entries) if self.absolute else entries
        reduce = {"max": jnp.max, "min": jnp.min, "mean": jnp.mean}[self.reduction]
        return reduce(entries)


def traced_quantity(problem: Problem, measure: Measure, option: str = "--of") -> TracedQuantity:
    """Return the quantity of a measure.

    Raises `UsageError` for a name or an entry that the flow does not have.
    """
    variable = require_variable(problem, measure, option)
    y = problem.start
    components = rebuild.places(problem.equations, y.size)
    if variable in components:
        places = components[variable]
        values = np.asarray(problem.equations.unpack(y)[variable], float)
        try:
            places, values = measure.chosen(places), measure.chosen(values)
        except ValueError as error:
            raise UsageError(f"{option}: {error}") from None
        return TracedQuantity(
            variable, "state", tuple(int(k) for k in places.ravel()), tuple(float(v) for v in values.ravel()),
            measure.reduction, measure.absolute,
        )  # fmt: skip
    if measure.entry is not None:
        raise UsageError(f"{option}: {variable} is one number and has no entry [{measure.place}]")
    if variable == "loss":
        return TracedQuantity(variable, "loss", (0,), (), measure.reduction, measure.absolute)
    place = 0
    for component in problem.equations.watched:
        if component.name == variable:
            break
        if component.dims:
            raise UsageError(f"{option}: the derivative of {variable} is not available for this tier; use the loss")
        place += 1
    return TracedQuantity(variable, "watch", (place,), (), measure.reduction, measure.absolute)
