"""The generated functions of a declaration: means over pairs and quadruples of units, and the loops that sum them.

    pair_g_h   for a student unit i of group g and any unit j of group h: E[d_s phi_i d_t phi_j] for all slots s, t,
               E[d_s d_s' phi_i phi_j], then, where they are trained, E[phi_i phi_j] and E[d_b phi_i phi_j]
    self_g     the same for a unit with itself, whose covariance is singular
    mean_g_h   E[phi_i phi_j]
    quad_..    E[d_s phi_i d_t phi_j phi_k phi_l], the second-order term of the online limit

Their number depends on the kinds of units alone, never on how many there are: the loops run to sizes given at run time.
"""

import dataclasses
import math
from collections.abc import Sequence

from derivations.declare import lanes, symbols, tilt
from derivations.declare.declaration import Declaration
from derivations.declare.gates import SERIES, Gate, Open, Shape, shape
from derivations.declare.lanes import Served
from derivations.declare.moments import Program, Tables

MOST_CELLS = 20_000
"""Above this size a program of quadruples takes a compiler too long, and the tier is refused."""


@dataclasses.dataclass(frozen=True)
class Kernels:
    """The texts of all functions by name, the looked-up series of every program in order, and what is missing.

    `closed` and `second` are "" where the flow and its second-order term have closed forms, else the reason why not;
    `pairs` holds for every program its columns (gate, order, gate, order), `means` its numbers (gate, order), `places`
    the slots of the two gates; `tilts` the factor and slope of every group where all units are erf (`tilt`).
    """

    texts: tuple[tuple[str, str], ...] = ()
    pairs: tuple[tuple[tuple[str, str, int, str, str, int], ...], ...] = ()
    means: tuple[tuple[tuple[str, str, int], ...], ...] = ()
    places: tuple[tuple[int, ...], ...] = ()
    closed: str = ""
    second: str = ""
    lanes: tuple[Served, ...] = ()
    tilts: tuple[tuple[str, str], ...] = ()


def values(declared: Declaration, numbers: Sequence[float]) -> dict[str, float]:
    """The user's numbers by name."""
    return dict(zip(declared.names, numbers, strict=True))


def derive(declared: Declaration, numbers: Sequence[float]) -> Kernels:
    """Everything generated for a declaration at the signs that its slopes have for these numbers."""
    try:
        return _derived(declared, numbers)
    except Open as reason:
        return Kernels(closed=str(reason))


def _derived(declared: Declaration, numbers: Sequence[float]) -> Kernels:
    require_closed(declared)
    normalised = declared.weights == "normalised"
    shapes = [shape(group, values(declared, numbers), normalised and k < len(declared.students))
              for k, group in enumerate(declared.groups)]  # fmt: skip
    _require_series(declared, shapes)
    maker = Maker(declared, shapes)
    texts = maker.drift()
    texts += maker.loss()
    second, tilts = "", tilt.factors(shapes) if declared.limit == "online" else ()
    if declared.limit == "online" and not tilts:
        try:
            texts += maker.second()
        except Open as reason:
            second = str(reason)
    compiled, served = lanes.texts(maker)
    texts += compiled
    helpers = symbols.helpers("\n".join(text for _, text in texts))
    named = [(text.split("(")[0].removeprefix("def "), text) for text in helpers]
    pairs = tuple(tuple((*_plain(one, a), *_plain(two, b)) for one, a, two, b in t.pairs) for t in maker.tables)
    means = tuple(tuple(_plain(gate, a) for gate, a in t.means) for t in maker.tables)
    places = tuple((t.pairs[0][0].slot, t.pairs[0][2].slot) if t.pairs else () for t in maker.tables)
    return Kernels(tuple([*named, *texts]), pairs, means, places, "", second, served, tilts)


def _plain(gate: Gate, order: int) -> tuple[str, str, int]:
    """A series gate with the order of its derivative as plain data: its slope is an expression in the numbers."""
    return gate.kind, symbols.plain(gate.slope), order


def require_closed(declared: Declaration) -> None:
    """Raise `Open` where the loss alone rules closed forms out, or the flow is not that of SGD."""
    if declared.loss not in ("squared", "correlation"):
        what = "the own loss" if declared.loss == "own" else f"the {declared.loss} loss"
        raise Open(f"{what} is no polynomial in the units, so that its mean is no sum over pairs of units")
    for group in declared.students:
        jumps = group.unit.calls("step", "sign")
        if jumps:
            raise Open(
                f"{group.text!r} jumps: SGD follows the derivative of each sample, which is 0 almost everywhere, and "
                "the gradient of the population loss, whose self term diverges, is another"
            )


def _require_series(declared: Declaration, shapes: Sequence[Shape]) -> None:
    for group, found in zip(declared.groups, shapes, strict=True):
        kinds = [gate for gate in found.gates if gate.kind in SERIES]
        if kinds and declared.weights == "free":
            raise Open(
                f"the means of {kinds[0].kind} in {group.text!r} are series at unit variance; with free norms the "
                "variance moves (weights = 'sphere' or 'normalised' fix it)"
            )
        if len({gate.slot for gate in kinds}) > 1:
            raise Open(f"{group.text!r} has series gates in two slots")


class Maker:
    """Writes the functions of one declaration."""

    def __init__(self, declared: Declaration, shapes: list[Shape]) -> None:
        self.declared, self.shapes = declared, shapes
        self.students = len(declared.students)
        self.tables: list[Tables] = []

    def _program(self, name: str, kinds: Sequence[int], outputs: Sequence, same: bool = False) -> str:
        """The text of one function; its tables get the next number."""
        program, _ = self.program(kinds, same)
        return program.write(name, program.arguments(self.declared.names), outputs)

    def program(self, kinds: Sequence[int], same: bool) -> tuple[Program, Tables]:
        """An empty program for some units, whose tables get the next number."""
        self.tables.append(Tables())
        own = [self.declared.groups[k].scalars for k in kinds]
        return Program([self.shapes[k] for k in kinds], own, self.tables[-1], same), self.tables[-1]

    def _drift_outputs(self, g: int, h: int) -> list:
        one, two = self.shapes[g], self.shapes[h]
        outputs = [(a, b) for a in one.slopes for b in two.slopes]
        outputs += [(bend, two.value) for row in one.bends for bend in row]
        if self.declared.groups[g].output == "trained":
            outputs.append((one.value, two.value))
        return outputs + [(part, two.value) for part in one.scalars]

    def drift(self) -> list[tuple[str, str]]:
        """pair_g_h, self_g and `drift`, which sums them."""
        texts, body = [], []
        for g in range(self.students):
            for h in range(len(self.shapes)):
                outputs = self._drift_outputs(g, h)
                name = f"pair_{g}_{h}"
                texts.append((name, self._program(name, (g, h), outputs)))
                call = self._call(g, h, len(self.tables) - 1, name)
                own = None
                if g == h:
                    texts.append((f"self_{g}", self._program(f"self_{g}", (g, g), outputs, same=True)))
                    own = self._call(g, g, len(self.tables) - 1, f"self_{g}")
                body += self._pair_loop(g, h, call, own)
        head = [
            "def drift(G, w, bias, starts, counts, numbers, series, means, both, C, R):",
            "    C[:] = 0.0",
            "    R[:] = 0.0",
        ]
        head.append("    S = np.empty(series.shape[1])")
        head += [f"    {name} = numbers[{k}]" for k, name in enumerate(self.declared.names)]
        return [*texts, ("drift", "\n".join([*head, *body]) + "\n")]

    def _entries(self, g: int, h: int) -> list[str]:
        """The covariance of unit i of group g and unit j of group h, as entries of G."""
        rows = [f"starts[{self._slot(g, s)}] + i" for s in range(len(self.shapes[g].slots))]
        rows += [f"starts[{self._slot(h, s)}] + j" for s in range(len(self.shapes[h].slots))]
        return [f"G[{rows[i]}, {rows[j]}]" for i in range(len(rows)) for j in range(i, len(rows))]

    def _slot(self, g: int, s: int) -> int:
        return sum(len(found.slots) for found in self.shapes[:g]) + s

    def _unit(self, g: int) -> str:
        """The number of the first unit of a group among all units."""
        return " + ".join(f"counts[{k}]" for k in range(g)) or "0"

    def _call(self, g: int, h: int, table: int, name: str) -> list[str]:
        """The lines that look the series of a pair up and call a function, as the tuple `v`."""
        own = [f"bias[{self._bias(g, b)} , i]" for b in range(len(self.declared.groups[g].scalars))]
        own += [f"bias[{self._bias(h, b)}, j]" for b in range(len(self.declared.groups[h].scalars))]
        lines = []
        if self.tables[table].pairs:
            one, _, two, _ = self.tables[table].pairs[0]
            rho = f"G[starts[{self._slot(g, one.slot)}] + i, starts[{self._slot(h, two.slot)}] + j]"
            lines.append(f"look_up(series[{table}], {rho}, S)")
        arguments = ", ".join([*self._entries(g, h), *own, *self.declared.names, "S", f"means[{table}]"])
        return [*lines, f"v = {name}({arguments})"]

    def _bias(self, g: int, b: int) -> int:
        return sum(len(group.scalars) for group in self.declared.groups[:g]) + b

    def _pair_loop(self, g: int, h: int, call: list[str], own: list[str] | None) -> list[str]:
        a, b, student = len(self.shapes[g].slots), len(self.shapes[h].slots), h < self.students
        lines = [
            f"    for i in range(counts[{g}]):",
            f"        ai = w[{self._unit(g)} + i]",
            f"        for j in range(counts[{h}]):",
            f"            wj = {'both * ' if student else ''}w[{self._unit(h)} + j]",
            "            if wj == 0.0:",
            "                continue",
        ]
        inner = call
        if own is not None:
            inner = ["if i == j:", *(f"    {line}" for line in own), "else:", *(f"    {line}" for line in call)]
        lines += [f"            {line}" for line in inner]
        at = [f"starts[{self._slot(g, s)}] + i" for s in range(a)]
        to = [f"starts[{self._slot(h, t)}] + j" for t in range(b)]
        lines += [f"            C[{at[s]}, {to[t]}] += ai * wj * v[{s * b + t}]" for s in range(a) for t in range(b)]
        lines += [
            f"            C[{at[s]}, {at[t]}] += ai * wj * v[{a * b + s * a + t}]" for s in range(a) for t in range(a)
        ]
        found = a * b + a * a
        if self.declared.groups[g].output == "trained":
            lines.append(f"            R[{self._scalar(g, 'a')}, i] += wj * v[{found}]")
            found += 1
        for b, name in enumerate(self.declared.groups[g].scalars):
            lines.append(f"            R[{self._scalar(g, name)}, i] += ai * wj * v[{found + b}]")
        return lines

    def _scalar(self, g: int, word: str) -> int:
        """The row of a scalar among all trained or given numbers of the students."""
        at = 0
        for number, group in enumerate(self.declared.students):
            for name in group.own:
                if (number, name) == (g, word):
                    return at
                at += 1
        raise KeyError(word)

    def loss(self) -> list[tuple[str, str]]:
        """mean_g_h and `loss_parts`: the sums of a a K over pairs of students, of both sides, and of teachers."""
        texts, body = [], []
        groups = range(len(self.shapes))
        for g in groups:
            for h in range(g, len(self.shapes)):
                name = f"mean_{g}_{h}"
                values = [(self.shapes[g].value, self.shapes[h].value)]
                texts.append((name, self._program(name, (g, h), values)))
                call, own = self._call(g, h, len(self.tables) - 1, name), None
                if g == h:
                    texts.append((f"mean_self_{g}", self._program(f"mean_self_{g}", (g, g), values, same=True)))
                    own = self._call(g, g, len(self.tables) - 1, f"mean_self_{g}")
                side = 0 if h < self.students else 1 if g < self.students else 2
                body += self._mean_loop(g, h, call, own, side)
        head = ["def loss_parts(G, w, bias, starts, counts, numbers, series, means, out):", "    out[:] = 0.0"]
        head.append("    S = np.empty(series.shape[1])")
        head += [f"    {name} = numbers[{k}]" for k, name in enumerate(self.declared.names)]
        return [*texts, ("loss_parts", "\n".join([*head, *body]) + "\n")]

    def _mean_loop(self, g: int, h: int, call: list[str], own: list[str] | None, side: int) -> list[str]:
        lines = [f"    for i in range(counts[{g}]):", f"        for j in range({'i, ' if g == h else ''}counts[{h}]):"]
        inner = call
        if own is not None:
            inner = ["if i == j:", *(f"    {line}" for line in own), "else:", *(f"    {line}" for line in call)]
        lines += [f"            {line}" for line in inner]
        twice = "(1.0 if i == j else 2.0)" if g == h else "1.0" if side == 1 else "2.0"
        factor = f"w[{self._unit(g)} + i] * w[{self._unit(h)} + j]"
        return [*lines, f"            out[{side}] += {twice} * {factor} * v[0]"]

    def second(self) -> list[tuple[str, str]]:
        """quad_g_h_k_l and `second`, which sums them."""
        texts, body = [], []
        kinds = range(len(self.shapes))
        for g in range(self.students):
            for h in range(g, self.students):
                for k in kinds:
                    for m in range(k, len(self.shapes)):
                        self._require_small((g, h, k, m))
                        one, two = self.shapes[g], self.shapes[h]
                        values = [
                            (a, b, self.shapes[k].value, self.shapes[m].value) for a in one.slopes for b in two.slopes
                        ]
                        name = f"quad_{g}_{h}_{k}_{m}"
                        texts.append((name, self._program(name, (g, h, k, m), values)))
                        if self.tables[-1].pairs:
                            raise Open("E[c c] of gates is a mean of four functions that are no polynomials")
                        body += self._quad_loop(g, h, k, m, name)
                body += self._noise_loop(g, h)
        head = [
            "def second(G, w, bias, starts, counts, numbers, series, means, tilts, both, noise, E):",
            "    E[:] = 0.0",
        ]
        head += ["    S = np.empty(1)", *(f"    {name} = numbers[{k}]" for k, name in enumerate(self.declared.names))]
        mirror = ["    for r in range(E.shape[0]):", "        for s in range(r):", "            E[r, s] = E[s, r]"]
        return [*texts, ("second", "\n".join([*head, *body, *mirror]) + "\n")]

    def _require_small(self, kinds: tuple[int, ...]) -> None:
        degrees = [
            max((term.powers[s] for term in self.shapes[k].value), default=0)
            for k in kinds
            for s in range(len(self.shapes[k].slots))
        ]
        if any(gate for k in kinds for gate in self.shapes[k].gates):
            raise Open("E[c c] is a mean of four functions that are no polynomials")
        if math.prod(p + 1 for p in degrees) > MOST_CELLS:
            raise Open("E[c c] is a mean of four polynomials of too many terms")

    def _quad_loop(self, g: int, h: int, k: int, m: int, name: str) -> list[str]:
        """Upper entries of E only: j from i on where the groups are one."""
        places = [(g, "i"), (h, "j"), (k, "c"), (m, "e")]
        rows = [f"starts[{self._slot(n, s)}] + {at}" for n, at in places for s in range(len(self.shapes[n].slots))]
        cells = [f"G[{rows[i]}, {rows[j]}]" for i in range(len(rows)) for j in range(i, len(rows))]
        own = [
            f"bias[{self._bias(n, b)}, {at}]" for n, at in places for b in range(len(self.declared.groups[n].scalars))
        ]
        weight = f"{'both * ' if k < self.students else ''}w[{self._unit(k)} + c]"
        other = f"{'both * ' if m < self.students else ''}w[{self._unit(m)} + e]"
        arguments = ", ".join([*cells, *own, *self.declared.names, "S", "means[0]"])
        twice = "(1.0 if c == e else 2.0)" if k == m else "2.0"
        lines = [
            f"    for i in range(counts[{g}]):",
            f"        for j in range({'i, ' if g == h else ''}counts[{h}]):",
            f"            aa = w[{self._unit(g)} + i] * w[{self._unit(h)} + j]",
            f"            for c in range(counts[{k}]):",
            f"                for e in range({'c, ' if k == m else ''}counts[{m}]):",
            f"                    ww = {twice} * ({weight}) * ({other})",
            "                    if ww == 0.0:",
            "                        continue",
            f"                    v = {name}({arguments})",
        ]
        a, b = len(self.shapes[g].slots), len(self.shapes[h].slots)
        for s in range(a):
            for t in range(b):
                r, q = f"starts[{self._slot(g, s)}] + i", f"starts[{self._slot(h, t)}] + j"
                lines += self._add(r, q, f"aa * ww * v[{s * b + t}]", g == h and s > t, 20)
        return lines

    def _add(self, row: str, column: str, value: str, below: bool, indent: int) -> list[str]:
        """E[row, column] += value; an entry of two slots of one group below the diagonal counts once, where i != j."""
        pad = " " * indent
        if below:  # (i, s) with (j, t) for s > t is the entry (t, j), (s, i) above the diagonal; i = j has it already
            return [f"{pad}if i != j:", f"{pad}    E[{column}, {row}] += {value}"]
        return [f"{pad}E[{row}, {column}] += {value}"]

    def _noise_loop(self, g: int, h: int) -> list[str]:
        a, b = len(self.shapes[g].slots), len(self.shapes[h].slots)
        table = self._pair_table(g, h)
        lines = [
            "    if noise > 0.0:",
            f"        for i in range(counts[{g}]):",
            f"            for j in range({'i, ' if g == h else ''}counts[{h}]):",
            f"                aa = noise * noise * w[{self._unit(g)} + i] * w[{self._unit(h)} + j]",
            *(f"                {line}" for line in self._call(g, h, table, f"pair_{g}_{h}")),
        ]
        for s in range(a):
            for t in range(b):
                r, q = f"starts[{self._slot(g, s)}] + i", f"starts[{self._slot(h, t)}] + j"
                lines += self._add(r, q, f"aa * v[{s * b + t}]", g == h and s > t, 16)
        return lines

    def _pair_table(self, g: int, h: int) -> int:
        """The number of the tables of pair_g_h: the programs of `drift` come first, a self after its own pair."""
        at = 0
        for first in range(self.students):
            for second in range(len(self.shapes)):
                if (first, second) == (g, h):
                    return at
                at += 2 if first == second else 1
        raise KeyError(h)
