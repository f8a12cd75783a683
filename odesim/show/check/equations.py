"""The derived equations of a model as MathML, a formula for every line of its LaTeX."""

import re
from collections.abc import Iterator

from odesim.show.report import tex

DISPLAY = re.compile(r"\\begin\{(align|equation|gather)\*?\}\n?(.*?)\\end\{\1\*?\}", re.DOTALL)
ROW = re.compile(r"\\\\(?:\[[^\]]*\])?|\\(?:begin|end)\{")


def formulas(fragment: str) -> list[str]:
    r"""Return the lines of the displays of a LaTeX fragment as MathML.

    Example:
        >>> found = formulas("\\begin{align}\na &= 1\\\\\nb &= 2\n\\end{align}\n")
        >>> len(found), found[1].startswith('<math display="block"><mi>b</mi><mo>=</mo>')
        (2, True)
    """
    return [
        tex.mathml(_unaligned(line), display=True)
        for display in DISPLAY.finditer(fragment)
        for line in rows(display[2])
        if line.strip()
    ]


def rows(display: str) -> Iterator[str]:
    r"""Yield the rows of a display, without splitting environments inside of it.

    Example:
        >>> list(rows(r"a \\ \begin{cases} 1 \\ 2 \end{cases} \\ c"))
        ['a ', ' \\begin{cases} 1 \\\\ 2 \\end{cases} ', ' c']
    """
    depth = start = 0
    for match in ROW.finditer(display):
        if match[0] == "\\begin{":
            depth += 1
        elif match[0] == "\\end{":
            depth -= 1
        elif depth == 0:
            yield display[start : match.start()]
            start = match.end()
    yield display[start:]


def _unaligned(row: str) -> str:
    """Remove the alignment marks of a row, except those of environments inside of it."""
    parts, depth = [], 0
    for piece in re.split(r"(\\begin\{|\\end\{|(?<!\\)&)", row):
        depth += {"\\begin{": 1, "\\end{": -1}.get(piece, 0)
        if piece != "&" or depth:
            parts.append(piece)
    return "".join(parts)
