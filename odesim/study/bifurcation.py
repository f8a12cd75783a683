"""Special points between neighbours on a branch of zeros of F(y, p): folds, branch points, Hopf points.

They are detected by counts of eigenvalues. The sign of a determinant does not change if eigenvalues cross in pairs, as
they do with equal units. At a fold the p-component of the tangent changes its sign. At the other points the number of
eigenvalues with Re > 0 changes: by a real eigenvalue at a branch point, by a pair at a Hopf point. Each is located on
the arc by Brent's method. Source: Govaerts 2000.
"""

import dataclasses
from collections.abc import Iterator

import numpy as np

from odesim.study.zero_curve import BranchPoint, ZeroCurve

PAIR = 1e-6
"""Imaginary part, over the largest eigenvalue, above which a crossing pair is complex."""
TOGETHER = 1e-7
"""Eigenvalues that cross within this part of the arc, or of 1, cross at the same point."""
MIRROR = 0.1
"""Distance at which the other branch at a pitchfork is started, in steps of the branch."""
RANK = 1e-2
"""Singular values of [F_y F_p] below this part of its norm may be zero at a nearby special point."""
FARTHEST, BACK = 20.0, 0.999
"""The first points on another branch lie within `FARTHEST` amplitudes, and not along the followed branch."""


@dataclasses.dataclass(frozen=True, eq=False)
class SpecialPoint:
    """A bifurcation, or the end of the domain of a branch.

    `kind` is "fold", "branch point", "transcritical", "pitchfork", "Hopf" or "boundary". `order` is the number of the
    crossing eigenvalue among all by falling real part, `multiplicity` the number that cross, `null` (n, k) a basis of
    the directions of the real ones, and `frequency` the imaginary part at a Hopf point. `other` (k, n + 1) are tangents
    of another branch at a pitchfork that was found on the branch of mirror images. `arc` is the place on the branch.
    """

    kind: str
    p: float
    y: np.ndarray
    tangent: np.ndarray
    multiplicity: int = 1
    order: int = 0
    null: np.ndarray | None = None
    frequency: float = 0.0
    other: np.ndarray | None = None
    arc: float = 0.0


class LocatingCurve(ZeroCurve):
    """A curve of zeros whose special points are located."""

    def between(self, left: BranchPoint, right: BranchPoint) -> list[SpecialPoint]:
        """The special points between neighbours on a branch, in order."""
        located: list[tuple[float, SpecialPoint]] = []
        folded = left.tangent[-1] * right.tangent[-1] < 0
        if folded:
            located.append(self._fold(left, right))
        orders = list(range(min(left.index, right.index), max(left.index, right.index)))
        crossings = sorted((self._crossing(left, right, order), order) for order in orders)
        groups: list[list[tuple[float, int]]] = []
        for arc, order in crossings:
            if groups and arc - groups[-1][-1][0] < TOGETHER * max(1.0, right.arc - left.arc):
                groups[-1].append((arc, order))
            else:
                groups.append([(arc, order)])
        for group in groups:
            arc = float(np.mean([crossing for crossing, _ in group]))
            if folded and abs(arc - located[0][0]) < 1e-4 * max(1.0, right.arc - left.arc):
                continue  # the eigenvalue that crosses at a fold
            located.append((arc, self._crossed(left, arc, [order for _, order in group])))
        located.sort(key=lambda pair: pair[0])
        return [dataclasses.replace(special, arc=left.arc + arc) for arc, special in located]

    def _fold(self, left: BranchPoint, right: BranchPoint) -> tuple[float, SpecialPoint]:
        """Return the fold between two points, or a pitchfork if the mirror images of a branch meet on another
        branch.
        """
        from scipy.optimize import root_scalar

        mirrored = self._mirrored(left, right)
        if mirrored is not None:
            return float(left.tangent @ (np.append(mirrored.y, mirrored.p) - left.z)), mirrored

        def component(arc: float) -> float:
            z = self.zero_at(left, arc)
            return float(self.tangent(z[:-1], float(z[-1]), left.tangent)[-1])

        width = right.arc - left.arc
        ends = component(0.0), component(width)
        if ends[0] * ends[1] < 0:
            arc = float(root_scalar(component, bracket=(0.0, width), xtol=1e-13, method="brentq").root)
        else:  # a neighbour lies on the fold, to rounding
            arc = 0.0 if abs(ends[0]) < abs(ends[1]) else width
        z = self.zero_at(left, arc)
        y, p = z[:-1], float(z[-1])
        tangent = self.tangent(y, p, left.tangent)
        return arc, SpecialPoint("fold", p, y, tangent, null=tangent[:-1, None], order=min(left.index, right.index))

    def _mirrored(self, left: BranchPoint, right: BranchPoint) -> SpecialPoint | None:
        """Return the pitchfork between two points of a branch of mirror images, or None for a fold.

        [F_y F_p] has two null directions there, and one at a fold. Near it Newton's method may converge to either
        branch. The point is therefore interpolated, and located on the other branch, where one eigenvalue crosses
        regularly.
        """
        from scipy.interpolate import CubicHermiteSpline

        width = right.arc - left.arc
        path = CubicHermiteSpline([0.0, width], np.array([left.z, right.z]), np.array([left.tangent, right.tangent]))
        turning = [float(root.real) for root in path.derivative().roots(extrapolate=False)[-1] if 0 <= root <= width]
        if not turning:
            return None
        z, slope = path(turning[0]), path(turning[0], 1)
        scale = max(np.linalg.norm(np.column_stack(self.derivatives(q.y, q.p)[1:])) for q in (left, right))
        tangent = slope / np.linalg.norm(slope)
        for direction in self.other_tangents(z[:-1], float(z[-1]), tangent, float(scale)):
            ends = []
            for sign in (-1.0, 1.0):
                zero = self.newton(
                    z + sign * MIRROR * width * direction, direction, float(direction @ z) + sign * MIRROR * width
                )
                if zero is not None and np.linalg.norm(zero[0] - z) < 2 * MIRROR * width:
                    ends.append(self.point(zero[0], direction, (sign + 1) * MIRROR * width))
            crossed = [s for s in self.between(*ends) if s.kind == "branch point"] if len(ends) == 2 else []
            if crossed:
                return dataclasses.replace(
                    crossed[0], kind="pitchfork", other=crossed[0].tangent[None], tangent=tangent
                )
        return None

    def other_tangents(self, y: np.ndarray, p: float, tangent: np.ndarray, scale: float) -> np.ndarray:
        """Null directions (k, n + 1) of [F_y F_p] orthogonal to a tangent; none at regular points.

        Singular values count as zero below `RANK` times a `scale`.
        """
        sizes, right = self.extended(y, p)
        null = right[int((sizes > RANK * scale).sum()) :]
        orthogonal = null - np.outer(null @ tangent, tangent)
        _, lengths, axes = np.linalg.svd(orthogonal)
        return axes[: int((lengths > 0.5).sum())]

    def _crossing(self, left: BranchPoint, right: BranchPoint, order: int) -> float:
        """The place on the arc at which the real part number `order` changes its sign."""
        from scipy.optimize import root_scalar

        width = right.arc - left.arc

        def part(arc: float) -> float:
            if arc <= 0.0 or arc >= width:
                return float((left if arc <= 0 else right).eigenvalues[order].real)
            z = self.zero_at(left, arc)
            y, p = z[:-1], float(z[-1])
            return float(self.spectrum(y, p, self.derivatives(y, p).jacobian)[order].real)

        ends = part(0.0), part(width)
        if ends[0] * ends[1] >= 0:  # a neighbour lies on the special point, to rounding
            return 0.0 if abs(ends[0]) < abs(ends[1]) else width
        return float(root_scalar(part, bracket=(0.0, width), xtol=1e-14, method="brentq").root)

    def _crossed(self, left: BranchPoint, arc: float, orders: list[int]) -> SpecialPoint:
        """The branch point or Hopf point at a place on the arc where eigenvalues of some orders cross."""
        z = self.zero_at(left, arc)
        y, p = z[:-1], float(z[-1])
        jacobian = self.derivatives(y, p).jacobian
        values = np.linalg.eigvals(jacobian)
        scale = float(np.abs(left.eigenvalues).max())
        crossing = np.argsort(np.abs(values.real))[: len(orders)]
        frequency = float(np.abs(values[crossing].imag).max())
        tangent = self.tangent(y, p, left.tangent)
        if frequency > PAIR * scale:
            return SpecialPoint("Hopf", p, y, tangent, len(orders), orders[0], None, frequency)
        if (
            np.abs(values[crossing].real).max() > 1e-4 * scale
        ):  # the crossing eigenvalue is not one of the Jacobian itself
            return SpecialPoint("branch point", p, y, tangent, len(orders), orders[0])
        right = np.linalg.svd(jacobian)[2][len(y) - len(orders) :]
        return SpecialPoint("branch point", p, y, tangent, len(orders), orders[0], right.T)

    def switch(self, special: SpecialPoint, direction: np.ndarray, eps: float) -> Iterator[BranchPoint]:
        """First points of the branch that leaves a special point along a direction (n + 1,), and along its opposite.

        Newton's method on v.(z - z*) = +-eps; directions that lead back to the branch itself yield nothing.
        """
        v = direction / np.linalg.norm(direction)
        z0 = np.append(special.y, special.p)
        for sign in (1.0, -1.0):
            zero = self.newton(z0 + sign * eps * v, v, float(v @ z0) + sign * eps)
            if zero is None or np.linalg.norm(zero[0] - z0) > FARTHEST * eps:
                continue
            step = (zero[0] - z0) / np.linalg.norm(zero[0] - z0)
            if abs(step @ special.tangent) > BACK:
                continue
            point = self.point(zero[0], step, float(np.linalg.norm(zero[0] - z0)))
            yield point if point.tangent @ step > 0 else dataclasses.replace(point, tangent=-point.tangent)


def classify(special: SpecialPoint, shifts: dict[float, float]) -> str:
    """Kind of a branch point from the parameter p(e) - p* of the branch that leaves it at amplitudes e and -e.

    p(e) = p* + b e + c e^2: b is 0 at a pitchfork.

    >>> point = SpecialPoint("branch point", 0.0, np.zeros(1), np.zeros(2))
    >>> classify(point, {0.01: 1e-4, -0.01: 1e-4}), classify(point, {0.01: 0.02, -0.01: -0.02})
    ('pitchfork', 'transcritical')
    """
    if len(shifts) < 2:
        return special.kind
    (ahead, first), (behind, second) = shifts.items()
    slope = abs(first - second) / (ahead - behind)
    bend = abs(first + second) / 2 / max(abs(ahead), abs(behind))
    return "pitchfork" if slope < 0.1 * bend or max(abs(first), abs(second)) < 1e-10 else "transcritical"
