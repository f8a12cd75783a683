"""All stationary points of a vector field modulo its symmetry, with loss, index, null directions, and orbit."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from odesim.study.root_search import ACCEPTED, Evaluate, blocks, levenberg_marquardt, newton, slow_points
from odesim.study.symmetry import Symmetries, random_point, symmetries
from odesim.study.vector_field import CONE, VectorField

SIZES = (0.2, 1.5)
"""Range of the standard deviations of the normal vectors of starts."""
FLOWS = 20
"""Number of flows whose slow points are further starts."""
AROUND, FAR, CLASSES = 40, (0.05, 0.6), 30
"""Further starts around each of the first classes, and their distances in units of the entries of its point."""
LARGEST = 15.0
"""Norm or number of a unit above which a start runs to infinity."""
NEAR = 1e-3
"""Distance up to which a point counts as fixed by a symmetry. Levenberg-Marquardt stops at this distance from
degenerate points, because |F| is of third order along their null directions.
"""
DEGENERATE = 1e-6
"""A Jacobian is degenerate if its smallest singular value is below this part of the largest."""
CONVERGED = 1e-12
"""|F| of a stationary point over |dF/dx| |x|. If a step is small, all of F is small, and `ACCEPTED` is no criterion.

|F| of a stationary point over |dF/dx| |x|.  Where a step is small, so is all of F, and `ACCEPTED` says little.
"""
POLISHED = 1e-2
"""Largest distance by which Newton's method may move a point. Farther away it would be another point."""
NULL = 1e-6
"""Eigenvalues below this part of the largest, or of 1, are null."""
SAME = 1e-7
"""Largest difference of losses (relative) and eigenvalues of images of one point."""
EQUAL = 1e-5
"""Largest difference of images of one point, and of vectors that count as equal."""


@dataclasses.dataclass(frozen=True, eq=False)
class StationaryPoint:
    """A stationary point x (n,) of a field and its linearisation.

    `eigenvalues` are those of dF/dx, in a flow within the span of the teachers; `outside` those of a flow along each
    further dimension. The index is the number of growing directions. `orbit` is the number of images under the
    symmetries, None if these are too many to be listed. `count` is the number of starts that ended here. On a
    `manifold` of stationary points, which null directions span, this is one of many points with the same loss and
    index.
    """

    x: np.ndarray
    loss: float
    residual: float
    eigenvalues: np.ndarray
    outside: np.ndarray
    orbit: int | None
    stabiliser: int | None
    state: Mapping[str, np.ndarray]
    units: str
    count: int = 1
    manifold: bool = False

    @functools.cached_property
    def threshold(self) -> float:
        """Size below which real parts are zero."""
        return NULL * max(1e-3, float(np.abs(self.eigenvalues).max(initial=0.0)))

    @property
    def index(self) -> int:
        """Number of directions that grow, in a flow within the span of the teachers."""
        return int((self.eigenvalues.real > self.threshold).sum())

    @property
    def null(self) -> int:
        """Number of directions that neither grow nor shrink to first order."""
        return int((np.abs(self.eigenvalues.real) <= self.threshold).sum())

    @property
    def index_outside(self) -> int:
        """Number of growing directions for every dimension outside of the span of the teachers; 0 for an online
        limit.
        """
        return int((self.outside > self.threshold).sum())

    @property
    def null_outside(self) -> int:
        """Number of null directions for every dimension outside of the span of the teachers."""
        return int((np.abs(self.outside) <= self.threshold).sum())

    @property
    def stable(self) -> bool:
        """Return True if no direction grows."""
        return self.index == 0 and self.index_outside == 0


@dataclasses.dataclass(frozen=True)
class Search:
    """Counters of a search: starts, starts that converged, and starts whose point is not a Gram matrix of vectors."""

    starts: int
    arrived: int
    outside_cone: int


def stationary_points(
    field: VectorField, values: Mapping[str, Any], *, starts: int = 400, seed: int = 0, group: Symmetries | None = None
) -> tuple[list[StationaryPoint], Search]:
    """Return one point of each class of stationary points that the starts find, by decreasing loss, and the counters.

    The list may be incomplete, because a class that no start finds is missing.
    """
    group = symmetries(field, values) if group is None else group
    evaluate = blocks(lambda x: field.evaluate_block(x, values))
    rng = np.random.default_rng(seed)
    beginnings = _starts(field, values, group, rng, starts)
    flows = np.array([random_point(field, values, rng, rng.uniform(*SIZES)) for _ in range(FLOWS)])
    beginnings = np.concatenate([beginnings, slow_points(evaluate, flows)])
    points: list[StationaryPoint] = []
    arrived, refused = _collect(field, values, group, evaluate, beginnings, points)
    neighbours = _neighbours(points, group, rng)  # rare classes lie near those that are found often
    second_round = _collect(field, values, group, evaluate, neighbours, points)
    search = Search(len(beginnings) + len(neighbours), arrived + second_round[0], refused + second_round[1])
    return sorted(points, key=lambda p: (p.loss, p.index)), search


def _collect(
    field: VectorField, values: Mapping[str, Any], group: Symmetries, evaluate: Evaluate, starts: np.ndarray,
    points: list[StationaryPoint],
) -> tuple[int, int]:  # fmt: skip
    """Add the classes that some starts find to `points`. Return the numbers of starts that converged, and of those
    outside of the cone.
    """
    ends, sizes = levenberg_marquardt(evaluate, starts)
    arrived = refused = 0

    def single(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f, j = field.evaluate(x[0], values)
        return np.asarray(f)[None], np.asarray(j)[None]

    for x in ends[sizes < ACCEPTED]:
        nearest = _nearest(points, x, group)
        if nearest is not None:
            points[nearest] = dataclasses.replace(points[nearest], count=points[nearest].count + 1)
            arrived += 1
            continue
        polished, residual = polish(single, group, x)
        slope = float(np.abs(single(polished[None])[1]).max())
        if not _bounded(field, polished, values) or residual > CONVERGED * slope * max(1.0, np.abs(polished).max()):
            continue
        arrived += 1
        if field.least(polished, values) < -CONE:
            refused += 1
            continue
        _add(points, point_at(field, values, group, polished, residual), group)
    return arrived, refused


def _nearest(points: list[StationaryPoint], x: np.ndarray, group: Symmetries) -> int | None:
    """Return the class with an image at the end of a start; None if no such class is known."""
    images = group.images(x)
    for k, point in enumerate(points):
        if np.abs(images - point.x).max(axis=1).min() < EQUAL:
            return k
    return None


def _neighbours(points: list[StationaryPoint], group: Symmetries, rng: np.random.Generator) -> np.ndarray:
    """Return starts around the known classes; every second one keeps a symmetry of its point."""
    starts = []
    for point in points[:CLASSES]:
        fixed = group.stabiliser(point.x, EQUAL)
        size = max(0.1, float(np.sqrt((point.x**2).mean())))
        for k in range(AROUND):
            move = rng.uniform(*FAR) * size * rng.normal(size=point.x.size)
            if k % 2:
                move = fixed.average(move, int(rng.integers(len(fixed.places))))
            starts.append(point.x + move)
    return np.array(starts).reshape(-1, points[0].x.size if points else 1)


def _starts(
    field: VectorField, values: Mapping[str, Any], group: Symmetries, rng: np.random.Generator, count: int
) -> np.ndarray:
    """Return random unknowns (count, n), of which every second is fixed by a random symmetry.

    The field keeps that symmetry, so that a start ends at a symmetric saddle, few of which attract a general start.
    """
    starts = np.array([random_point(field, values, rng, rng.uniform(*SIZES)) for _ in range(count)])
    for k in range(1, count, 2):
        starts[k] = group.average(starts[k], int(rng.integers(len(group.places))))
    return starts


def polish(evaluate: Evaluate, group: Symmetries, x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the exact point near x, and |F| there.

    If dF/dx is regular this is a step of Newton's method. With null directions x has an error of 1e-4 at |F| = 1e-12. A
    symmetric point is then computed exactly among the points that the symmetries of x fix, where null directions are
    usually absent.
    """
    sizes = np.linalg.svd(evaluate(x[None])[1][0], compute_uv=False)
    if sizes[-1] > DEGENERATE * sizes[0]:
        return newton(evaluate, x, np.eye(x.size))
    for within in (NEAR, NEAR / 100):
        fixed = group.stabiliser(x, within)
        average, space = fixed.projector() @ x, fixed.fixed_space()
        if not space.size:
            f, _ = evaluate(average[None])
            return average, float(np.linalg.norm(f))
        point, residual = newton(evaluate, average, space)
        if residual < ACCEPTED and np.abs(point - x).max() < POLISHED:
            return point, residual
    f, _ = evaluate(x[None])
    return x, float(np.linalg.norm(f))


def point_at(
    field: VectorField, values: Mapping[str, Any], group: Symmetries, x: np.ndarray, residual: float
) -> StationaryPoint:
    """The stationary point with its loss, spectrum, orbit, and a description of its units."""
    _, jacobian = field.evaluate(x, values)
    stabiliser = group.stabiliser(x, EQUAL).order if group.complete else None
    outside_rates = np.zeros(0) if field.online else np.sort(np.linalg.eigvals(field.outside(x, values)).real)[::-1]
    return StationaryPoint(
        x=x,
        loss=field.loss(x, values),
        residual=residual,
        eigenvalues=field.spectrum(x, values, np.asarray(jacobian)),
        outside=outside_rates,
        orbit=None if stabiliser is None else group.order // stabiliser,
        stabiliser=stabiliser,
        state=field.state(x, values),
        units=describe_units(field, x, values),
    )


def _bounded(field: VectorField, x: np.ndarray, values: Mapping[str, Any]) -> bool:
    """Return True if no vector and no number of a unit runs to infinity."""
    numbers = x[field.pairs[:, 1] < 0]
    squares = np.diag(field.gram(x, values))[: field.rows.students]
    return bool(
        np.isfinite(squares).all() and (np.abs(squares) < LARGEST**2).all() and (np.abs(numbers) < LARGEST).all()
    )


def _add(points: list[StationaryPoint], new: StationaryPoint, group: Symmetries) -> None:
    """Count a point in its class, or begin a new class."""
    for k, point in enumerate(points):
        if not _equal(point.loss, new.loss) or point.index != new.index:
            continue
        if is_image(point, new, group):
            better = point if point.residual <= new.residual else new
            points[k] = dataclasses.replace(better, count=point.count + 1, manifold=point.manifold)
            return
        if point.null and new.null:  # both lie on a manifold; the point with the fewest null directions represents it
            points[k] = dataclasses.replace(min(point, new, key=lambda p: p.null), count=point.count + 1, manifold=True)
            return
    points.append(new)


def _equal(first: float, second: float) -> bool:
    return abs(first - second) <= SAME * max(1e-3, abs(first))


def is_image(first: StationaryPoint, second: StationaryPoint, group: Symmetries) -> bool:
    """Return True if a symmetry takes a point to another: loss and spectrum agree, and an element does.

    If the elements are not listed, loss and spectrum decide.
    """
    scale = max(1e-3, float(np.abs(first.eigenvalues).max(initial=0.0)))
    close = np.abs(np.sort(first.eigenvalues.real) - np.sort(second.eigenvalues.real)).max(initial=0.0)
    if not _equal(first.loss, second.loss) or close > 10 * SAME * scale:
        return False
    return not group.complete or group.same(first.x, second.x, EQUAL)


def describe_units(field: VectorField, x: np.ndarray, values: Mapping[str, Any]) -> str:
    """Students that are equal, opposite, or zero, by their numbers: "1 = 2, 1 = -3, 4 = 0"; "" for none.

    Units of several vectors are compared by all of them.
    """
    gram, s, relations = field.gram(x, values), field.rows.students, []
    starts = field.rows.starts
    for number, group in enumerate(field.declared.students):
        rows = [starts[number, slot] + np.arange(field.rows.sizes[number]) for slot in group.slots]
        inner_products = np.sum([gram[np.ix_(r, r)] for r in rows], axis=0)
        scale = max(float(np.diag(gram)[s:].max()), float(np.diag(inner_products).max()))
        named = f"{group.name} " if group.name else ""
        leaders: list[int] = []
        for k in range(len(inner_products)):
            if inner_products[k, k] < EQUAL**2 * scale:
                relations.append(f"{named}{k + 1} = 0")
                continue
            for j in leaders:
                distances = [
                    inner_products[k, k] + inner_products[j, j] + 2 * sign * inner_products[k, j] for sign in (-1, 1)
                ]
                if min(distances) < (EQUAL**2 if not field.online else 1e-8) * scale:
                    sign = "" if distances[0] < distances[1] else "-"
                    relations.append(f"{named}{j + 1} = {sign}{k + 1}")
                    break
            else:
                leaders.append(k)
    return ", ".join(relations)
