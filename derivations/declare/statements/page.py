"""The page of a declared model: its content by tier, and the page as text."""

import functools
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from derivations.contract import Page
from derivations.declare import exact
from derivations.declare.declaration import Declaration
from derivations.declare.kernels import shapes_of
from derivations.declare.parameter_class import numbers, rows
from derivations.declare.remembered import kernels
from derivations.declare.statements import closed, document, notation
from derivations.declare.statements.content import Content, Shown, closures, parameters_of, stated, writer_of
from derivations.declare.statements.explained import explained
from derivations.declare.statements.motion import Writer
from derivations.declare.tiers import on_grid, settled

WIDTH = 110
LONGEST = 400
"""Closed forms with more operations appear only in the Python page."""
BRIEF = 60
"""For slopes with more operations than this, the page shows only the rule that derives them."""


def statement(parameters: Any, tier: str) -> Page:
    """The page of a tier.  Raises `UsageError` for a tier that does not exist."""
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
