"""Means of products of units as straight-line steps: Isserlis and Stein from below, every moment once.

    E[z_i F] = sum_j C_ij E[dF/dz_j]

lowers powers until only gates are left, whose means are the `bases` (closed forms), or tabulated series (gates at unit
variance). Products are not expanded. Moments that no output needs are not written, and those of odd degree vanish.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

from derivations.declare import bases, contraction, symbols
from derivations.declare.gates import SERIES, Gate, Open, Part, Shape

Orders = tuple[tuple[int, int], ...]
"""For every factor the number of its gate (-1: none) and the order of its derivative."""


@dataclasses.dataclass
class Tables:
    """Means of series gates in the tables of programs: `pairs` S_ab, each (gate, a, gate, b), and `means` (gate, a).

    The place in the list is the index of the column. The values depend on the numbers of a run (`series`).
    """

    pairs: list[tuple[Gate, int, Gate, int]] = dataclasses.field(default_factory=list)
    means: list[tuple[Gate, int]] = dataclasses.field(default_factory=list)

    def pair(self, entry: tuple[Gate, int, Gate, int]) -> int:
        """Return the column of S_ab, which is S_ba if the two gates are equal."""
        first, a, second, b = entry
        if first == second and a > b:
            entry = (first, b, second, a)
        if entry not in self.pairs:
            self.pairs.append(entry)
        return self.pairs.index(entry)

    def mean(self, entry: tuple[Gate, int]) -> int:
        """The place of E[F^(a)]."""
        if entry not in self.means:
            self.means.append(entry)
        return self.means.index(entry)


class Program:
    """Program of one function of a covariance, whose outputs are means of products of parts of some units.

    Its arguments are c{i}_{j}, i <= j, for the fields of all factors in turn (those of factor k from offset k on), the
    factors' numbers b{k}_{name}, the user's numbers, and `S` and `m`, the tabulated series and means; `arguments`
    leaves out unused ones. With `same` the first two factors are one unit. With `moved` fields have means mu_{i},
    arguments after the others: a gate F(s z + b) is then that of a centred field with the bias b + s mu, and

        E[z_i F] = mu_i E[F] + sum_j C_ij E[dF/dz_j]
    """

    def __init__(
        self, shapes: Sequence[Shape], scalars: Sequence[Sequence[str]], tables: Tables, same: bool = False,
        moved: bool = False,
    ):  # fmt: skip
        self.shapes, self.tables, self.same, self.moved = shapes, tables, same, moved
        self.own = [list(names) for names in scalars]
        self.offsets = [sum(len(s.slots) for s in shapes[:k]) for k in range(len(shapes))]
        self.count = sum(len(s.slots) for s in shapes)
        self.lines: list[tuple[Any, Any]] = []
        self.known: dict[tuple[Orders, tuple[int, ...]], Any] = {}
        self.bases: dict[Orders, Any] = {}
        self.closed: list[tuple[Any, Any]] = []

    def write(self, name: str, arguments: Sequence[str], outputs: Sequence[Sequence[Part]]) -> str:
        """The text of `name(*arguments)` -> one number for each output, a product of one part per factor."""
        results = [symbols.text(result, "", root="root") for result in self.results(outputs)]
        lines = [f"{symbol} = {symbols.text(value, '', root='root')}" for symbol, value in self.steps()]
        body = [*lines, f"return ({', '.join(results)},)"]
        return f"def {name}({', '.join(arguments)}):\n    " + "\n    ".join(body) + "\n"

    def results(self, outputs: Sequence[Sequence[Part]]) -> list[Any]:
        """One expression for each output, in the symbols of `steps`."""
        return [self._output(parts) for parts in outputs]

    def expressions(self, outputs: Sequence[Sequence[Part]]) -> list[Any]:
        """Return one expression for each output, in the arguments only."""
        results, solved = self.results(outputs), {}
        for symbol, value in (*self.closed, *self.lines):
            solved[symbol] = value.xreplace(solved)
        return [result.xreplace(solved) for result in results]

    def steps(self) -> list[tuple[Any, Any]]:
        """(symbol, value) of all moments in the order of use, common parts of closed forms shared."""
        import sympy

        if not self.closed:
            return self.lines
        shared, results = sympy.cse([form for _, form in self.closed], symbols=sympy.numbered_symbols("x_"))
        named = [(name, value) for (name, _), value in zip(self.closed, results, strict=True)]
        return [*shared, *named, *self.lines]

    def symbols(self) -> list[Any]:
        """The symbols of the covariances and of the factors' own numbers."""
        import sympy

        cells = [self.entry(i, j) for i in range(self.count) for j in range(i, self.count)]
        return [
            *cells,
            *(sympy.Symbol(f"b{k}_{name}", real=True) for k, names in enumerate(self.own) for name in names),
            *(self.centre(i) for i in range(self.count if self.moved else 0)),
        ]

    def centre(self, i: int) -> Any:
        """The mean of field i."""
        import sympy

        return sympy.Symbol(f"mu_{i}", real=True) if self.moved else sympy.Integer(0)

    def arguments(self, numbers: Sequence[str]) -> list[str]:
        """All arguments in their order."""
        return [*map(str, self.symbols()), *numbers, "S", "m"]

    def _output(self, parts: Sequence[Part]) -> Any:
        import sympy

        if (
            not self.moved
            and len(self.shapes) == self.count == 2
            and all(term.gate < 0 for part in parts for term in part)
        ):
            numbers = [[self._placed(term.coefficient, k) for term in part] for k, part in enumerate(parts)]
            return contraction.contracted(parts, numbers, (self.entry(0, 0), self.entry(0, 1), self.entry(1, 1)))
        terms: list[tuple[Any, Orders, tuple[int, ...]]] = [(sympy.Integer(1), (), ())]
        for k, part in enumerate(parts):
            terms = [
                (factor * self._placed(term.coefficient, k), (*orders, (term.gate, term.order)), powers + term.powers)
                for factor, orders, powers in terms
                for term in part
            ]
        return sympy.Add(*(factor * self._cell(orders, powers) for factor, orders, powers in terms))

    def _gate(self, k: int, number: int) -> Gate:
        """A gate of factor k, whose bias may be a number of the unit."""
        gate = self.shapes[k].gates[number]
        if not (self.own[k] or self.moved):
            return gate
        shift = gate.slope * self.centre(self.offsets[k] + gate.slot)
        return dataclasses.replace(gate, bias=self._placed(gate.bias, k) + shift)

    def _placed(self, value: Any, k: int) -> Any:
        """Return an expression with diagonal entries for squared norms, and the numbers of the unit as those of factor
        k.
        """
        import sympy

        first_field = self.offsets[k]
        places = {
            symbols.square(s): self.entry(first_field + i, first_field + i) for i, s in enumerate(self.shapes[k].slots)
        }
        places |= {sympy.Symbol(n, real=True): sympy.Symbol(f"b{k}_{n}", real=True) for n in self.own[k]}
        return sympy.sympify(value).subs(places, simultaneous=True)

    def _cell(self, orders: Orders, powers: tuple[int, ...]) -> Any:
        """Return the symbol of one moment, or a known number such as 0."""
        import sympy

        key = (orders, powers)
        if key in self.known:
            return self.known[key]
        if not any(powers):
            self.known[key] = self._base(orders)
            return self.known[key]
        if not self.moved and all(gate < 0 for gate, _ in orders) and sum(powers) % 2:
            self.known[key] = sympy.Integer(0)
            return self.known[key]
        i = next(k for k, p in enumerate(powers) if p)
        low = _lowered(powers, i)
        terms = [low[j] * self.entry(i, j) * self._cell(orders, _lowered(low, j)) for j in range(len(low)) if low[j]]
        if self.moved:
            terms.append(self.centre(i) * self._cell(orders, low))
        for k, (gate, order) in enumerate(orders):
            if gate >= 0:
                field = self.offsets[k] + self.shapes[k].gates[gate].slot
                next_orders = (*orders[:k], (gate, order + 1), *orders[k + 1 :])
                terms.append(self.entry(i, field) * self._cell(next_orders, low))
        total = sympy.Add(*terms)
        self.known[key] = total if total.is_number else self._named("t", self.lines, total)
        return self.known[key]

    def field(self, factor: int, slot: int) -> int:
        """The number of a field among all fields."""
        return self.offsets[factor] + slot

    def entry(self, i: int, j: int) -> Any:
        """The covariance of fields i and j; a variance is above 0."""
        import sympy

        i, j = min(i, j), max(i, j)
        return sympy.Symbol(f"c{i}_{j}", real=True, positive=True if i == j else None)

    def _named(self, letter: str, steps: list[tuple[Any, Any]], value: Any) -> Any:
        """Return a symbol for a value, which is appended to some steps."""
        import sympy

        steps.append((sympy.Symbol(f"{letter}{len(steps)}", real=True), value))
        return steps[-1][0]

    def _base(self, orders: Orders) -> Any:
        """Return the mean of the gates without powers."""
        if orders not in self.bases:
            self.bases[orders] = self._gates_alone(orders)
        return self.bases[orders]

    def _gates_alone(self, orders: Orders) -> Any:
        import sympy

        gated = [(k, self._gate(k, g), r) for k, (g, r) in enumerate(orders) if g >= 0]
        if not gated:
            return sympy.Integer(1)
        if len(gated) > 2:
            raise Open("a mean of more than two functions that are not polynomials has no closed form here")
        fields = [self.offsets[k] + gate.slot for k, gate, _ in gated]
        kinds = {gate.kind in SERIES for _, gate, _ in gated}
        if len(gated) == 1:
            ((_, gate, r),) = gated
            if gate.kind in SERIES:
                return sympy.Symbol(f"m[{self.tables.mean((gate, r))}]", real=True)
            return self._closed_form(bases.single(gate, r, self.entry(fields[0], fields[0])))
        (_, left, a), (_, right, b) = gated
        if kinds == {True}:
            return sympy.Symbol(f"S[{self.tables.pair((left, a, right, b))}]", real=True)
        x, y, t = bases.covariance(False)
        places = {x: self.entry(fields[0], fields[0]), y: self.entry(fields[1], fields[1]), t: self.entry(*fields)}
        same_field = self.same and gated[0][0] == 0 and gated[1][0] == 1 and left.slot == right.slot
        return self._closed_form(bases.pair(left, a, right, b, same_field).subs(places, simultaneous=True))

    def _closed_form(self, form: Any) -> Any:
        return form if form.is_number else self._named("s", self.closed, form)


def _lowered(powers: tuple[int, ...], k: int) -> tuple[int, ...]:
    return (*powers[:k], powers[k] - 1, *powers[k + 1 :])
