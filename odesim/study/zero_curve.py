"""Zeros of F(y, p) as a curve: Newton's method on hyperplanes, tangents, and the eigenvalues along it.

A curve z(s) = (y, p) with F(z(s)) = 0 has the tangent t, [F_y F_p] t = 0, |t| = 1. Newton's method computes the zero on
a hyperplane row.z = level. The hyperplane has a fixed parameter, or is orthogonal to the tangent, so that folds are no
obstacle.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

ROUNDING = 1e-15
"""F is zero up to rounding if it is below this part of the sum of its terms."""
TOLERANCE = 1e-11
"""Newton's method has converged if its last step is below this part of the point."""
SMALL = 1e-7
"""Singular values of [F_y F_p] below this part of the largest belong to null directions."""
ZERO = 1e-7
"""Eigenvalues below this part of the largest count as zero."""


class Derivatives(NamedTuple):
    """F (n,), dF/dy (n, n), dF/dp (n,)."""

    slope: np.ndarray
    jacobian: np.ndarray
    by_parameter: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class BranchPoint:
    """A point of a branch: state y, parameter p, unit tangent (n + 1,), eigenvalues with the largest real part first.

    `arc` is the length of the branch up to here.
    """

    y: np.ndarray
    p: float
    tangent: np.ndarray
    eigenvalues: np.ndarray
    arc: float

    @property
    def z(self) -> np.ndarray:
        """(y, p) as one vector."""
        return np.append(self.y, self.p)

    @property
    def index(self) -> int:
        """Number of eigenvalues with a positive real part."""
        scale = ZERO * float(np.abs(self.eigenvalues).max(initial=1e-300))
        return int((self.eigenvalues.real > scale).sum())


Spectrum = Callable[[np.ndarray, float, np.ndarray], np.ndarray]


def eigenvalues(y: np.ndarray, p: float, jacobian: np.ndarray) -> np.ndarray:
    """Eigenvalues of the Jacobian, the largest real part first."""
    values = np.linalg.eigvals(jacobian)
    return values[np.argsort(-values.real, kind="stable")]


class ZeroCurve:
    """The zeros of F(y, p), from `derivatives(y, p)`, which returns (F, dF/dy, dF/dp).

    `domain(y, p)` is a test function that is negative outside of the domain of F, `spectrum(y, p, dF/dy)` the
    eigenvalues by falling real part. Zeros are searched among y + `space`, an invariant space (n, k) with orthonormal
    columns. These are the points that the symmetries of a branch fix; eigenvalues that break the symmetries do not
    occur there.

    >>> parabola = ZeroCurve(lambda y, p: Derivatives(y**2 + p, np.diag(2 * y), np.ones(1)))
    >>> parabola.at_parameter(np.array([1.5]), -4.0).tolist()
    [2.0]
    """

    def __init__(
        self,
        derivatives: Callable[[np.ndarray, float], Derivatives],
        spectrum: Spectrum = eigenvalues,
        domain: Callable[[np.ndarray, float], float] = lambda y, p: np.inf,
        space: np.ndarray | None = None,
    ) -> None:
        self.derivatives, self.spectrum, self.domain, self.space = derivatives, spectrum, domain, space

    def at_parameter(self, y: np.ndarray, p: float, steps: int = 12) -> np.ndarray | None:
        """The zero near y at a parameter, by Newton's method; None if it does not converge."""
        row = np.append(np.zeros(len(y)), 1.0)
        zero = self.newton(np.append(y, p), row, p, steps)
        return None if zero is None else zero[0][:-1]

    def newton(self, z: np.ndarray, row: np.ndarray, level: float, steps: int = 12) -> tuple[np.ndarray, int] | None:
        """Return the zero near z with row.z = level and the number of steps, or None.

        The least-squares solution also works at branch points, where the bordered matrix is singular.
        """
        for k in range(steps):
            f, jacobian, by_parameter = self.derivatives(z[:-1], float(z[-1]))
            if not (np.isfinite(f).all() and np.isfinite(jacobian).all() and np.isfinite(by_parameter).all()):
                return None
            bordered = np.vstack([np.hstack([jacobian, by_parameter[:, None]]), row])
            residual = np.append(f, row @ z - level)
            if (np.abs(residual) <= ROUNDING * (np.abs(bordered) @ np.abs(z))).all():
                return z, k  # near a branch point further steps are rounding divided by a small eigenvalue
            move = self._least_squares(bordered, -residual)
            z = z + move
            if np.abs(move).max() < TOLERANCE * (1 + np.abs(z).max()):
                return z, k
        return None

    def _least_squares(self, bordered: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the least-squares solution (n + 1,), in the space, of the bordered equations (n + 1, n + 1)."""
        if self.space is None:
            return np.linalg.lstsq(bordered, target, rcond=1e-13)[0]
        frame = np.zeros((self.space.shape[0] + 1, self.space.shape[1] + 1))
        frame[:-1, :-1], frame[-1, -1] = self.space, 1.0
        return frame @ np.linalg.lstsq(frame.T @ bordered @ frame, frame.T @ target, rcond=1e-13)[0]

    def extended(self, y: np.ndarray, p: float) -> tuple[np.ndarray, np.ndarray]:
        """Singular values and right singular vectors (m, n + 1) of [F_y F_p] among the points of the space.

        The last vectors, those beyond the number of values included, span its null space.
        """
        _, jacobian, by_parameter = self.derivatives(y, p)
        if self.space is None:
            _, sizes, right = np.linalg.svd(np.hstack([jacobian, by_parameter[:, None]]))
            return sizes, right
        reduced = np.hstack([self.space.T @ jacobian @ self.space, (self.space.T @ by_parameter)[:, None]])
        _, sizes, right = np.linalg.svd(reduced)
        return sizes, np.hstack([right[:, :-1] @ self.space.T, right[:, -1:]])

    def tangent(self, y: np.ndarray, p: float, last: np.ndarray | None = None) -> np.ndarray:
        """Return the unit tangent of the branch; of two tangents at a branch point, the one along the last tangent."""
        sizes, right = self.extended(y, p)
        if last is None:
            return right[-1]
        null = right[int((sizes > SMALL * sizes.max(initial=0.0)).sum()) :]
        projection = null.T @ (null @ last)
        return projection / np.linalg.norm(projection)

    def is_regular(self, y: np.ndarray, p: float) -> bool:
        """Return True if the zeros near a point are one curve: [F_y F_p] has one null direction in the space."""
        sizes, _ = self.extended(y, p)
        return bool((sizes > SMALL * sizes.max(initial=0.0)).all())

    def point(self, z: np.ndarray, last: np.ndarray | None, arc: float) -> BranchPoint:
        """The point of a branch at a zero."""
        y, p = z[:-1], float(z[-1])
        values = self.spectrum(y, p, self.derivatives(y, p).jacobian)
        return BranchPoint(y, p, self.tangent(y, p, last), values, arc)

    def on_arc(self, point: BranchPoint, ds: float) -> tuple[np.ndarray, int] | None:
        """The zero on the hyperplane at the distance ds along the tangent of a point."""
        t = point.tangent
        return self.newton(point.z + ds * t, t, float(t @ point.z) + ds)

    def zero_at(self, point: BranchPoint, arc: float) -> np.ndarray:
        """Return the zero (y, p) at a place on the arc after a point; zeros exist on both sides of this place."""
        zero = self.on_arc(point, arc)
        return point.z + arc * point.tangent if zero is None else zero[0]
