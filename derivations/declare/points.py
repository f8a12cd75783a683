"""Random normal points for one run.

In one or two variables they can be a grid with a random shift, otherwise they are scrambled Sobol points, with weights
that make low moments exact.
"""

import functools
import hashlib
import io
import math
from pathlib import Path

import numpy as np

from derivations import cache
from derivations.contract import npz

MOST_MOMENTS = 300
"""Largest number of Hermite polynomials whose means are exact; the cost is its square times the number of points."""
LARGEST_DEGREE = 6
REACH = 9.0
"""Distance of a grid from the origin; the normal weight beyond is 1e-18."""
MOST_KEPT = 16_000_000
"""Number of bytes above which points are not cached, because computing them takes about as long as reading."""


def degree(variables: int, count: int) -> int:
    """Return the largest total degree whose moments can be exact with `count` points."""
    total = 1
    while total < LARGEST_DEGREE and math.comb(variables + total + 1, total + 1) <= min(MOST_MOMENTS, count // 16):
        total += 1
    return total


@functools.lru_cache(maxsize=16)
def points(variables: int, count: int, seed: int, total: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Points (variables, count) and weights (count,) of sum 1.

    `total` is the degree up to which moments are exact, `degree` by default.

    w = (1 - B l)/N with (B^T B/N) l = mean(B) - e_0, B the normalised Hermite polynomials up to `degree`: a control
    variate for all of them at once, so that every moment up to that degree is exact. Other means have a bias of order
    1/N that all randomisations share, because l depends on the weighted points. Points and weights are kept in the
    cache folder, because the library that makes them takes a second to import. Source: Owen 1995; control variates.
    """
    total = degree(variables, count) if total is None else total
    path = cache.folder() / f"points_{variables}_{count}_{total}_{seed}.npz"
    stored = _kept(path, variables, count)
    if stored is not None:
        return stored
    from scipy.special import ndtri
    from scipy.stats import qmc

    uniform = qmc.Sobol(variables, rng=np.random.default_rng(seed)).random_base2(round(math.log2(count)))
    x = np.ascontiguousarray(ndtri(np.clip(uniform, 1e-16, 1 - 1e-16)).T)
    polynomials = hermite_rows(x, total)
    mean = polynomials.mean(1)
    mean[0] = 0.0
    weights = (1 - np.linalg.solve(polynomials @ polynomials.T / count, mean) @ polynomials) / count
    _keep(path, x, weights)
    return x, weights


@functools.lru_cache(maxsize=8)
def grid(variables: int, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (variables, N), N <= count, of a square grid with a random shift, and weights (N,) of sum 1.

    The trapezoidal rule with spacing h and the normal density as weight: its error falls like exp(-2 pi a/h) for
    functions that are analytic within a of the real axis, and like h^2 at a kink.  Points further from the origin than
    `REACH` are left out.  Source: Trefethen & Weideman 2014.

    >>> x, weights = grid(1, 64, 0)
    >>> bool(abs(weights @ np.cos(x[0]) - np.exp(-0.5)) < 1e-14)
    True
    """
    if variables == 1:
        per_axis = count
    else:
        per_axis = int(np.sqrt(count * 4 / np.pi))
        while _inside(per_axis).sum() > count:
            per_axis -= 1
    spacing = 2 * REACH / per_axis
    middles = spacing * (np.arange(per_axis) + 0.5) - REACH
    shift = spacing * (np.random.default_rng(seed).random(variables) - 0.5)
    axes = np.meshgrid(*(middles + offset for offset in shift), indexing="ij")
    in_circle = np.ones(per_axis, bool) if variables == 1 else _inside(per_axis)
    x = np.array([axis[in_circle] for axis in axes])
    weights = np.exp(-0.5 * (x**2).sum(0))
    return x, weights / weights.sum()


def _inside(per_axis: int) -> np.ndarray:
    """True for the middles of a square grid (each, each) in the circle that touches its sides."""
    place = (np.arange(per_axis) + 0.5) * 2 / per_axis - 1
    return place[:, None] ** 2 + place**2 < 1


def hermite_rows(x: np.ndarray, total: int) -> np.ndarray:
    """All products of orthonormal Hermite polynomials of the rows of x up to a total degree, the constant first."""
    by_degree = [np.ones_like(x), x]
    for k in range(1, total):
        by_degree.append((x * by_degree[k] - math.sqrt(k) * by_degree[k - 1]) / math.sqrt(k + 1))
    products: list[np.ndarray] = []

    def grow(i: int, left: int, value: np.ndarray) -> None:
        if i == len(x):
            products.append(value)
            return
        for k in range(left + 1):
            grow(i + 1, left - k, value * by_degree[k][i] if k else value)

    grow(0, total, np.ones(x.shape[1]))
    return np.array(products)


def _kept(path: Path, variables: int, count: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return cached points; None if there are none, or if the file is damaged."""
    try:
        file = npz.read_npz(path)
        x, weights, digest = file["x"], file["weights"], str(file["digest"])
    except (OSError, ValueError, KeyError):
        return None
    sound = x.shape == (variables, count) and digest == _digest(x, weights)
    return (x, weights) if sound else None


def _keep(path: Path, x: np.ndarray, weights: np.ndarray) -> None:
    if x.nbytes > MOST_KEPT:
        return
    stream = io.BytesIO()
    np.savez(stream, x=x, weights=weights, digest=np.array(_digest(x, weights)))
    cache.offer(path, stream.getvalue())


def _digest(x: np.ndarray, weights: np.ndarray) -> str:
    return hashlib.sha256(x.tobytes() + weights.tobytes()).hexdigest()
