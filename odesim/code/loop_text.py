"""A definition as loops over its indices, as text that numba compiles."""

from collections.abc import Callable, Sequence
from typing import Any

from derivations.equations.program import Define, indices_in, is_leaf
from derivations.statement import sp
from odesim.code.formulas import Printer


class Scope:
    """Lines of one open loop and the names of the values that are evaluated in it."""

    def __init__(self, index: Any = None, head: str = "") -> None:
        self.index, self.head = index, head
        self.lines: list[str] = []
        self.names: dict[Any, str] = {}


class Loops(Printer):
    """Text of one definition as loops. Each part is in the outermost loop that binds its indices.

    `place(entry)` is the text of a position in W, and `extent(index)` are the texts of the first value and of the end.
    The loop of a `swept` index, the last in the order, is the innermost one, also in sums: every term of a sum is added
    to all entries along this index.
    """

    def __init__(
        self, order: Sequence[Any], place: Callable[[Any], str], extent: Callable[[Any], tuple[str, str]],
        swept: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(self._leaf)
        self.order, self.place, self.extent, self.swept = order, place, extent, swept
        self.stack = [Scope()]
        self.count = 0

    def text(self, item: Define) -> list[str]:
        """Return the lines of the loops."""
        inner = [i for i in self.order if i in item.over]
        outer = [i for i in self.order if i not in item.over and (i != self.swept or not inner)]
        for i in outer:
            self._open(i)
        own = self.place(sp.IndexedBase(item.name)[item.axes] if item.axes else sp.Symbol(item.name))
        if inner and self.swept is not None:
            self._sweep(item, own, inner)
        elif not inner:
            value = self.show(item.value)
            self.stack[-1].lines.append(f"x[{own}] = {value}")
        else:
            start = "0.0" if item.reduction == "sum" else "-inf"
            self.stack[-1].lines.append(f"total = {start}")
            for i in inner:
                self._open(i)
            value = self.show(item.value)
            grow = f"total += {value}" if item.reduction == "sum" else f"total = max(total, {value})"
            self.stack[-1].lines.append(grow)
            self._close(len(outer))
            self.stack[-1].lines.append(f"x[{own}] = total")
        self._close(0)
        return self.stack[0].lines

    def _sweep(self, item: Define, own: str, inner: Sequence[Any]) -> None:
        """Write a sum whose terms are added to all entries along the swept index, which are contiguous."""
        level = len(self.stack) - 1
        self._open(self.swept)
        self.stack[-1].lines.append(f"x[{own}] = 0.0")
        self._close(level)
        for i in [*inner, self.swept]:
            self._open(i)
        self.stack[-1].lines.append(f"x[{own}] += {self.show(item.value)}")
        self._close(level)

    def _open(self, index: Any) -> None:
        low, high = self.extent(index)
        self.stack.append(Scope(index, f"for i{self.order.index(index)} in range({low}, {high}):"))

    def _close(self, level: int) -> None:
        while len(self.stack) > level + 1:
            scope = self.stack.pop()
            self.stack[-1].lines += [scope.head, *(f"    {line}" for line in scope.lines)]

    def _level(self, e: Any) -> int:
        free = indices_in(e)
        return max((k for k, scope in enumerate(self.stack) if scope.index in free), default=0)

    def show(self, e: Any) -> str:
        """Return the text of an expression in the innermost loop. A part that does not need this loop is evaluated
        further out.
        """
        composite = not is_leaf(e)
        if composite and self._level(e) < len(self.stack) - 1:
            return self._named(e)
        if composite and isinstance(e, (sp.Add, sp.Mul)):
            groups: dict[int, list[Any]] = {}
            for a in e.args:
                groups.setdefault(self._level(a), []).append(a)
            if len(groups) > 1:
                sign = " * " if isinstance(e, sp.Mul) else " + "
                parts = [e.func(*some) for _, some in sorted(groups.items())]
                return f"({sign.join(map(self.show, parts))})"
        return super().show(e)

    def _named(self, e: Any) -> str:
        """Return the name of a part, which is evaluated once in the outermost loop that binds its indices."""
        level = self._level(e)
        names = self.stack[level].names
        if e not in names:
            deeper, self.stack = self.stack[level + 1 :], self.stack[: level + 1]
            value = self.show(e)
            self.count += 1
            names[e] = f"t{self.count}"
            self.stack[-1].lines.append(f"{names[e]} = {value}")
            self.stack = [*self.stack, *deeper]
        return names[e]

    def _leaf(self, e: Any) -> str:
        if isinstance(e, sp.Idx):
            return f"float(i{self.order.index(e)})"
        return self._read(e)

    def _read(self, e: Any) -> str:
        """Return the name of an entry, which is read once in the outermost loop that binds its indices."""
        level = self._level(e)
        scope = self.stack[level]
        if e not in scope.names:
            self.count += 1
            scope.names[e] = f"t{self.count}"
            scope.lines.append(f"t{self.count} = x[{self.place(e)}]")
        return scope.names[e]
