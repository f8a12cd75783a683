"""Content of the page of a declared model, from which its text and its LaTeX document are written."""

import dataclasses
from typing import Any

from derivations.declare import copies, grammar, labels, schedules, velocity_blocks
from derivations.declare.declaration import Declaration
from derivations.declare.rows import Rows
from derivations.declare.statements import closed, notation
from derivations.declare.statements.motion import Writer
from derivations.declare.summary import conventions, gradient_note
from derivations.declare.system import clock


@dataclasses.dataclass(frozen=True)
class Shown:
    """A closed form: its name as (letter, slots above, indices), and its SymPy expression."""

    letter: str
    above: str
    indices: str
    value: Any


@dataclasses.dataclass(frozen=True)
class Content:
    """The content of a page; formulas are those of `Writer`, closed forms in the symbols of `names`.

    Without `kernels` the equations contain means over samples: for tier sampled, rules and looks.
    """

    parameters: Any
    tier: str
    why: tuple[str, ...]
    names: closed.Names
    shown: tuple[Shown, ...]
    remarks: tuple[str, ...]
    further: tuple[str, ...] = ()
    tilted: bool = False
    kernels: bool = True

    @property
    def declared(self) -> Declaration:
        """Return the declaration."""
        return self.parameters.declaration

    @property
    def rows(self) -> Rows:
        """Return the layout of the order parameters."""
        return self.names.rows


def closures(content: Content) -> list[str]:
    """The definitions of the symbols S_ab of series gates and of Phi_2, as formulas."""
    gates = list(dict.fromkeys((value[0], value[1]) for value in content.names.series.values()))
    lines = []
    for number, (left, right) in enumerate(gates):
        entry = next(value[2] for value in content.names.series.values() if value[:2] == (left, right))
        prime, slots = "'" * number, next(v[3] for v in content.names.series.values() if v[:2] == (left, right))
        c = "c" if left == right else "d"
        lines.append(
            rf"S{prime}_{{ab}}(\rho) = \mathrm{{E}}[F^{{(a)}}(z_1)\,G^{{(b)}}(z_2)] = \sum_q c_{{q+a}} {c}_{{q+b}}"
            r"\,\rho^q/q!,\quad \partial S_{ab}/\partial\rho = S_{a+1,b+1}"
        )
        lines.append(
            rf"c_q = \mathrm{{E}}[F^{{(q)}}(z)],\quad F(z) = {_gate(entry[0], entry[1])}"
            + rf",\quad z_1 = {slots[0]}_i\cdot x,\quad z_2 = {slots[1]}_k\cdot x"
            + (
                ""
                if left == right
                else rf",\quad d_q = \mathrm{{E}}[G^{{(q)}}(z)],\quad G(z) = {_gate(entry[3], entry[4])}"
            )
        )
    if any(form.value.has(closed.both_below()) for form in content.shown):
        lines.append(
            r"\Phi_2(h, k, \rho) = \mathrm{P}(z_1 < h, z_2 < k),\quad \mathrm{E}[z_1^2] = \mathrm{E}[z_2^2] = 1,\quad "
            r"\mathrm{E}[z_1 z_2] = \rho"
        )
    return lines


def _gate(kind: str, slope: str) -> str:
    """A series gate with its slope, as a formula."""
    inner = "z" if slope == "1" else f"{notation.expression(grammar.read(slope), 2)}\\,z"
    return rf"\operatorname{{{kind}}}({inner})"


def writer_of(content: Content, *, tex: bool) -> Writer:
    """The writer of the formulas of a page."""
    decay = content.parameters.decay is None or content.parameters.decay > 0
    changing = schedules.active(content.parameters)
    return Writer(content.rows, tex=tex, decay=decay, closed=content.kernels, changing=changing)


def stated(content: Content) -> list[str]:
    """The conventions on which such codes differ, and the meaning of the time."""
    declared = content.declared
    lines = [f"{key}: {value}" for key, value in conventions(content.parameters).items()]
    lines.append(f"time: {clock(declared)}")
    lines += labels.said(declared) + copies.said(declared)
    if gradient_note(declared):
        lines.append(f"gradient: {gradient_note(declared)}")
    if declared.weights == "normalised":
        lines.append("the network divides by the norms: vectors in K, V, W and D are the unit ones")
    return lines


def parameters_of(layout: Rows) -> list[str]:
    """The order parameters, readouts and scalars, in words."""
    lines = [f"{b.name} ({', '.join(b.dims)}): {b.meaning}" for b in layout.blocks]
    for group, word, _ in layout.scalars:
        owner = layout.declaration.students[group]
        description = f"readout {word}_i" if word in owner.trained_readouts else f"number {word} of unit i"
        moves = "trained" if layout.declaration.moves(owner, word) else "fixed"
        lines.append(f"{owner.named(word)} ({layout.dimension(group)}): {description}, {moves}")
    lines += [f"{name} ({', '.join(dims)}): {text}" for name, dims, text in velocity_blocks.described(layout)]
    lines += [f"{memory.name} (memory): {memory.start:g} at the start" for memory in layout.declaration.memories]
    return lines
