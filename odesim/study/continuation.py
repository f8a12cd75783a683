"""Pseudo-arclength continuation of the zeros of F(y, p).

The predictor is z + ds t, t the unit tangent at z = (y, p); the corrector is Newton's method on the hyperplane
t.(z' - z) = ds.  Source: Keller 1977.
"""

import dataclasses

import numpy as np

from odesim.study.bifurcation import LocatingCurve, SpecialPoint
from odesim.study.zero_curve import ZERO, BranchPoint

CORRECTIONS = 6
"""Largest number of Newton steps of an accepted point; otherwise the step is halved."""
ALONG = 0.9
"""Smallest cosine of neighbouring tangents."""
LEVEL = 5
"""Number of points with an equal parameter after which a branch counts as part of a manifold of zeros."""
EDGE = -1e-8
"""Value of the test function of the domain below which a point has left the domain."""


@dataclasses.dataclass(frozen=True)
class Steps:
    """Lengths of the steps along a branch, the range of the parameter, and the most points.

    `largest` is relative to the size of a point if that is above 1. A branch ends if an entry of a point exceeds
    `farthest`, as it then runs to infinity.
    """

    bounds: tuple[float, float]
    first: float = 0.02
    least: float = 1e-5
    largest: float = 0.1
    points: int = 400
    farthest: float = 300.0


@dataclasses.dataclass(frozen=True)
class Branch:
    """Points along a branch and the special points between them, in order; `end` is the reason for its end."""

    points: list[BranchPoint]
    special: list[SpecialPoint]
    end: str


class Curve(LocatingCurve):
    """The zeros of F(y, p), followed over p.

    >>> from odesim.study.zero_curve import Derivatives
    >>> fold = Curve(lambda y, p: Derivatives(y**2 + p, np.diag(2 * y), np.ones(1)))
    >>> branch = fold.follow(np.array([1.0]), -1.0, Steps((-1.0, 1.0)))
    >>> [(point.kind, abs(point.p) < 1e-12) for point in branch.special]
    [('fold', True)]
    """

    def within(self, space: np.ndarray | None) -> "Curve":
        """Return the same curve within an invariant space (n, k)."""
        return Curve(self.derivatives, self.spectrum, self.domain, space)

    def follow(self, y: np.ndarray, p: float, steps: Steps, toward: float = 1.0) -> Branch:
        """Follow the branch from a zero near (y, p), first towards larger p (toward = 1) or smaller p (-1).

        Raises `ValueError` if there is no zero near it.
        """
        start = self.at_parameter(np.asarray(y, float), p)
        if start is None:
            raise ValueError(f"no zero near the start at p = {p:g}")
        first = self.point(np.append(start, p), None, 0.0)
        if first.tangent[-1] * toward < 0:
            first = dataclasses.replace(first, tangent=-first.tangent)
        return self.follow_on(first, steps)

    def follow_on(self, point: BranchPoint, steps: Steps) -> Branch:
        """Follow the branch from a point along its tangent until the range, the domain, or `Steps.points` end."""
        points, special, ds = [point], [], steps.first
        while len(points) < steps.points:
            advanced = self._advance(points[-1], ds, steps)
            if advanced is None:
                return Branch(points, special, "no further point")
            new, ds, corrections = advanced
            low, high = steps.bounds
            if not low <= new.p <= high:
                clipped = self._clipped(points[-1], new, min(max(new.p, low), high))
                if clipped is None:
                    return Branch(points, special, "range")
                new = clipped
            special += self.between(points[-1], new)
            if self.domain(new.y, new.p) < EDGE:
                edge = self._edge(points[-1], new)
                special = [*(s for s in special if _before(points[-1], s, edge)), edge]
                return Branch(points, special, "boundary")
            points.append(new)
            if new.p in steps.bounds:
                return Branch(points, special, "range")
            if np.abs(new.y).max() > steps.farthest:
                return Branch(points, special, "infinity")
            if len(points) > LEVEL and all(abs(point.tangent[-1]) < ZERO for point in points[-LEVEL:]):
                return Branch(points, special, "manifold")
            if _closed(points):
                return Branch(points, special, "closed")
            ds = min(1.5 * ds, steps.largest * max(1.0, float(np.abs(new.z).max()))) if corrections <= 3 else ds
        return Branch(points, special, "points")

    def _advance(self, point: BranchPoint, ds: float, steps: Steps) -> tuple[BranchPoint, float, int] | None:
        """The next point, the step that led there, and its corrections; the step is halved until one is accepted."""
        while ds >= steps.least:
            zero = self.on_arc(point, ds)
            if zero is not None and zero[1] <= CORRECTIONS:
                new = self.point(zero[0], point.tangent, point.arc + ds)
                if new.tangent @ point.tangent > ALONG:
                    return new, ds, zero[1]
            ds /= 2
        return None

    def _clipped(self, last: BranchPoint, new: BranchPoint, bound: float) -> BranchPoint | None:
        """The point on the bound of the parameter, between two points."""
        share = (bound - last.p) / (new.p - last.p)
        y = self.at_parameter(last.y + share * (new.y - last.y), bound)
        if y is None:
            return None
        z = np.append(y, bound)
        return self.point(z, last.tangent, last.arc + float((z - last.z) @ last.tangent))

    def _edge(self, inner: BranchPoint, outer: BranchPoint) -> SpecialPoint:
        """The point at which a branch leaves its domain, by bisection on the arc."""
        low, high = 0.0, outer.arc - inner.arc
        z = inner.z
        for _ in range(50):
            middle = (low + high) / 2
            zero = self.on_arc(inner, middle)
            if zero is not None and self.domain(zero[0][:-1], float(zero[0][-1])) >= EDGE:
                low, z = middle, zero[0]
            else:
                high = middle
        return SpecialPoint("boundary", float(z[-1]), z[:-1], inner.tangent, arc=inner.arc + low)


def _before(point: BranchPoint, special: SpecialPoint, edge: SpecialPoint) -> bool:
    """Return True if a special point lies between a point and the edge of the domain."""
    t = point.tangent
    return float(t @ (np.append(special.y, special.p) - np.append(edge.y, edge.p))) <= 1e-9


def _closed(points: list[BranchPoint]) -> bool:
    """Return True if a branch has come back to its first point."""
    first, last = points[0], points[-1]
    if len(points) < 10:
        return False
    gap = float(np.linalg.norm(last.z - first.z))
    return gap < 0.5 * (last.arc - points[-2].arc) and float(last.tangent @ first.tangent) > ALONG
