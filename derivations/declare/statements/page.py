"""Content of the page of a declared model, and the page as text."""

import dataclasses
import functools
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from derivations.contract import Page
from derivations.declare import copies, exact, grammar, labels, schedules, velocity_blocks
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import shapes_of
from derivations.declare.remembered import kernels
from derivations.declare.rows import Rows
from derivations.declare.statements import closed, notation
from derivations.declare.statements.explained import explained
from derivations.declare.statements.motion import Writer
from derivations.declare.summary import conventions, gradient_note
from derivations.declare.system import clock, numbers, rows
from derivations.declare.tiers import on_grid, settled

WIDTH = 110
LONGEST = 400
"""Closed forms with more operations appear only in the Python page."""
BRIEF = 60
"""For slopes with more operations than this, the page shows only the rule that derives them."""


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


def statement(parameters: Any, tier: str) -> Page:
    """The page of a tier.  Raises `UsageError` for a tier that does not exist."""
    from derivations.declare.statements import document
    from derivations.declare.tiers import equations

    tier = settled(parameters) if tier == "auto" else tier
    equations(parameters, tier)
    closed_kernels = kernels(parameters.declaration, numbers(parameters))
    names = closed.Names(rows(parameters))
    grid = tier == "exact" and on_grid(parameters)
    closed_forms = tier not in ("leading", "sampled") and not parameters.declaration.rules
    closed_forms = closed_forms and parameters.declaration.look is None
    forms, remarks = _shown(parameters, closed_kernels, names) if closed_forms else ((), ())
    reasons = explained(parameters, tier, closed_kernels)
    tilted = tier == "exact" and bool(closed_kernels.tilts)
    leading = _leading(parameters, tier)
    content = Content(parameters, tier, tuple(reasons), names, forms, remarks, leading, tilted, closed_forms)
    return Page(
        text(content),
        document.latex(content),
        why="\n".join(reasons) + "\n",
        fragment=document.fragment(content),
        stated=functools.partial(exact.printed, parameters) if tier == "exact" and not grid else None,
    )


def _leading(parameters: Any, tier: str) -> tuple[str, ...]:
    """The formulas of tier leading."""
    if tier != "leading":
        return ()
    from derivations.declare import leading

    k, gain = leading.growth(parameters)
    power = rf"\,M_{{im}}^{{{k - 1}}}" if k > 2 else r"\,M_{im}" if k == 2 else ""
    return (
        rf"\frac{{\mathrm{{d}}}}{{\mathrm{{d}}t}} M_{{ij}} = a_i \sum_m b_m\,g{power}\,P_{{mj}},\quad "
        rf"g = {gain:.12g}",
        *leading.formulas(k),
    )


def _shown(parameters: Any, closed_kernels: Any, names: closed.Names) -> tuple[tuple[Shown, ...], tuple[str, ...]]:
    """The closed forms of a page, and remarks on omitted ones."""
    declared: Declaration = parameters.declaration
    forms: list[Shown] = []
    first_uses: dict[Any, str] = {}
    remarks: list[str] = []
    for form in closed.forms(declared, closed_kernels, names):
        kinds = (declared.groups[form.first].text, declared.groups[form.second].text)
        several = len(declared.students) > 1 or len(declared.teachers) > 1
        groups = [declared.groups[n].name for n in (form.first, form.second)] if several else []
        mark = ",".join(group for group in groups if group)
        size = form.mean.count_ops()
        if size > BRIEF and kinds in first_uses:
            remarks.append(
                f"K_{form.indices} is the same function as {first_uses[kinds]}, at the overlaps of this pair"
            )
        elif size > LONGEST:
            remarks.append(f"K_{form.indices} has {size} operations: see the Python page")
        else:
            first_uses[kinds] = f"K_{form.indices}"
            forms.append(Shown("K", mark, form.indices, form.mean))
        single = names.rows.single
        for letter, parts in (("V", form.slopes), ("W", form.bends)):
            for slots, value in parts.items():
                is_diagonal = letter == "W" and slots[0] == slots[1]  # the part that a projection removes
                projected_out = is_diagonal and declared.weights != "free" and declared.inputs is None
                if value.count_ops() <= BRIEF and not projected_out:
                    superscript = ",".join(x for x in (mark, "" if single else "".join(slots)) if x)
                    forms.append(Shown(letter, superscript, form.indices, value))
    return tuple([*forms, *_alone(parameters, names)]), tuple(remarks)


def _alone(parameters: Any, names: closed.Names) -> Iterator[Shown]:
    """The closed forms of the means of single units, if clusters have labels."""
    declared: Declaration = parameters.declaration
    if not declared.by_cluster:
        return
    for number, shape in enumerate(shapes_of(declared, numbers(parameters))):
        name = declared.groups[number].name if len(declared.students) > 1 else ""
        yield Shown("K", name, "i", closed.alone(names, number, shape))


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


def text(content: Content) -> str:
    """The page as text."""
    declared, writer = content.declared, writer_of(content, tex=False)
    lines = [declared.title, *([f"  {declared.source}"] if declared.source else []), f"tier {content.tier}"]
    lines += _section("Model", [*units(declared), *map(notation.plain, writer.model())])
    lines += _section("Conventions", stated(content))
    lines += _section("Order parameters", parameters_of(content.rows))
    lines += _section("Why it closes", content.why)
    if content.further:
        lines += _section("Equations of motion", map(notation.plain, content.further))
        return "\n".join(lines) + "\n"
    if not content.kernels:
        lines += _section("Equations of motion", map(notation.plain, [*writer.sampled(), *writer.motion()]))
        lines += _second(writer)
        return "\n".join(lines) + "\n"
    lines += _section("Loss, over students i, k and teachers j, l", map(notation.plain, writer.loss()))
    lines += _section(
        "Kernels", map(notation.plain, [*writer.covariances(), *writer.kernels(), *writer.held(), *closures(content)])
    )
    lines += [f"  {line}" for form in content.shown for line in _closed(form)]
    lines += [f"  {remark}" for remark in content.remarks]
    lines += _section("Equations of motion", map(notation.plain, [*writer.drift(), *writer.motion()]))
    return "\n".join([*lines, *_second(writer)]) + "\n"


def writer_of(content: Content, *, tex: bool) -> Writer:
    """The writer of the formulas of a page."""
    decay = content.parameters.decay is None or content.parameters.decay > 0
    changing = schedules.active(content.parameters)
    return Writer(content.rows, tex=tex, decay=decay, closed=content.kernels, changing=changing)


def _second(writer: Writer) -> list[str]:
    if not writer.declared.noisy:
        return []
    head = f"Second-order term, {notation.plain(writer.letters()).replace('$', '')}"
    return _section(head, map(notation.plain, writer.second()))


def _closed(form: Shown) -> list[str]:
    superscript = f"^{form.above}" if form.above else ""
    value = re.sub(r"S('*)_(\d+),(\d+)", r"S\1_\2_\3", str(form.value))
    line = f"{form.letter}{superscript}_{form.indices} = {value}"
    return textwrap.wrap(line, WIDTH, subsequent_indent="    ", break_long_words=False)


def _section(title: str, lines: Any) -> list[str]:
    wrapped = [
        part for line in lines
        for part in textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False)
    ]  # fmt: skip
    return ["", title, *wrapped]


def units(declared: Declaration) -> list[str]:
    """The units as the user wrote them."""
    lines = []
    for number, group in enumerate(declared.groups):
        side = "student" if number < len(declared.students) else "teacher"
        output = ", ".join(f"{readout.output} for {readout.head}" for readout in group.heads) or group.output
        lines.append(f"{side}{f' {group.name}' if group.name else ''}: {group.text}, output {output}")
    return lines


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
