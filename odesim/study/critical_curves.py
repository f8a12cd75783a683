"""Bifurcations over two parameters: curves on which an eigenvalue of a stationary point crosses zero, and of folds."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.study.bifurcation import SpecialPoint
from odesim.study.branches import Bifurcation, Span
from odesim.study.continuation import Curve, Steps
from odesim.study.parameter_curve import parameter_curve
from odesim.study.root_search import newton
from odesim.study.symmetry import Symmetries
from odesim.study.vector_field import VectorField
from odesim.study.zero_curve import Derivatives

STEP = 0.04
"""Length of a step along a curve, in units of the ranges."""
NEAR = 1e-5
"""Distance up to which symmetries fix a point."""
CONVERGED = 1e-10
"""|F| up to which a point is stationary."""
DIFFERENCE = 1e-5
"""Step of the differences that differentiate the equations of a fold, which are exact themselves."""


def critical_curve(
    field: VectorField, group: Symmetries, special: Bifurcation, first: Span, second: Span
) -> np.ndarray:
    """Values (N, 2) of two parameters p, q at which a special point lies; empty if the curve cannot be continued.

    Branch points and Hopf points: lambda(p, q) = 0, the real part of the crossing eigenvalue at the point x(p, q),
    which Newton's method continues among the points of the same symmetry. If the second parameter breaks a branch point
    up, the curve ends with x(p, q). Folds: F = 0, F_x v = 0, |v| = 1 for (x, p, v), continued over q.
    """
    if special.kind == "boundary":
        return np.empty((0, 2))
    if special.kind == "fold":
        return _fold_curve(field, special, first, second)
    space = group.stabiliser(special.x, NEAR).fixed_space()
    last = [special.x]

    def value(p: float, q: float) -> float:
        values = field.values({first.name: p, second.name: q})
        x = _continued(field, values, last[0], space)
        if x is None:
            return float("nan")
        last[0] = x
        return crossing(field, values, x, special.order)

    start = special.p, float(getattr(field.case.parameters, second.name))
    return parameter_curve(value, start, STEP, ((first.low, first.high), (second.low, second.high)))


def _continued(field: VectorField, values: Mapping[str, Any], x: np.ndarray, space: np.ndarray) -> np.ndarray | None:
    """Return the stationary point near x with its symmetry; None if Newton's method does not converge to it."""
    if not space.size:
        return x

    def evaluate(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, j = field.evaluate(points[0], values)
        return np.asarray(f)[None], np.asarray(j)[None]

    point, residual = newton(evaluate, x, space)
    return point if residual < CONVERGED and np.abs(point - x).max() < 1.0 else None


def crossing(field: VectorField, values: Mapping[str, Any], x: np.ndarray, order: int) -> float:
    """Real part of an eigenvalue by its number, for a flow among those within and outside of the span of the
    teachers.
    """
    rates = field.spectrum(x, values, np.asarray(field.evaluate(x, values)[1])).real
    if not field.online and field.case.parameters.d > field.rows.teachers:
        rates = np.concatenate([rates, np.linalg.eigvals(field.outside(x, values)).real])
    return float(np.sort(rates)[::-1][order])


def _fold_curve(field: VectorField, special: Bifurcation, first: Span, second: Span) -> np.ndarray:
    """Values (N, 2) of two parameters at which a simple fold lies, by continuation of (x, p, v) over q."""
    n = field.size

    def equations(z: np.ndarray, u: float) -> np.ndarray:
        p, q = first.low + first.width * z[n], second.low + second.width * u
        f, j = field.evaluate(z[:n], field.values({first.name: p, second.name: q}))
        v = z[n + 1 :]
        return np.concatenate([np.asarray(f), np.asarray(j) @ v, [v @ v - 1]])

    def derivatives(z: np.ndarray, u: float) -> Derivatives:
        steps = [DIFFERENCE * e for e in np.eye(2 * n + 1)]
        columns = [(equations(z + h, u) - equations(z - h, u)) / (2 * DIFFERENCE) for h in steps]
        slope = (equations(z, u + DIFFERENCE) - equations(z, u - DIFFERENCE)) / (2 * DIFFERENCE)
        return Derivatives(equations(z, u), np.stack(columns, 1), slope)

    q = float(getattr(field.case.parameters, second.name))
    values = field.values({first.name: special.p, second.name: q})
    null = np.linalg.svd(np.asarray(field.evaluate(special.x, values)[1]))[2][-1]
    start = np.concatenate([special.x, [first.unit(special.p)], null])
    # Turns of this curve are cusps; its eigenvalues have no meaning.
    curve = _Folds(derivatives, lambda y, p, jacobian: np.array([-1.0]), lambda z, u: min(z[n], 1 - z[n]))
    halves = []
    for toward in (-1.0, 1.0):
        try:
            branch = curve.follow(start, second.unit(q), Steps((0.0, 1.0), largest=STEP, points=200), toward)
        except ValueError:
            return np.empty((0, 2))
        halves.append(np.array([[point.y[n], point.p] for point in branch.points]))
    scaled = np.concatenate([halves[0][::-1], halves[1][1:]])
    return np.array([first.low, second.low]) + np.array([first.width, second.width]) * scaled


class _Folds(Curve):
    """The curve of folds over a second parameter, whose own turns are not located."""

    def between(self, left: Any, right: Any) -> list[SpecialPoint]:
        """Return no special point."""
        return []
