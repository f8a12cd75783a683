"""The laws of the signal strengths as quadrature rules and moments."""

import functools

import numpy as np

from derivations.chen.parameters import Law, Parameters


@functools.cache
def rule(law: Law, kind: str, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of E over a law: Gauss-Legendre on [low, high], or the points themselves.

    A rule with q nodes is exact for polynomials up to degree 2 q - 1 in the strength.
    """
    points = np.asarray(law, float)
    if kind == "points" or points.size == 1 or points[0] == points[-1]:
        points = points if kind == "points" else points[:1]
        return points, np.full(points.size, 1 / points.size)
    x, w = np.polynomial.legendre.leggauss(nodes)
    low, high = points
    return (high - low) / 2 * x + (high + low) / 2, w / 2


def rules(parameters: Parameters, nodes: int | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rules of alpha, beta and gamma with `nodes` nodes (default: the parameter)."""
    count = nodes or parameters.nodes
    return [rule(getattr(parameters, name), parameters.laws, count) for name in ("alpha", "beta", "gamma")]


def moment(parameters: Parameters, name: str, power: int) -> float:
    """E[strength^power] of the law `name`, exactly."""
    x, w = rule(getattr(parameters, name), parameters.laws, power // 2 + 1)
    return float(w @ x**power)


@functools.cache
def legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2


def frozen_strength(parameters: Parameters) -> float:
    """c* of the frozen router: E[alpha^3 q(alpha^3 c^3)] = E[gamma^3 tanh(gamma^3 c^3/2)/2]; s* = c* M^(1/3).

    At uniform routing a specialist's gradient vanishes there.  For alpha = gamma = 1 it is (ln 3)^(1/3).
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    a, wa = rule(parameters.alpha, parameters.laws, 60)
    g, wg = rule(parameters.gamma, parameters.laws, 60)

    def gap(c: float) -> float:
        return float(wa @ (a**3 * expit(-((a * c) ** 3))) - wg @ (g**3 * np.tanh((g * c) ** 3 / 2) / 2))

    return float(brentq(gap, 1e-6, 10.0, xtol=1e-14))  # type: ignore[arg-type]
