"""The exact flow from array operations, for JAX and NumPy: all pairs of two groups at once, apart from the loops."""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from derivations.declare import quadruples
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import Kernels
from derivations.declare.lane_frame import FIXED

Functions = Mapping[str, Callable[..., Any]]
NUMBERS = 2**16
"""The overlaps of many states that are looked at together: an array of them is half a megabyte."""


class Arguments(NamedTuple):
    """The run-time arguments of `loops.flow`: tables of the lanes are numba's alone, the sizes of the groups last."""

    constants: Any
    place: Any
    outs: Any
    biases: Any
    starts: Any
    counts: Any
    rows: Any
    columns: Any
    scalars: Any
    moves: Any
    moving: Any
    rates: Any
    numbers: Any
    series: Any
    means: Any
    tilts: Any
    cells: Any
    spans: Any
    looks: Any
    reach: Any
    units: Any
    first: Any
    more: Any
    into: Any
    most: Any
    sizes: tuple[int, ...]


def read(arguments: Sequence[Any]) -> Arguments:
    """The arguments of `loops.flow` by name."""
    return Arguments._make((*arguments[:FIXED], tuple(arguments[FIXED:])))


class View(NamedTuple):
    """One state seen as arrays: Gram matrix (n, n), weights of all units in f - f*, their own numbers, norms (n,).

    Of many states at once every array but that of unit norms has one more axis, the last.
    """

    G: Any
    w: Any
    bias: Any
    norms: Any


def raw(xp: Any, y: Any, a: Arguments) -> View:
    """A flat state, or many as the columns of a matrix, as arrays, the vectors as they are."""
    known = xp.concatenate([y, a.constants if y.ndim == 1 else xp.repeat(a.constants[:, None], y.shape[1], axis=1)])
    return View(known[a.place], known[a.outs], known[a.biases], xp.ones(a.place.shape[0]))


def build(declared: Declaration, found: Kernels, xp: Any, functions: Functions) -> dict[str, Callable[..., Any]]:
    """`flow`, `loss` and `watch` with the arguments of `loops.flow`; the last two take many states at once in NumPy."""
    form = Form(declared, found, xp, functions)

    def flow(t: Any, y: Any, *arguments: Any) -> Any:
        return form.flow(y, read(arguments))

    def watch(y: Any, *arguments: Any) -> Any:
        out = form.parts(y, read(arguments))
        return xp.stack([out[0] + 2 * out[1] + out[2]])

    def loss(y: Any, *arguments: Any) -> Any:
        a = read(arguments)
        out, both = form.parts(y, a), a.rates[5]
        return both * 0.5 * (out[0] + 2 * out[1] + out[2] + a.rates[4] ** 2) + (1 - both) * out[1]

    if xp is np:
        for function in (watch, loss):
            vars(function)["along"] = functools.partial(_along, function)
    return {"flow": flow, "watch": watch, "loss": loss}


def _along(function: Callable[..., Any], states: np.ndarray, *arguments: Any) -> np.ndarray:
    """A function of a state at many, (states, n), a part of them at a time."""
    part = max(1, NUMBERS // read(arguments).place.size)
    return np.concatenate([function(states[k : k + part].T, *arguments).T for k in range(0, len(states), part)])


class Form:
    """The generated functions of a declaration on arrays (units of one group, units of the other)."""

    def __init__(self, declared: Declaration, found: Kernels, xp: Any, functions: Functions) -> None:
        self.declared, self.found, self.xp, self.functions = declared, found, xp, functions
        self.students = len(declared.students)
        self.slots = [len(group.slots) for group in declared.groups]
        # Programs are numbered in the order in which `kernels` writes them.
        self.numbers = {name: k for k, name in enumerate(self._programs())}

    def _programs(self) -> list[str]:
        groups, names = range(len(self.slots)), []
        for g, h in itertools.product(range(self.students), groups):
            names += [f"pair_{g}_{h}"] + ([f"self_{g}"] if g == h else [])
        for g in groups:
            for h in groups[g:]:
                names += [f"mean_{g}_{h}"] + ([f"mean_self_{g}"] if g == h else [])
        return names

    def view(self, y: Any, a: Arguments) -> View:
        """A flat state as arrays; of normalised weights the Gram matrix of the unit vectors, and the norms."""
        xp, S, view = self.xp, a.moves.shape[0], raw(self.xp, y, a)
        if self.declared.weights != "normalised":
            return view
        G = view.G
        student = (xp.arange(G.shape[0]) < S).reshape(-1, *(1,) * (G.ndim - 2))
        norms = xp.where(student, xp.sqrt(self.own(G)), 1.0)
        return View(G / (norms[:, None] * norms), view.w, view.bias, norms)

    def own(self, block: Any) -> Any:
        """The diagonal of the first two axes, which becomes the first."""
        return self.xp.moveaxis(self.xp.diagonal(block), -1, 0)

    def rows(self, g: int, sizes: Sequence[int]) -> list[slice]:
        """The rows of the slots of a group."""
        start = sum(slots * size for slots, size in zip(self.slots[:g], sizes, strict=False))
        return [slice(start + s * sizes[g], start + (s + 1) * sizes[g]) for s in range(self.slots[g])]

    def units(self, g: int, sizes: Sequence[int]) -> slice:
        """The numbers of the units of a group among all units."""
        return slice(sum(sizes[:g]), sum(sizes[: g + 1]))

    def entry(self, G: Any, one: tuple[int, slice, int], two: tuple[int, slice, int], axes: int, apart: Any) -> Any:
        """G between two slots, each (factor, rows, axis), broadcast over the axes of all factors, which come first."""
        (k, rows, axis), (m, columns, other) = one, two
        block = G[rows, columns]
        if k == m:
            return self.along(self.own(block), axis, axes)
        block = block * apart if axis < other else self.xp.swapaxes(block * apart, 0, 1)
        shape = [1] * axes
        shape[min(axis, other)], shape[max(axis, other)] = block.shape[:2]
        return block.reshape(*shape, *block.shape[2:])

    def along(self, vector: Any, axis: int, axes: int) -> Any:
        """A vector laid along one of several axes."""
        shape = [1] * axes
        shape[axis] = vector.shape[0]
        return vector.reshape(*shape, *vector.shape[1:])

    def call(self, name: str, kinds: Sequence[int], view: View, a: Arguments, apart: Any = 1.0) -> tuple[Any, ...]:
        """A generated function at all units of some groups: outputs with one axis for each factor, then that of states.

        Overlaps between two factors are multiplied by `apart`.
        """
        axes = len(kinds)
        fields = [(k, rows, k) for k, g in enumerate(kinds) for rows in self.rows(g, a.sizes)]
        cells = [
            self.entry(view.G, fields[i], fields[j], axes, apart)
            for i in range(len(fields))
            for j in range(i, len(fields))
        ]
        own = []
        for k, g in enumerate(kinds):
            before = sum(len(group.scalars) for group in self.declared.groups[:g])
            for b in range(len(self.declared.groups[g].scalars)):
                own.append(self.along(view.bias[before + b, : a.sizes[g]], k, axes))
        program = self.numbers.get(name, 0)
        S = self._looked_up(name, kinds, view, a)
        values = self.functions[name](
            *cells, *own, *[a.numbers[k] for k in range(len(self.declared.names))], S, a.means[program]
        )
        shape = (*(a.sizes[g] for g in kinds), *view.G.shape[2:])
        return tuple(self.xp.broadcast_to(self.xp.asarray(v) * 1.0, shape) for v in values)

    def _looked_up(self, name: str, kinds: Sequence[int], view: View, a: Arguments) -> Any:
        """The series of a pair at all correlations: (columns, units, units)."""
        program = self.numbers.get(name)
        if program is None or not self.found.pairs[program]:
            return None
        places = self.found.places[program]
        one, two = self.rows(kinds[0], a.sizes)[places[0]], self.rows(kinds[1], a.sizes)[places[1]]
        rho = self.xp.clip(view.G[one, two], -1.0, 1.0)
        return horner(self.xp, a.series[program], rho)

    def pair(self, g: int, h: int, view: View, a: Arguments, kind: str = "pair") -> list[Any]:
        """All outputs over (units of g, units of h), a unit with itself by its own function."""
        xp, name = self.xp, f"{kind}_{g}_{h}"
        if g != h:
            return list(self.call(name, (g, h), view, a))
        same = xp.eye(a.sizes[g], dtype=bool).reshape(a.sizes[g], a.sizes[g], *(1,) * (view.G.ndim - 2))
        # A unit with itself has a function of its own; in that of two its singular covariance would divide by 0.
        values = self.call(name, (g, g), view, a, xp.where(same, 0.5, 1.0))
        alone = self.call(f"{'self' if kind == 'pair' else 'mean_self'}_{g}", (g, g), view, a)
        return [xp.where(same, own, value) for own, value in zip(alone, values, strict=True)]

    def drift(self, view: View, a: Arguments) -> tuple[Any, dict[int, Any]]:
        """C (S, n), and the derivatives of the loss in the students' own numbers by their row."""
        xp, sizes = self.xp, a.sizes
        columns = [(h, t) for h in range(len(self.slots)) for t in range(self.slots[h])]
        found: dict[tuple[int, int, int, int], Any] = {}
        scalars: dict[int, Any] = {}
        row = 0
        for g in range(self.students):
            words = self.declared.groups[g].own
            mine, ai = self.slots[g], view.w[self.units(g, sizes)]
            bends: list[Any] = [0.0] * (mine * mine)
            own: list[Any] = [0.0] * len(words)
            for h in range(len(self.slots)):
                both = a.rates[5] if h < self.students else 1.0
                wj = both * view.w[self.units(h, sizes)]
                values = self.pair(g, h, view, a)
                theirs = self.slots[h]
                for s, t in itertools.product(range(mine), range(theirs)):
                    found[g, s, h, t] = ai[:, None] * wj * values[s * theirs + t]
                rest = [(wj * value).sum(1) for value in values[mine * theirs :]]
                bends = [total + ai * value for total, value in zip(bends, rest[: mine * mine], strict=True)]
                factor = [1.0 if word == "a" else ai for word in words]
                own = [t + f * v for t, f, v in zip(own, factor, rest[mine * mine :], strict=True)]
            for s, t in itertools.product(range(mine), range(mine)):
                found[g, s, g, t] = found[g, s, g, t] + xp.diag(bends[s * mine + t])
            for value in own:
                scalars[row] = value
                row += 1
        blocks = [
            xp.concatenate([found[g, s, h, t] for h, t in columns], axis=1)
            for g in range(self.students)
            for s in range(self.slots[g])
        ]
        return xp.concatenate(blocks, axis=0), scalars

    def flow(self, y: Any, a: Arguments) -> Any:
        """dy/dt of the flat state."""
        xp, S = self.xp, a.moves.shape[0]
        view = self.view(y, a)
        C, scalars = self.drift(view, a)
        E = xp.zeros((S, S))
        if self.declared.limit == "online":
            E = quadruples.second(self, view, a)
        D, E = motion(xp, self.declared.weights, view, C, E, a)
        return self.packed(widened(xp, self.declared.weights, view, D, E, a), E, scalars, a)

    def packed(self, D: Any, E: Any, scalars: Mapping[int, Any], a: Arguments) -> Any:
        """dy/dt of the flat state from the motion of the students and the derivatives of the loss in their numbers."""
        xp, S = self.xp, a.moves.shape[0]
        whole = xp.concatenate([D[:, :S] + D[:, :S].T + E, D[:, S:]], axis=1)
        parts = [whole[a.rows, a.columns]]
        counts = [a.sizes[g] for g, _ in self._owners()]
        parts += [-a.rates[0] * a.moving[r] * scalars[r][: counts[r]] for r in range(len(counts))]
        return xp.concatenate(parts)

    def _owners(self) -> list[tuple[int, str]]:
        return [(g, word) for g, group in enumerate(self.declared.students) for word in group.own]

    def parts(self, y: Any, a: Arguments) -> Any:
        """E[f^2], -E[f f*], E[f*^2], of a flat state or of the columns of a matrix."""
        view, sums = self.view(y, a), [0.0, 0.0, 0.0]
        for g in range(len(self.slots)):
            for h in range(g, len(self.slots)):
                (value,) = self.pair(g, h, view, a, "mean")
                side = 0 if h < self.students else 1 if g < self.students else 2
                twice = 1.0 if g == h or side == 1 else 2.0
                weights = view.w[self.units(g, a.sizes)][:, None] * view.w[self.units(h, a.sizes)]
                sums[side] = sums[side] + twice * (weights * value).sum((0, 1))
        return self.xp.stack([self.xp.asarray(total) for total in sums])


def motion(xp: Any, weights: str, view: View, C: Any, E: Any, a: Arguments) -> tuple[Any, Any]:
    """`loops.motion` on arrays without its last step: (D, E) from C and E[c c^T], of unit vectors where normalised."""
    G, norms, S = view.G, view.norms, a.moves.shape[0]
    D = C @ G
    if weights == "normalised":
        own = xp.diagonal(D[:, :S]) / xp.diagonal(G)[:S]
        D = norms / norms[:S, None] * (D - own[:, None] * G[:S])
        E = E / (norms[:S, None] * norms[:S])
    whole = View(G * norms[:, None] * norms, view.w, view.bias, norms)
    return moved(xp, weights, whole, D, E, a)


def moved(xp: Any, weights: str, view: View, drift: Any, second: Any, a: Arguments) -> tuple[Any, Any]:
    """(D, E) from the mean drift E[c z_b] + E[e] G_ab and E[c c^T] of the raw vectors."""
    G, S = view.G, a.moves.shape[0]
    if weights == "sphere":
        own = xp.diagonal(drift[:, :S]) / xp.diagonal(G)[:S]
        drift = drift - own[:, None] * G[:S]
    else:
        drift = drift + a.rates[1] * G[:S]
    moves = a.moves[:, None]
    return -a.rates[0] * moves * drift, a.rates[2] * second * moves * a.moves


def widened(xp: Any, weights: str, view: View, D: Any, E: Any, a: Arguments) -> Any:
    """D less what keeps the norms on the sphere where E widens them."""
    if weights != "sphere":
        return D
    G, S = view.G, a.moves.shape[0]
    return D - (0.5 * xp.diagonal(E) / xp.diagonal(G)[:S])[:, None] * G[:S]


def horner(xp: Any, table: Any, rho: Any) -> Any:
    """Power series with coefficients (columns, terms) at an array: (columns, *shape)."""
    shape = (table.shape[0],) + (1,) * rho.ndim
    if "jax" in xp.__name__:
        import jax

        def step(total: Any, column: Any) -> tuple[Any, None]:
            return total * rho + column.reshape(shape), None

        return jax.lax.scan(step, xp.zeros((table.shape[0], *rho.shape)), table.T[::-1])[0]
    total = xp.zeros((table.shape[0], *rho.shape))
    for column in table.T[::-1]:
        total = total * rho + column.reshape(shape)
    return total
