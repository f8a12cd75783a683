"""Quantities of a state, such as losses and overlaps, as functions of the flat state with their derivatives."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from derivations import measures
from derivations.measures import Measure
from odesim.errors import UsageError
from odesim.flow.problem import Problem
from odesim.request.parse import nearest

STEP = 1e-4
"""Step of differences in units of the size of the state. First derivatives have errors of 1e-8, second ones of 1e-7."""


@dataclasses.dataclass(frozen=True, eq=False)
class Quantity:
    """Quantity R of a flow's state y (P,): entries of a component reduced to one number, a loss, or an observable.

    `name` is its name for readers, `meaning` its description, `measure` the text of the request.
    """

    name: str
    meaning: str
    measure: Measure
    value: Callable[[np.ndarray], float]

    def gradient(self, y: np.ndarray) -> np.ndarray:
        """Return dR/dy (P,) by central differences of the fourth order."""
        step = STEP * _size(y) * 10
        slopes = np.empty_like(y)
        for k, move in enumerate(np.eye(y.size)):
            first, second = ((self.value(y + s * move) - self.value(y - s * move)) / (2 * s) for s in (step, step / 2))
            slopes[k] = (4 * second - first) / 3
        return slopes

    def curvature(self, y: np.ndarray, sigma: np.ndarray) -> float:
        """Return sum_jk (d^2 R/dj dk) Sigma_jk by second differences along the eigenvectors of Sigma."""
        sizes, vectors = np.linalg.eigh(sigma)
        step, centre, total = 10 * STEP * _size(y), self.value(y), 0.0
        for size, vector in zip(sizes, vectors.T, strict=True):
            if abs(size) > 1e-12 * np.abs(sizes).max(initial=0.0):
                total += size * (self.value(y + step * vector) + self.value(y - step * vector) - 2 * centre) / step**2
        return float(total)


def _size(y: np.ndarray) -> float:
    return max(float(np.abs(y).max(initial=0.0)), 1e-3)


def read(text: str, option: str = "--of") -> Measure:
    """Return the measure for a text. Raises `UsageError` for an invalid text."""
    measure = measures.read(text)
    if measure is None:
        raise UsageError(f"{option} {text!r:.80} cannot be read; write one like {measures.FORMS}")
    if measure.inside is not None or measure.spread:
        raise UsageError(f"{option} {text!r:.80} is a measure of claims with bands; write one like {measures.FORMS}")
    return measure


def names(problem: Problem) -> list[str]:
    """Names of the quantities of a flow: its components except the clock, and its scalars."""
    components = [component.name for component in problem.equations.state]
    return [name for name in components if name != problem.smooth.clock] + scalars(problem)


def scalars(problem: Problem) -> list[str]:
    """Names of the scalar quantities besides the state: the loss, and the scalar observables."""
    loss = ["loss"] if "loss" in problem.functions else []
    return loss + [component.name for component in problem.equations.watched if not component.dims]


def require_variable(problem: Problem, measure: Measure, option: str) -> str:
    """Return the name of the quantity of a measure. Raises `UsageError` for a quantity that the flow does not have."""
    available = names(problem)
    variable = measures.full_name(measure.variable, available)
    if variable not in available:
        raise UsageError(f"{option}: the flow has no quantity {variable!r}; {nearest(variable, available)}")
    return variable


def of_measure(problem: Problem, measure: Measure, option: str = "--of") -> Quantity:
    """Return the quantity of a measure.

    Raises `UsageError` for a name or an entry that the flow does not have.
    """
    variable = require_variable(problem, measure, option)
    raw, meaning = _raw(problem, variable)
    values = np.asarray(raw(problem.start))
    try:
        measure.reduced(values)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    return Quantity(
        _spoken(measure, variable, values.ndim == 0), meaning, measure, lambda y: measure.reduced(np.asarray(raw(y)))
    )


def _spoken(measure: Measure, variable: str, scalar: bool) -> str:
    """Return the name of a quantity in the notation of the user; a reduction of a scalar is the scalar."""
    if measure.place is not None:
        variable = f"{variable}[{measure.place.replace(' ', '')}]"
    if measure.absolute:
        variable = f"abs({variable})"
    return variable if scalar or measure.place is not None else f"{measure.reduction}({variable})"


def _raw(problem: Problem, variable: str) -> tuple[Callable[[np.ndarray], Any], str]:
    """The values of a variable as a function of the flat state, and its meaning."""
    equations = problem.equations
    for component in equations.state:
        if component.name == variable:
            return lambda y: equations.unpack(y)[variable], component.meaning

    def arguments(y: np.ndarray) -> tuple[Any, ...]:
        return problem.onward(y)[0].arguments

    functions = compiled_functions(problem)
    if variable == "loss":
        loss = functions["loss"]
        return lambda y: loss(np.ascontiguousarray(y), *arguments(y)), "population loss"
    watch, names = functions["watch"], [component.name for component in equations.watched]
    place = names.index(variable)
    return lambda y: np.asarray(watch(np.ascontiguousarray(y), *arguments(y)))[place], equations.watched[place].meaning


def compiled_functions(problem: Problem) -> Any:
    """The compiled functions of a flow in numba, for any back end of its case."""
    from odesim.flow.problem import compile_functions

    return problem.functions if problem.case.backend == "numba" else compile_functions(problem.equations, "numba")
