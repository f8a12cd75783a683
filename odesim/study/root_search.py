"""Zeros of a vector field from many starts: Levenberg-Marquardt, slow points of its flow, and Newton's method.

Every method evaluates (F, dF/dx) of a block of points at once, by one compiled program.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Function that returns (F, dF/dx), (N, n) and (N, n, n), at points (N, n)."""

BLOCK = 128
"""Number of points of one call of the program. Fewer points are padded, because another number would need a new
compilation.
"""
ACCEPTED = 1e-11
"""Size of |F| below which a start has converged."""
EXACT = 1e-14
"""Size of |F| below which the iteration stops."""
PATIENCE = 25
"""Number of successive steps without a decrease of |F| after which a start has stalled."""
ROUNDING = 1e-15
FAR = 1e3
"""Size of a point above which a start has run to infinity, where F vanishes."""
DAMPING = (1e-2, 1e-16, 1e6)
"""Levenberg-Marquardt's mu at the start, its least and its largest value."""


def blocks(program: Callable[[Any], tuple[Any, Any]]) -> Evaluate:
    """Return a function that evaluates a program of `BLOCK` points at any number of points."""

    def evaluate(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slopes, jacobians = np.empty(x.shape), np.empty((*x.shape, x.shape[1]))
        for begin in range(0, len(x), BLOCK):
            part = x[begin : begin + BLOCK]
            padded = np.concatenate([part, np.broadcast_to(part[:1], (BLOCK - len(part), x.shape[1]))])
            f, j = program(padded)
            slopes[begin : begin + BLOCK] = np.asarray(f)[: len(part)]
            jacobians[begin : begin + BLOCK] = np.asarray(j)[: len(part)]
        return slopes, jacobians

    return evaluate


def levenberg_marquardt(evaluate: Evaluate, starts: np.ndarray, steps: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Minimise |F| from starts (N, n). Return the ends (N, n) and |F| there (N,).

    x -> x - (J^T J + mu I)^-1 J^T F; mu is divided by 5 after a step that lowers |F|. Other steps, and steps to a point
    where F is not finite, are rejected, and mu is multiplied by 4.
    """
    x = starts.copy()
    f, j = evaluate(x)
    size = np.linalg.norm(f, axis=1)
    mu, failures = np.full(len(x), DAMPING[0]), np.zeros(len(x), int)
    going = np.isfinite(size) & np.isfinite(j).all(axis=(1, 2))
    size[~going] = np.inf
    identity = np.eye(x.shape[1])
    for _ in range(steps):
        active = np.flatnonzero(going & (failures < PATIENCE) & (size > EXACT))
        if not active.size:
            break
        jt = j[active].swapaxes(1, 2)
        normal = jt @ j[active]
        floor = mu[active] + ROUNDING * np.trace(normal, axis1=1, axis2=2)  # J^T J may be singular to the last digit
        move = np.linalg.solve(normal + floor[:, None, None] * identity, (jt @ f[active][..., None]))[..., 0]
        trials = x[active] - move
        f_new, j_new = evaluate(trials)
        new = np.linalg.norm(f_new, axis=1)
        better = (new < size[active]) & np.isfinite(j_new).all(axis=(1, 2))
        improved = active[better]
        x[improved], f[improved], j[improved], size[improved] = (
            trials[better],
            f_new[better],
            j_new[better],
            new[better],
        )
        mu[active] = np.clip(np.where(better, mu[active] / 5, mu[active] * 4), *DAMPING[1:])
        failures[active] = np.where(better, 0, failures[active] + 1)
        going &= np.abs(x).max(axis=1, initial=0.0) < FAR
    return x, size


def slow_points(evaluate: Evaluate, starts: np.ndarray, steps: int = 150) -> np.ndarray:
    """Points (k, n) where |F| has a local minimum along the flow from some starts, and the ends of the paths.

    The flow is integrated by linearly implicit Euler steps, x -> x + (I/h - J)^-1 F, whose h grows by 1.2 up to 50.
    They pass plateaus, where a flow is slow, in few steps. The path does not need to be accurate.
    """
    x, h = starts.copy(), 0.2
    identity = np.eye(x.shape[1])
    path, sizes = [], []
    for _ in range(steps):
        f, j = evaluate(x)
        path.append(x.copy())
        sizes.append(np.linalg.norm(f, axis=1))
        good = np.isfinite(sizes[-1]) & np.isfinite(j).all(axis=(1, 2))
        f[~good], j[~good] = 0.0, 0.0
        x = x + np.linalg.solve(identity / h - j, f[..., None])[..., 0]
        h = min(1.2 * h, 50.0)
    size = np.array(sizes)
    lower = (size[1:-1] < size[:-2]) & (size[1:-1] < size[2:])
    minima = np.array(path)[1:-1][lower]
    return np.concatenate([minima, x])[: 10 * len(starts)]


def newton(evaluate: Evaluate, x: np.ndarray, space: np.ndarray, steps: int = 30) -> tuple[np.ndarray, float]:
    """Return a zero near x among x + space, by Newton's method with the pseudo-inverse; the best point and |F| there.

    `space` (n, k) has orthonormal columns and is invariant under the field.
    """
    best, least_size = x, np.inf
    for _ in range(steps):
        f, j = (values[0] for values in evaluate(x[None]))
        size = float(np.linalg.norm(f))
        if not np.isfinite(size) or not np.isfinite(j).all() or size >= least_size:
            break
        best, least_size = x, size
        x = x - space @ np.linalg.lstsq(space.T @ j @ space, space.T @ f, rcond=1e-10)[0]
    return best, least_size
