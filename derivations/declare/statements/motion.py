"""The formulas of a page: model, loss and equations of motion as sums over units, for every kind of declaration.

They are written once, in LaTeX; a text page has them by `notation.plain`.  D^s_i[u] is the drift of s_i . u.
"""

import dataclasses

from derivations.declare.declaration import Declaration
from derivations.declare.rows import Block, Rows
from derivations.declare.statements import notation
from derivations.declare.statements.closed import Names

RATE = r"\frac{\mathrm{d}}{\mathrm{d}t} "
LOSSES = {
    "squared": r"\tfrac12 (f - y)^2", "correlation": "-f y", "logistic": r"\log(1 + \exp(-f\,\text{sign}(y)))",
    "hinge": r"\max(0, 1 - f\,\text{sign}(y))",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Writer:
    """Writes the formulas of one declaration; `tex` false leaves expressions and entries as in a file and a run.

    `closed` says whether the page has kernels, in which the rates of readouts and numbers are then written.
    """

    rows: Rows
    tex: bool
    decay: bool = False
    closed: bool = True

    @property
    def declared(self) -> Declaration:
        """What is declared."""
        return self.rows.declaration

    @property
    def single(self) -> bool:
        """Whether every unit has one vector, called alike."""
        return len({slot for _, slot in self.rows.starts}) == 1

    @property
    def online(self) -> bool:
        """Whether steps are eta/d."""
        return self.declared.limit == "online"

    @property
    def eta(self) -> str:
        """The factor of the drift."""
        return r"\eta " if self.online else ""

    def entry(self, block: Block, i: str, j: str) -> str:
        """An entry of an order parameter."""
        if self.tex:
            return f"{Names(self.rows).tex(block.name).replace(chr(92) + 'hat', '')}_{{{i}{j}}}"
        return f"{block.name}[{i},{j}]"

    def above(self, slots: str) -> str:
        """Slots above a kernel, where there are several."""
        return "" if self.single else f"^{{{slots}}}"

    def model(self) -> list[str]:
        """Student, teacher, label and loss."""
        lines, declared = [], self.declared
        for number, group in enumerate(declared.groups):
            student = number < len(declared.students)
            function, index = ("f", "i") if student else ("f^*", "j")
            mark = f"_{{\\text{{{group.name}}}}}" if group.name else ""
            fields = ", ".join(rf"{s}{'' if student else '^*'}_{index}\cdot x" for s in group.slots)
            weight = "a" if student else "b"
            phi = r"\varphi" + ("" if student else "^*") + mark
            unit = notation.expression(group.unit) if self.tex else group.text
            whole = rf"{function}{mark}(x) = \sum_{{{index}}} {weight}_{index}\,{phi}({fields})"
            value = f"{phi}({', '.join(group.slots)}) = {unit}"
            lines.append(rf"{whole},\quad {value},\quad {notation.readout(group, student)}")
        for side, letter in ((declared.students, "f"), (declared.teachers, "f^*")):
            if len(side) > 1:
                lines.append(f"{letter} = " + " + ".join(rf"{letter}_{{\text{{{g.name}}}}}" for g in side))
        lines.append(
            r"x \sim \mathcal{N}(0, I),\quad y = f^*(x) + \sigma \epsilon,\quad \epsilon \sim \mathcal{N}(0, 1)"
        )
        own = notation.expression(declared.own_loss) if declared.own_loss else LOSSES.get(declared.loss, "")
        lines.append(rf"L = \mathrm{{E}}[\ell(f, y)],\quad \ell(f, y) = {own}")
        return lines

    def loss(self) -> list[str]:
        """Loss and error as sums over pairs of units."""
        error = r"\mathrm{E}[(f - f^*)^2] = \sum_{i,k} a_i a_k K_{ik} - 2 \sum_{i,j} a_i b_j K_{ij}"
        error += r" + \sum_{j,l} b_j b_l K_{jl}"
        if self.declared.loss == "correlation":
            return [r"L = -\sum_{i,j} a_i b_j K_{ij}", error]
        return [
            r"L = \tfrac12 \sum_{i,k} a_i a_k K_{ik} - \sum_{i,j} a_i b_j K_{ij} + \tfrac12 \sum_{j,l} b_j b_l K_{jl}"
            r" + \tfrac12 \sigma^2", error,
        ]  # fmt: skip

    def kernels(self) -> list[str]:
        """What the kernels are, and how slopes follow from them."""
        if self.single:
            s = self.rows.declaration.students[0].slots[0]
            return [
                r"K_{ik} = \mathrm{E}[\varphi_i \varphi_k],\quad V_{ik} = \mathrm{E}[\varphi_i' \varphi_k']"
                rf" = \partial K_{{ik}}/\partial({s}_i\cdot {s}_k),\quad W_{{ik}} = \mathrm{{E}}[\varphi_i'' \varphi_k]"
                rf" = 2\,\partial K_{{ik}}/\partial({s}_i\cdot {s}_i)"
            ]
        return [
            r"K_{ik} = \mathrm{E}[\varphi_i \varphi_k],\quad V^{st}_{ik} = \mathrm{E}[\partial_s\varphi_i\,"
            r"\partial_t\varphi_k] = \partial K_{ik}/\partial(s_i\cdot t_k)",
            r"W^{sr}_{ik} = \mathrm{E}[\partial_s\partial_r\varphi_i\,\varphi_k]"
            r" = \partial K_{ik}/\partial(s_i\cdot r_i),\quad W^{ss}_{ik} = 2\,\partial K_{ik}/\partial(s_i\cdot s_i)",
        ]

    def drift(self) -> list[str]:
        """The gradient A of a student vector on any vector u, and the drift D that constraint and decay make of it."""
        if self.single:
            s = self.declared.students[0].slots[0]
            student = rf"V_{{ik}}\,({s}_k\cdot u) + W_{{ik}}\,({s}_i\cdot u)"
            teacher = rf"V_{{ij}}\,({s}^*_j\cdot u) + W_{{ij}}\,({s}_i\cdot u)"
        else:
            student = r"\sum_t V^{st}_{ik}\,(t_k\cdot u) + \sum_r W^{sr}_{ik}\,(r_i\cdot u)"
            teacher = r"\sum_t V^{st}_{ij}\,(t^*_j\cdot u) + \sum_r W^{sr}_{ij}\,(r_i\cdot u)"
        first = rf"a_i \sum_k a_k \bigl({student}\bigr)"
        second = rf"a_i \sum_j b_j \bigl({teacher}\bigr)"
        right = f"-{second}" if self.declared.loss == "correlation" else f"{first} - {second}"
        return self.constrained(right)

    def sampled(self) -> list[str]:
        """The gradient A of one student vector where no kernel is closed, a mean over points; then D."""
        _, own = self.lead("A")
        letter = "c_i" if self.single else "c^s_i"
        means = rf"\mathrm{{E}}[{letter}\,(u\cdot x)]"
        if any(group.unit.calls("wick") for group in self.declared.students):
            means += rf" + 2\,\mathrm{{E}}[\partial\ell/\partial({own}\cdot {own})]\,({own}\cdot u)"
        return [*self.constrained(means), rf"{letter} = \partial\ell/\partial({own}\cdot x)"]

    def lead(self, letter: str, on: str = "u") -> tuple[str, str]:
        """(drift of student vector i on another vector, that student vector)."""
        if self.single:
            return f"{letter}_i[{on}]", f"{self.declared.students[0].slots[0]}_i"
        return f"{letter}^s_i[{on}]", "s_i"

    def constrained(self, right: str) -> list[str]:
        """The gradient, and the drift D that constraint and decay make of it."""
        (A, own), (D, _), kind = self.lead("A"), self.lead("D"), self.declared.weights
        decay = rf" + \lambda\,({own}\cdot u)" if self.decay and kind != "sphere" else ""
        if kind == "free":
            return [f"{D} = {right}{decay}"]
        if kind == "sphere":
            return [f"{A} = {right}", rf"{D} = {A} - {self.lead('A', own)[0]}\,({own}\cdot u)/|{own}|^2"]
        e = "e_i" if self.single else "e^s_i"
        along = rf"\bigl({A} - {self.lead('A', e)[0]}\,({e}\cdot u)\bigr)/|{own}|"
        return [f"{A} = {right}", rf"{D} = {along}{decay},\quad {e} = {own}/|{own}|"]

    def motion(self) -> list[str]:
        """The rates of all order parameters."""
        return [*(self._rate(block) for block in self.rows.moving), *self._scalars()]

    def _rate(self, block: Block) -> str:
        """The rate of one block, by name of its slots."""
        (g, r), (h, s) = self._owner(block.rows.start), self._owner(block.columns.start)
        declared, students = self.declared, len(self.declared.students)
        i, k = "i", "k" if h < students else "n"
        star = "" if h < students else "^*"
        above = (lambda slot: "") if self.single else (lambda slot: f"^{{{slot}}}")
        terms = []
        if declared.moves(declared.groups[g], r):
            terms.append(f"D{above(r)}_{i}[{s}{star}_{k}]")
        if h < students and declared.moves(declared.groups[h], s):
            terms.append(f"D{above(s)}_{k}[{r}_{i}]")
        if not terms:
            return f"{RATE}{self.entry(block, i, k)} = 0"
        drift = f"-{self.eta}{terms[0]}" if len(terms) == 1 else rf"-{self.eta}\bigl({' + '.join(terms)}\bigr)"
        line = f"{RATE}{self.entry(block, i, k)} = {drift}"
        if not self.online:
            return line
        both = len(terms) == 2
        line += rf" + \frac{{\eta^2}}{{B}} E{self.above(r + s)}_{{ik}}" if both else ""
        if declared.weights == "sphere":
            one = rf"E{self.above(r + r)}_{{ii}}/|{r}_i|^2"
            widths = rf"\bigl({one} + E{self.above(s + s)}_{{kk}}/|{s}_k|^2\bigr)" if both else one
            line += rf" - \frac{{\eta^2}}{{2B}} {widths}\,{self.entry(block, i, k)}"
        return line

    def _owner(self, row: int) -> tuple[int, str]:
        return next(key for key, start in self.rows.starts.items() if start == row)

    def _scalars(self) -> list[str]:
        lines = []
        for g, word, _ in self.rows.scalars:
            group, closed = self.declared.students[g], self.closed and self.declared.loss in ("squared", "correlation")
            if not self.declared.moves(group, word):
                lines.append(rf"{RATE}{notation.name(group.named(word))}_i = 0")
                continue
            inner = r"\varphi_i" if word == "a" else rf"a_i\,\partial_{{{notation.name(word)}}}\varphi_i"
            slope = rf"\mathrm{{E}}[\partial_f\ell(f, y)\,{inner}]"
            if closed:
                K, front = ("K", "") if word == "a" else (rf"\partial_{{{notation.name(word)}_i}} K", r"a_i\,")
                first = "" if self.declared.loss == "correlation" else rf"\sum_k a_k {K}_{{ik}} - "
                slope = rf"{front}\bigl({first or '-'}\sum_j b_j {K}_{{ij}}\bigr)"
            lines.append(rf"{RATE}{notation.name(group.named(word))}_i = -{self.eta}{slope}")
        return lines

    def held(self) -> list[str]:
        """What the slopes of kernels in the units' own numbers are."""
        words = [w for g, w, _ in self.rows.scalars if w != "a" and self.declared.moves(self.declared.students[g], w)]
        return [
            rf"\partial_{{{name}_i}} K_{{ik}} = \mathrm{{E}}[\partial_{{{name}}}\varphi_i\,\varphi_k],\quad "
            rf"{name}_k\text{{ held, also for }}k = i"
            for name in map(notation.name, dict.fromkeys(words))
        ]

    def letters(self) -> str:
        """What stands in the second-order term, as the rest of its head."""
        over = ", $g_m = a_m$ for a student and $-b_m$ for a teacher" if self.declared.loss == "squared" else ""
        return rf"$\eta$ the step, $B$ the batch{over}"

    def second(self) -> list[str]:
        """The second-order term of the online limit."""
        if not self.online:
            return []
        letter = "c_i" if self.single else "c^s_i"
        other = "c_k" if self.single else "c^t_k"
        lines = [rf"E{self.above('st')}_{{ik}} = \mathrm{{E}}[{letter} {other}],\quad {letter} = a_i\,"
                 + (r"\varphi_i'" if self.single else r"\partial_s\varphi_i") + r"\,\partial_f\ell(f, y)"
                 + (f"/|{self.lead('A')[1]}|" if self.declared.weights == "normalised" else "")]  # fmt: skip
        over = {"squared": r"\sum_{m,n} g_m g_n", "correlation": r"\sum_{j,l} b_j b_l"}.get(self.declared.loss)
        if over:
            one, two = "mn" if self.declared.loss == "squared" else "jl"
            slopes = r"\varphi_i' \varphi_k'" if self.single else r"\partial_s\varphi_i\,\partial_t\varphi_k"
            lines.append(
                rf"E{self.above('st')}_{{ik}} = a_i a_k \bigl({over}\,\mathrm{{E}}[{slopes}\,\varphi_{one} "
                rf"\varphi_{two}] + \sigma^2\,V{self.above('st')}_{{ik}}\bigr)"
            )
        return lines
