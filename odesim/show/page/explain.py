"""Explanation of why the equations of a tier close: methods and errors of a declared model, or of a paper's tier."""

import textwrap
from collections.abc import Iterable
from typing import Any

from derivations.contract import Map, Page, Stage, System, UsageError, load
from derivations.statement import Mean, Statement, sp

WIDTH = 110


def page(system: System, stage: Stage, parameters: Any, tier: str, statement: Statement | Page) -> str:
    """Return the explanation of a tier, then the other tiers of its stage with their neglected terms, or why they do
    not exist.
    """
    if isinstance(statement, Page):
        head, lines = f"{system.name}: {system.title}", statement.why.splitlines()
    else:
        head, lines = f"{statement.name}: {statement.title}", _of_statement(statement)
    paragraphs = [head, "", "Why it closes", *_wrapped(lines)]
    neighbours = [] if isinstance(stage, Map) else _others(stage, parameters, tier)
    section = ["", "Other tiers", *_wrapped(neighbours)] if neighbours else []
    return "\n".join([*paragraphs, *section]).replace("`", "") + "\n"


def _of_statement(statement: Statement) -> list[str]:
    """Return the validity of a stated tier, its neglected terms, and the mean behind every kernel with its closed
    form.
    """
    lines = [f"valid: {statement.validity}", f"neglects: {statement.neglects}"]
    for kernel in statement.kernels:
        kind = "an expectation" if kernel.means else "a function"
        note = f" ({kernel.note})" if kernel.note else ""
        methods = " and ".join(dict.fromkeys(_method(value) for value in kernel.values.values()))
        lines.append(f"{', '.join(kernel.values)}: {kind}, by {methods}{note}")
    lines += [
        f"{', '.join(dict.fromkeys(str(getattr(t, 'base', t)) for t in d.targets))}: {d.meaning}, by the rule "
        f"{d.rule.name}"
        for d in statement.arrays if d.rule is not None
    ]  # fmt: skip
    cut = [f"{name} is cut at {count} terms" for name, count in statement.terms.items()]
    means = [
        f"the mean over {name} is taken at {nodes} Gauss-Legendre nodes"
        for name, (_, _, nodes) in statement.laws.items()
    ]
    return [*lines, *cut, *means, *statement.rules]


def _method(value: Any) -> str:
    """Return the method that evaluates the form of a kernel."""
    e = sp.sympify(value)
    if e.has(sp.Integral):
        return "a one-dimensional integral"
    if any(limit[-1] == sp.oo for s in e.atoms(sp.Sum) for limit in s.limits):
        return "a truncated series"
    return "a mean at Gauss-Legendre nodes" if e.has(Mean) else "a closed form"


def _others(stage: Any, parameters: Any, tier: str) -> list[str]:
    """Return a line for every other tier of a stage."""
    lines = []
    for name in stage.tiers:
        if name in (tier, stage.tier(parameters) if tier == "auto" else tier):
            continue
        try:
            equations = load(stage.equations)(parameters, name)
        except UsageError as reason:
            lines.append(f"{name}: none here: {str(reason).removeprefix(f'tier {name}: ')}")
            continue
        lines.append(f"{name}: {equations.about.validity}; neglects {equations.about.neglects or 'nothing'}")
    return lines


def _wrapped(lines: Iterable[str]) -> list[str]:
    return [
        part for line in lines
        for part in textwrap.wrap(
            line, WIDTH, initial_indent="  ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
        )
    ]  # fmt: skip
