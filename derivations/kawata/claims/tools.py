"""Common functions of several claims of `kawata`: sources, single neurons, random frames, quadrature."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.kawata import SOURCE
from derivations.kawata.parameters import ACTIVATIONS
from derivations.kawata.shifted import shifted

DECADES = (10**2, 10**3, 10**4, 10**5, 10**6)
LOOSE = {"save_points": 2, "rtol": 1e-4}
"""Hitting times are good to 1e-6 then, of 1,500 neurons none changed its winner against rtol = 1e-6: more than the
spread over neurons can tell, for three quarters of the evaluations."""


def at(place: str) -> Any:
    """Return the paper as a source, at the given place."""
    return SOURCE.at(place)


def rng_of(lab: Any, seed: int) -> np.random.Generator:
    """Return the random number generator of a measurement, from its seed and the seed of the laboratory."""
    return np.random.default_rng([seed, lab.seed])


def coefficient(name: str, i: int, t: Any, series: tuple[float, ...] = (0.0,)) -> np.ndarray:
    """Return alpha_i(t) of an activation with a = 1."""
    t = np.asarray(t, float)
    return np.asarray(shifted(np, ACTIVATIONS.index(name), 1.0 + 0.0 * t, t, np.array(series), i)[i])


def gauss(count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for E f(Z)."""
    x, w = np.polynomial.hermite_e.hermegauss(count)
    return x, w / w.sum()


@functools.cache
def legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights on [-1, 1].

    The result is cached, because 400 nodes take longer than all computations that use them.
    """
    return np.polynomial.legendre.leggauss(count)


def half_line(start: float, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for E[f(Z); Z > start] with smooth f, to machine precision."""
    x, w = legendre(count)
    end = max(start + 1.0, 13.0)
    z = (end - start) / 2 * x + (start + end) / 2
    return z, (end - start) / 2 * w * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def orthonormal(n: int, x: Any) -> Any:
    """Return h_n(x), from the Hermite series of NumPy."""
    return np.polynomial.hermite_e.hermeval(x, [0] * n + [1]) / math.sqrt(math.factorial(n))


def neuron(kappa: Any, xi: float = 0.0, nu: Any = 0.0, a: float = 1.0, b: float = 0.0) -> dict[str, np.ndarray]:
    """Return the arrays of one neuron."""
    kappa = np.atleast_2d(np.asarray(kappa, float))
    nu = np.broadcast_to(np.asarray(nu, float), kappa.shape).copy()
    return {"kappa": kappa, "xi": np.array([float(xi)]), "nu": nu, "a": np.array([a]), "b": np.array([b])}


def quartile(times: np.ndarray, share: float = 0.25) -> float:
    """Return a quantile of hitting times over all neurons; censored times count as infinite."""
    ordered = np.sort(np.ravel(times))
    return float(ordered[min(int(share * ordered.size), ordered.size - 1)])


def hermite_link(k: int, C: int = 2, beta: Any = 1.0, gamma: float = 1.0) -> tuple[tuple[float, ...], ...]:
    """Return the links beta_c h_k and gamma h_k."""
    values = np.broadcast_to(np.asarray(beta, float), (C,))
    return tuple((0.0,) * k + (float(v),) for v in (*values, gamma))


def swept(name: str, quick: Any, full: Any) -> dict[str, Any]:
    """Return the points of a sweep over one coordinate, by effort."""
    from derivations.claim import Grid

    return {"quick": Grid(tuple({name: v} for v in quick)), "full": Grid(tuple({name: v} for v in full))}


def slope_point(point: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the settings of a point that are parameters of the system."""
    return {name: point[name] for name in names if name in point}
