"""Places of all arrays of a program in W, the vector of numbers of the compiled engine."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract.layout import Layout, Upper
from derivations.equations.program import Ranges
from derivations.statement import key_of, sp

Points = Mapping[Any, np.ndarray]
"""Values of some indices at points, all arrays of one shape."""


class Places:
    """Return the position of every entry of every array.

    The state comes first, as the layout packs it. Entries that are the same by definition share a place: both halves of
    a symmetric matrix, and all ones of a unit diagonal. `read` has the first place of each constant in use. The values
    of the constants are written later (`put_constants`).
    """

    def __init__(self, layout: Layout, ranges: Ranges, state_size: int, constants: Mapping[str, Any]) -> None:
        self.layout, self.ranges = layout, ranges
        self.constants = {name: np.asarray(value, float) for name, value in constants.items()}
        self.size = 0
        self.arrays: dict[str, np.ndarray] = {}
        self.read: dict[str, int] = {}
        self._numbers: dict[float, int] = {}
        self._initial: list[tuple[int, np.ndarray]] = []
        self.state_size = state_size
        self.reserve(self.state_size)
        self.one, self.zero = self.number(1.0), self.number(0.0)
        for part in self.layout.parts:
            places = self.layout.places(part.name, self.state_size)
            diagonal = self.number(getattr(part, "diagonal", 1.0))
            self.arrays[part.name] = np.where(places < 0, diagonal, places)
        self.state = dict(self.arrays)

    def reserve(self, count: int) -> int:
        """Reserve some new places, and return the first."""
        at, self.size = self.size, self.size + int(count)
        return at

    def fill(self, at: int, values: np.ndarray) -> None:
        """Write constants to reserved places."""
        self._initial.append((at, np.ravel(np.asarray(values, float))))

    def constant(self, values: np.ndarray) -> int:
        """Return the first place of some constants."""
        at = self.reserve(values.size)
        self.fill(at, values)
        return at

    def number(self, value: float) -> int:
        """Return the place of a number; equal numbers share one."""
        if value not in self._numbers:
            self._numbers[value] = self.constant(np.array([value]))
        return self._numbers[value]

    def of(self, name: str) -> np.ndarray:
        """Return the places of an array's entries. A constant gets its places at its first use."""
        if name not in self.arrays:
            value = self.constants[name]
            self.read[name] = self.reserve(value.size)
            self.arrays[name] = np.asarray(self.read[name] + np.arange(value.size).reshape(value.shape))
        return self.arrays[name]

    def new(self, name: str, shape: tuple[int, ...]) -> int:
        """Reserve contiguous places for an array, last index fastest, and return the first."""
        count = int(np.prod(shape, dtype=int))
        at = self.reserve(count)
        self.arrays[name] = np.asarray(at + np.arange(count).reshape(shape))
        return at

    def put(self, name: str, axes: tuple[Any, ...], points: Points, at: np.ndarray) -> None:
        """Record the places of an array's values at some points; its other entries are 0."""
        if not axes:
            self.arrays[name] = np.array(at[0])
            return
        self.arrays[name] = np.full([self.ranges.end(i) for i in axes], self.zero)
        self.arrays[name][tuple(points[i] for i in axes)] = at

    def grid(self, indices: tuple[Any, ...]) -> dict[Any, np.ndarray]:
        """Return the values of indices at all their points, flat, the last index fastest."""
        values = [np.array(self.ranges.values(i), int) for i in indices]
        grid = np.meshgrid(*values, indexing="ij") if indices else []
        return {i: g.ravel() for i, g in zip(indices, grid, strict=True)}

    def triangle(self, component: str) -> int | None:
        """Return the first diagonal of the stored triangle of a symmetric component; None for other components."""
        part = next(p for p in self.layout.parts if p.name == component)
        if self.layout.rows or not hasattr(part, "size"):
            return None
        return 1 if isinstance(part, Upper) else 0

    def entries(self, leaf: Any, points: Points, shape: tuple[int, ...]) -> np.ndarray:
        """Return the places of an entry, a symbol, an index or a number of a formula, at points of a shape."""
        if isinstance(leaf, sp.Indexed):
            found = self.of(key_of(leaf))[tuple(self.subscript(i, points) for i in leaf.indices)]
        elif isinstance(leaf, sp.Idx):
            values = np.asarray(points[leaf])
            found = np.array([self.number(float(v)) for v in range(int(values.max(initial=0)) + 1)])[values]
        elif isinstance(leaf, sp.Symbol):
            found = self.of(leaf.name)
        else:
            found = np.array(self.number(float(leaf)))
        return np.broadcast_to(found, shape)

    def subscript(self, e: Any, points: Points) -> Any:
        """Return the values of a subscript at points: an index, a number, or a formula of indices and constants."""
        if isinstance(e, sp.Idx):
            return points[e]
        if not e.atoms(sp.Idx):
            return self.ranges.whole(e)
        letters = {i: sp.Symbol(f"i{k}") for k, i in enumerate(sorted(e.atoms(sp.Idx), key=str))}
        formula = e.xreplace(letters)
        numbers = {s: int(self.ranges.numbers[s.name]) for s in formula.free_symbols - set(letters.values())}
        function = sp.lambdify(list(letters.values()), formula.xreplace(numbers), "numpy")
        return np.asarray(function(*(points[i] for i in letters))).astype(int)

    def linear_subscript(self, e: Any) -> list[tuple[int, Any]] | None:
        """Return a subscript as integers times indices, or times 1 (None); None if it is not such a sum."""
        found = []
        for term in sp.Add.make_args(sp.expand(e)):
            inside = term.atoms(sp.Idx)
            if len(inside) > 1 or (inside and (term / next(iter(inside))).atoms(sp.Idx)):
                return None
            index = next(iter(inside), None)
            found.append((self.ranges.whole(term if index is None else term / index), index))
        return found

    def vector(self) -> np.ndarray:
        """Return a new W with its numbers, without the constants of the statement."""
        W = np.zeros(self.size)
        for at, values in self._initial:
            W[at : at + values.size] = values
        return W


def put_constants(W: np.ndarray, read: Mapping[str, int], constants: Mapping[str, Any]) -> None:
    """Write constants to the places where they are read.

    >>> W = np.zeros(4)
    >>> put_constants(W, {"rates": 1}, {"rates": np.array([0.5, 2.0])})
    >>> W.tolist()
    [0.0, 0.5, 2.0, 0.0]
    """
    for name, at in read.items():
        values = np.ravel(np.asarray(constants[name], float))
        W[at : at + values.size] = values


def strides(places: np.ndarray) -> list[int] | None:
    """Return the strides of evenly spaced places; None for others.

    >>> strides(np.array([[4, 5], [7, 8]])), strides(np.array([[4, 5], [5, 6]])), strides(np.array([3, 2]))
    ([3, 1], [1, 1], None)
    """
    if not places.size:
        return [0] * places.ndim
    first = int(places.flat[0])
    found = [int(np.take(places, 1, k).flat[0]) - first if n > 1 else 0 for k, n in enumerate(places.shape)]
    along = [
        np.arange(n).reshape([-1 if k == q else 1 for q in range(places.ndim)]) for k, n in enumerate(places.shape)
    ]
    even = first + sum((s * x for s, x in zip(found, along, strict=True)), np.zeros(places.shape, int))
    return found if np.array_equal(even, places) and min(found, default=0) >= 0 else None
