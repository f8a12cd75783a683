"""Means of products of units as straight-line code: Isserlis and Stein from below, every moment once.

    E[z_i F] = sum_j C_ij E[dF/dz_j]

lowers powers until gates alone are left, whose means are the `bases` (closed forms), or numbers looked up in a table of
series (gates at unit variance).  Nothing is expanded: a moment that no output needs is never written, one of odd degree
is known to vanish.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from derivations.declare import bases, contraction, symbols
from derivations.declare.gates import SERIES, Gate, Open, Part, Shape, Term

Orders = tuple[tuple[int, int], ...]
"""For every factor the number of its gate (-1: none) and the order of its derivative."""


@dataclasses.dataclass
class Tables:
    """The means of series gates that programs look up: `pairs` S_ab, each (gate, a, gate, b), and `means` (gate, a).

    The place in the list is the index of the column; the values are made for the numbers of a run (`series`).
    """

    pairs: list[tuple[Gate, int, Gate, int]] = dataclasses.field(default_factory=list)
    means: list[tuple[Gate, int]] = dataclasses.field(default_factory=list)

    def pair(self, entry: tuple[Gate, int, Gate, int]) -> int:
        """The column of S_ab, which is S_ba where the two gates are one."""
        one, a, two, b = entry
        if one == two and a > b:
            entry = (one, b, two, a)
        if entry not in self.pairs:
            self.pairs.append(entry)
        return self.pairs.index(entry)

    def mean(self, entry: tuple[Gate, int]) -> int:
        """The place of E[F^(a)]."""
        if entry not in self.means:
            self.means.append(entry)
        return self.means.index(entry)


class Program:
    """The text of one function of a covariance: outputs that are means of products of parts of some units.

    Its arguments are c{i}_{j}, i <= j, for the fields of all factors in turn (those of factor k from offset k on), the
    factors' own numbers b{k}_{name}, the user's numbers, and `S` and `m`, the looked-up series and means; those of no
    use are left out by `arguments`.  With `same` the first two factors are one unit.
    """

    def __init__(self, shapes: Sequence[Shape], scalars: Sequence[Sequence[str]], tables: Tables, same: bool = False):
        self.shapes, self.tables, self.same = shapes, tables, same
        self.own = [list(names) for names in scalars]
        self.offsets = [sum(len(s.slots) for s in shapes[:k]) for k in range(len(shapes))]
        self.count = sum(len(s.slots) for s in shapes)
        self.lines: list[str] = []
        self.known: dict[tuple[Orders, tuple[int, ...]], str | None] = {}
        self.bases: dict[Orders, str] = {}
        self.closed: list[tuple[str, Any]] = []

    def write(self, name: str, arguments: Sequence[str], outputs: Sequence[Sequence[Part]]) -> str:
        """The text of `name(*arguments)` -> one number for each output, a product of one part per factor."""
        results = self.results(outputs)
        body = [*self.body(), f"return ({', '.join(results)},)"]
        return f"def {name}({', '.join(arguments)}):\n    " + "\n    ".join(body) + "\n"

    def results(self, outputs: Sequence[Sequence[Part]]) -> list[str]:
        """One expression for each output, in the names that `body` gives."""
        return [self._output(parts) for parts in outputs]

    def body(self) -> list[str]:
        """The lines before the results, once these are known."""
        return [*self._head(), *self.lines]

    def arguments(self, numbers: Sequence[str]) -> list[str]:
        """All arguments in their order."""
        cells = [f"c{i}_{j}" for i in range(self.count) for j in range(i, self.count)]
        own = [f"b{k}_{name}" for k, names in enumerate(self.own) for name in names]
        return [*cells, *own, *numbers, "S", "m"]

    def _output(self, parts: Sequence[Part]) -> str:
        if len(self.shapes) == self.count == 2 and all(term.gate < 0 for part in parts for term in part):
            numbers = [[self._placed(term.coefficient, k) for term in part] for k, part in enumerate(parts)]
            return contraction.contracted(parts, numbers, ("c0_0", "c0_1", "c1_1"))
        terms: list[tuple[list[str], Orders, tuple[int, ...]]] = [([], (), ())]
        for k, part in enumerate(parts):
            terms = [
                ([*texts, self._number(term, k)], (*orders, (term.gate, term.order)), (*powers, *term.powers))
                for texts, orders, powers in terms
                for term in part
            ]
        found = []
        for texts, orders, powers in terms:
            moment = self._cell(orders, powers)
            if moment:
                factors = [text for text in texts if text] + ([moment] if moment != "1.0" else [])
                found.append("*".join(factors) or "1.0")
        return " + ".join(found) or "0.0"

    def _gate(self, k: int, number: int) -> Gate:
        """A gate of factor k, whose bias may be a number of the unit."""
        gate = self.shapes[k].gates[number]
        return dataclasses.replace(gate, bias=self._placed(gate.bias, k)) if self.own[k] else gate

    def _placed(self, value: Any, k: int) -> Any:
        """An expression with squared norms as diagonal entries, and the unit's own numbers as those of factor k."""
        import sympy

        at = self.offsets[k]
        places = {symbols.square(s): sympy.Symbol(f"c{at + i}_{at + i}") for i, s in enumerate(self.shapes[k].slots)}
        places |= {sympy.Symbol(n, real=True): sympy.Symbol(f"b{k}_{n}", real=True) for n in self.own[k]}
        return sympy.sympify(value).subs(places, simultaneous=True)

    def _number(self, term: Term, k: int) -> str:
        """A coefficient as text."""
        value = self._placed(term.coefficient, k)
        return "" if value == 1 else symbols.text(value, "") if value.is_Symbol else f"({symbols.text(value, '')})"

    def _cell(self, orders: Orders, powers: tuple[int, ...]) -> str | None:
        """The name of one moment; None where it vanishes."""
        key = (orders, powers)
        if key in self.known:
            return self.known[key]
        if not any(powers):
            self.known[key] = self._base(orders)
            return self.known[key]
        if all(gate < 0 for gate, _ in orders) and sum(powers) % 2:
            self.known[key] = None
            return None
        i = next(k for k, p in enumerate(powers) if p)
        low = _lowered(powers, i)
        found = [
            (
                f"{low[j]}.0*{self._entry(i, j)}" if low[j] > 1 else self._entry(i, j),
                self._cell(orders, _lowered(low, j)),
            )
            for j in range(len(low))
            if low[j]
        ]
        for k, (gate, order) in enumerate(orders):
            if gate >= 0:
                at = self.offsets[k] + self.shapes[k].gates[gate].slot
                raised = (*orders[:k], (gate, order + 1), *orders[k + 1 :])
                found.append((self._entry(i, at), self._cell(raised, low)))
        text = " + ".join(factor if moment == "1.0" else f"{factor}*{moment}" for factor, moment in found if moment)
        self.known[key] = None
        if text:
            self.known[key] = f"t{len(self.lines)}"
            self.lines.append(f"t{len(self.lines)} = {text}")
        return self.known[key]

    def _entry(self, i: int, j: int) -> str:
        return f"c{min(i, j)}_{max(i, j)}"

    def _base(self, orders: Orders) -> str | None:
        """The mean of the gates alone."""
        import sympy

        if orders in self.bases:
            return self.bases[orders] or None
        gated = [(k, self._gate(k, g), r) for k, (g, r) in enumerate(orders) if g >= 0]
        if not gated:
            return "1.0"
        if len(gated) > 2:
            raise Open("a mean of more than two functions that are no polynomials has no closed form here")
        at = [self.offsets[k] + gate.slot for k, gate, _ in gated]
        kinds = {gate.kind in SERIES for _, gate, _ in gated}
        if len(gated) == 1:
            ((_, gate, r),) = gated
            if gate.kind in SERIES:
                name = f"m[{self.tables.mean((gate, r))}]"
            else:
                name = self._close(bases.single(gate, r, sympy.Symbol(f"c{at[0]}_{at[0]}", positive=True)))
        elif kinds == {True}:
            (_, one, a), (_, two, b) = gated
            name = f"S[{self.tables.pair((one, a, two, b))}]"
        else:
            (_, one, a), (_, two, b) = gated
            x, y, t = bases.covariance(False)
            own = {x: f"c{at[0]}_{at[0]}", y: f"c{at[1]}_{at[1]}", t: self._entry(*at)}
            same = self.same and gated[0][0] == 0 and gated[1][0] == 1 and one.slot == two.slot
            form = bases.pair(one, a, two, b, same)
            places = {s: sympy.Symbol(n, real=True, positive=s.is_positive) for s, n in own.items()}
            name = self._close(form.subs(places, simultaneous=True))
        self.bases[orders] = name
        return name or None

    def _close(self, form: Any) -> str:
        if form == 0:
            return ""
        self.closed.append((f"s{len(self.closed)}", form))
        return self.closed[-1][0]

    def _head(self) -> list[str]:
        """The closed forms, common parts shared."""
        import sympy

        if not self.closed:
            return []
        shared, results = sympy.cse([form for _, form in self.closed], symbols=sympy.numbered_symbols("x_"))
        lines = [f"{symbol} = {symbols.text(value, '', root='root')}" for symbol, value in shared]
        return [
            *lines,
            *(
                f"{name} = {symbols.text(e, '', root='root')}"
                for (name, _), e in zip(self.closed, results, strict=True)
            ),
        ]


def _lowered(powers: tuple[int, ...], k: int) -> tuple[int, ...]:
    return (*powers[:k], powers[k] - 1, *powers[k + 1 :])
