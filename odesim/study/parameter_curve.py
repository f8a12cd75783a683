"""Curve value(p, q) = 0 of a test function in two parameters, by pseudo-arclength continuation."""

from collections.abc import Callable
from typing import Any

import numpy as np


def parameter_curve(
    value: Callable[[float, float], float], start: tuple[float, float], step: float, bounds: Any, points: int = 400
) -> np.ndarray:
    """Return the curve value(p, q) = 0 in two parameters through a start, (N, 2), within bounds ((low, high), (low,
    high)).

    Pseudo-arclength continuation of a scalar; its gradient comes from central differences. Coordinates are scaled by
    the widths of the bounds, and the curve is continued in both directions.

    >>> curve = parameter_curve(lambda p, q: p**2 + q**2 - 1, (1.0, 0.0), 0.05, ((0.0, 2.0), (-1.0, 1.0)))
    >>> bool(np.abs((curve**2).sum(1) - 1).max() < 1e-12)
    True
    """
    low, width = np.array([b[0] for b in bounds]), np.array([b[1] - b[0] for b in bounds])

    def at(z: np.ndarray) -> float:
        return value(*(low + width * z))

    def gradient(z: np.ndarray) -> np.ndarray:
        h = 1e-5
        return np.array([(at(z + h * e) - at(z - h * e)) / (2 * h) for e in np.eye(2)])

    def correct(z: np.ndarray, row: np.ndarray, level: float) -> np.ndarray | None:
        for _ in range(20):
            slope = gradient(z)
            residual = np.array([at(z), row @ z - level])
            if not (np.isfinite(slope).all() and np.isfinite(residual).all()):
                return None
            move = np.linalg.lstsq(np.array([slope, row]), -residual, rcond=1e-13)[0]
            z = z + move
            if np.abs(move).max() < 1e-12:
                return z
        return None

    z = (np.array(start) - low) / width
    normal = gradient(z)
    tangent = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    first_point = correct(z, tangent, float(tangent @ z))
    if first_point is None:
        return np.empty((0, 2))
    halves = [_half(first_point, sign * tangent, step, points, correct) for sign in (-1.0, 1.0)]
    return low + width * np.array([*halves[0][::-1], first_point, *halves[1]])


def _half(z: np.ndarray, t: np.ndarray, step: float, points: int, correct: Callable[..., Any]) -> list[np.ndarray]:
    """The points of a curve on one side of its start, in scaled coordinates, up to the edge of the unit square."""
    curve: list[np.ndarray] = []
    while len(curve) < points:
        new = correct(z + step * t, t, float(t @ z) + step)
        if new is None:
            break
        if (new < -1e-12).any() or (new > 1 + 1e-12).any():
            edge = _on_edge(z, new, correct)
            return [*curve, edge] if edge is not None else curve
        t, z = (new - z) / np.linalg.norm(new - z), new
        curve.append(z)
    return curve


def _on_edge(inner: np.ndarray, outer: np.ndarray, correct: Callable[..., Any]) -> np.ndarray | None:
    """The point of a curve on the edge of the unit square that it crosses between two points."""
    crossed = [(k, bound) for k in (0, 1) for bound in (0.0, 1.0) if (inner[k] - bound) * (outer[k] - bound) < 0]
    for k, bound in crossed:
        share = (bound - inner[k]) / (outer[k] - inner[k])
        point = correct(inner + share * (outer - inner), np.eye(2)[k], bound)
        if point is not None and (point > -1e-9).all() and (point < 1 + 1e-9).all():
            return point
    return None
