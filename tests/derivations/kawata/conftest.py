"""Explicit vectors and a quadrature of the mean spherical gradient, shared by the tests of system `kawata`."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import roots_hermitenorm

from derivations.kawata import initial
from derivations.kawata.parameters import Parameters

SLOPES = {
    "relu": lambda t: (t > 0) * 1.0,
    "erf": lambda t: math.sqrt(2 / math.pi) * np.exp(-t * t / 2),
    "exp": np.exp,
    "cos": lambda t: -np.sin(t),
    "probit": lambda t: np.exp(-t * t / 2) / math.sqrt(2 * math.pi),
}


def orthonormal_hermite(n, x):
    """h_n(x) from NumPy's probabilists' Hermite series."""
    return np.polynomial.hermite_e.hermeval(x, [0] * n + [1]) / math.sqrt(math.factorial(n))


def series(coefficients, x):
    """sum_n c_n h_n(x)."""
    return sum(c * orthonormal_hermite(n, x) for n, c in enumerate(coefficients))


def slope_of(name, sigma=()):
    """sigma' of an activation."""
    if name == "polynomial":
        return lambda t: sum(c * math.sqrt(n) * orthonormal_hermite(n - 1, t) for n, c in enumerate(sigma) if n)
    return SLOPES[name]


def nodes_on_axis(kink, count):
    """Nodes and weights of E f(Z): Gauss-Hermite, or Gauss-Legendre in pieces that meet at the kink."""
    x, w = roots_hermitenorm(count)
    if kink is None:
        return x, w / math.sqrt(2 * math.pi)
    y, v = np.polynomial.legendre.leggauss(16)
    edges = np.sort(np.append(np.linspace(-14, 14, 15), kink))
    x = np.concatenate([(b - a) / 2 * y + (a + b) / 2 for a, b in itertools.pairwise(edges)])
    w = np.concatenate([(b - a) / 2 * v for a, b in itertools.pairwise(edges)])
    return x, w * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def quadrature_drift(w, frame, links, s, rho, a, b, slope, *, kink=False):
    """d(overlaps with the frame)/dt of one neuron by quadrature of the mean spherical gradient, prefactor one.

    `frame` (2C + 1, d) holds unit vectors; the first axis of integration is w itself, where a kink is split.  Along the
    other axes the integrand is a polynomial of degree at most 6, for which 6 nodes are exact.
    """
    C = (len(frame) - 1) // 2
    basis = np.linalg.qr(np.vstack([w, frame]).T)[0].T
    basis[0] *= np.sign(basis[0] @ w)
    total = np.zeros(len(frame))
    for c in range(C):
        mean = rho * frame[C + 1 + c]
        axes = [nodes_on_axis(-(b + mean @ w) if kink else None, 64)]
        axes += [nodes_on_axis(None, 6)] * (len(basis) - 1)
        grids = np.meshgrid(*[x for x, _ in axes], indexing="ij")
        weight = np.prod(np.meshgrid(*[v for _, v in axes], indexing="ij"), axis=0).ravel()
        x = np.stack([grid.ravel() for grid in grids], axis=1) @ basis + mean
        y = series(links[c], x @ frame[c]) + s[c] * series(links[C], x @ frame[C])
        force = (weight * y * a * slope(x @ w + b)) @ x
        total += frame @ (force - (force @ w) * w) / C
    return total


def make_vectors(C=1, d=6, neurons=2, seed=0, mix=0.0):
    """A frame (2C + 1, d), orthonormal or mixed, and unit neurons with sizeable overlaps."""
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.normal(size=(d, 2 * C + 1)))[0].T
    frame = frame + mix * rng.normal(size=frame.shape)
    frame /= np.linalg.norm(frame, axis=1, keepdims=True)
    w = rng.normal(size=(neurons, d))
    return frame, w / np.linalg.norm(w, axis=1, keepdims=True)


def make_initial(frame, w, a, b, **parameters):
    """The initial condition of explicit vectors."""
    C = (len(frame) - 1) // 2
    m = w @ frame.T
    arrays = {"kappa": m[:, :C], "xi": m[:, C], "nu": m[:, C + 1 :], "a": a, "b": b, "gram": frame @ frame.T}
    resolved = initial.read(arrays, Parameters(C=C, d=frame.shape[1], **parameters))
    return initial.enter(resolved, arrays, np.random.default_rng(0))


@pytest.fixture
def tools():
    """The helpers of this file."""
    import types

    return types.SimpleNamespace(
        drift=quadrature_drift, vectors=make_vectors, initial=make_initial, slope=slope_of, series=series
    )
