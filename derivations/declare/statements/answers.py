"""The formulas of a page for the output of a network: one answer f, or one f_o for each head o."""

import dataclasses

from derivations.declare.declaration import Declaration, Group
from derivations.declare.readouts import COPIED, Readout
from derivations.declare.statements import notation

LOSSES = {
    "squared": r"\tfrac12 (f - y)^2", "correlation": "-f y", "logistic": r"\log(1 + \exp(-f\,\text{sign}(y)))",
    "hinge": r"\max(0, 1 - f\,\text{sign}(y))",
}  # fmt: skip
HEAD = "o"
"""The letter of a head."""


@dataclasses.dataclass(frozen=True)
class Answers:
    """Writes readouts, answers and losses of a declaration, summed over the heads in use."""

    declared: Declaration

    def weight(self, letter: str, index: str, head: str = HEAD) -> str:
        """The readout of a unit; with several heads, the one for `head`."""
        return rf"{letter}^{{{head}}}_{index}" if self.declared.several else f"{letter}_{index}"

    @property
    def front(self) -> str:
        """The readout of unit i as a leading factor, summed over heads if there are several."""
        return rf"\sum_o {self.weight('a', 'i')}" if self.declared.several else "a_i"

    def groups(self, number: int, mark: str, phi: str, fields: str, value: str) -> list[str]:
        """Return the outputs of a group: a formula for each of its readouts, with its unit in the first."""
        declared, lines = self.declared, []
        student = number < len(declared.students)
        function, letter, index = ("f", "a", "i") if student else ("f^*", "b", "j")
        for head in declared.heads:
            readout = declared.readout(number, head)
            if readout is None:
                continue
            of_head = f"_{{{self._marked(number, head)}}}" if head else mark
            weight = self.weight(letter, index, rf"\text{{{head}}}")
            formula = rf"{function}{of_head}(x) = \sum_{{{index}}} {weight}\,{phi}({fields})"
            parts = [formula, *([value] if not lines else []), self._readout(readout, weight, student)]
            lines.append(r",\quad ".join(parts))
        return lines

    def _marked(self, number: int, head: str) -> str:
        """The index of the head of an answer, after the name of a group if there are several groups."""
        name = self.declared.groups[number].name
        return rf"\text{{{head}}}" if not name or name == head else rf"\text{{{name},{head}}}"

    def _readout(self, readout: Readout, weight: str, student: bool) -> str:
        if readout.output == "own":
            assert readout.expression is not None
            return f"{weight} = {notation.expression(readout.expression)}" + (r"\text{ with }j = i" if student else "")
        texts = {
            "sum": " = 1",
            "mean": " = 1/K",
            "root": r" = 1/\sqrt{K}",
            "trained": r"\text{ trained}",
            COPIED: r"\text{ copied}",
        }
        return weight + texts[readout.output]

    def sums(self) -> list[str]:
        """Answers and labels of several groups as sums over groups, or as predictions from them."""
        declared, lines = self.declared, []
        sides = ((range(len(declared.students)), "f"), (range(len(declared.students), len(declared.groups)), "f^*"))
        for side, letter in sides:
            for head in declared.heads:
                prediction = declared.prediction(letter == "f", head)
                if prediction is not None:
                    left = rf"{letter}_{{\text{{{head}}}}}" if head else letter
                    lines.append(rf"{left} := {notation.expression(prediction.tree)}")
                    continue
                fed = [k for k in side if declared.readout(k, head) is not None]
                if len(fed) < 2 and not (fed and declared.labelling and letter == "f^*"):
                    continue
                marks = [self._marked(k, head) if head else rf"\text{{{declared.groups[k].name}}}" for k in fed]
                left = rf"{letter}_{{\text{{{head}}}}}" if head else letter
                lines.append(f"{left} = " + " + ".join(rf"{letter}_{{{mark}}}" for mark in marks))
        return lines

    def label(self, label: str) -> str:
        """Return the formula of a label with its noise."""
        if self.declared.several:
            return r"y_{o} = f^*_{o}(x) + \sigma \epsilon_{o},\quad \epsilon_{o} \sim \mathcal{N}(0, 1)"
        return rf"y = {label or 'f^*(x)'} + \sigma \epsilon,\quad \epsilon \sim \mathcal{{N}}(0, 1)"

    def loss(self) -> str:
        """The loss that is minimised."""
        declared = self.declared
        sample_loss = notation.expression(declared.own_loss) if declared.own_loss else LOSSES.get(declared.loss, "")
        if not declared.several:
            return rf"L = \mathrm{{E}}[\ell(f, y)],\quad \ell(f, y) = {sample_loss}"
        names = ", ".join(rf"\text{{{head}}}" for head in declared.force)
        head_range = rf"o \in \{{{names}\}}"
        if declared.loss == "softmax":
            sample_loss = r"\log \sum_o \exp(f_{o}) - f_{k},\quad k\text{ the head of the largest }y_{o}"
            return rf"L = \mathrm{{E}}[\ell],\quad \ell = {sample_loss},\quad {head_range}"
        if declared.joint:
            return rf"L = \mathrm{{E}}[\ell],\quad \ell = {sample_loss}"
        return rf"L = \sum_o \mathrm{{E}}[\ell(f_{{o}}, y_{{o}})],\quad \ell(f, y) = {sample_loss},\quad {head_range}"

    def errors(self) -> list[str]:
        """Loss and errors of several heads as sums over pairs of units."""
        a_i, a_k, b_j, b_l = (self.weight(*pair) for pair in ("ai", "ak", "bj", "bl"))
        error = rf"\mathrm{{E}}[(f_{{o}} - f^*_{{o}})^2] = \sum_{{i,k}} {a_i} {a_k} K_{{ik}}"
        error += rf" - 2 \sum_{{i,j}} {a_i} {b_j} K_{{ij}} + \sum_{{j,l}} {b_j} {b_l} K_{{jl}}"
        if self.declared.loss == "correlation":
            return [rf"L = -\sum_o \sum_{{i,j}} {a_i} {b_j} K_{{ij}}", error]
        return [r"L = \tfrac12 \sum_o \bigl(\mathrm{E}[(f_{o} - f^*_{o})^2] + \sigma^2\bigr)", error]

    def head(self, group: Group, word: str) -> str:
        """The head of a readout of a group as an index above a weight; for other numbers, the head of the sum."""
        named = next((readout.head for readout in group.readouts if readout.word == word), "")
        return rf"\text{{{named}}}" if named else HEAD

    def number(self, group: Group, word: str) -> str:
        """A readout or a number of unit i of a group."""
        if not group.heads or word not in group.trained_readouts:
            return f"{notation.name(group.named(word))}_i"
        return self.weight(notation.name(group.named("a")), "i", self.head(group, word))

    def slope(self, group: Group, word: str) -> str:
        """The derivative of the loss with respect to a readout or a number of unit i, as a mean over samples."""
        if self.declared.predictions:
            return rf"\mathrm{{E}}[\partial\ell/\partial {self.number(group, word)}]"
        readout, head = word in group.trained_readouts, self.head(group, word)
        inner = r"\varphi_i" if readout else rf"\partial_{{{notation.name(word)}}}\varphi_i"
        if not self.declared.several:
            front = "" if readout else r"a_i\,"
            return rf"\mathrm{{E}}[\partial_f\ell(f, y)\,{front}{inner}]"
        front = "" if readout else rf"{self.front}\,"
        return rf"\mathrm{{E}}[{front}\partial\ell/\partial f_{{{head}}}\,{inner}]"

    def letters(self) -> str:
        """Return the meaning of letters in the second-order term of several heads, for its title."""
        if self.declared.loss not in ("squared", "correlation"):
            return ""
        teacher = "-b" if self.declared.loss == "squared" else "b"
        weights = rf"$g^{{o}}_m = a^{{o}}_m$ for a student and ${teacher}^{{o}}_m$ for a teacher"
        return rf", {weights}, $g_{{im}} = \sum_o a^{{o}}_i g^{{o}}_m$"

    def second(self, target: str, slopes: str, kernel: str) -> str:
        """The q-order term of several heads as a sum over pairs of units (only teachers for a correlation
        loss).
        """
        p, q = "mn" if self.declared.loss == "squared" else "jl"
        means = rf"\mathrm{{E}}[{slopes}\,\varphi_{p} \varphi_{q}]"
        return rf"{target} = \sum_{{{p},{q}}} g_{{i{p}}} g_{{k{q}}}\,{means} + \sigma^2 g_{{ik}}\,{kernel}"
