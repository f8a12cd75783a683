"""Positions of the components of a state in the flat vector that is integrated."""

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

DIRECTION = "v_"
"""Prefix of the names of the components of a direction of the state."""


@functools.cache
def above(size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns above the diagonal of a (size, size) matrix.

    They are computed once for every size and cached, because every access to a state needs them.

    >>> above(3)[1].tolist()
    [1, 2, 2]
    """
    return np.triu_indices(size, 1)


@dataclasses.dataclass(frozen=True)
class Dense:
    """All entries of a component of a given shape, the last axis fastest.

    In the last part of a layout one length may be -1, for the rest of the vector.

    >>> Dense("w", (2, 3)).count(100), Dense("rest", (2, -1)).count(10)
    (6, 10)
    """

    name: str
    shape: tuple[int, ...]

    def count(self, left: int) -> int:
        """Return the number of entries of this part, if `left` entries remain after all earlier parts."""
        return left if -1 in self.shape else math.prod(self.shape)

    def fill(self, values: np.ndarray, diagonal: float | None = None) -> np.ndarray:
        """Return the component (..., *shape) with the entries (..., count)."""
        known = math.prod(n for n in self.shape if n != -1)
        shape = tuple(values.shape[-1] // known if n == -1 else n for n in self.shape)
        return values.reshape((*values.shape[:-1], *shape))

    def take(self, values: Any) -> Any:
        """Return the entries (..., count) of a component (..., *shape)."""
        lead = values.shape[: values.ndim - len(self.shape)]
        return values.reshape(*lead, math.prod(values.shape[len(lead) :]))


@dataclasses.dataclass(frozen=True)
class Upper:
    """Symmetric matrix (size, size) with a constant diagonal, stored by its entries above the diagonal, row by row.

    >>> Upper("I", 3).fill(np.array([0.1, 0.2, 0.3])).tolist()
    [[1.0, 0.1, 0.2], [0.1, 1.0, 0.3], [0.2, 0.3, 1.0]]
    """

    name: str
    size: int
    diagonal: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the whole matrix."""
        return (self.size, self.size)

    def count(self, left: int) -> int:
        """size (size - 1) / 2."""
        return self.size * (self.size - 1) // 2

    def fill(self, values: np.ndarray, diagonal: float | None = None) -> np.ndarray:
        """Return matrices (..., size, size) with the entries (..., count); `diagonal` replaces the constant
        diagonal.
        """
        full = np.zeros((*values.shape[:-1], *self.shape), values.dtype)
        rows, columns = above(self.size)
        full[..., rows, columns] = values
        full = full + np.swapaxes(full, -1, -2)
        full[..., np.arange(self.size), np.arange(self.size)] = self.diagonal if diagonal is None else diagonal
        return full

    def take(self, values: Any) -> Any:
        """Return the entries (..., count) of matrices (..., size, size); all other entries are ignored."""
        rows, columns = above(self.size)
        return values[..., rows, columns]


@dataclasses.dataclass(frozen=True)
class Symmetric:
    """Symmetric matrix (size, size), or a `stack` of these, stored by the entries on and above the diagonal.

    >>> Symmetric("Q", 2).fill(np.array([0.1, 0.2, 0.3])).tolist()
    [[0.1, 0.2], [0.2, 0.3]]
    >>> Symmetric("Q", 2, (5,)).shape, Symmetric("Q", 2, (5,)).count(0)
    ((5, 2, 2), 15)
    """

    name: str
    size: int
    stack: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole matrix or stack."""
        return (*self.stack, self.size, self.size)

    def count(self, left: int) -> int:
        """size (size + 1) / 2 for every matrix."""
        return math.prod(self.stack) * self.size * (self.size + 1) // 2

    def fill(self, values: np.ndarray, diagonal: float | None = None) -> np.ndarray:
        """The matrices (..., *shape) with the entries (..., count); no entry is constant."""
        values = values.reshape(*values.shape[:-1], *self.stack, self.size * (self.size + 1) // 2)
        full = np.zeros((*values.shape[:-1], self.size, self.size), values.dtype)
        rows, columns = np.triu_indices(self.size)
        full[..., rows, columns] = values
        full[..., columns, rows] = values
        return full

    def take(self, values: Any) -> Any:
        """The entries (..., count) of matrices (..., *shape)."""
        rows, columns = np.triu_indices(self.size)
        lead = values.shape[: values.ndim - len(self.shape)]
        return values[..., rows, columns].reshape(*lead, self.count(0))


@dataclasses.dataclass(frozen=True)
class Layout:
    """Layout of a flat state y (size,): its `parts`, one after the other.

    With `rows`, y is a stack of any number of rows with this layout, and the row is the first axis of every component.

    >>> layout = Layout((Dense("a", (2,)), Upper("I", 2)))
    >>> y = layout.pack({"a": [0.5, 0.6], "I": [[1.0, 0.7], [0.7, 1.0]]})
    >>> y.tolist(), layout.unpack(y)["I"].tolist()
    ([0.5, 0.6, 0.7], [[1.0, 0.7], [0.7, 1.0]])
    >>> layout.places("I", 3).tolist()
    [[-1, 2], [2, -1]]
    """

    parts: tuple[Dense | Upper | Symmetric, ...]
    rows: bool = False

    @property
    def symmetric(self) -> frozenset[str]:
        """Names of the components that are symmetric matrices."""
        return frozenset(part.name for part in self.parts if not isinstance(part, Dense))

    def with_direction(self, prefix: str) -> "Layout":
        """The layout of a state followed by a direction of it, whose components have `prefix` before their names.

        >>> Layout((Upper("I", 2),)).with_direction("v_").unpack(np.array([0.7, 0.1]))["v_I"].tolist()
        [[0.0, 0.1], [0.1, 0.0]]
        """
        return Layout((*self.parts, *(_direction(part, prefix) for part in self.parts)), self.rows)

    @property
    def least(self) -> int:
        """Return the smallest number of entries of a state; a part with an open length counts as 0.

        >>> Layout((Dense("a", (2, 3)), Upper("I", 3), Dense("rest", (-1,)))).least
        9
        """
        return sum(part.count(0) for part in self.parts)

    def pack(self, state: Mapping[str, Any]) -> np.ndarray:
        """Return the flat states (..., size) of components (..., *shape); other entries of `state` are ignored.

        Raises `KeyError` for a component that is missing, and `ValueError` for one of another shape.
        """
        taken = []
        for part in self.parts:
            values = np.asarray(state[part.name], float)
            found = values.shape[values.ndim - len(part.shape) :] if values.ndim >= len(part.shape) else ()
            if len(found) != len(part.shape) or any(n not in (-1, m) for n, m in zip(part.shape, found, strict=True)):
                raise ValueError(f"component {part.name} must end in axes {part.shape}, but has shape {values.shape}")
            taken.append(part.take(values))
        y = np.concatenate(taken, axis=-1)
        return y.reshape(*y.shape[:-2], -1) if self.rows else y

    def unpack(self, y: Any) -> dict[str, np.ndarray]:
        """The components (..., *shape) of flat states (..., size); leading axes are kept."""
        return self._components(y)

    def places(self, name: str, size: int) -> np.ndarray:
        """Return the index of every entry of a component in a flat state of `size` numbers, -1 for a constant.

        Raises `KeyError` for a component that the state does not have.
        """
        return self._components(np.arange(size), diagonal=-1)[name]

    def _components(self, y: Any, diagonal: float | None = None) -> dict[str, np.ndarray]:
        if self.rows:
            y = y.reshape(*y.shape[:-1], -1, sum(part.count(0) for part in self.parts))
        at, found = 0, {}
        for part in self.parts:
            count = part.count(y.shape[-1] - at)
            values = part.fill(y[..., at : at + count], diagonal)
            # Components in rows are gathered, so that sums over them are rounded as those over a contiguous array.
            found[part.name] = values.copy() if self.rows else values
            at += count
        return found


def _direction(part: Dense | Upper | Symmetric, prefix: str) -> Dense | Upper | Symmetric:
    """The part with a direction: a constant diagonal does not change."""
    named = dataclasses.replace(part, name=f"{prefix}{part.name}")
    return dataclasses.replace(named, diagonal=0.0) if isinstance(named, Upper) else named
