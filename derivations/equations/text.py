"""Programs as text for a reader: one line for each item, pass by pass."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from derivations.equations.lower import lower
from derivations.equations.program import Apply, Define, Item, Pairs, Product, Program
from derivations.statement import Statement, key_of


def passes(
    statement: Statement, numbers: Mapping[str, Any] | None = None, symmetric: frozenset[str] = frozenset()
) -> str:
    """The program of a statement after every pass, at numbers of its constants, by default those of its example."""
    stages = lower(statement, example_numbers(statement) if numbers is None else numbers, symmetric)
    lines, before = [], ""
    for name, program in stages.items():
        text = program_text(program)
        lines += [f"-- after pass {name}" + (": nothing changed" if text == before else ""), ""]
        lines += [] if text == before else [text, ""]
        before = text
    return "\n".join(lines)


def program_text(program: Program) -> str:
    """The set-up and the body of a program."""
    lines = [f"{item_text(item)}   (set-up)" for item in program.setup] + [item_text(item) for item in program.body]
    lines += [f"d{output.component}/dt at {_at(output.axes)} is {output.name}" for output in program.outputs]
    return "\n".join(lines)


def item_text(item: Item) -> str:
    """One item as a formula.

    >>> from derivations.statement import sp
    >>> i, r, x, w = sp.Idx("i", 2), sp.Idx("r", 3), sp.IndexedBase("x"), sp.IndexedBase("w")
    >>> item_text(Define("h", (i,), w[i, r] * x[r], (r,)))
    'h[i] = sum_r w[i, r]*x[r]'
    """
    if isinstance(item, Define):
        word = "" if not item.over else f"{item.reduction}_{','.join(i.name for i in item.over)} "
        return f"{item.name}{_at(item.axes)} = {word}{item.value}"
    if isinstance(item, Apply):
        targets = ", ".join(f"{name}{_at(axes)}" for name, axes in item.targets)
        return f"{targets} = rule {item.rule.name} of {', '.join(item.arguments)}"
    if isinstance(item, Pairs):
        return "\n".join(_pairs_lines(item))
    return "\n".join(_product_lines(item))


def _at(axes: tuple[Any, ...]) -> str:
    return f"[{', '.join(str(i) for i in axes)}]" if axes else ""


def _pairs_lines(item: Pairs) -> list[str]:
    lines = [f"kernel {item.name}({', '.join(map(str, item.slots))}), {len(item.values)} functions, at"]
    for use in item.uses:
        half = ", pairs i <= j alone" if use.mirrored is not None else ""
        arguments = ", ".join(map(str, use.arguments))
        lines.append(f"    {', '.join(use.targets)}{_at(use.axes)} = {item.name}({arguments}){half}")
    return lines


def _product_lines(item: Product) -> list[str]:
    lines = ["product of matrices"]
    for rows in item.rows:
        for k, (name, j) in enumerate(zip(rows.names, item.columns, strict=True)):
            terms = [
                f"{number}*{left}*{block[k]}"
                for (number, left), block in zip(rows.left, item.right, strict=True)
                if block[k] is not None
            ]
            inner = ",".join(dict.fromkeys(r.name for r in item.inner))
            lines.append(f"    {name}{_at((rows.axis, j))} = sum_{inner} {' + '.join(terms)}")
    return lines


def example_numbers(statement: Statement) -> dict[str, Any]:
    """Numbers of the constants of a page's example: defaults are numbers, or NumPy code in the names before them."""
    known: dict[str, Any] = {"np": np}
    for constant in statement.constants:
        name = key_of(constant.target)
        value = statement.sizes.get(name, constant.default)
        value = constant.default if value == -1 else value  # a length that the statement leaves open
        known[name] = eval(value, dict(known)) if isinstance(value, str) else value
    del known["np"]
    return known
