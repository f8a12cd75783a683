"""The errata of a system from its README, and their Markdown as HTML with the formulas as MathML."""

import re
from typing import Any

from odesim.show.report import tex

HELD = re.compile(r"(?P<code>`+[^`]*`+)|\$\$(?P<display>.+?)\$\$|\$(?P<inline>[^$\n]+(?:\n[^$\n]+)?)\$", re.DOTALL)
"""Pattern of code, which is unchanged, and of formulas, which Markdown must not read (an underscore there is no
emphasis).
"""
PLACE = "\ue000{}\ue001"
"""Placeholder of a formula while Markdown is read; letters of the private use area occur in no text."""


def errata(system: str) -> dict[str, tuple[str, str]]:
    """Return (title, text) of every `### NAME: TITLE` in the README of a system, by its name; the text keeps its
    markup.
    """
    from odesim.code.sources import home

    place = home(system)
    path = place / "README.md" if place is not None else None
    if path is None or not path.is_file():
        return {}
    pattern = re.compile(r"^### ([^:\n]+): *(.*?)\n(.*?)(?=^#{1,3} |\Z)", re.MULTILINE | re.DOTALL)
    return {name: (title, text.strip()) for name, title, text in pattern.findall(path.read_text(encoding="utf-8"))}


def rendered(text: str, *, inline: bool = False) -> Any:
    """Markdown as safe HTML: tables, lists, code and formulas; its HTML, links and pictures stay text.

    Example:
        >>> print(rendered("*so* $x^2$ <b>", inline=True))
        <em>so</em> <math><msup><mi>x</mi><mn>2</mn></msup></math> &lt;b&gt;
    """
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    formulas: list[str] = []

    def hold(found: re.Match[str]) -> str:
        if found["code"] is not None:
            return found["code"]
        formulas.append(tex.mathml(found["display"] or found["inline"], display=found["display"] is not None))
        return PLACE.format(len(formulas) - 1)

    held = HELD.sub(hold, re.sub("[\ue000\ue001]", "", text))
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.disable(["link", "image", "autolink", "html_inline", "html_block", "reference"])
    html = reader.renderInline(held) if inline else reader.render(held)
    return Markup(re.sub("\ue000(\\d+)\ue001", lambda found: formulas[int(found[1])], html))
