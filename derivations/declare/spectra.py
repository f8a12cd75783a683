"""The blocks of the inputs of a run: their eigenvalues, shares and dimensions, and the teacher's part in each block.

A spectrum lam_1 >= .. >= lam_d is approximated by bins of the index, uniform in its logarithm. Each bin has two blocks
of whole dimensions m_1 + m_2 = m at

    lam = mu + sqrt(var m_2/m_1),  mu - sqrt(var m_1/m_2)

which preserve sum lam and sum lam^2 of the bin exactly, and sum lam^3 approximately (Gauss quadrature with two nodes).
The teacher's squared coordinates w_j^2 are divided so that sum w^2 and sum lam w^2 are preserved.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from derivations.contract import Labelled, UsageError
from derivations.declare import classes, data, schedules
from derivations.declare.array_files import ArrayFile
from derivations.declare.clusters import UNEQUAL
from derivations.declare.declaration import Declaration, Inputs
from derivations.declare.fields import MOST
from derivations.declare.grammar import OF_NUMBERS, Tree, number
from derivations.declare.rows import SPACE

WHOLE = 100_000
"""Up to this dimension all eigenvalues are evaluated; above it, sums over long bins are integrals."""
FIRST = 1000
"""Index from which a long sum is an integral over log j with 20 nodes per decade: its error is below 1e-6."""
REFERENCE = 800
"""Blocks of the reference solution if there are too many eigenvalues to evaluate."""
TIMES = 200
"""Times at which the error of blocks is measured."""
NODES = np.polynomial.legendre.leggauss(20)
Values = Callable[[np.ndarray], np.ndarray]
Total = Callable[[int, int, Values], float]
"""total(a, b, f), the sum of f over j = a + 1, .., b."""


@dataclasses.dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a covariance: their eigenvalues, shares of the coordinates and dimensions, (L,) each.

    `content` (L,) is the part of the squared norm of a teacher's vector in every block, or None for random directions.
    `error` is the largest relative error of the linear flow if blocks replace all eigenvalues. `scale` is the factor of
    all eigenvalues that gives the declared trace.
    """

    eigenvalue: np.ndarray
    share: np.ndarray
    dimension: np.ndarray
    content: np.ndarray | None
    error: float = 0.0
    scale: float = 1.0


def blocks(parameters: Any) -> Blocks | None:
    """Return the blocks of a run; None for isotropic inputs.

    Raises `UsageError` for numbers that do not define a covariance.
    """
    declared: Declaration = parameters.declaration
    if declared.inputs is None:
        return None
    values = tuple(schedules.shared(parameters).items())
    return _blocks(declared.inputs, values, int(parameters.d))


@functools.lru_cache(maxsize=64)
def _blocks(inputs: Inputs, values: tuple[tuple[str, float], ...], d: int) -> Blocks:
    namespace = {**dict(values), "d": float(d)}
    data.require_dimension(inputs, d)
    spectrum = _stated(inputs, namespace, d) if inputs.blocks else _of_spectrum(inputs, namespace, d)
    if inputs.trace is None:
        return spectrum
    scale = number(inputs.trace, namespace) / float(spectrum.share @ spectrum.eigenvalue)
    if scale <= 0:
        raise UsageError(f"trace must be above 0, but its value is {number(inputs.trace, namespace):g}")
    return dataclasses.replace(spectrum, eigenvalue=scale * spectrum.eigenvalue, scale=scale)


def labelled(parameters: Any) -> Labelled:
    """Eigenvalue, share and dimension of every block of the inputs; empty for isotropic inputs."""
    spectrum = blocks(parameters)
    if spectrum is None:
        return {}
    return {
        "eigenvalue": ((SPACE,), spectrum.eigenvalue, "eigenvalue of a block of the inputs"),
        "share": ((SPACE,), spectrum.share, "share of a block in the coordinates"),
        "dimension": ((SPACE,), spectrum.dimension, "coordinates of a block at this d"),
    }


def variances(parameters: Any) -> np.ndarray:
    """Return the variance (d,) of every coordinate of the inputs, in the order of the blocks."""
    declared: Declaration = parameters.declaration
    spectrum = blocks(parameters)
    assert spectrum is not None and declared.inputs is not None
    if declared.inputs.blocks:
        return np.repeat(spectrum.eigenvalue, spectrum.dimension)
    eigenvalues = _eigenvalues(
        declared.inputs, {**schedules.shared(parameters), "d": float(parameters.d)}, parameters.d
    )
    # The ratio of the blocks' trace to that of the spectrum is the factor of all eigenvalues.
    return eigenvalues * float(spectrum.eigenvalue @ spectrum.dimension / eigenvalues.sum())


def samples(parameters: Any) -> np.ndarray:
    """Return the samples (N, d) of a file, in the eigenbasis and with the variances of a run."""
    spectrum, inputs = blocks(parameters), parameters.declaration.inputs
    assert spectrum is not None
    return np.sqrt(spectrum.scale) * data.coordinates(inputs.data, inputs.label, inputs.centre)


def _eigenvalues(inputs: Inputs, namespace: Mapping[str, float], d: int) -> np.ndarray:
    """The eigenvalues (d,) of a spectrum or a file, in decreasing order."""
    file_values = data.eigenvalues(inputs)
    if file_values is not None:
        return file_values
    assert inputs.spectrum is not None
    return np.sort(_values(inputs.spectrum, namespace)(np.arange(1.0, d + 1)))[::-1]


def _stated(inputs: Inputs, namespace: Mapping[str, float], d: int) -> Blocks:
    """The declared blocks."""
    eigenvalue = np.array([number(value, namespace) for value, _ in inputs.blocks])
    share = np.array([np.nan if part is None else number(part, namespace) for _, part in inputs.blocks])
    remainder = 1 - np.nansum(share)
    if np.isnan(share).any() and remainder <= 0:
        raise UsageError(f'the shares of the blocks sum to {1 - remainder:.10g}, so nothing is left for "rest"')
    share = np.where(np.isnan(share), remainder, share)
    if (share <= 0).any():
        raise UsageError(f"the share of block {np.argmin(share) + 1} must be above 0, but is {share.min():g}")
    if abs(share.sum() - 1) > UNEQUAL:
        raise UsageError(f'the shares of the blocks sum to {share.sum():.10g}, not to 1; one may be "rest"')
    if eigenvalue.max() > MOST or (eigenvalue[eigenvalue > 0] < 1 / MOST).any():
        raise UsageError(f"an eigenvalue must be 0, or between {1 / MOST:g} and {MOST:g} in size")
    if (eigenvalue < 0).any():
        raise UsageError(
            f"eigenvalues must be at least 0, but that of block {np.argmin(eigenvalue) + 1} is {eigenvalue.min():g}"
        )
    if not (eigenvalue > 0).any():
        raise UsageError("every eigenvalue of the inputs is 0: there is nothing to learn from")
    dimension = whole_dimensions(share, d)
    return Blocks(eigenvalue, share, dimension, _content(inputs, namespace, share, dimension))


def whole_dimensions(share: np.ndarray, d: int) -> np.ndarray:
    """Return whole numbers that sum to d and are nearest to share x d, by largest remainders, but at least 1.

    With fewer coordinates than blocks every block has one.

    >>> whole_dimensions(np.array([0.001, 0.3995, 0.5995]), 10).tolist()
    [1, 4, 5]
    """
    dimension = np.maximum(np.floor(share * d + UNEQUAL), 1).astype(np.int64)
    order = np.argsort(dimension - share * d, kind="stable")
    missing = d - int(dimension.sum())
    if missing > 0:
        dimension[order[np.arange(missing) % len(share)]] += 1
    while missing < 0 and dimension.max() > 1:
        largest = np.argmax(np.where(dimension > 1, dimension - share * d, -np.inf))
        dimension[largest] -= 1
        missing += 1
    return dimension


def _content(
    inputs: Inputs, namespace: Mapping[str, float], share: np.ndarray, dimension: np.ndarray
) -> np.ndarray | None:
    """The part of the squared norm of a teacher's vector in every block."""
    if isinstance(inputs.spread, str):
        return share if inputs.spread == "even" else None
    if isinstance(inputs.spread, tuple):
        if len(inputs.spread) != len(share):
            raise UsageError(f"spread has {len(inputs.spread)} shares, but the inputs have {len(share)} blocks")
        return np.array(inputs.spread)
    if isinstance(inputs.spread, ArrayFile):
        return None  # every vector has its individual parts
    ends = np.concatenate([[0], np.cumsum(dimension)]).tolist()
    sums = [_sum(a, b, _squares(inputs.spread, namespace)) for a, b in itertools.pairwise(ends)]
    return np.array(sums) / sum(sums)


def _of_spectrum(inputs: Inputs, namespace: Mapping[str, float], d: int) -> Blocks:
    """The blocks that approximate a spectrum, and their error."""
    if isinstance(inputs.spread, tuple):
        raise UsageError("spread = [..] has a share for every block; for a spectrum give 'even', 'random', or an "
                         "expression in j such as 'j^(-0.5)'")  # fmt: skip
    value, weight, total = _by_coordinate(inputs, namespace, d)
    rows = np.array(list(_paired(d, inputs.bins, value, weight, total)))
    eigenvalue, dimension, weights = rows.T
    if isinstance(inputs.spread, ArrayFile) or inputs.classes:  # a given teacher has the parts of its coordinates
        starts = np.concatenate([[0], np.cumsum(dimension)[:-1]]).astype(np.int64)
        rows[:, 2] = np.add.reduceat(weight(np.arange(1.0, d + 1)), starts)
    content = None if isinstance(inputs.spread, ArrayFile) or inputs.spread == "random" else weights / weights.sum()
    error = 0.0
    if len(rows) < d:
        reference = d if d <= WHOLE else max(REFERENCE, 2 * inputs.bins)
        error = _error(rows, np.array(list(_paired(d, reference, value, weight, total))))
    return Blocks(eigenvalue, dimension / d, dimension.astype(np.int64), content, error)


def _by_coordinate(inputs: Inputs, namespace: Mapping[str, float], d: int) -> tuple[Values, Values, Total]:
    """Eigenvalues in decreasing order, the teacher's weights of the same coordinates, and the function for their sums.

    Spectra from a file are summed term by term.
    """
    if inputs.spectrum is None or isinstance(inputs.spread, ArrayFile):
        vectors = classes.named_means(inputs) if inputs.classes else data.teacher(inputs)
        weights = _squares(inputs.spread, namespace)(np.arange(1.0, d + 1)) if vectors is None else (vectors**2).sum(0)
        eigenvalues = _eigenvalues(inputs, namespace, d)
        # Samples and covariances can have eigenvalues of 0, a spectrum cannot.
        positive = data.basis_file(inputs) is None
        smallest = eigenvalues[-1] if positive else eigenvalues[eigenvalues > 0].min(initial=eigenvalues[0])
        _require_size(float(eigenvalues[0]), float(smallest))
        return _looked_up(eigenvalues), _looked_up(weights), _direct_sum
    value, weight = _in_order(_values(inputs.spectrum, namespace), _squares(inputs.spread, namespace), d)
    first, last = value(np.array([1.0, float(d)]))
    _require_size(first, last)
    return value, weight, _sum


def _require_size(largest: float, smallest: float) -> None:
    """Raise `UsageError` for spectra with numbers so large or small that their powers overflow or underflow."""
    if not (largest <= MOST and smallest >= 1 / MOST):
        raise UsageError(
            f"all values of a spectrum must lie between {1 / MOST:g} and {MOST:g}, but the largest and "
            f"smallest are {largest:g} and {smallest:g}"
        )


def _squares(spread: Any, namespace: Mapping[str, float]) -> Values:
    """The teacher's squared coordinates, up to a factor, if they are an expression; else 1."""
    if not isinstance(spread, Tree):
        return lambda j: np.ones(len(j))
    size = _values(spread, namespace)
    return lambda j: size(j) ** 2


def _in_order(value: Values, weight: Values, d: int) -> tuple[Values, Values]:
    """Eigenvalues in decreasing order, and the teacher's weights of the same coordinates.

    Raises `UsageError` for a spectrum that does not decrease and is too long to be sorted.
    """
    if d > WHOLE:
        if (np.diff(value(np.geomspace(1, d, FIRST))) > 0).any():
            raise UsageError(f"above d = {WHOLE:,} a spectrum must fall with j")
        return value, weight
    index = np.arange(1.0, d + 1)
    values, weights = value(index), weight(index)
    order = np.argsort(-values, kind="stable")
    return _looked_up(values[order]), _looked_up(weights[order])


def _looked_up(values: np.ndarray) -> Values:
    return lambda j: values[np.asarray(j, int) - 1]


def _values(tree: Tree, namespace: Mapping[str, float]) -> Values:
    """An expression as a function of an array of coordinates j."""
    operations: dict[str, Callable[[Any, Any], Any]] = {
        "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "^": np.power,
    }  # fmt: skip

    def value(node: Tree, j: np.ndarray) -> Any:
        if "j" not in node.names():
            return number(node, namespace)
        if node.kind == "name":
            return j
        parts = [value(part, j) for part in node.parts]
        if node.kind == "call" and node.word in OF_NUMBERS:
            return np.vectorize(OF_NUMBERS[node.word])(*parts)
        if node.kind == "call":
            raise UsageError(f"{node.word} is not a function of j; use {', '.join(OF_NUMBERS)}")
        return operations[node.kind](*parts)

    def at(j: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            try:
                values = np.broadcast_to(np.asarray(value(tree, j), float), j.shape)
            except (ArithmeticError, ValueError) as error:
                raise UsageError(
                    f"an expression in j has no value at some j from {j[0]:g} to {j[-1]:g}: {error}"
                ) from None
        if not np.isfinite(values).all():
            raise UsageError(f"an expression in j is not finite at j = {j[~np.isfinite(values)][0]:g}")
        return values

    return at


def _edges(d: int, limit: int) -> np.ndarray:
    """Edges 0 = e_0 < .. < e_K = d of at most `limit` bins of whole numbers, uniform in log j except the first ones."""
    low, high = 1, 64 * max(limit, 1)

    def made(count: int) -> np.ndarray:
        return np.unique(np.round(np.geomspace(1, d + 1.0, count + 1))).astype(np.int64) - 1

    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(made(middle)) - 1 <= limit else (low, middle - 1)
    return made(low)


def _bins(d: int, limit: int) -> np.ndarray:
    """Edges of bins with at most `limit` blocks: one block for a bin of one index, two for any other."""
    edges, count = _edges(d, limit), limit
    for _ in range(60):  # the other bins share the blocks that bins of one index save
        single_bins = int((np.diff(edges) == 1).sum())
        count = single_bins + (limit - single_bins) // 2
        finer = _edges(d, count)
        if np.array_equal(finer, edges):
            break
        edges = finer
    while 2 * (len(edges) - 1) - (np.diff(edges) == 1).sum() > limit:
        count -= 1
        edges = _edges(d, count)
    return edges


def _paired(d: int, bins: int, value: Values, weight: Values, total: Total) -> Iterator[tuple[float, float, float]]:
    """(eigenvalue, dimension, sum of the teacher's weights) of every block, at most `bins` of them."""
    if bins >= d:
        index = np.arange(1.0, d + 1)
        yield from zip(value(index).tolist(), np.ones(d).tolist(), weight(index).tolist(), strict=True)
        return
    for a, b in itertools.pairwise(_bins(d, bins).tolist()):
        yield from _pair(a, b, value, weight, total)


def _pair(a: int, b: int, value: Values, weight: Values, total: Total) -> Iterator[tuple[float, float, float]]:
    """The one or two blocks of the coordinates a + 1, .., b."""
    m = b - a
    mean = total(a, b, value) / m
    var = total(a, b, lambda j: (value(j) - mean) ** 2) / m
    weight_sum = total(a, b, weight)
    if m == 1 or var <= 1e-28 * mean**2:
        yield mean, float(m), weight_sum
        return
    skew = total(a, b, lambda j: (value(j) - mean) ** 3) / m / var
    root = float(np.sqrt(skew**2 + 4 * var))
    lower = mean + (skew - root) / 2
    high_count = min(max(round(m * (mean - lower) / root), 1), m - 1)
    low_count = m - high_count
    high, low = mean + np.sqrt(var * low_count / high_count), mean - np.sqrt(var * high_count / low_count)
    if low <= 0:
        yield mean, float(m), weight_sum
        return
    part = (total(a, b, lambda j: value(j) * weight(j)) - low * weight_sum) / (high - low)
    part = min(max(part, 0.0), weight_sum)
    yield float(high), float(high_count), part
    yield float(low), float(low_count), weight_sum - part


def _direct_sum(a: int, b: int, f: Values) -> float:
    """The sum of f over j = a + 1, .., b, term by term."""
    return float(f(np.arange(a + 1.0, b + 1.0)).sum())


def _sum(a: int, b: int, f: Values) -> float:
    """The sum of f over j = a + 1, .., b: term by term, from `FIRST` on by integrals over decades of j."""
    if b <= WHOLE or b - a < 64:
        return _direct_sum(a, b, f)
    if a < FIRST:
        return float(f(np.arange(a + 1.0, FIRST + 1.0)).sum()) + _sum(FIRST, b, f)
    x, weights = NODES
    count = int(np.ceil(np.log10((b + 0.5) / (a + 0.5))))
    ends = np.linspace(np.log(a + 0.5), np.log(b + 0.5), count + 1)
    total = 0.0
    for low, high in itertools.pairwise(ends.tolist()):
        j = np.exp((high - low) / 2 * x + (high + low) / 2)
        total += float((weights * (high - low) / 2 * j) @ f(j))
    return total


def _error(approximate: np.ndarray, true: np.ndarray) -> float:
    """The largest relative error over time of sum w lam exp(-2 lam t), for w the shares, and w the teacher's content.

    Rows are (eigenvalue, dimension, weight) of the blocks and of the exact spectrum.
    """
    positive = true[true[:, 0] > 0, 0]  # samples can have eigenvalues of 0, along which nothing moves
    times = np.concatenate([[0.0], np.geomspace(0.01 / positive.max(), 1 / positive.min(), TIMES)])
    worst = 0.0
    for t in times:
        approximation, reference = (
            (rows[:, 0] * np.exp(-2 * rows[:, 0] * t)) @ rows[:, 1:] for rows in (approximate, true)
        )
        worst = max(worst, float(np.abs(approximation / reference - 1).max()))
    return worst
