"""Hermite tensors of functions of a few independent normal numbers, by exact sums or by quadrature with an error
estimate.

    S_n = E[F(z) He_n(z)] / sqrt(n!),   He_n(z)_{i_1 .. i_n} = prod over axes of He_{alpha_i}(z_i), alpha_i = count of i

S_n is a symmetric array with n axes of length r, and |S_n|^2 is the part of degree n of E[F^2]. A polynomial has its
tensors from E[x^p He_m(x)] = p!/(2^s s!), p = m + 2 s, in rational arithmetic. Other functions have them by sums over a
grid whose axes are divided at kinks. One or two axes have Gauss-Legendre panels; three or four have Gauss rules of the
normal weight on every piece, which are exact for polynomials there. The error of a quadrature is its distance from a
coarser one.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from derivations.declare.array_values import REACH, Polynomial
from hermite.polynomials import evaluate_all

Function = Callable[..., np.ndarray]
"""A function of r arrays that broadcast."""
HIGHEST = (12, 12, 12, 10, 8)
"""Highest order of tensors by the number of directions: order 8 in four directions has 65,536 entries."""
PIECEWISE = (0, 0, 0, 40, 18)
"""Number of nodes of a Gauss rule on all pieces of one axis, for three and for four axes."""


@dataclasses.dataclass(frozen=True, eq=False)
class Tensors:
    """Tensors S_0 .. S_K of one function.

    `error` bounds the Frobenius norm of the error of each; `exact` is True if they come from rational arithmetic, so
    that no entry is non-zero by rounding.
    """

    arrays: tuple[np.ndarray, ...]
    error: float = 0.0
    exact: bool = False

    @property
    def order(self) -> int:
        """The highest order K."""
        return len(self.arrays) - 1

    @functools.cached_property
    def size(self) -> float:
        """The root of the sum of |S_n|^2 over n = 1 .. K."""
        return math.sqrt(sum(float((array**2).sum()) for array in self.arrays[1:]))

    def rotated(self, rows: np.ndarray) -> "Tensors":
        """Return the tensors along the rows (s, r) of a matrix: E[F He_n(rows z)]/sqrt(n!) for orthonormal rows."""
        return Tensors(tuple(along(array, rows) for array in self.arrays), self.error, self.exact)


def along(array: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return a tensor with every axis multiplied by `rows` (s, r).

    >>> along(np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([[0.0, 1.0]]))
    array([[3.]])
    """
    for _ in range(array.ndim):
        array = np.asarray(np.tensordot(array, rows, axes=(0, 1)))  # takes the first axis, puts the new one last
    return array


def total(parts: Sequence[tuple[float, Tensors]], order: int, directions: int) -> Tensors:
    """Return the tensors of a weighted sum of functions of the same directions."""
    arrays = [np.zeros((directions,) * n) for n in range(order + 1)]
    error, exact = 0.0, all(part.exact for _, part in parts)
    for weight, part in parts:
        arrays = [
            np.asarray(array + weight * part_array) for array, part_array in zip(arrays, part.arrays, strict=True)
        ]
        error += abs(weight) * part.error
    return Tensors(tuple(arrays), error, exact)


def of_polynomial(powers: Polynomial, directions: int, order: int, exact: bool = True) -> Tensors:
    """Return the tensors of a polynomial in r variables, given by powers, exact up to the last conversion to floats.

    >>> [round(float(array.sum()), 6) for array in of_polynomial({(3,): Fraction(1)}, 1, 3).arrays]
    [0.0, 3.0, 0.0, 2.44949]
    """
    means: dict[tuple[int, ...], Fraction] = {}
    for power, c in powers.items():
        for orders in itertools.product(*(range(p % 2, p + 1, 2) for p in power)):
            if sum(orders) <= order:
                share = math.prod((_moment(p, m) for p, m in zip(power, orders, strict=True)), start=Fraction(1))
                means[orders] = means.get(orders, Fraction(0)) + c * share
    rounded = {orders: _rounded(mean) for orders, mean in means.items()}
    return Tensors(tuple(_symmetric(rounded, directions, n) for n in range(order + 1)), 0.0, exact)


def _rounded(mean: Fraction) -> float:
    """Return the nearest float, or infinity."""
    try:
        return float(mean)
    except OverflowError:
        return math.inf


def _moment(p: int, m: int) -> Fraction:
    """E[x^p He_m(x)] = p!/(2^s s!) with s = (p - m)/2."""
    s = (p - m) // 2
    return Fraction(math.factorial(p), 2**s * math.factorial(s))


def _symmetric(means: Mapping[tuple[int, ...], float], directions: int, n: int) -> np.ndarray:
    """The symmetric array E[F He_n]/sqrt(n!) of the means E[F prod He_{alpha_i}] with |alpha| = n."""
    if n == 0:
        return np.array(means.get((0,) * directions, 0.0))
    table = np.zeros((n + 1,) * directions)
    for orders, mean in means.items():
        if sum(orders) == n:
            table[orders] = mean / math.sqrt(math.factorial(n))
    return table[tuple(_counts(directions, n))]


@functools.lru_cache(maxsize=16)
def _counts(directions: int, n: int) -> np.ndarray:
    """Counts of every axis i among the n indices of an entry, (directions, directions, .., directions)."""
    indices = np.indices((directions,) * n, dtype=np.int8)
    return np.stack([(indices == i).sum(axis=0, dtype=np.int8) for i in range(directions)]).astype(np.intp)


def of_function(
    function: Function, breaks: Sequence[Sequence[float]], order: int, degree: int | None = None
) -> Tensors:
    """Return the tensors of a function of len(breaks) independent normal numbers by quadrature, with its error.

    Arguments: breaks, the places of kinks along each axis; degree, that of a polynomial, for which Gauss-Hermite sums
    are exact.
    """
    directions = len(breaks)
    if degree is not None:
        nodes = (degree + order) // 2 + 1
        rules = [_gauss(nodes)] * directions
        return Tensors(_sums(function, rules, order))
    fine, coarse = (
        _sums(function, [_rule(tuple(axis), directions, share) for axis in breaks], order) for share in (1.0, 0.7)
    )
    # For kinks and jumps that are not along an axis, the true error is up to 1.5 times this distance (measured for 2 to
    # 4 directions).
    error = max(float(np.linalg.norm(a - b)) for a, b in zip(fine, coarse, strict=True))
    return Tensors(fine, error + _beyond(function, directions, order))


def _beyond(function: Function, directions: int, order: int) -> float:
    """Return the size of the integrand at the ends of the axes; a growth like exp(8 z) has a part beyond."""
    ends = np.zeros((directions, 2 * directions))
    ends[np.arange(directions), np.arange(directions)] = REACH
    ends[np.arange(directions), directions + np.arange(directions)] = -REACH
    weight = abs(evaluate_all(order, REACH)[-1]) * math.exp(-(REACH**2) / 2) / math.sqrt(2 * math.pi)
    return float(np.abs(function(*ends)).max()) * weight / math.sqrt(math.factorial(order))


@functools.lru_cache(maxsize=4)
def _rotation(directions: int) -> np.ndarray:
    """Return a fixed rotation with generic angles."""
    return np.linalg.qr(np.random.default_rng(1).normal(size=(directions, directions)))[0]


def _sums(function: Function, rules: Sequence[tuple[np.ndarray, np.ndarray]], order: int) -> tuple[np.ndarray, ...]:
    """The tensors by a product rule, contracted axis after axis."""
    directions = len(rules)
    grids = np.meshgrid(*(x for x, _ in rules), indexing="ij", sparse=True)
    values = np.broadcast_to(function(*grids), tuple(len(x) for x, _ in rules))
    for x, w in rules:
        basis = np.array(evaluate_all(order, x)) * w
        values = np.tensordot(values, basis, axes=(0, 1))
    orders = [alpha for alpha in itertools.product(range(order + 1), repeat=directions) if sum(alpha) <= order]
    means = {alpha: float(values[alpha]) for alpha in orders}
    return tuple(_symmetric(means, directions, n) for n in range(order + 1))


@functools.lru_cache(maxsize=16)
def _gauss(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Hermite nodes and weights of the standard normal law."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / w.sum()


@functools.lru_cache(maxsize=64)
def _rule(breaks: tuple[float, ...], directions: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the standard normal law along one axis, divided at 0 and at the breaks."""
    # A break moved by rounding makes a panel of length zero, whose nodes have no weight.
    edges = sorted({-REACH, REACH, 0.0, *(b for b in breaks if abs(b) < REACH)})
    if directions <= 2:
        width, nodes = (0.5, int(40 * share)) if directions == 1 else (1.0, int(16 * share))
        return panels(sorted({*edges, *np.arange(-REACH, REACH, width).tolist()}), nodes)
    pieces = len(edges) - 1
    nodes = max(4, int(share * PIECEWISE[directions] / pieces * 2))
    parts = [_weighted_gauss(low, high, nodes) for low, high in itertools.pairwise(edges)]
    return np.concatenate([x for x, _ in parts]), np.concatenate([w for _, w in parts])


def panels(edges: Sequence[float], nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of Gauss-Legendre panels between the edges, times the standard normal density.

    >>> x, w = panels([-10.0, -5.0, 0.0, 5.0, 10.0], 30)
    >>> float((w * x**4).sum().round(12))
    3.0
    """
    t, v = np.polynomial.legendre.leggauss(nodes)
    x = np.concatenate([(a + b) / 2 + (b - a) / 2 * t for a, b in itertools.pairwise(edges)])
    w = np.concatenate([(b - a) / 2 * v for a, b in itertools.pairwise(edges)])
    return x, w * np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


@functools.lru_cache(maxsize=64)
def _weighted_gauss(low: float, high: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes and weights of the normal weight on an interval, by Stieltjes' procedure on fine panels.

    Source: Gautschi 2004, Orthogonal Polynomials, section 2.2.3.
    """
    count = max(2, math.ceil((high - low) / 0.5))
    x, w = panels(np.linspace(low, high, count + 1).tolist(), 40)
    a, b = np.zeros(nodes), np.zeros(nodes)
    previous, current, size = np.zeros_like(x), np.ones_like(x), 1.0
    for k in range(nodes):
        norm = float(w @ current**2)
        a[k], b[k] = float(w @ (x * current**2)) / norm, norm / size
        previous, current, size = current, (x - a[k]) * current - (b[k] if k else 0.0) * previous, norm
    matrix = np.diag(a) + np.diag(np.sqrt(b[1:]), 1) + np.diag(np.sqrt(b[1:]), -1)
    points, vectors = np.linalg.eigh(matrix)
    return points, b[0] * vectors[0] ** 2
