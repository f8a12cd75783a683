"""Quasi-random points of strengths and noise patches, over which tier full takes its means."""

import functools

import numpy as np

from derivations.chen.parameters import Parameters
from derivations.contract import Initial, UsageError

HALF_CELL = 2.0**-31
"""Sobol points are multiples of 2^-30 in [0, 1): their cells' centres keep the normal quantile finite."""
ERROR = 5e-3
"""Measured with 1024 points over scramblings of the points; a test doubles them. Stein's identity would make the noise
patches ten times as accurate, but the total error only half as large. It costs the Jacobian of the routing
probabilities for every example type, and does not apply to ReLU.
"""
MOST_NUMBERS = 2 * 10**8
"""The largest number of entries of a cloud of points in memory (1.6 GB)."""
MOST_WORK = 3 * 10**10
"""The largest number of elementary terms of a right-hand side: a minute per evaluation is half a day per run."""


def stated_error(count: int) -> float:
    """The relative error of the right-hand side with `count` points at weights and noise fields of order one."""
    return ERROR * (1024 / count) ** 0.7


def accuracy(p: Parameters) -> str:
    """The error of the points, for the description of the tier."""
    return (
        f"up to the error of the mean over strengths and noise patches by {p.points} quasi-random points: the "
        f"right-hand side is off by {stated_error(p.points):.1g} of its size where noise moves margins and "
        "logits as much as signals do, by less if noise is weaker, and by points^(-0.7) as they grow"
    )


def residual(initial: Initial) -> np.ndarray:
    """The coordinates (M J + M, R) of the weights outside the signals; empty if they lie in the signals' span."""
    p = initial.parameters
    return np.asarray(initial.state.get("rest", np.zeros((p.M * p.J + p.M, 0))), float)


def require_size(p: Parameters, width: int) -> None:
    """Raise `UsageError` for clouds that are too small for their dimension, or too large for memory or time."""
    noise = (p.P - 3) * width
    weights = p.M * p.J + p.M
    work = 2 * p.points * (4 * p.K * (p.K - 1) * p.M**2 + 2 * noise * weights)
    if p.points < 2 * noise:
        raise UsageError(
            f"tier full has {p.P - 3} noise patches in {width} directions: points = {p.points} cannot have their "
            f"covariance, give -p points={2 ** int(np.ceil(np.log2(2 * noise)))} or more, or fewer weights or patches"
        )
    if p.points * noise > MOST_NUMBERS or work > MOST_WORK:
        raise UsageError(
            f"tier full with M = {p.M}, J = {p.J}, K = {p.K}, P = {p.P} and points = {p.points} needs {work:.2g} terms "
            f"and {p.points * noise:.2g} numbers for one right-hand side (at most {MOST_WORK:.0e} and "
            f"{MOST_NUMBERS:.0e}): lower a size or points, or choose -p tier=p3"
        )


@functools.lru_cache(maxsize=4)
def cloud(count: int, dimension: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`count` Sobol points: three uniform coordinates (count, 3), and (count, dimension) standard normal ones.

    The normal ones are transformed linearly so that their second moments are exactly the identity. Each point has both
    signs of the normal coordinates. Odd terms and the linear response to the patches, the only effects of weak noise,
    are therefore exact at fixed strengths.
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(3 + dimension, scramble=True, rng=np.random.default_rng(seed)).random(count) + HALF_CELL
    normal = ndtri(uniform[:, 3:])
    root = np.linalg.cholesky(normal.T @ normal / count)
    return uniform[:, :3], np.linalg.solve(root, normal.T).T


def points(p: Parameters, width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Strengths (N, 3) of alpha, beta, gamma and noise patches (N, P - 3, width) of every point."""
    uniform, normal = cloud(p.points, (p.P - 3) * width, seed)
    strengths = np.stack([quantile(p, name, u) for name, u in zip(("alpha", "beta", "gamma"), uniform.T, strict=True)])
    patches = p.sigma_p / np.sqrt(p.d) * normal.reshape(p.points, p.P - 3, width)
    return np.ascontiguousarray(strengths.T), np.ascontiguousarray(patches)


def quantile(p: Parameters, name: str, u: np.ndarray) -> np.ndarray:
    """Strengths with the distribution `name` at uniform numbers."""
    law = np.asarray(getattr(p, name), float)
    if p.laws == "points":
        return law[(u * law.size).astype(int)]
    return law[0] + (law[-1] - law[0]) * u
