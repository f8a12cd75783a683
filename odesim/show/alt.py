"""Alternative text of figures, for screen readers, generated from the drawn figure."""

import re
from typing import Any

MOST = 8
"""Largest number of lines whose names are read out; of more lines only the number is."""


def describe(figure: Any) -> str:
    """Return title, panels with their axes and ranges, and the names of the drawn objects; repeated panels appear
    once.
    """
    panels: dict[str, int] = {}
    for axis in figure.axes:
        if axis.get_visible() and axis.get_label() != "<colorbar>":
            words = _panel(axis)
            panels[words] = panels.get(words, 0) + 1
    sentences = [f"{words} ({count} panels)" if count > 1 else words for words, count in panels.items() if words]
    title = plain(figure.get_suptitle()).replace("\n", ", ")
    return ". ".join([*([title] if title else []), *sentences]) + "."


def _panel(axis: Any) -> str:
    """Return one panel in words."""
    if axis.tables:
        return f"table: {'; '.join(_rows(axis.tables[0]))}"
    title, across, up = plain(axis.get_title() or axis.get_title(loc="left")), _scale(axis, "x"), _scale(axis, "y")
    kind = "heat map" if axis.images else "plot"
    lines = f"{up or 'values'} against {across}" if across else up
    words = ", ".join(part for part in (title, f"{kind} of {lines}" if lines else kind) if part)
    _, labels = axis.get_legend_handles_labels()
    names = [plain(label) for label in labels]
    if names:
        words += f": {', '.join(names)}" if len(names) <= MOST else f": {len(names)} lines"
    return words


def _rows(table: Any) -> list[str]:
    """The rows of a table, each with its cells."""
    cells = table.get_celld()
    rows = sorted({row for row, _ in cells})
    return [
        ", ".join(plain(cells[row, column].get_text().get_text()) for r, column in sorted(cells) if r == row)
        for row in rows
    ]


def _scale(axis: Any, letter: str) -> str:
    """Return the label of an axis and its range in words."""
    scale = axis.xaxis if letter == "x" else axis.yaxis
    label = plain(scale.get_label().get_text())
    if not label:
        return ""
    low, high = sorted(scale.get_view_interval())
    return f"{label} ({low:.3g} to {high:.3g}{', logarithmic' if scale.get_scale() == 'log' else ''})"


def plain(text: str) -> str:
    r"""Return a text without mathematical markup.

    >>> plain(r"time $t/\sqrt{d}$"), plain(r"$\gamma^{(2)}_{ij}$")
    ('time t/sqrt(d)', 'gamma^(2)_ij')
    >>> plain(r"$|w_i\cdot w^*_j|$"), plain(r"$d = 2 \times 10^4$")
    ('|w_i . w^*_j|', 'd = 2 x 10^4')
    """
    text = text.replace(r"\cdot", " . ").replace(r"\times", " x ").replace(r"\to", " to ")
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\\(?:bar|mathrm|mathcal|left|right)(?![a-z])\s*", "", text)
    text = re.sub(r"\\[,;! ]", " ", text).replace(r"\langle", "<").replace(r"\rangle", ">").replace(r"\|", "|")
    text = re.sub(r"[_^]\{([^{}]*)\}", lambda match: match.group(0)[0] + match.group(1), text)
    return re.sub(r"\s+", " ", re.sub(r"[${}\\]", "", text)).strip()
