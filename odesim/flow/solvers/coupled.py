"""A preconditioner for Newton's method that keeps the derivatives between strongly coupled entries of the state.

On a plateau of a Gram flow the stiff part of the Jacobian is a permuted block-diagonal matrix with small blocks: the
entries of two clusters of vectors move together and depend on other entries only through small overlaps.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from odesim.flow.solvers.step import Statistics

DISPLACEMENT = 1e-8
"""Displacement of every entry in the difference quotients of the blocks."""


class CoupledBlocks:
    """Preconditioner P = I - gamma J with J_ab = df_a/dy_b if a and b have the same label, otherwise 0.

    `labels(y)` are whole numbers (size,). The blocks come from as many evaluations of the flow as the largest of them
    has entries: the k-th displaces the k-th entry of every block at once. `setup` and `solve` have the signatures of a
    preconditioner of CVODE.
    """

    def __init__(
        self,
        flow: Callable[[float, np.ndarray], np.ndarray],
        labels: Callable[[np.ndarray], np.ndarray],
        statistics: Statistics,
    ) -> None:
        self.flow, self.labels, self.statistics = flow, labels, statistics
        self.current = np.empty(0, int)
        self.blocks: list[np.ndarray] = []

    def setup(self, t: float, y: np.ndarray, slope: np.ndarray, reuse: int, renewed: list[Any], gamma: float) -> None:
        """Prepare for gamma. The blocks are computed at (t, y), unless the present ones may be reused."""
        renewed[0] = 0
        if not reuse or not self.blocks:
            self.differentiate(t, y, slope)
            renewed[0] = 1
        inverses = [np.linalg.inv(np.eye(block.shape[1]) - gamma * block).ravel() for block in self.blocks]
        self.inverse.data[:] = np.concatenate(inverses)[self.order]

    def solve(
        self,
        t: float,
        y: np.ndarray,
        slope: np.ndarray,
        right: np.ndarray,
        solution: np.ndarray,
        gamma: float,
        tolerance: float,
        side: int,
    ) -> None:
        """Solve P solution = right."""
        solution[:] = self.inverse @ right

    def differentiate(self, t: float, y: np.ndarray, slope: np.ndarray) -> None:
        """Compute the blocks at (t, y), by their size."""
        labels = self.labels(y)
        if not np.array_equal(labels, self.current):
            self._arrange(labels)
        columns = np.empty((len(self.displaced), y.size))
        for column, entries in zip(columns, self.displaced, strict=True):
            near = y.copy()
            near[entries] += DISPLACEMENT
            np.subtract(self.flow(t, near), slope, out=column)
            self.statistics.evaluations += 1
        columns /= DISPLACEMENT
        self.blocks = [np.moveaxis(columns[: group.shape[1], group], 0, -1) for group in self.members]

    def _arrange(self, labels: np.ndarray) -> None:
        """Set the members of the blocks, the groups that are displaced together, and the pattern of P^-1."""
        import scipy.sparse

        self.current, self.members = labels, list(_members(labels))
        largest = max(group.shape[1] for group in self.members)
        self.displaced = [
            np.concatenate([group[:, k] for group in self.members if group.shape[1] > k]) for k in range(largest)
        ]
        rows = np.concatenate([np.repeat(group, group.shape[1], axis=1).ravel() for group in self.members])
        across = np.concatenate([np.tile(group, (1, group.shape[1])).ravel() for group in self.members])
        self.order = np.lexsort((across, rows))
        self.inverse = scipy.sparse.csr_matrix((np.zeros(rows.size), (rows, across)), (labels.size, labels.size))


def _members(labels: np.ndarray) -> Iterator[np.ndarray]:
    """Return the entries of all blocks of one size (blocks, size), for every size that occurs."""
    order = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    first = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):
        yield order[first[sizes == size][:, None] + np.arange(size)]
