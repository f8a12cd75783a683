"""Generative exponent of a label of one direction, y = f(z) with z ~ N(0, 1), from its level sets.

    A_k(y) = sum over the roots z_i of f(z_i) = y of He_k(z_i) phi(z_i)/|f'(z_i)|

is the density of y times E[He_k(z) | y]. The generative exponent is the least k >= 1 with A_k not 0: the information
exponent of the best transform of the label. A level on which f is constant is an atom; the integral of He_k phi over
its piece (a, b) is He_{k-1}(a) phi(a) - He_{k-1}(b) phi(b). `shares` returns

    v_k = E[ E[He_k(z) | y]^2 ]/k!,   0 <= v_k <= 1.

With the levels of a histogram, orders that vanish exactly would get 1e-6 (100 bins) to 3e-3 (6,400 bins). With roots
they vanish, as long as the turning points of f are exact; a root without its partner gives 1e-4.

Source: Damian, Pillaud-Vivien, Lee & Bruna 2024, Computational-statistical gaps in Gaussian single-index models.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from derivations.declare.array_values import zeros
from derivations.declare.hermite_tensors import panels
from hermite.polynomials import evaluate_all

Function = Callable[[np.ndarray], np.ndarray]
REACH = 9.0
"""Distance up to which levels and roots are searched; the normal weight beyond is 1e-19."""
GRID = 4_001
"""Number of points of each smooth piece; f has at most one turning point between two."""
FARTHEST = 6.5
"""Largest node of the levels y = f(z), z on Gauss-Legendre panels; the normal weight beyond is 1e-10."""
STEEP = 1e-6
"""A level y is left out if |f'| at a root is below this times |y|, because rounding then dominates phi/|f'|."""
FLAT = 1e-13
"""A piece is constant if f varies by less than this times its size."""
NONZERO = 1e-8
"""Smallest v_k that is not rounding: a lost root gives 1e-4, rounding 1e-16."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """An interval on which f is strictly monotone, or constant."""

    low: float
    high: float
    flat: bool


def shares(f: Function, breaks: Sequence[float] = (), order: int = 6) -> np.ndarray:
    """Return v_1 .. v_order of a function of one number with kinks or jumps at `breaks` only.

    >>> [round(float(v), 6) for v in shares(lambda z: z * z, order=3)]  # every y has the roots -sqrt(y) and sqrt(y)
    [0.0, 1.0, 0.0]
    """
    pieces = _pieces(f, breaks)
    values = np.zeros(order)
    for level in {round(float(f(np.array([_middle(p)]))[0]), 10) for p in pieces if p.flat}:
        flat = [p for p in pieces if p.flat and abs(float(f(np.array([_middle(p)]))[0]) - level) < 1e-9]
        mass = sum(_normal(p.high) - _normal(p.low) for p in flat)
        if mass > 0:
            means = sum(_means(p, order) for p in flat)
            values += means**2 / mass / _factorials(order)
    rising = [p for p in pieces if not p.flat]
    return values + _of_levels(f, rising, order)


def exponent(values: np.ndarray) -> int:
    """Return the least k with v_k above `NONZERO`, or 0.

    >>> exponent(np.array([1e-17, 0.2]))
    2
    """
    return next((k + 1 for k, v in enumerate(values) if v > NONZERO), 0)


def _of_levels(f: Function, pieces: Sequence[Piece], order: int) -> np.ndarray:
    """Return the part of v_k from levels that are not atoms: a mean over z of E[He_k | f(z)]^2/k!."""
    z, share = panels(np.arange(-FARTHEST, FARTHEST + 0.25, 0.5).tolist(), 16)
    covered = np.zeros_like(z, bool)
    for p in pieces:
        covered |= (z > p.low) & (z < p.high)
    z, share = z[covered], share[covered]
    y = f(z)
    weight, sums, usable = np.zeros_like(z), np.zeros((order, len(z))), np.ones_like(z, bool)
    for p in pieces:
        root, crossed = _roots(f, p, y)
        slope = np.abs(_slope(f, root, p))
        usable &= ~crossed | (slope > STEEP * np.abs(y))
        w = np.where(crossed, np.exp(-(root**2) / 2) / np.where(slope > 0, slope, 1.0), 0.0)
        weight += w
        sums += w * np.array(evaluate_all(order, root)[1:])
    if not usable.any():
        return np.zeros(order)
    means = sums[:, usable] / weight[usable]
    return means**2 @ share[usable] / _factorials(order)


def _roots(f: Function, p: Piece, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the root of f = y on a monotone piece for every level, by bisection, and True if there is one."""
    # One-sided values at the ends, because at a jump f itself may belong to the other piece.
    ends = _nudged(p)
    end_values = f(ends)
    crossed = (end_values[0] - y) * (end_values[1] - y) < 0
    low, high = np.full_like(y, ends[0]), np.full_like(y, ends[1])
    rises = end_values[1] > end_values[0]
    for _ in range(70):
        middle = (low + high) / 2
        root_is_right = (f(middle) > y) == rises
        low, high = np.where(root_is_right, low, middle), np.where(root_is_right, middle, high)
    return (low + high) / 2, crossed


def _nudged(p: Piece) -> np.ndarray:
    """The ends of a piece, moved inside by a few units of the last digit."""
    tiny = 4 * np.finfo(float).eps * max(1.0, abs(p.low), abs(p.high))
    return np.array([p.low + tiny, p.high - tiny])


def _slope(f: Function, z: np.ndarray, p: Piece) -> np.ndarray:
    """f' by Richardson's extrapolation of central differences that stay inside the piece."""
    h = np.minimum(1e-3, 0.25 * np.minimum(z - p.low, p.high - z))
    h = np.where(h > 0, h, 1e-12)

    def central(step: np.ndarray) -> np.ndarray:
        return (f(z + step) - f(z - step)) / (2 * step)

    coarse, middle, fine = central(h), central(h / 2), central(h / 4)
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15


def _pieces(f: Function, breaks: Sequence[float]) -> list[Piece]:
    """The monotone and flat pieces of f between the breaks."""
    edges = sorted({-REACH, REACH, *(b for b in breaks if abs(b) < REACH)})
    size = float(np.abs(f(np.linspace(-REACH, REACH, GRID))).max()) or 1.0
    pieces = []
    for low, high in itertools.pairwise(edges):
        span = Piece(low, high, False)
        ends = _nudged(span)
        z = np.linspace(ends[0], ends[1], GRID)
        y = f(z)
        if float(np.ptp(y)) <= FLAT * size:
            # The outermost pieces extend to infinity.
            pieces.append(Piece(-math.inf if low == -REACH else low, math.inf if high == REACH else high, True))
            continue
        turns = _turning_points(f, z, y)
        pieces += [Piece(a, b, False) for a, b in itertools.pairwise([low, *turns, high])]
    return pieces


def _turning_points(f: Function, z: np.ndarray, y: np.ndarray) -> list[float]:
    """The turning points of f on the grid z, as zeros of f' between three grid points around a local extreme."""
    rise = np.sign(np.diff(y))
    turns, last = [], 0
    full_range = Piece(float(z[0]), float(z[-1]), False)
    for i, sign in enumerate(rise):
        if sign == 0:
            continue
        if last and sign != last:
            low, high = z[max(i - 1, 0)], z[min(i + 1, len(z) - 1)]
            places = zeros(lambda t, low=low, high=high: _slope(f, _between(t, low, high), full_range), 1.0, 9)
            turns.append(float(_between(np.array(places), low, high)[0]) if places else float(z[i]))
        last = sign
    return turns


def _between(t: np.ndarray, low: float, high: float) -> np.ndarray:
    """Map t in [-1, 1] to [low, high]."""
    return (low + high) / 2 + t * (high - low) / 2


def _middle(p: Piece) -> float:
    """Return a point inside a piece, which may be infinite."""
    return (max(p.low, -REACH) + min(p.high, REACH)) / 2


def _means(p: Piece, order: int) -> np.ndarray:
    """The integrals of He_k phi over a piece, k = 1 .. order."""

    def primitive(z: float) -> np.ndarray:
        return np.zeros(order) if math.isinf(z) else np.array(evaluate_all(order - 1, z), float) * _density(z)

    return primitive(p.low) - primitive(p.high)


def _density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _normal(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _factorials(order: int) -> np.ndarray:
    return np.array([math.factorial(k) for k in range(1, order + 1)], float)
