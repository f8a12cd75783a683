"""Dependence of a flow on its parameters: start, run-time arguments and the times of breaks, with their derivatives.

A flow is y' = F(y, a), y(0) = y0. Parameters p enter by a(p), y0(p) and the times t_k(p) at which schedules jump. All
three are computed by NumPy from the parameters, and each is a smooth function of few operations, so that differences of
the sixth order give its derivatives to rounding. JAX computes the derivative of the flow itself.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from derivations.contract import Dynamics, Independent, Recursion, Smooth
from odesim.code.traced import Sizes, split
from odesim.errors import UsageError
from odesim.flow.problem import Problem, prepare
from odesim.request.case import Case
from odesim.request.parse import check_domain, nearest

REACH = 2e-3
"""Distance of the nodes of a difference in units of the parameter. The truncation error is 1e-17, rounding 1e-13."""
AGREE = 1e-6
"""Relative difference of two differences beyond which a dependence is not smooth."""
CENTRAL = np.arange(-3, 4)
"""Nodes of a central difference; all nodes of a one-sided one lie on one side of the parameter."""


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """Start (P,), float arrays of the arguments by piece, and ends of the pieces before the end of the run.

    `sizes` are compiled in, and `whole` are the integer arrays of the arguments, which have no derivatives.
    """

    problem: Problem
    start: np.ndarray
    floats: tuple[tuple[np.ndarray, ...], ...]
    ends: np.ndarray
    sizes: Sizes
    whole: tuple[np.ndarray, ...]

    @property
    def flat(self) -> np.ndarray:
        """All numbers that depend on parameters, in one row."""
        return np.concatenate([self.start, *(a.ravel() for piece in self.floats for a in piece), self.ends])

    @property
    def form(self) -> Any:
        """Everything that must be independent of the parameters: the formulas, sizes and shapes."""
        shapes = tuple(tuple(a.shape for a in piece) for piece in self.floats)
        return self.problem.equations.code.structure, self.sizes, self.start.shape, shapes, self.ends.shape


def inputs_of(case: Case) -> Inputs:
    """Return start, arguments and breaks of a flow.

    Raises `UsageError` for a stage without a clock, a recursion, and equations with their own steps.
    """
    case.require_clock()
    problem = prepare(dataclasses.replace(case, backend="jax"))
    advance = problem.equations.advance
    if not isinstance(advance, Smooth | Independent):
        steps = "giant steps" if isinstance(advance, Recursion) else "its own steps"
        raise UsageError(f"tier {case.tier} of {case.name} advances by {steps}, but derivatives need a smooth flow")
    if "flow" not in problem.functions:
        raise UsageError(
            f"tier {case.tier} of {case.name} has no array form, which derivatives need; choose another tier"
        )
    ends = np.array([t for t in problem.smooth.breaks if 0.0 < t < case.until], float)
    sizes, floats, integers = _separate(problem.arguments)
    pieces = [floats]
    for time in ends:
        state = {**problem.initial.state, problem.smooth.clock: np.array(time)}
        arguments = problem.equations.arguments(dataclasses.replace(problem.initial, state=state))
        pieces.append(_separate(arguments)[1])
    return Inputs(problem, np.asarray(problem.start, float), tuple(pieces), ends, sizes, integers)


def _separate(arguments: tuple[Any, ...]) -> tuple[Sizes, tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Sizes, float arrays and integer arrays of run-time arguments."""
    sizes, arrays = split(arguments)
    values = [np.asarray(a) for a in arrays]
    floats = tuple(np.asarray(a, float) for a in values if a.dtype.kind == "f")
    return (sizes[0], _marked(sizes[1], values)), floats, tuple(a for a in values if a.dtype.kind != "f")


def _marked(sizes: tuple[Any, ...], values: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """Sizes with "float" or "whole" in the places of arrays."""
    remaining = iter(values)
    return tuple(
        size if size is not None else ("float" if next(remaining).dtype.kind == "f" else "whole") for size in sizes
    )


def joined(sizes: Sizes, floats: Sequence[Any], integers: Sequence[Any]) -> tuple[Any, ...]:
    """Return the run-time arguments that `Inputs` stores separately."""
    import jax

    nested, leaves = sizes
    kinds = {"float": iter(floats), "whole": iter(integers)}
    return jax.tree.unflatten(nested, [next(kinds[size]) if isinstance(size, str) else size for size in leaves])


def differentiable(case: Case) -> list[str]:
    """Return the names of the parameters with respect to which a flow can be differentiated."""
    return [name for name in case.by_name if not objection(case, name)]


def objection(case: Case, name: str) -> str:
    """Return the reason why a flow has no derivative with respect to a parameter, or "".

    Raises `UsageError` for an unknown parameter.
    """
    values = case.by_name
    if name not in values:
        if name in ("seed", "sample_seed"):
            return "a seed has no derivative: random numbers are held fixed"
        raise UsageError(f"{case.name} has no parameter {name!r}; {nearest(name, values)}")
    value = values[name]
    if name == "d":
        return "d is the dimension, a whole number that the limit of large d does not contain"
    if "seed" in name:
        return "a seed has no derivative: random numbers are held fixed"
    if name == "points" or name == "tier":
        return f"{name} selects the equations and is not a number in them"
    if isinstance(value, bool | str):
        return f"{name} is a word, not a number"
    if value is None:
        return f"{name} has no value here: give one by -p {name}=.."
    if isinstance(value, tuple | list | np.ndarray):
        return f"{name} is a list; to differentiate with respect to its entries, declare them as parameters"
    if isinstance(value, int | np.integer) and not (name == "batch" and hasattr(case.parameters, "declaration")):
        return f"{name} is a whole number (a size)"
    return ""


def require(case: Case, names: Sequence[str], option: str = "--to") -> None:
    """Raise `UsageError` with the reason for the first parameter without a derivative."""
    for name in names:
        if reason := objection(case, name):
            raise UsageError(f"{option} {name}: {reason}")


def moved(case: Case, name: str, value: float) -> Case:
    """Return a case with another number for a parameter. Raises `UsageError` for a number outside of its domain."""
    stage = case.system.stage(case.stage)
    assert isinstance(stage, Dynamics)
    parameters = dataclasses.replace(stage.stated(case.parameters), **{name: value})
    field = next(field for field in dataclasses.fields(parameters) if field.name == name)
    check_domain(value, field)
    case.system.check(parameters)
    return dataclasses.replace(case, parameters=stage.adapt(parameters))


def tangent(case: Case, base: Inputs, name: str) -> np.ndarray:
    """Return d/dp of `base.flat` by a parameter.

    Raises `UsageError` if the parameter changes the formulas or the number of breaks, or acts on them in a way that is
    not smooth.
    """
    value = float(case.by_name[name])
    size = max(abs(value), 0.1)
    step = REACH * size
    nodes, values = _nodes(case, base, name, step)
    fine, coarse = _weights(nodes, len(nodes)), _weights(nodes, len(nodes) - 2)
    slope, coarse_slope = fine @ values / step, coarse @ values / step
    scale = np.abs(slope).max(initial=0.0) + np.abs(values).max(initial=0.0) * 1e-3 / size
    if not np.isfinite(slope).all() or np.abs(slope - coarse_slope).max(initial=0.0) > AGREE * scale:
        raise UsageError(f"--to {name}: the equations do not depend smoothly on it at {value:g}")
    return slope


def _nodes(case: Case, base: Inputs, name: str, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes in units of `step` and the numbers of the flow there, on one side if the other is outside of the
    domain.
    """
    value, refused, centre = float(case.by_name[name]), "", base.flat
    centre = np.where(np.isnan(centre), 0.0, centre)
    for nodes in (CENTRAL, np.arange(7), -np.arange(7)):
        rows = []
        try:
            for k in nodes:
                rows.append(centre if k == 0 else _numbers(moved(case, name, float(value + k * step)), base, name))
        except UsageError as error:
            refused = refused or str(error)
            continue
        return nodes, np.array(rows)
    raise UsageError(f"--to {name}: no derivative at {value:g}, because {refused}")


def _numbers(case: Case, base: Inputs, name: str) -> np.ndarray:
    inputs = inputs_of(case)
    if inputs.form != base.form or any((a != b).any() for a, b in zip(inputs.whole, base.whole, strict=True)):
        raise UsageError(f"{name} changes the form of the equations")
    # A NaN constant marks an undefined value, which depends on nothing.
    return np.where(np.isnan(base.flat), 0.0, inputs.flat)


def _weights(nodes: np.ndarray, count: int) -> np.ndarray:
    """Weights of a first derivative at 0 over the `count` nodes that are nearest to it, 0 for the others."""
    nearest_nodes = np.argsort(np.abs(nodes), kind="stable")[:count]
    chosen = nodes[nearest_nodes].astype(float)
    powers = np.vander(chosen, increasing=True).T
    weights = np.zeros(len(nodes))
    weights[nearest_nodes] = np.linalg.solve(powers, np.eye(count)[1])
    return weights
