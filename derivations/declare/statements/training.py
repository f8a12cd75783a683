"""The formulas of a page for training: rules, memories, rates, and schedules."""

import dataclasses

from derivations.declare import memory
from derivations.declare.declaration import Declaration
from derivations.declare.schedules import Schedule
from derivations.declare.statements import notation, velocities
from derivations.declare.statements.notation import RATE

NAMED = r"\tilde c"
"""The coefficient after looks."""


@dataclasses.dataclass(frozen=True)
class Training:
    """Writes the terms of rules, memories and schedules in the formulas of a declaration.

    `single` is True if every unit has one vector; `changing` are the schedules in use.
    """

    declared: Declaration
    single: bool
    changing: tuple[Schedule, ...]

    def rules(self) -> list[str]:
        """The coefficients of rules, and their definitions."""
        lines, words = [], set()
        for group in self.declared.students:
            for word in self.declared.ruled(group):
                rule = self.declared.rule(group, word)
                assert rule is not None
                words |= set(rule.tree.names())
                plain = self.single and not group.name and word in group.slots
                letter = "c_i" if plain else rf"c^{{{notation.name(group.named(word))}}}_i"
                lines.append(rf"{letter} = \text{{{notation.escaped(rule.text)}}}")
        meanings = {
            "dl": r"\text{dl} = \partial\ell/\partial f",
            "df": r"\text{df} = \partial f/\partial z_i",
            "dphi": r"\text{dphi} = \partial\varphi_i/\partial z_i",
            "grad": r"\text{grad} = \partial\ell/\partial z_i",
            "l": r"\text{l} = \ell(f, y)",
            "gnorm": r"\text{gnorm} = \bigl(\sum_b (\partial\ell/\partial z_b)^2\bigr)^{1/2}",
        }
        definitions = [line for word, line in meanings.items() if word in words]
        lines += self.episodes()
        if any(word in words for word in ("df", "dphi", "grad")):
            definitions.append(r"z_i\text{ the field or number that moves}")
        return [*lines, *([r",\quad ".join(definitions)] if definitions else [])]

    def episodes(self) -> list[str]:
        """The reward of an episode, and the means over its other samples."""
        episode = self.declared.episode
        if episode is None:
            return []
        z = "z" if self.single else "z^s"
        of_sample = [
            rf"s = \text{{{notation.escaped(episode.success_text)}}}",
            r"n = \sum s\text{ over the T samples of an episode}",
        ]
        mean = rf"\mathrm{{E}}[c\,{z}] = \mathrm{{E}}[s\,c(R_{{K+1}})\,{z} + (1 - s)\,c(R_K)\,{z}]"
        return [
            r",\quad ".join([rf"R_n = \text{{{notation.escaped(episode.reward_text)}}}", *of_sample]),
            rf"{mean},\quad K \sim \text{{binomial of the T - 1 other samples, with the odds E[s]}}",
        ]

    def letter(self, unit: str, slot: str) -> str:
        """The coefficient of a vector; with looks it has a tilde."""
        superscript = "" if self.single else f"^{slot}"
        return f"{NAMED if self.declared.look is not None else 'c'}{superscript}_{unit}"

    def looks(self) -> list[str]:
        """The fields after virtual steps, and the update."""
        look = self.declared.look
        if look is None:
            return []
        superscript, last = "" if self.single else "s,", f"({look.times})"
        c, move = "c_i" if self.single else "c^s_i", self.letter("i", "s")
        if look.times == 1:
            steps = [rf"z^{{{superscript}(1)}}_i = z{'' if self.single else '^s'}_i - \rho\,{c}(z)"]
        else:
            next_field, field = rf"z^{{{superscript}(n)}}_i", rf"z^{{{superscript}(n-1)}}_i"
            steps = [rf"z^{{(0)}} = z,\quad {next_field} = {field} - \rho\,{c}(z^{{(n-1)}}),\quad n = 1..{look.times}"]
        if look.use == "last":
            steps.append(rf"{move} = {c}(z^{{{last}}})")
        elif look.times == 1:
            steps.append(rf"{move} = {c}(z) + {c}(z^{{(1)}})")
        else:
            steps.append(rf"{move} = {c}(z) + \sum_n {c}(z^{{(n)}})")
        rate = r"\text{, times the factor of the step for this vector}" if self.declared.rates else ""
        steps.append(rf"\rho = \text{{look\_size}}{rate}")
        if any(self.declared.moves(group, word) for group in self.declared.students for word in group.own):
            summed = "" if look.use == "last" else ", and summed likewise"
            steps.append(rf"\text{{the means of readouts and numbers are taken at the same fields{summed}}}")
        return steps

    def definitions(self) -> list[str]:
        """Definitions of the factors of the step, and of the time-dependent numbers of training."""
        letters = {"step": r"\eta", "noise": r"\sigma", "decay": r"\lambda"}
        if self.declared.inputs is not None:
            letters["decay"] = r"\lambda_{\text{decay}}"
        lines = [
            rf"{letters[schedule.name]}{'' if schedule.seen else '(t)'} = "
            + (velocities.step if schedule.name == "step" else lambda _, text: text)(
                self.declared, rf"\text{{{notation.escaped(schedule.text)}}}"
            )
            for schedule in self.changing
            if schedule.name in letters
        ]
        lines += [
            rf"{notation.name(schedule.name)}(t) = \text{{{notation.escaped(schedule.text)}}}"
            for schedule in self.changing
            if schedule.name in self.declared.names
        ]
        lines += [
            self._memory(notation.name(memory.name), rf"\text{{{notation.escaped(memory.text)}}}")
            for memory in self.declared.memories
        ]
        lines += self.squares()
        texts = {schedule.name: schedule.text for schedule in self.changing}
        for name, _ in self.declared.rates:
            word = notation.escaped(name)
            description = rf"rate\_{word}, the factor of the step for {word}"
            if f"rate_{name}" in texts:
                description = rf"{notation.escaped(texts[f'rate_{name}'])}, the factor of the step for {word}"
            lines.append(rf"r_{{{notation.name(name)}}} = \text{{{description}}}")
        return lines

    def _memory(self, name: str, rate: str) -> str:
        """The rate of a memory, or its step."""
        return f"{name}' = {name} + {rate}" if self.declared.limit == "batch" else f"{RATE}{name} = {rate}"

    def squares(self) -> list[str]:
        """The definitions of the squared gradients in memories."""
        lines = []
        for name in memory.of_squares(self.declared):
            vectors_text = "trained vectors" if name == memory.SQUARE else name.removeprefix(f"{memory.SQUARE}_")
            mean = r"\mathrm{E}[c_i^2]/B" if self.declared.limit == "online" else r"|\mathrm{E}[c_i x]|^2"
            if self.declared.limit == "batch" and self.declared.noisy:
                mean = rf"\bigl({mean} + \mathrm{{E}}[c_i^2]\,d/B\bigr)"
            lines.append(
                rf"\text{{{notation.escaped(name)}}} = \sum_i {mean}\text{{ over {notation.escaped(vectors_text)}}}"
            )
        return lines
