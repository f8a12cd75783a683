"""Gaussian means of one and two variables by Gauss-Legendre panels, graded towards every kink and steep place."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from hermite.ladders import rung, slopes
from hermite.laws import EPS, Law

if TYPE_CHECKING:
    from jaxtyping import Float

# phi is below 1e-21 beyond this point; the contribution from there (for example of a step far out) is added to the
# error
REACH = 9.75
# panels grow by this ratio away from a special point: 16 nodes resolve an algebraic singularity there to 1e-16
RATIO = 3.0
NODES = (16, 12)


@cache
def _rule(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(nodes)


def _steps(width: float) -> np.ndarray:
    """Return the distances from a special point at which panels end: 0, +-width, +-3 width, ... below 1."""
    if width >= 1:
        return np.zeros(1)
    width = max(width, 1e-16)
    levels = math.ceil(-math.log(width) / math.log(RATIO))
    out = width * RATIO ** np.arange(levels)
    return np.concatenate([-out[::-1], [0.0], out])


def _edges(points: list[tuple[float, float]], base: float = 0.75) -> np.ndarray:
    """Return the panel ends on [-REACH, REACH] for special points (position, width)."""
    places = [np.linspace(-REACH, REACH, math.ceil(2 * REACH / base) + 1)]
    places += [place + _steps(width) for place, width in points if abs(place) < REACH + 2]
    return np.unique(np.clip(np.concatenate(places), -REACH, REACH))


def _points(edges: np.ndarray, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and Gaussian weights, the last axis of edges becoming that of the points."""
    x, w = _rule(nodes)
    middle, half = (edges[..., 1:] + edges[..., :-1]) / 2, (edges[..., 1:] - edges[..., :-1]) / 2
    t = (middle[..., None] + half[..., None] * x).reshape(*edges.shape[:-1], -1)
    weights = (half[..., None] * w).reshape(t.shape) * np.exp(-0.5 * t * t) / math.sqrt(2 * math.pi)
    return t, weights


def points(special: list[tuple[float, float]]):
    """Yield (nodes, Gaussian weights) on the line with 16 nodes per panel, then with 12, for special points (position,
    width).

    >>> (x, w), _ = points([])
    >>> round(float(w @ x**2), 12)
    1.0
    """
    edges = _edges(special)
    for nodes in NODES:
        yield _points(edges, nodes)


@cache
def beyond() -> tuple[Float[np.ndarray, "points"], Float[np.ndarray, "points"]]:
    """Return nodes and twice the Gaussian weights where |x| > REACH, up to 18 deviations: 1e-72 is left out.

    >>> x, w = beyond()
    >>> 1e-22 < float(w.sum()) / 2 < 2.5e-22, float(np.abs(x).min()) > REACH
    (True, True)
    """
    x, w = _points(np.linspace(REACH, 18.0, 12), NODES[0])
    return np.concatenate([-x[::-1], x]), 2 * np.concatenate([w[::-1], w])


def _width(kind: str) -> float:
    """Return the distance from 0 within which a ladder function must be resolved: 0 for a kink, 1 for the logistic
    ladder.
    """
    return 1.0 if kind == "logistic" else math.inf


def line(law: Law, kinds: tuple, orders: tuple) -> tuple[float, float]:
    """Return (E[L(y)], error estimate) for one ladder function of one variable.

    int L(m + s x) phi(x) dx by panels ending at the zero of y and graded towards it; the estimate is the difference
    of 16 and 12 nodes, and rounding.

    Source: Golub & Welsch 1969; Schwab 1998 (graded panels).

    >>> value, error = line(Law((1.0,), ((4.0,),)), ("logistic",), (1,))
    >>> abs(value - 1.14249536952883) < error < 1e-13
    True
    """
    mean, spread = float(law.mean[0]), math.sqrt(max(float(law.rows[0][0]), 0.0))
    if spread == 0:
        value = float(rung(kinds[0], orders[0], np.array(mean)))
        return value, 4 * EPS * abs(value)
    edges = _edges([(-mean / spread, _width(kinds[0]) / spread)])
    values = []
    size = 0.0
    for nodes in NODES:
        x, w = _points(edges, nodes)
        f = w * rung(kinds[0], orders[0], mean + spread * x)
        values.append(math.fsum(f))
        size = max(size, float(np.abs(f).sum()))
    x, w = beyond()
    left = float(w @ np.abs(rung(kinds[0], orders[0], mean + spread * x)))
    return values[0], abs(values[0] - values[1]) + _rounding(orders) * size + _loss(kinds[0], orders[0]) + left


def _rounding(orders: tuple) -> float:
    """Return the relative rounding error of the sum and of the points, which a derivative of order r amplifies r + 1
    times.
    """
    return EPS * (16 + 8 * sum(abs(o) for o in orders))


def _loss(kind: str, order: int) -> float:
    """Return the absolute rounding of a derivative of the logistic ladder, a polynomial whose terms cancel."""
    return 4 * EPS * sum(abs(c) for c in slopes(-order)) if kind == "logistic" and order < 0 else 0.0


def plane(law: Law, kinds: tuple, orders: tuple) -> tuple[float, float]:
    """Return (E[L_1(y_1) L_2(y_2)], error estimate) for two ladder functions, one variable conditioned on the other.

    y_1 = m_1 + a x, y_2 = m_2 + b x + d t with x, t independent normals: for every node x the panels in t end at the
    zero of y_2; those in x are graded towards the zero of y_1 and towards where the mean of y_2 crosses zero, a
    transition of width max(d, 1) / |b|. The accuracy is therefore the same at large variances and at |rho| = 1.

    Arguments: law of two variables; kinds, orders <= 1 (of a normal ladder 0 or 1). Source: as `line`.

    >>> one, half = 1.0, 0.5
    >>> value, error = plane(Law((0, 0), ((one, half), (half, one))), ("logistic", "normal"), (0, 0))
    >>> error < 1e-13 and 0.02 < value < 0.06
    True
    """
    if law.rows[0][0] < law.rows[1][1]:
        # the outer variable is the wider one: the inner mean then moves less than its own scale
        law = law.part((1, 0))
        kinds, orders = kinds[::-1], orders[::-1]
    m1, m2 = (float(m) for m in law.mean)
    v1, v2 = float(law.rows[0][0]), float(law.rows[1][1])
    if v1 <= 0:
        first, second = (line(law.part((j,)), kinds[j : j + 1], orders[j : j + 1]) for j in (0, 1))
        return first[0] * second[0], abs(first[0]) * second[1] + abs(second[0]) * first[1]
    a = math.sqrt(v1)
    b = float(law.rows[0][1]) / a
    rest = law.rows[1][1] - law.rows[0][1] * law.rows[0][1] / law.rows[0][0]
    d = math.sqrt(max(float(rest), 0.0))
    special = [(-m1 / a, _width(kinds[0]) / a)]
    if b != 0:
        scale = 1.0 if kinds[1] == "logistic" else 0.0
        special.append((-m2 / b, max(d, scale) / abs(b) if max(d, scale) > 0 else math.inf))
    edges = _edges(special)
    values, size = [], 0.0
    for nodes in NODES:
        x, w = _points(edges, nodes)
        outer = w * rung(kinds[0], orders[0], m1 + a * x)
        inner, weight = _inner(m2 + b * x, d, kinds[1], orders[1], nodes)
        values.append(math.fsum(outer * inner))
        size = max(size, float(np.abs(outer) @ weight))
    error = abs(values[0] - values[1]) + _rounding(orders) * size
    # the parts outside of both integrals; the inner integral at every node of the outer one
    far, rare = beyond()
    x, w = (np.concatenate(parts) for parts in zip(_points(edges, NODES[1]), (far, rare), strict=True))
    outer, centre = w * np.abs(rung(kinds[0], orders[0], m1 + a * x)), m2 + b * x
    error += float(outer @ (np.abs(rung(kinds[1], orders[1], centre[:, None] + d * far)) @ rare))
    error += float(outer[-far.size :] @ _inner(centre[-far.size :], d, kinds[1], orders[1], NODES[1])[1])
    # each factor's loss, times the size of the other
    others = [line(law.part((j,)), kinds[j : j + 1], orders[j : j + 1]) for j in (0, 1)]
    for j, (value, gap) in enumerate(others):
        error += _loss(kinds[1 - j], orders[1 - j]) * (abs(value) + gap + 0.5 + math.sqrt(v1 + v2))
    return values[0], error


def _inner(mean: np.ndarray, d: float, kind: str, order: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return E[L(mean + d t)] and its mean size for every entry of mean."""
    if d == 0:
        value = rung(kind, order, mean)
        return value, np.abs(value)
    base = np.linspace(-REACH, REACH, math.ceil(2 * REACH / 0.75) + 1)
    steps = _steps(_width(kind) / d)
    values, sizes = np.empty(mean.size), np.empty(mean.size)
    for start in range(0, mean.size, 256):
        part = mean[start : start + 256, None]
        places = np.concatenate([np.broadcast_to(base, (len(part), base.size)), -part / d + steps], axis=1)
        t, w = _points(np.sort(np.clip(places, -REACH, REACH), axis=1), nodes)
        f = w * rung(kind, order, part + d * t)
        values[start : start + 256] = f.sum(axis=1)
        sizes[start : start + 256] = np.abs(f).sum(axis=1)
    return values, sizes
