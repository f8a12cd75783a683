"""A statement as a page of plain Unicode text."""

import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

from derivations.statement import Definition, Kernel, Statement, function, indices_of, sp
from odesim.show.page.style import INNER, MARK, WEAK, unmarked
from odesim.show.page.walk import Walk


class Row(NamedTuple):
    """A line of mathematics: left = one or more equal right sides, and a remark."""

    left: str
    rights: list[str]
    remark: str


HEADINGS = {"flow": "Equations of motion", "recursion": "Recursion", "map": "The step of this stage"}


class Text(Walk):
    """The page of a statement; `latex.Latex` lays out the same blocks."""

    width, indent = 110, 4

    # -- blocks
    def blocks(self, without: tuple[str, ...] = ()) -> list[tuple[str, list[Row]]]:
        """Return the page's mathematics, by heading; the headings in `without` are left out."""
        s = self.statement
        makers: dict[str, Callable[[], list[Row]]] = {
            "Loss": lambda: [Row(self.name("L"), [self.show(s.loss)], "")] if s.loss is not None else [],
            "Derivation": lambda: [self.line(x) for x in s.steps],
            HEADINGS[s.kind]: lambda: [self.motion(e) for e in s.equations],
            "where": self.arrays,
            "Observables": lambda: [Row(self.show(w.target), [self.show(w.value)], w.meaning) for w in s.watched],
            "Kernels": self.kernels,
            "Conserved": lambda: [self.line(x) for x in s.conserved],
        }
        filled = ((heading, rows()) for heading, rows in makers.items() if heading not in without)
        return [(heading, rows) for heading, rows in filled if rows]

    def line(self, step: Any) -> Row:
        """Return the line of a shown step."""
        return Row(self.show(step.left), [self.show(step.right)], step.meaning)

    def motion(self, e: Any) -> Row:
        """An equation of motion, or a step of a recursion."""
        variable, rate = self.show(e.target), self.show(e.rate)
        if self.statement.kind != "recursion":
            return Row(self.derivative(variable, "t", "d"), [rate], e.source)
        if e.rate == 0:
            return Row(self.later(variable), [variable], e.source)
        change = self.statement.step * e.rate
        sign = self.minus if self.negative(change) else self.plus
        change = self.show(-change if self.negative(change) else change)
        return Row(self.later(variable), [f"{variable} {MARK}{sign}{change}"], e.source)

    def later(self, variable: str) -> str:
        """A variable one step later."""
        step = "1" if self.statement.step == 1 else self.show(self.statement.step)
        return f"{variable}(t+{step})"

    def arrays(self) -> list[Row]:
        """The rows of named arrays."""
        return [self.array_row(d) for d in self.statement.arrays if not self.is_series(d)]

    def kernels(self) -> list[Row]:
        """The rows of kernels, and of the series of numbers among them."""
        rows: list[Row] = []
        for d in self.statement.definitions:
            if isinstance(d, Kernel):
                rows += self.kernel_rows(d)
            elif self.is_series(d):
                rows.append(self.array_row(d))
        return rows

    def is_series(self, d: Definition) -> bool:
        """Return True if an array is an infinite series of numbers."""
        return any(i.upper == sp.oo for t in d.targets for i in indices_of(t))

    def kernel_rows(self, kernel: Kernel) -> list[Row]:
        """Return a kernel's functions: the meaning of each and its closed form."""
        rows = []
        self.by_power = True
        for name, value in kernel.values.items():
            means = [self.show(x) for x in kernel.means.get(name, ())]
            formulas = [" = ".join(means)] if means else []
            rows.append(Row(self.show(function(name)(*kernel.arguments)), [*formulas, self.show(value)], ""))
        self.by_power = False
        return [*rows[:-1], rows[-1]._replace(remark=kernel.note)]

    def array_row(self, d: Definition) -> Row:
        """A named array; several that share a kernel in one line."""
        means = [self.show(d.means)] if d.means is not None else []
        first = next(iter(d.targets))
        if d.kernel is not None and len(d.targets) > 1:
            names = [self.name(t.base.name) for t in d.targets]
            left = self.entry(self.several(names), [self.show(i) for i in indices_of(first)])
            return Row(left, [self.name(d.kernel.name) + self.round(", ".join(map(self.show, d.value)))], d.meaning)
        if d.rule is not None:
            left = ", ".join(self.show(t) for t in d.targets)
            call = self.upright(d.rule.name.replace("_", " ")) + self.round(", ".join(map(self.show, d.value)))
            return Row(left, means or [call], d.meaning)
        value = function(next(iter(d.kernel.values)))(*d.value) if d.kernel is not None else d.value
        return Row(self.show(first), [*means, self.show(value)], d.meaning)

    def several(self, names: list[str]) -> str:
        """Several names that are defined together."""
        return f"({names[0]}, …, {names[-1]})"

    # -- lines
    def measure(self, text: str) -> float:
        """The width of a piece of a line."""
        return len(unmarked(text))

    def broken(self, text: str, room: float) -> list[str]:
        """Return the lines of a right-hand side, as full as possible, broken outside of brackets if possible."""
        lines: list[str] = []
        current = ""
        for piece in text.split(MARK):
            free = room - self.measure(current) - (self.indent if lines else 0)
            parts = [piece] if self.measure(piece) <= max(free, 0.8 * room) else piece.split(INNER)
            for part in (x for p in parts for x in ([p] if self.measure(p) <= room - self.indent else p.split(WEAK))):
                if current and self.measure(current + part) > room - (self.indent if lines else 0):
                    lines.append(current.rstrip())
                    current = ""
                current += part
        return [unmarked(x) for x in (*lines, current.rstrip())]

    # -- the page
    def facts(self) -> list[tuple[str, str]]:
        """Return the description in words, by heading."""
        s = self.statement
        labelled = [("source", s.source), ("clock", s.clock), ("valid", s.validity), ("neglects", s.neglects)]
        return [(label, self.prose(words)) for label, words in labelled if words]

    def ranges(self) -> list[str]:
        """The index sets."""
        return [
            f"{', '.join(map(self.show, i))} = {self.range_of(i[0])} ({self.prose(w)})"
            for i, w in self.statement.indices
        ]

    def range_of(self, index: Any) -> str:
        """Return the values of an index, counted from 1 if the array is."""
        low, high = sp.sympify(index.lower), sp.sympify(index.upper)
        if high == sp.oo:
            return f"{low}, {low + 1}, …"
        if index.name in self.degrees:
            return f"{self.show(low)}, …, {self.show(high)}"
        return f"{self.show(low + 1)}, …, {self.show(high + 1)}"

    def unit(self, variable: Any) -> str:
        """Return the known values of the diagonal."""
        if not variable.unit:
            return ""
        i = variable.target.indices[0]
        return ", " + self.inline(self.show(variable.target.base[i, i]) + " = 1")

    def page(self) -> str:
        """The whole page."""
        s = self.statement
        out = [*textwrap.wrap(f"{s.name}: {self.prose(s.title)}", self.width), ""]
        for label, words in (*self.facts(), ("indices", "; ".join(self.ranges()))):
            out += textwrap.wrap(f"{label:<9} {words}", self.width, subsequent_indent=" " * 10)
        for heading, rows in (("state", s.state), ("constants", s.constants)):
            wide = max((len(self.show(r.target)) for r in rows), default=0)
            for n, r in enumerate(rows):
                line = f"{'' if n else heading:<9} {self.show(r.target):<{wide}}  {self.prose(r.meaning)}{self.unit(r)}"
                out += textwrap.wrap(line, self.width, subsequent_indent=" " * (wide + 12))
        for heading, rows in self.blocks():
            out += ["", heading, *self.laid(rows)]
        for sentence in s.rules:
            out += ["", *textwrap.wrap(self.prose(sentence), self.width)]
        return unmarked("\n".join(out) + "\n")

    def laid(self, rows: list[Row]) -> list[str]:
        """Return rows one below the other, with equal remarks printed once."""
        out, wide = [], min(max(len(row.left) for row in rows), 24)
        for n, (left, rights, remark) in enumerate(rows):
            for right in rights:
                first, *continuation = self.broken(right, self.width - max(wide, len(left)) - 5)
                out.append(f"  {left:<{wide}} = {first}")
                out += [" " * (wide + 5 + self.indent) + line for line in continuation]
                left = ""
            if remark and (n + 1 == len(rows) or rows[n + 1].remark != remark):
                note = textwrap.wrap(f"[{self.prose(remark)}]", self.width - wide - 5)
                out += [" " * (wide + 5) + line for line in note]
        return out


def page(statement: Statement) -> str:
    """The page of a statement as text."""
    return Text(statement).page()
