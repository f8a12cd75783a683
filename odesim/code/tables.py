"""From a program to the tables of the compiled engine.

Every array of the program gets places in W. A definition becomes one step: a copy, a sum of entries with factors, a
product of matrices, blocks of a formula at sixteen points, or loops. Sizes and numbers are in the tables. The text of a
model's kernel, which must be compiled, is therefore the same for all sizes and numbers.
"""

import hashlib
import importlib
import inspect
import itertools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.contract.layout import Layout
from derivations.equations.program import Apply, Define, Item, Output, Pairs, Product, Program, Use, operations, series
from derivations.statement import indices_of, key_of, sp
from odesim.code.formulas import IMPORTS, Unsupported, calls_of, leaves_of, straight
from odesim.code.loop_text import Loops
from odesim.code.places import Places, strides
from odesim.code.steps import LANES, Steps

MANY = 128
"""Number of points from which a cheap formula is evaluated in loops, which read contiguous entries."""
CHEAP = 8
"""Number of operations of a cheap formula in addition to two for every entry. Other formulas are faster in blocks,
which are vectorised.
"""
NAMES = re.compile(r"\b(lane|total|[gistx]\d+)\b")
"""Local names in the texts of a kernel.

Each text has different names. If several branches assign to one name, numba renames it branch by branch in the whole
function, which took a quarter to a third of the compile time of a kernel with many texts.
"""

STACKED = 16
"""Number of matrices from which a stack is processed along the stack."""


class Tables:
    """Tables of a program for given constants, and the text of its kernel. The program returns `count` numbers.

    Tables share a kernel with the tables `beside`, so that common loops are compiled once.
    """

    def __init__(
        self, program: Program, layout: Layout, constants: Mapping[str, Any], beside: "Tables | None" = None
    ) -> None:
        self.program, self.ranges = program, program.ranges
        self.places = Places(layout, program.ranges, state_size(program, layout), constants)
        self.steps = Steps(self.places, {} if beside is None else beside.steps.texts)
        self.rules: set[str] = set() if beside is None else beside.rules
        self.count = 0
        for item in program.body:
            self._add(item)
        self._finish()

    def _add(self, item: Item) -> None:
        if isinstance(item, Apply):
            self._apply(item)
        elif isinstance(item, Pairs):
            self._pairs(item)
        elif isinstance(item, Product):
            self._product(item)
        else:
            self._define(item)

    def _define(self, item: Define) -> None:
        terms = linear(item)
        points = self.ranges.volume(item.domain)
        even = all(self.places.linear_subscript(i) is not None for x in entries_of(item) for i in x.indices)
        cheap = points > MANY and operations(item.value) <= CHEAP + 2 * len(set(leaves_of(item.value)))
        few = self.program.statement.rows is not None and points < LANES // 2  # most of a block would be unused
        if terms is not None and (points <= MANY or not even):
            self._sum(item, terms)
        elif (item.over or cheap or few) and even and not item.value.has(series):
            self._loops(item)
        elif item.over:
            raise Unsupported(f"the sum {item.name}, over entries that are not evenly spaced or over series")
        else:
            self._blocks(item)

    def _points(self, item: Define) -> dict[Any, np.ndarray]:
        """Return the points at which a definition is evaluated; for rates of a packed matrix only the upper
        triangle.
        """
        output = next((o for o in self.program.outputs if o.name == item.name), None)
        if output is None or len(item.axes) < 2 or output.component not in self.places.state:
            return self.places.grid(item.axes)
        return self._packed(output)

    def _packed(self, output: Output) -> dict[Any, np.ndarray]:
        """Return the integrated points of a component of the state; for a symmetric matrix its upper triangle."""
        points, triangle = self.places.grid(output.axes), self.places.triangle(output.component)
        if triangle is None:
            return points
        half = points[output.axes[-2]] + triangle <= points[output.axes[-1]]
        return {i: values[half] for i, values in points.items()}

    def _sum(self, item: Define, terms: list[tuple[float, Any]]) -> None:
        """Write a sum of entries with factors."""
        points, over = self._points(item), self.places.grid(item.over)
        count, inner = count_of(points), count_of(over)
        at = {i: np.broadcast_to(v[:, None], (count, inner)) for i, v in points.items()}
        at |= {i: np.broadcast_to(v, (count, inner)) for i, v in over.items()}
        found = [(c, self.places.entries(x, at, (count, inner))) for c, x in terms]
        if len(found) == 1 and inner == 1 and found[0][0] == 1.0:  # another name for an existing array
            self.places.put(item.name, item.axes, points, found[0][1][:, 0])
            return
        to = self.places.reserve(count)
        factors = np.concatenate([np.full((inner, count), c) for c, _ in found])
        self.steps.sum(np.concatenate([p.T for _, p in found]), factors, to)
        self.places.put(item.name, item.axes, points, to + np.arange(count))

    def _blocks(self, item: Define) -> None:
        """Write a formula at all points of a definition."""
        points = self._points(item)
        count = count_of(points)
        formula = straight([item.value], LANES)
        made = self._run(formula, [self.places.entries(leaf, points, (count,)) for leaf in formula.leaves], count, 1)
        self.places.put(item.name, item.axes, points, made[0])

    def _run(self, formula: Any, leaves: list[np.ndarray], count: int, results: int) -> np.ndarray:
        """Write the step of a formula at `count` points, and return the places (results, count) of its results."""
        to = self.places.reserve(LANES * -(-count // LANES) * results)
        self.rules |= formula.calls
        self.steps.blocks(formula, leaves, results, to)
        point = np.arange(count)
        return to + (point // LANES * results + np.arange(results)[:, None]) * LANES + point % LANES

    def _pairs(self, pairs: Pairs) -> None:
        """Write a kernel of several functions at all its index tuples, mirrored ones once."""
        slots = {slot.name: k for k, slot in enumerate(pairs.slots)}
        formula = straight(pairs.values, LANES, pairs.as_written)
        grids, columns = [], []
        for use in pairs.uses:
            points = self._half(use)
            count = count_of(points)
            arguments = [self.places.entries(a, points, (count,)) for a in use.arguments]
            own = [
                arguments[slots[x.name]] if x.name in slots else self.places.entries(x, points, (count,))
                for x in formula.leaves
            ]
            columns.append(own)
            grids.append((use, points, count))
        leaves = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        made, begin = self._run(formula, leaves, sum(count for *_, count in grids), len(pairs.values)), 0
        for use, points, count in grids:
            here, begin = made[:, begin : begin + count], begin + count
            for k, name in enumerate(use.targets):
                self.places.put(name, use.axes, points, here[k])
                if use.mirrored is not None:
                    turned = (*use.axes[:-2], use.axes[-1], use.axes[-2])
                    self.places.arrays[name][tuple(points[i] for i in turned)] = here[use.mirrored[k]]

    def _half(self, use: Use) -> dict[Any, np.ndarray]:
        """Return the points at which a kernel is evaluated: pairs i <= j if it is mirrored."""
        points = self.places.grid(use.axes)
        if use.mirrored is None:
            return points
        half = points[use.axes[-2]] <= points[use.axes[-1]]
        return {i: v[half] for i, v in points.items()}

    def _product(self, product: Product) -> None:
        """Write a product of matrices: both are gathered, and the columns of the result are the sums."""
        sizes = [self.ranges.size(j) for j in product.columns]
        left, factors = [], []
        for rows in product.rows:
            left.append([self._matrix(x, rows.axis, r) for (_, x), r in zip(rows.left, product.inner, strict=True)])
            factors.append([np.full(a.shape, float(c)) for a, (c, _) in zip(left[-1], rows.left, strict=True)])
        right = []
        for block, r in zip(product.right, product.inner, strict=True):
            blank = [np.full((self.ranges.size(r), size), self.places.zero) for size in sizes]
            cells = zip(block, product.columns, blank, strict=True)
            right.append([empty if x is None else self._matrix(x, r, j) for x, j, empty in cells])
        a, b = np.block(left), np.block(right)
        (height, inner), width = a.shape, b.shape[1]
        at, by, to = (self.places.reserve(n) for n in (a.size, b.size, height * width))
        self.steps.sum(a.reshape(1, -1), np.block(factors).reshape(1, -1), at)
        self.steps.copy(b, by)
        self.steps.multiply(at, by, (height, inner, width), to)
        made = to + np.arange(height * width).reshape(height, width)
        tops = np.cumsum([0, *(self.ranges.size(rows.axis) for rows in product.rows)])
        begins = np.cumsum([0, *sizes])
        for rows, top, end in zip(product.rows, tops[:-1], tops[1:], strict=True):
            for k, name in enumerate(rows.names):
                self.places.arrays[name] = made[top:end, begins[k] : begins[k + 1]]

    def _matrix(self, x: Any, row: Any, column: Any) -> np.ndarray:
        """Return the places of a matrix, rows and columns by their indices."""
        places = self.places.of(key_of(x))
        return places if x.indices == (row, column) else places.T

    def _apply(self, item: Apply) -> None:
        """Write a rule, whose compiled form takes numbers and matrices."""
        if not item.rule.compiled:
            raise Unsupported(f"the rule {item.rule.name}, which has no compiled form")
        self.rules.add(item.rule.compiled)
        numbers: list[int] = []

        def matrix(at: int, shape: tuple[int, ...]) -> str:
            k, size = len(numbers), int(np.prod(shape, dtype=int))
            numbers.extend([at, at + size, shape[0], size // shape[0]])
            return f"x[g[{k}] : g[{k + 1}]].reshape((g[{k + 2}], g[{k + 3}]))"

        arguments = []
        for name in item.arguments:
            if self.places.of(name).ndim:
                arguments.append(matrix(self._in_one_piece(name), self.places.of(name).shape))
            else:
                arguments.append(f"x[g[{len(numbers)}]]")
                numbers.append(int(self.places.of(name)))
        for name, axes in item.targets:
            shape = tuple(self.ranges.end(i) for i in axes)
            arguments.append(matrix(self.places.new(name, shape), shape))
        called = item.rule.compiled.partition(":")[2]
        self.steps.loops((f"{called}({', '.join(grouped(arguments, getattr(item.rule, 'groups', ())))})",), numbers)

    def _in_one_piece(self, name: str) -> int:
        """Return the first place of an array that is contiguous, last index fastest, or of a copy if it is not."""
        places = self.places.of(name)
        first = next(map(int, places.flat), 0)
        if not np.array_equal(places.ravel(), first + np.arange(places.size)):
            first = self.places.new(name, places.shape)
            self.steps.copy(places, first)
        return first

    def _loops(self, item: Define) -> None:
        """Write a definition as loops over W. Extents, places and strides are integer arguments of the text."""
        swept = self._swept(item)
        order = loop_order(item, swept)
        numbers: list[int] = []
        names: dict[Any, str] = {}

        def number(key: Any, value: int) -> str:
            if key not in names:
                names[key] = f"g{len(numbers)}"
                numbers.append(value)
            return names[key]

        def place(x: Any) -> str:
            name, base = key_of(x), 0
            along, parts = self._even(name), []
            for k, e in enumerate(indices_of(x)):
                for coefficient, index in self.places.linear_subscript(e) or []:
                    step = along[k] * coefficient
                    if index is None:
                        base += step
                    elif step:
                        times = "" if step == 1 else f" * {number(('by', name, k, coefficient), step)}"
                        parts.append(f"i{order.index(index)}{times}")
            base += next(map(int, self.places.of(name).flat), 0)
            return " + ".join([number(("at", name, base), base), *parts])

        def extent(i: Any) -> tuple[str, str]:
            values = self.ranges.values(i)
            return number(("low", i), values.start), number(("end", i), values.stop)

        self._new(item.name, tuple(self.ranges.end(i) for i in item.axes))
        lines = Loops(order, place, extent, swept).text(item)
        self.rules |= calls_of([item.value])
        # Names before the loops: LLVM cannot know that no store to W changes g, and would read it again.
        heads = (f"{name} = g[{k}]" for k, name in enumerate(names.values()))
        self.steps.loops((*heads, *lines), numbers)

    def _swept(self, item: Define) -> Any:
        """Return the index along a stack of small matrices, whose loop is the innermost one; None for any other
        array.
        """
        shape = tuple(self.ranges.end(i) for i in item.axes)
        return item.axes[0] if is_stack(shape) and item.reduction == "sum" else None

    def _new(self, name: str, shape: tuple[int, ...]) -> int:
        """Reserve places for an array, and return the first. Entries along a stack of small matrices are contiguous."""
        if not is_stack(shape):
            return self.places.new(name, shape)
        at = self.places.new(name, (*shape[1:], shape[0]))
        self.places.arrays[name] = np.moveaxis(self.places.arrays[name], -1, 0)
        return at

    def _even(self, name: str) -> list[int]:
        """Return the strides of an array. An array without even spacing, like a packed matrix, is copied first.

        A stack of small matrices is copied too if the entries along it are not contiguous.
        """
        places = self.places.of(name)
        found = strides(places)
        if found is None or (is_stack(places.shape) and found[0] != 1):
            first = self._new(name, places.shape)
            self.steps.copy(np.moveaxis(places, 0, -1) if is_stack(places.shape) else places, first)
            found = strides(self.places.of(name))
        assert found is not None
        return found

    def _finish(self) -> None:
        """Write the last step, which gathers the rates of the state, or the other results, in order."""
        wanted = [o for o in self.program.outputs if o.component not in self.places.state]
        if wanted:
            places = np.concatenate([np.ravel(self.places.of(o.name)) for o in wanted])
            self.count = places.size
            self.steps.rates(places)
            return
        self.count = self.places.state_size
        out = np.full(self.count, self.places.zero)
        for output in self.program.outputs:
            targets, made = self.places.state[output.component], self.places.of(output.name)
            points = self._packed(output)
            at = tuple(points[i] for i in output.axes)
            out[targets[at]] = made[at]
        self.steps.rates(out)

    def kernel_text(self) -> str:
        """Return the module with the model's kernel, which contains no sizes and no numbers of the model."""
        statement = self.program.statement
        head = [f'"""{statement.name}: {statement.title}.  Generated; do not edit."""', ""]
        head += [IMPORTS, "", "from numpy import inf, nan, sign", ""]
        for reference in sorted(self.rules):
            module, _, name = reference.partition(":")
            # numba's cache checks this file only; the digest gives another file after a change of the rule
            digest = hashlib.sha256(inspect.getsource(importlib.import_module(module)).encode()).hexdigest()[:16]
            head += [f"from {module} import {name}  # {digest}"]
        head += [
            "from derivations.equations.options import POINTED",
            "from odesim.code.engine import KERNEL",
            "from odesim.code.module_cache import compiled",
            "",
            "",
        ]
        head += ["@compiled(KERNEL, **POINTED)", "def kernel(which, x, s, z, g):"]
        body = [] if self.steps.texts else ["    return"]
        for lines, k in self.steps.texts.items():
            named = (NAMES.sub(rf"\1_{k}", line) for line in lines)
            body += [f"    {'if' if k == 0 else 'elif'} which == {k}:", *(f"        {line}" for line in named)]
        return "\n".join([*head, *body]) + "\n"


def grouped(arguments: list[str], sizes: tuple[int, ...]) -> list[str]:
    """Return the texts of arguments; groups of the given sizes are tuples. Without sizes all arguments are separate.

    >>> grouped(["a", "b", "c"], (1, 2))
    ['a', '(b, c)']
    """
    ends = itertools.accumulate(sizes or (1,) * len(arguments))
    groups = [arguments[end - size : end] for size, end in zip(sizes or (1,) * len(arguments), ends, strict=True)]
    return [group[0] if len(group) == 1 else f"({', '.join(group)})" for group in groups]


def state_size(program: Program, layout: Layout) -> int:
    """Return the length of the flat state. A part of open length has the length of the indices of its component."""
    shapes = {key_of(v.target): [program.ranges.end(i) for i in indices_of(v.target)] for v in program.statement.state}
    if layout.rows:
        return sum(int(np.prod(shapes[part.name], dtype=int)) for part in layout.parts)
    return sum(part.count(int(np.prod(shapes[part.name], dtype=int))) for part in layout.parts)


def count_of(points: Mapping[Any, np.ndarray]) -> int:
    """Return the number of points; one without an index."""
    return next((v.size for v in points.values()), 1)


def entries_of(item: Define) -> list[Any]:
    """Return the entries of arrays in a formula, without those in subscripts."""
    return [leaf for leaf in leaves_of(item.value) if isinstance(leaf, sp.Indexed)]


def loop_order(item: Define, swept: Any = None) -> tuple[Any, ...]:
    """Return the order of the loops: sums innermost, and last the index that most entries have last, or a swept
    index.
    """
    last = [x.indices[-1] for x in entries_of(item)]
    axes = tuple(i for i in item.axes if i != swept)
    return (*axes, *sorted(item.over, key=last.count), *(() if swept is None else (swept,)))


def is_stack(shape: tuple[int, ...]) -> bool:
    """Return True for the shape of many small matrices, for which loops along the stack are fastest.

    Loops over the two or ten rows of a matrix are short. With them, products of 128 matrices (2, 2) took three to four
    times as long, those of (8, 8) twice.

    >>> is_stack((128, 2, 2)), is_stack((128, 2)), is_stack((4, 2, 2)), is_stack((128, 100, 100))
    (True, False, False, False)
    """
    return len(shape) == 3 and shape[0] >= STACKED and max(shape[1:]) <= shape[0] // 4


def linear(item: Define) -> list[tuple[float, Any]] | None:
    """Return (factor, entry) of the terms of a formula that is a sum of entries with number factors; None for
    others.
    """
    found = []
    for term in sp.Add.make_args(item.value):
        factor, x = term.as_coeff_Mul()
        if not isinstance(x, (sp.Indexed, sp.Symbol)) or isinstance(x, sp.Idx):
            return None
        found.append((float(factor), x))
    return found if item.reduction == "sum" else None
