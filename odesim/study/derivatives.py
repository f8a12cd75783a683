"""Derivatives of a right-hand side with respect to its state and parameters, from the statement of the tier.

They are exact up to rounding: the program of the statement is differentiated definition by definition
(`derivations.equations.tangent`) and compiled like the flow itself.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from derivations.contract import Dense, Initial, Layout, Symmetric, Upper, load
from derivations.contract.layout import DIRECTION
from derivations.contract.system import Dynamics, Page
from odesim.errors import UsageError
from odesim.flow.problem import initial_condition
from odesim.request.case import Case

if TYPE_CHECKING:
    from derivations.statement import Statement

FIRST, SECOND = DIRECTION, "w_"
"""Prefixes of the names of a first and of a second direction."""
Part = Dense | Upper | Symmetric


class Derivatives:
    """Derivatives of dy/dt = F(y; constants) at given values of the constants.

    Attributes:
        start: The flat state at time 0, (n,).
        constants: Values of the constants, by name.

    Example:
        >>> import odesim
        >>> d = odesim.derivatives("pruning", tier="homogeneous")
        >>> sorted(d.by_constants(d.start))
        ['delta_0', 'eta_e', 'eta_r', 'm_eff']
        >>> d.second(d.start, np.eye(d.start.size)).shape == d.start.shape
        True
    """

    def __init__(self, statement: "Statement", layout: Layout, start: np.ndarray, constants: Mapping[str, Any]) -> None:
        self.statement, self.layout = statement, layout
        self.start, self.constants = start, dict(constants)
        from derivations.statement import indices_of, key_of, sp  # SymPy, which other analyses do not need

        endless = {key_of(c.target) for c in statement.constants if any(i.upper == sp.oo for i in indices_of(c.target))}
        # Coefficients of a series are not parameters, because they follow from those of the model.
        self._real = tuple(name for name, x in self.constants.items() if not isinstance(x, int) and name not in endless)

    def along(self, y: np.ndarray, direction: np.ndarray, constants: Mapping[str, Any] | None = None) -> np.ndarray:
        """Return the derivative of F along a direction (n,) of the state, and along changes of some constants.

        Arguments:
            y: A flat state (n,).
            direction: A direction of the state (n,).
            constants: Changes of constants by name, numbers or arrays of their shapes.

        Returns:
            The derivative (n,).

        Raises:
            UsageError: A constant does not exist, or is a size.
        """
        changes = dict(constants or {})
        for name in changes:
            if name not in self._real:
                raise UsageError(f"{name} is not a constant that can change; these can: {', '.join(self._real)}")
        evaluate, parts = self._first
        directions = {f"{FIRST}{name}": np.zeros(np.shape(self.constants[name])) for name in self._real}
        directions |= {f"{FIRST}{name}": np.asarray(value, float) for name, value in changes.items()}
        flat = np.concatenate(
            [y, direction, *(directions[p.name].ravel() for p in parts[2 * len(self.layout.parts) :])]
        )
        return evaluate(flat)[y.size : 2 * y.size]

    def jacobian(self, y: np.ndarray) -> np.ndarray:
        """Return dF/dy (n, n) at a flat state (n,), column by column."""
        return np.array([self.along(y, unit) for unit in np.eye(y.size)]).T

    def by_constants(self, y: np.ndarray, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Return dF/dc of constants at a flat state (n,).

        Arguments:
            y: A flat state (n,).
            names: The constants; by default all that are not sizes.

        Returns:
            Arrays by name: a first axis of length n, then the axes of the constant.

        Raises:
            UsageError: A constant does not exist, or is a size.
        """
        jacobians = {}
        for name in self._real if names is None else names:
            shape = np.shape(self.constants.get(name, 0.0))
            units = np.eye(int(np.prod(shape, dtype=int))).reshape(-1, *shape)
            columns = [self.along(y, np.zeros(y.size), {name: unit}) for unit in units]
            jacobians[name] = np.moveaxis(np.array(columns), 0, -1).reshape(y.size, *shape)
        return jacobians

    def second(self, y: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """Return sum_kl M_kl d^2 F/dy_k dy_l (n,) for a symmetric matrix M (n, n).

        The matrix is decomposed into its eigenvectors, each of which is one direction.
        """
        values, vectors = np.linalg.eigh(matrix)
        evaluate, _ = self._second
        total = np.zeros(y.size)
        for value, q in zip(values, vectors.T, strict=True):
            if value != 0.0:
                flat = np.concatenate([y, q, q, np.zeros(y.size)])
                total += value * evaluate(flat)[3 * y.size :]
        return total

    @functools.cached_property
    def _first(self) -> tuple[Callable[[np.ndarray], np.ndarray], list[Part]]:
        parts = [*self.layout.with_direction(FIRST).parts]
        order = [name for name in self.constants if name in self._real]
        parts += [Dense(f"{FIRST}{name}", np.shape(self.constants[name])) for name in order]
        return self._compiled(Layout(tuple(parts)), {FIRST: self._real}), parts

    @functools.cached_property
    def _second(self) -> tuple[Callable[[np.ndarray], np.ndarray], list[Part]]:
        layout = self.layout.with_direction(FIRST).with_direction(SECOND)
        return self._compiled(layout, {FIRST: (), SECOND: ()}), [*layout.parts]

    def _compiled(
        self, layout: Layout, directions: Mapping[str, tuple[str, ...]]
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return the rates of the state and of its directions, as a function of both in one flat vector."""
        from derivations.equations.tangent import NotDifferentiable
        from odesim.code.prepared import fillings

        try:
            return fillings(self.statement, layout, self.constants, ("rates",), directions)["rates"].new
        except NotDifferentiable as error:
            raise UsageError(f"{self.statement.name}: {error}; use odesim.linearise") from None


def derivatives(case: Case) -> Derivatives:
    """The derivatives of the flow of a case, at its own constants.

    A state of rows, one for every neuron, is ordered by component. Raises `UsageError` for a stage without equations,
    and for equations without a `Statement`.
    """
    stage = case.system.stage(case.stage)
    if not isinstance(stage, Dynamics) or not stage.statement:
        raise UsageError(f"stage {stage.name} of {case.system.name} has no equations of motion")
    initial: Initial = initial_condition(case)
    statement = load(stage.statement)(initial.parameters, case.tier)
    equations = load(stage.equations)(initial.parameters, case.tier)
    if isinstance(statement, Page):
        if statement.stated is None:
            raise UsageError(f"tier {case.tier} of {case.system.name} has no derivatives; use odesim.linearise")
        statement = statement.stated()
    constants, layout = statement.named(statement.arguments(initial)), equations.layout
    start = equations.start(initial)
    if statement.rows is not None:
        from derivations.equations.tier import layout_of

        statement, rows = dataclasses.replace(statement, rows=None), layout
        layout = layout_of(statement, constants)
        start = layout.pack(rows.unpack(start))
    return Derivatives(statement, layout, start, constants)
