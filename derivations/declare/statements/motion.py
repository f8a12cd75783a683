"""The formulas of a page: model, loss and equations of motion as sums over units, for every kind of declaration.

They are LaTeX; `notation.plain` converts them for a text page. D^s_i[u] is the drift of s_i . u.
"""

import dataclasses

from derivations.declare.declaration import Declaration, Group
from derivations.declare.rows import Block, Rows
from derivations.declare.schedules import Schedule
from derivations.declare.statements import giant, notation, velocities
from derivations.declare.statements.answers import Answers
from derivations.declare.statements.closed import Names
from derivations.declare.statements.law import Law
from derivations.declare.statements.notation import RATE
from derivations.declare.statements.training import Training


def squared(factor: str) -> str:
    """The square of a factor of the step; "" for no factor."""
    return factor.replace(r"\,", r"^2\,")


@dataclasses.dataclass(frozen=True)
class Writer:
    """Writes the formulas of one declaration; `tex` False keeps expressions and entries as in a file and a run.

    `closed` is True if the page has kernels, which the rates of readouts and numbers then contain. `changing` lists the
    schedules.
    """

    rows: Rows
    tex: bool
    decay: bool = False
    closed: bool = True
    changing: tuple[Schedule, ...] = ()

    @property
    def declared(self) -> Declaration:
        """Return the declaration."""
        return self.rows.declaration

    @property
    def single(self) -> bool:
        """Return True if every unit has one vector with the same name."""
        return self.rows.single

    @property
    def law(self) -> Law:
        """The clusters of the inputs."""
        return Law(self.declared, self.space, self.single)

    @property
    def training(self) -> Training:
        """Rules, memories and values that change."""
        return Training(self.declared, self.single, self.changing)

    @property
    def answers(self) -> Answers:
        """Readouts, answers and losses."""
        return Answers(self.declared)

    @property
    def online(self) -> bool:
        """Return True if steps are finite: eta/d, or giant ones."""
        return self.declared.limit != "flow"

    @property
    def eta(self) -> str:
        """The factor of the drift."""
        return r"\eta " if self.online or velocities.is_fixed(self.declared) else ""

    @property
    def space(self) -> str:
        """The letter of an eigenspace of the inputs; "" for isotropic inputs."""
        return "l" if self.rows.stack else ""

    @property
    def eigenvalue(self) -> str:
        """The factor of the drift in an eigenspace."""
        return self.law.eigenvalue

    @property
    def total(self) -> str:
        """The sum over eigenspaces, as a prefix."""
        return r"\sum_l " if self.space else ""

    def product(self, first: str, second: str) -> str:
        """An inner product of the parts of two vectors in an eigenspace."""
        return rf"({first}\cdot {second})" + (f"_{{{self.space}}}" if self.space else "")

    def entry(self, block: Block, i: str, j: str) -> str:
        """An entry of an order parameter."""
        if self.tex:
            name = Names(self.rows).tex(block.name, space=self.space)
            return f"{name.replace(chr(92) + 'hat', '')}_{{{i}{j}}}"
        return f"{block.name}[{f'{self.space},' if self.space else ''}{i},{j}]"

    def covariances(self) -> list[str]:
        """The definition of the covariances S of the fields, for inputs with eigenvalues."""
        if self.declared.inputs is None:
            return []
        lines, names = [], Names(self.rows)
        for block in self.rows.blocks:
            (g, _), (h, _) = self._owner(block.rows.start), self._owner(block.columns.start)
            students = len(self.declared.students)
            if h >= len(self.declared.groups):  # means have no fields
                continue
            i, j = ("i", "k") if h < students else ("i", "j") if g < students else ("j", "m")
            left = f"S_{block.name}[{i},{j}]" if not self.tex else f"{names.tex(block.name, 'S')}_{{{i}{j}}}"
            value = rf"{self.total}{self.eigenvalue}{self.entry(block, i, j)}"
            if self.declared.weights == "normalised" and g < students:
                norms = f"|{self._owner(block.rows.start)[1]}_{i}|"
                norms += rf"\,|{self._owner(block.columns.start)[1]}_{j}|" if h < students else ""
                value = rf"{value}/({norms})"
            lines.append(f"{left} = {value}")
        return [*lines, *self.law.centres()]

    def inputs(self) -> str:
        """The distribution of the inputs."""
        if self.declared.inputs is None:
            return r"x \sim \mathcal{N}(0, I)"
        mean, value, choice = self.law.inputs()
        if not self.space:
            return rf"x \sim \mathcal{{N}}({mean}, {value} I){choice}"
        count = f"{self.rows.spaces}"
        return (rf"x^{{(l)}} \sim \mathcal{{N}}({mean}, {value} I)\text{{ in block }}l = 1, .., {count}"
                rf"\text{{ of share }}f_{{l}}{choice}")  # fmt: skip

    def above(self, slots: str) -> str:
        """Slots above a kernel, if there are several."""
        return "" if self.single else f"^{{{slots}}}"

    def model(self) -> list[str]:
        """Student, teacher, label and loss."""
        lines, declared = [], self.declared
        for number in declared.answering:
            group, student = declared.groups[number], number < len(declared.students)
            index = "i" if student else "j"
            mark = f"_{{\\text{{{group.name}}}}}" if group.name else ""
            fields = ", ".join(rf"{s}{'' if student else '^*'}_{index}\cdot x" for s in group.slots)
            phi = r"\varphi" + ("" if student else "^*") + mark
            unit = notation.expression(group.unit) if self.tex else group.text
            value = f"{phi}({', '.join(group.slots)}) = {unit}"
            lines += self.answers.groups(number, mark, phi, fields, value)
        lines += self.answers.sums()
        noise = self.answers.label(self.law.label)
        lines += [rf"{self.inputs()},\quad {noise}"] if not self.space else [self.inputs(), noise]
        return [*lines, self.answers.loss()]

    def loss(self) -> list[str]:
        """Loss and error as sums over pairs of units."""
        if self.declared.several:
            return self.answers.errors()
        if self.law.mixed:
            return self.law.loss()
        error = r"\mathrm{E}[(f - f^*)^2] = \sum_{i,k} a_i a_k K_{ik} - 2 \sum_{i,j} a_i b_j K_{ij}"
        error += r" + \sum_{j,l} b_j b_l K_{jl}"
        if self.declared.loss == "correlation":
            return [r"L = -\sum_{i,j} a_i b_j K_{ij}", error]
        return [
            r"L = \tfrac12 \sum_{i,k} a_i a_k K_{ik} - \sum_{i,j} a_i b_j K_{ij} + \tfrac12 \sum_{j,l} b_j b_l K_{jl}"
            r" + \tfrac12 \sigma^2", error,
        ]  # fmt: skip

    def kernels(self) -> list[str]:
        """The definitions of the kernels and of their slopes."""
        return [*self._kernels(), *self.law.kernels()]

    def _kernels(self) -> list[str]:
        if self.single:
            s = self.rows.declaration.students[0].slots[0]
            pair, self_product = rf"({s}_i\cdot {s}_k)", rf"({s}_i\cdot {s}_i)"
            if self.declared.inputs is not None:
                pair, self_product = " S_{ik}", " S_{ii}"
            return [
                r"K_{ik} = \mathrm{E}[\varphi_i \varphi_k],\quad V_{ik} = \mathrm{E}[\varphi_i' \varphi_k']"
                rf" = \partial K_{{ik}}/\partial{pair},\quad W_{{ik}} = \mathrm{{E}}[\varphi_i'' \varphi_k]"
                rf" = 2\,\partial K_{{ik}}/\partial{self_product}"
            ]
        return [
            r"K_{ik} = \mathrm{E}[\varphi_i \varphi_k],\quad V^{st}_{ik} = \mathrm{E}[\partial_s\varphi_i\,"
            r"\partial_t\varphi_k] = \partial K_{ik}/\partial(s_i\cdot t_k)",
            r"W^{sr}_{ik} = \mathrm{E}[\partial_s\partial_r\varphi_i\,\varphi_k]"
            r" = \partial K_{ik}/\partial(s_i\cdot r_i),\quad W^{ss}_{ik} = 2\,\partial K_{ik}/\partial(s_i\cdot s_i)",
        ]

    def drift(self) -> list[str]:
        """The inner product A of the gradient of a student vector with a vector u, and the drift D after constraint and
        decay.
        """
        if self.single:
            s = self.declared.students[0].slots[0]
            student = rf"V_{{ik}}\,{self.product(f'{s}_k', 'u')} + W_{{ik}}\,{self.product(f'{s}_i', 'u')}"
            teacher = rf"V_{{ij}}\,{self.product(f'{s}^*_j', 'u')} + W_{{ij}}\,{self.product(f'{s}_i', 'u')}"
        else:
            symbol = rf"\,{self.product('r_i', 'u')}"
            student = rf"\sum_t V^{{st}}_{{ik}}\,{self.product('t_k', 'u')} + \sum_r W^{{sr}}_{{ik}}{symbol}"
            teacher = rf"\sum_t V^{{st}}_{{ij}}\,{self.product('t^*_j', 'u')} + \sum_r W^{{sr}}_{{ij}}{symbol}"
        front, weights = self.answers.front, self.answers.weight
        first = rf"{front} \sum_k {weights('a', 'k')} \bigl({student}\bigr)"
        second = rf"{front} \sum_j {weights('b', 'j')} \bigl({teacher}\bigr)"
        if self.law.label:
            symbol = "w" if self.single else "s"
            second = rf"a_i\,{self.law.label}\,W_i\,{self.product(f'{self.lead(symbol)[1]}', 'u')}"
        right = f"-{second}" if self.declared.loss == "correlation" else f"{first} - {second}"
        if self.eigenvalue:
            right = rf"{self.eigenvalue}\bigl({right}\bigr)"
        if not self.law.mixed:
            return self.constrained(right)
        return [*self.constrained(self.law.drift(right, self.product("m_n", "u"))), *self.law.kappa()]

    def sampled(self) -> list[str]:
        """The gradient A of one student vector as a mean over samples; then the drift D and the definition of c."""
        _, vector = self.lead("A")
        letter = self.training.letter("i", "s")
        means = rf"\mathrm{{E}}[{letter}\,{self.product('u', 'x')}]"
        if any(group.unit.calls("wick") for group in self.declared.students):
            means += rf" + 2\,\mathrm{{E}}[\partial\ell/\partial({vector}\cdot {vector})]\,({vector}\cdot u)"
        by_loss = rf"{'c_i' if self.single else 'c^s_i'} = \partial\ell/\partial({vector}\cdot x)"
        rules = [*self.training.rules(), *self.training.looks()]
        if all(slot in self.declared.ruled(group) for group in self.declared.students for slot in group.slots
               if self.declared.moves(group, slot)):  # fmt: skip
            return [*self.constrained(means), *rules]
        return [*self.constrained(means), by_loss, *rules]

    def lead(self, letter: str, on: str = "u") -> tuple[str, str]:
        """(drift of student vector i along another vector, that student vector)."""
        if self.single:
            superscript = f"^{{{self.space}}}" if self.space else ""
            return f"{letter}{superscript}_i[{on}]", f"{self.declared.students[0].slots[0]}_i"
        return f"{letter}^{{s{self.space}}}_i[{on}]" if self.space else f"{letter}^s_i[{on}]", "s_i"

    def constrained(self, right: str) -> list[str]:
        """The gradient, and the drift D after constraint and decay."""
        (A, vector), (D, _), kind = self.lead("A"), self.lead("D"), self.declared.weights
        rate = r"\lambda" if self.declared.inputs is None else r"\lambda_{\text{decay}}"
        decay = rf" + {rate}\,{self.product(vector, 'u')}" if self.decay and kind != "sphere" else ""
        if kind == "free":
            return [f"{D} = {right}{decay}"]
        if kind == "sphere":
            radial_part = self.summed(self.lead("A", vector)[0])
            return [f"{A} = {right}", rf"{D} = {A} - {radial_part}\,{self.product(vector, 'u')}/|{vector}|^2"]
        e = "e_i" if self.single else "e^s_i"
        projected = rf"\bigl({A} - {self.summed(self.lead('A', e)[0])}\,{self.product(e, 'u')}\bigr)/|{vector}|"
        return [f"{A} = {right}", rf"{D} = {projected}{decay},\quad {e} = {vector}/|{vector}|"]

    def summed(self, formula: str) -> str:
        """The sum over eigenspaces of a formula in l, with another letter for l."""
        if not self.space:
            return formula
        return rf"\bigl(\sum_h {formula.replace('l}', 'h}', 1)}\bigr)"

    def motion(self) -> list[str]:
        """The rates of all order parameters, and the definitions of their step factors."""
        if self.declared.limit == "batch":
            return [*giant.motion(self), *self._scalars(), *self.training.definitions()]
        return [
            *(self._rate(block) for block in self.rows.moving),
            *self._scalars(),
            *velocities.motion(self),
            *self.training.definitions(),
        ]

    def _rate(self, block: Block) -> str:
        """The rate of one block, by the names of its slots."""
        (g, r), (h, s) = self._owner(block.rows.start), self._owner(block.columns.start)
        declared, students = self.declared, len(self.declared.students)
        i, k = "i", "k" if h < students else "n"
        star = "^*" if students <= h < len(declared.groups) else ""
        if self.space:
            superscript = (lambda slot: "^{l}") if self.single else (lambda slot: f"^{{{slot}l}}")
        else:
            superscript = (lambda slot: "") if self.single else (lambda slot: f"^{{{slot}}}")
        terms, first_speed, second_speed = [], self.speed(g, r), self.speed(h, s) if h < students else ""
        if declared.moves(declared.groups[g], r):
            terms.append(first_speed + velocities.term(self, superscript(r), i, f"{s}{star}_{k}"))
        if h < students and declared.moves(declared.groups[h], s):
            terms.append(second_speed + velocities.term(self, superscript(s), k, f"{r}_{i}"))
        if not terms:
            return f"{RATE}{self.entry(block, i, k)} = 0"
        drift = f"-{self.eta}{terms[0]}" if len(terms) == 1 else rf"-{self.eta}\bigl({' + '.join(terms)}\bigr)"
        line = f"{RATE}{self.entry(block, i, k)} = {drift}"
        if not self.online or self.declared.timed:
            return line
        both_move = len(terms) == 2
        gain = (r"f_{l}\," if self.space else "") + self.law.average + self.eigenvalue
        line += (
            rf" + \frac{{\eta^2}}{{B}} {first_speed}{second_speed}{gain}E{self.above(r + s)}_{{ik}}"
            if both_move
            else ""
        )
        if declared.weights == "sphere":
            first = rf"{squared(first_speed)}E{self.above(r + r)}_{{ii}}/|{r}_i|^2"
            second = rf"{squared(second_speed)}E{self.above(s + s)}_{{kk}}/|{s}_k|^2"
            widths = rf"\bigl({first} + {second}\bigr)" if both_move else first
            eigenvalue = self.law.eigenvalue.replace("l}", "h}")
            mean_factor = self.law.average + (
                rf"\bigl(\sum_h f_h {eigenvalue}\bigr)\," if self.space else self.eigenvalue
            )
            line += rf" - \frac{{\eta^2}}{{2B}} {mean_factor}{widths}\,{self.entry(block, i, k)}"
        return line

    def _owner(self, row: int) -> tuple[int, str]:
        return next(key for key, start in self.rows.starts.items() if start == row)

    def _scalars(self) -> list[str]:
        """The rates of readouts and of the units' numbers."""
        lines = []
        for g, word, _ in self.rows.scalars:
            group, closed = self.declared.students[g], self.closed and self.declared.loss in ("squared", "correlation")
            left, number = f"{RATE}{self.answers.number(group, word)}", (group, word)
            if not self.declared.moves(group, word):
                lines.append(f"{left} = 0")
                continue
            if word in self.declared.ruled(group):
                mean = rf"\mathrm{{E}}[c^{{{notation.name(group.named(word))}}}_i]"
                lines += self._number(number, f"-{self.eta}{self.speed(g, word)}", mean)
                continue
            slope = self._closed_slope(group, word) if closed else self.answers.slope(group, word)
            lines += self._number(number, f"-{self.eta}{self.speed(g, word)}", slope)
        return lines

    def _number(self, number: tuple[Group, str], factor: str, slope: str) -> list[str]:
        """The motion of a number (group, word) by its slope."""
        of = giant if self.declared.limit == "batch" else velocities
        return of.numbers(self, number, factor, slope)

    def _closed_slope(self, group: Group, word: str) -> str:
        """The derivative of the loss with respect to a readout or a number of unit i, in kernels."""
        readout, weight = word in group.trained_readouts, self.answers.weight
        K = "K" if readout else rf"\partial_{{{notation.name(word)}_i}} K"
        front = "" if readout else rf"{self.answers.front}\,"
        head = self.answers.head(group, word)
        first = "" if self.declared.loss == "correlation" else rf"\sum_k {weight('a', 'k', head)} {K}_{{ik}} - "
        second = rf"{self.law.label}\,{K}_i" if self.law.label else rf"\sum_j {weight('b', 'j', head)} {K}_{{ij}}"
        return rf"{self.law.average}{front}\bigl({first or '-'}{second}\bigr)"

    def speed(self, g: int, word: str) -> str:
        """The factor of the step of a slot or a number of a group of students; "" for none."""
        name = self.declared.rate(self.declared.groups[g], word).removeprefix("rate_")
        return rf"r_{{{notation.name(name)}}}\," if name else ""

    def held(self) -> list[str]:
        """The slopes of kernels in the units' numbers."""
        groups = self.declared.students
        moving = [(groups[g], word) for g, word, _ in self.rows.scalars if self.declared.moves(groups[g], word)]
        words = [word for group, word in moving if word not in group.trained_readouts]
        return [
            rf"\partial_{{{name}_i}} K_{{ik}} = \mathrm{{E}}[\partial_{{{name}}}\varphi_i\,\varphi_k],\quad "
            rf"{name}_k\text{{ held, also for }}k = i"
            for name in map(notation.name, dict.fromkeys(words))
        ]

    def letters(self) -> str:
        """The meaning of letters in the second-order term, for its title."""
        text = ""
        if self.declared.loss == "squared":
            text = r", $g_m = a_m$ for a student and $-b_m$ for a teacher, $\varphi_m$ the unit of either"
        if self.declared.several:
            text = self.answers.letters()
        step = r"$\eta$ the step" + (f" over ${velocities.FACTOR}$" if velocities.is_fixed(self.declared) else "")
        batch = "the batch" if self.declared.episode is None else "the samples of a step, those of all its episodes"
        return rf"{step}, $B$ {batch}{text}"

    def second(self) -> list[str]:
        """The second-order term of an online limit, and the noise of giant steps."""
        if not self.declared.noisy:
            return []
        if self.declared.rules or self.declared.predictions or self.declared.look is not None:
            first, second = self.training.letter("i", "s"), self.training.letter("k", "t")
            return [rf"E{self.above('st')}_{{ik}} = \mathrm{{E}}[{first} {second}]"]
        c_i = "c_i" if self.single else "c^s_i"
        c_k = "c_k" if self.single else "c^t_k"
        slope = r"\partial\ell/\partial f_{o}" if self.declared.several else r"\partial_f\ell(f, y)"
        lines = [rf"E{self.above('st')}_{{ik}} = \mathrm{{E}}[{c_i} {c_k}],\quad {c_i} = {self.answers.front}\,"
                 + (r"\varphi_i'" if self.single else r"\partial_s\varphi_i") + rf"\,{slope}"
                 + (f"/|{self.lead('A')[1]}|" if self.declared.weights == "normalised" else "")]  # fmt: skip
        sums = {"squared": r"\sum_{m,n} g_m g_n", "correlation": r"\sum_{j,l} b_j b_l"}.get(self.declared.loss)
        if sums and self.declared.several:
            slopes = r"\varphi_i' \varphi_k'" if self.single else r"\partial_s\varphi_i\,\partial_t\varphi_k"
            lines.append(self.answers.second(f"E{self.above('st')}_{{ik}}", slopes, rf"\mathrm{{E}}[{slopes}]"))
        elif sums:
            first, second = "mn" if self.declared.loss == "squared" else "jl"
            slopes = r"\varphi_i' \varphi_k'" if self.single else r"\partial_s\varphi_i\,\partial_t\varphi_k"
            label = self.law.label
            noise_term = (
                rf"- 2 {label} \sum_m g_m \mathrm{{E}}[{slopes}\,\varphi_m] + ({label}^2 + \sigma^2)"
                if label
                else r"+ \sigma^2"
            )
            lines.append(
                rf"E{self.above('st')}_{{ik}} = a_i a_k \bigl({sums}\,\mathrm{{E}}[{slopes}\,\varphi_{first} "
                rf"\varphi_{second}] {noise_term}\,\mathrm{{E}}[{slopes}]\bigr)"
            )
        return lines
